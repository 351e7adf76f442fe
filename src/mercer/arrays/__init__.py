"""Arrays of any library behind a few functions; the only importer of array_api_compat.

Big arrays stay where they came from (NumPy, torch, ...). Small ones, the spectra and the
projected matrices of the solvers, are NumPy's float64 to the program; those that were made on a
device stay there until the host must have them (`Remote`).
"""

from mercer.arrays.accelerator import device_memory, device_reference, product_eps, products
from mercer.arrays.linear import (
    column_signs,
    eigh,
    eigvalsh,
    helped_by,
    lapack_threads,
    longest_column,
    orthogonalize,
    orthonormalize,
    squares,
    svd,
    triangle,
    whitened,
)
from mercer.arrays.places import (
    Array,
    Matrix,
    Vector,
    cast,
    device,
    empty,
    is_dask,
    is_finite,
    is_foreign,
    like,
    moved,
    namespace,
    numpy_dtype,
    on_accelerator,
    put,
    to_numpy,
    together,
    torch_tensor,
    working_dtype,
)
from mercer.arrays.remote import Remote, held
from mercer.arrays.transfer import apart_stream

__all__ = [
    "Array",
    "Matrix",
    "Remote",
    "Vector",
    "apart_stream",
    "cast",
    "column_signs",
    "device",
    "device_memory",
    "device_reference",
    "eigh",
    "eigvalsh",
    "empty",
    "held",
    "helped_by",
    "is_dask",
    "is_finite",
    "is_foreign",
    "lapack_threads",
    "like",
    "longest_column",
    "moved",
    "namespace",
    "numpy_dtype",
    "on_accelerator",
    "orthogonalize",
    "orthonormalize",
    "product_eps",
    "products",
    "put",
    "squares",
    "svd",
    "to_numpy",
    "together",
    "torch_tensor",
    "triangle",
    "whitened",
    "working_dtype",
]
