"""Arrays of any library behind a few functions; the only importer of array_api_compat.

Big arrays stay where they came from (NumPy, torch, ...). Small ones, the spectra and the
projected matrices of the solvers, live on the host as NumPy float64.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.threads import serial_blas

Array = Any
"""An array of NumPy or of another library that follows the array API standard."""
Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

# A LAPACK call smaller than this gains nothing from a second thread and can lose much.
_SERIAL = 1000


def namespace(x: Any) -> Any:
    """Return the array API namespace of an array; NumPy for anything that has none."""
    if isinstance(x, np.ndarray) or not is_foreign(x):
        return np
    import array_api_compat

    return array_api_compat.array_namespace(x)


def is_foreign(x: Any) -> bool:
    """Tell whether x is an array of a library other than NumPy."""
    if isinstance(x, (np.ndarray, np.generic, list, tuple)) or hasattr(x, "iloc"):
        return False
    import array_api_compat

    return bool(array_api_compat.is_array_api_obj(x)) and not (
        array_api_compat.is_numpy_array(x) or array_api_compat.is_pydata_sparse_array(x)
    )


def is_dask(x: Any) -> bool:
    """Tell whether x is a Dask array."""
    import array_api_compat

    return bool(array_api_compat.is_dask_array(x))


def device(x: Array) -> Any:
    """Return the device an array lives on; None for NumPy."""
    if isinstance(x, np.ndarray):
        return None
    import array_api_compat

    return array_api_compat.device(x)


def numpy_dtype(x: Array) -> np.dtype[Any]:
    """Return the dtype of any array as NumPy's."""
    if isinstance(x, np.ndarray):
        return np.dtype(x.dtype)
    name = str(getattr(x, "dtype", np.float64)).rsplit(".", 1)[-1].strip("'>")
    try:
        return np.dtype(name)
    except TypeError:  # a type NumPy does not have, such as bfloat16
        return np.dtype(object)


def working_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the precision a computation runs in: float32 stays, all else is float64."""
    return np.dtype(np.float32 if np.dtype(dtype) == np.float32 else np.float64)


def to_numpy(x: Array) -> npt.NDArray[Any]:
    """Bring any array to the host."""
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "detach"):  # a torch tensor, wherever it lives
        return np.asarray(x.detach().cpu())
    if type(x).__module__.startswith("cupy"):
        return np.asarray(x.get())
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
    """Bring a host array to where `reference` lives."""
    x = np.asarray(x, dtype=dtype)
    if isinstance(reference, np.ndarray):
        return x
    xp = namespace(reference)
    kind = getattr(xp, x.dtype.name)
    return xp.asarray(np.ascontiguousarray(x), dtype=kind, device=device(reference))


def empty(shape: tuple[int, ...], reference: Array, dtype: Any) -> Array:
    """Make an uninitialised array where `reference` lives."""
    if isinstance(reference, np.ndarray):
        return np.empty(shape, dtype)
    xp = namespace(reference)
    return xp.empty(shape, dtype=getattr(xp, np.dtype(dtype).name), device=device(reference))


def torch_tensor(x: npt.NDArray[Any]) -> Array:
    """Return a host array as a tensor of torch, on the host, of the same entries in memory."""
    try:
        import torch
    except ImportError:
        raise ImportError(
            "The model was fitted to tensors of torch, which is not installed: "
            "pip install 'mercer[torch]'."
        ) from None
    return torch.from_numpy(x)


def put(x: Array, i: Array, j: Array, values: Array) -> Array:
    """Return x with these values at (i, j): itself, or a copy where it cannot be written so."""
    try:
        x[i, j] = values
    except (IndexError, TypeError):  # the standard has no such assignment
        host = to_numpy(x).copy()
        host[to_numpy(i), to_numpy(j)] = to_numpy(values)
        return like(host, x)
    return x


def is_finite(x: Array) -> bool:
    """Tell whether every entry is finite."""
    xp = namespace(x)
    return bool(xp.all(xp.isfinite(x)))


def eigh(A: Matrix, k: int | None = None) -> tuple[Vector, Matrix]:
    """Return the k largest eigenvalues of a symmetric host matrix, descending, and vectors."""
    import scipy.linalg

    N = A.shape[0]
    k = N if k is None else k
    with lapack_threads(N):
        w, V = np.zeros(0), A
        if 4 * k < N:  # beyond a quarter, all of them by divide and conquer come sooner
            w, V = scipy.linalg.eigh(A, subset_by_index=[N - k, N - 1], check_finite=False)
        if len(w) < k:  # or LAPACK's bisection has lost some of a cluster
            w, V = scipy.linalg.eigh(A, driver="evd", check_finite=False)
    return w[::-1][:k].copy(), np.ascontiguousarray(V[:, ::-1][:, :k])


def orthonormalize(W: Array) -> tuple[Array, Matrix]:
    """Return Q, R of a tall matrix by Householder reflections, R on the host."""
    if isinstance(W, np.ndarray):
        import scipy.linalg

        with lapack_threads(W.shape[1]):
            Q, R = scipy.linalg.qr(W, mode="economic", check_finite=False)
        return Q, np.asarray(R, np.float64)
    xp = namespace(W)
    Q, R = xp.linalg.qr(W)
    return Q, to_numpy(R).astype(np.float64)


def triangle(A: Array) -> Array:
    """Return the R factor alone of a tall matrix."""
    if isinstance(A, np.ndarray):
        import scipy.linalg

        (R,) = scipy.linalg.qr(A, mode="r", overwrite_a=True, check_finite=False)
        return R[: A.shape[1]]
    return namespace(A).linalg.qr(A)[1]


def svd(A: Matrix) -> tuple[Matrix, Vector, Matrix]:
    """Return the SVD of a small host matrix; the slower LAPACK driver where the fast fails."""
    import scipy.linalg

    with lapack_threads(min(A.shape)):
        try:
            return scipy.linalg.svd(A, full_matrices=False, check_finite=False)
        except np.linalg.LinAlgError:
            return scipy.linalg.svd(
                A, full_matrices=False, check_finite=False, lapack_driver="gesvd"
            )


def lapack_threads(N: int) -> Any:
    """Return a context with the threads that serve a matrix of N rows best."""
    return serial_blas() if N < _SERIAL else contextlib.nullcontext()
