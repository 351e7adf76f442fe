"""Functions for arrays of any library; the only importer of array_api_compat.

Data stays in the library and on the device it came from (NumPy, torch, ...). Small matrices, the
spectra and projected matrices of the solvers, are float64 NumPy arrays; those computed on a device
stay there until the host needs them (`DeviceMatrix`).
"""

from mercer.arrays.csr import CSR as CSR
from mercer.arrays.csr import ENTRY_BYTES as ENTRY_BYTES
from mercer.arrays.linear import FEW as FEW
from mercer.arrays.linear import LIKELY as LIKELY
from mercer.arrays.linear import DeviceMatrix as DeviceMatrix
from mercer.arrays.linear import cholesky_whitener as cholesky_whitener
from mercer.arrays.linear import column_norms as column_norms
from mercer.arrays.linear import column_signs as column_signs
from mercer.arrays.linear import confidence as confidence
from mercer.arrays.linear import device_lapack as device_lapack
from mercer.arrays.linear import diagonal as diagonal
from mercer.arrays.linear import double_product as double_product
from mercer.arrays.linear import drift as drift
from mercer.arrays.linear import eigh as eigh
from mercer.arrays.linear import eigvalsh as eigvalsh
from mercer.arrays.linear import is_positive_definite as is_positive_definite
from mercer.arrays.linear import lapack_threads as lapack_threads
from mercer.arrays.linear import longest_column as longest_column
from mercer.arrays.linear import orthogonalize as orthogonalize
from mercer.arrays.linear import orthonormalize as orthonormalize
from mercer.arrays.linear import small_matrix as small_matrix
from mercer.arrays.linear import squares as squares
from mercer.arrays.linear import summed as summed
from mercer.arrays.linear import svd as svd
from mercer.arrays.linear import triangle as triangle
from mercer.arrays.places import Array as Array
from mercer.arrays.places import Matrix as Matrix
from mercer.arrays.places import Vector as Vector
from mercer.arrays.places import cast as cast
from mercer.arrays.places import device as device
from mercer.arrays.places import device_memory as device_memory
from mercer.arrays.places import device_reference as device_reference
from mercer.arrays.places import empty as empty
from mercer.arrays.places import is_dask as is_dask
from mercer.arrays.places import is_finite as is_finite
from mercer.arrays.places import is_foreign as is_foreign
from mercer.arrays.places import like as like
from mercer.arrays.places import namespace as namespace
from mercer.arrays.places import numpy_dtype as numpy_dtype
from mercer.arrays.places import on_accelerator as on_accelerator
from mercer.arrays.places import product_eps as product_eps
from mercer.arrays.places import products as products
from mercer.arrays.places import put as put
from mercer.arrays.places import reference_of as reference_of
from mercer.arrays.places import same_device as same_device
from mercer.arrays.places import to_numpy as to_numpy
from mercer.arrays.places import torch_tensor as torch_tensor
from mercer.arrays.places import working_dtype as working_dtype
from mercer.arrays.sparse import as_csr as as_csr
from mercer.arrays.sparse import dense_remedy as dense_remedy
from mercer.arrays.sparse import entry_rows as entry_rows
from mercer.arrays.sparse import first_entry as first_entry
from mercer.arrays.sparse import is_sparse as is_sparse
from mercer.arrays.sparse import row_maxima as row_maxima
from mercer.arrays.sparse import row_products as row_products
from mercer.arrays.sparse import scale_columns as scale_columns
from mercer.arrays.sparse import scale_rows as scale_rows
from mercer.arrays.sparse import sparse_like as sparse_like
from mercer.arrays.sparse import squared_norms as squared_norms
from mercer.arrays.sparse import stack_rows as stack_rows
from mercer.arrays.sparse import to_device_of as to_device_of
from mercer.arrays.sparse import with_data as with_data
from mercer.arrays.transfer import copy_stream as copy_stream
