"""Arrays of any library on any device, and transfers between devices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.arrays.transfer import to_device, to_host
from mercer.config import BASIS, require_budget
from mercer.extras import extra

Array = Any
"""An array of NumPy or of another library that follows the array API standard."""
Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

# Types of torch's devices that have no memory of their own.
_HOSTS = {"cpu", "meta"}


def namespace(x: Any) -> Any:
    """Return the array API namespace of an array; NumPy for anything that has none."""
    if isinstance(x, np.ndarray) or not is_foreign(x):
        return np
    import array_api_compat

    return array_api_compat.array_namespace(x)


def is_foreign(x: Any) -> bool:
    """Return whether x is an array of a library other than NumPy."""
    if isinstance(x, (np.ndarray, np.generic, list, tuple)) or hasattr(x, "iloc"):
        return False
    import array_api_compat

    return bool(array_api_compat.is_array_api_obj(x)) and not (
        array_api_compat.is_numpy_array(x) or array_api_compat.is_pydata_sparse_array(x)
    )


def reference_of(rows: Any) -> Array:
    """Return an array of the library and on the device of rows: of sparse rows, their entries."""
    if isinstance(rows, list):  # of strings
        return np.empty(0)
    return getattr(rows, "data", rows) if hasattr(rows, "tocsr") else rows


def is_dask(x: Any) -> bool:
    """Return whether x is a collection of Dask: an array, or a DataFrame."""
    if not hasattr(x, "__dask_graph__"):
        return False
    # Views of AnnData are of a class of their own.
    return any(base.__module__.startswith("dask") for base in type(x).__mro__)


def device(x: Array) -> Any:
    """Return the device an array lives on; None for NumPy."""
    if isinstance(x, np.ndarray):
        return None
    import array_api_compat

    return array_api_compat.device(x)


def on_accelerator(x: Array) -> bool:
    """Return whether an array lives on a device with memory of its own, such as a GPU."""
    if isinstance(x, np.ndarray):
        return False
    x = reference_of(x)
    name = getattr(getattr(x, "device", None), "type", None)  # torch's
    if name is None:
        return type(x).__module__.startswith("cupy")
    return name not in _HOSTS


def same_device(x: Array, y: Array) -> bool:
    """Return whether two arrays, or sparse rows, have the same library and device."""
    x, y = reference_of(x), reference_of(y)
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    return namespace(x) is namespace(y) and device(x) == device(y)


def numpy_dtype(x: Array) -> np.dtype[Any]:
    """Return the dtype of any array as NumPy's."""
    if isinstance(x, np.ndarray):
        return np.dtype(x.dtype)
    name = str(getattr(x, "dtype", np.float64)).rsplit(".", 1)[-1].strip("'>")
    try:
        dtype = np.dtype(name)
    except TypeError:  # a type NumPy does not have, such as bfloat16
        return np.dtype(object)
    return np.dtype(object) if dtype.kind == "V" else dtype  # ml_dtypes gives NumPy bfloat16


def working_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the working precision: float32 for float32, otherwise float64."""
    return np.dtype(np.float32 if np.dtype(dtype) == np.float32 else np.float64)


def to_numpy(x: Array) -> npt.NDArray[Any]:
    """Copy any array to the host."""
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "detach"):  # a torch tensor, wherever it lives
        return to_host(x.detach())
    if type(x).__module__.startswith("cupy"):
        return np.asarray(x.get())
    if is_dask(x):
        # Bytes are NaN where they are not known.
        require_budget(
            getattr(x, "nbytes", 0), f"Collecting a Dask array of shape {tuple(x.shape)}", BASIS
        )
        return np.asarray(x.compute())
    if is_foreign(x):
        return np.from_dlpack(x, device="cpu")
    return np.asarray(x)


def cast(x: Array, dtype: Any) -> Array:
    """Return x in a NumPy-named precision, itself where it already is."""
    if isinstance(x, np.ndarray):
        return x.astype(dtype, copy=False)
    xp = namespace(x)
    return xp.astype(x, getattr(xp, np.dtype(dtype).name), copy=False)


def like(x: Any, reference: Array, dtype: Any = None) -> Array:
    """Copy a host array to the device of `reference`."""
    if isinstance(reference, np.ndarray):
        return np.asarray(x, dtype=dtype)
    device_array = getattr(x, "device_array", None)  # a `DeviceMatrix`
    if device_array is not None and same_device(device_array, reference):
        return device_array if dtype is None else cast(device_array, dtype)
    x = np.asarray(x, dtype=dtype)
    # A single row counts as contiguous whichever way it is read; torch takes none backwards.
    x = np.ascontiguousarray(x) if min(x.strides, default=0) >= 0 else x.copy()
    xp = namespace(reference)
    if hasattr(reference, "is_cuda") and reference.is_cuda:
        return to_device(x, reference.device)
    return xp.asarray(x, dtype=getattr(xp, x.dtype.name), device=device(reference))


def empty(shape: tuple[int, ...], reference: Array, dtype: Any) -> Array:
    """Make an uninitialized array on the device of `reference`."""
    if isinstance(reference, np.ndarray):
        return np.empty(shape, dtype)
    xp = namespace(reference)
    return xp.empty(shape, dtype=getattr(xp, np.dtype(dtype).name), device=device(reference))


def torch_tensor(x: npt.NDArray[Any]) -> Array:
    """Return a host array as a torch tensor that shares its memory."""
    return extra("torch", "torch", "The model was fitted to tensors; they require").from_numpy(x)


def put(x: Array, i: Array, j: Array, values: Array) -> Array:
    """Return x with these values at (i, j): itself, or a copy where it cannot be assigned to."""
    try:
        x[i, j] = values
    except (IndexError, TypeError):  # the standard has no such assignment
        host = to_numpy(x).copy()
        host[to_numpy(i), to_numpy(j)] = to_numpy(values)
        return like(host, x)
    return x


def is_finite(x: Array) -> bool:
    """Return whether every entry is finite."""
    if isinstance(x, np.ndarray):
        return bool(np.isfinite(x).all())
    x = getattr(x, "device_array", x)  # of a `DeviceMatrix`, where it lives
    xp = namespace(x)
    return bool(xp.all(xp.isfinite(x)))


def device_reference(name: str) -> Array:
    """Return an empty torch tensor on a device that the settings have checked."""
    import torch

    return torch.empty(0, dtype=torch.float64, device=name)


def device_memory(reference: Array) -> int | None:
    """Return the memory of the device that an array lives on; None for the host."""
    if not on_accelerator(reference):
        return None
    if hasattr(reference, "is_cuda") and reference.is_cuda:
        import torch

        return int(torch.cuda.mem_get_info(reference.device)[1])
    if type(reference).__module__.startswith("cupy"):
        with reference.device:
            import cupy  # type: ignore[import-not-found]

            return int(cupy.cuda.runtime.memGetInfo()[1])
    return None


@contextlib.contextmanager
def products(reference: Array, *, coarse: bool = False) -> Iterator[None]:
    """Compute float32 products on a GPU in float32 or, if `coarse`, in TF32 (11 bits).

    Overrides the setting of torch.
    """
    if not (on_accelerator(reference) and hasattr(reference, "is_cuda")):
        yield
        return
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if coarse else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def product_eps(dtype: Any, reference: Array, *, coarse: bool = False) -> float:
    """Return the machine epsilon of products in this dtype."""
    if coarse and np.dtype(dtype) == np.float32 and on_accelerator(reference):
        return 2.0**-10
    return float(np.finfo(dtype).eps)
