"""Small matrices, m×m or d×d, their decompositions, and the rounding of products.

Small matrices are NumPy arrays to most of the program. Those that were computed on a device stay
there as a `DeviceMatrix`: products, sums and scalings are made there, and small results, such as
products with a few axes, are returned to the host. NumPy converts it for anything else, so callers
need not know; it is only slower.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from mercer.arrays.places import (
    Array,
    Matrix,
    Vector,
    cast,
    device,
    like,
    namespace,
    on_accelerator,
    to_numpy,
)
from mercer.threads import in_threads, serial_blas, shares

# A LAPACK call smaller than this gains nothing from a second thread and can lose much.
_SERIAL = 1000
# One smaller than this runs in one thread anyway.
_THREADED = 32
# One smaller than this is not worth the way to a device.
_HELPED = 500
# Rows that are cast to float64 at a time.
_ROWS = 512
# Fewer entries than this are faster on the host.
_LEAST = 2**18
_THERE = {np.matmul, np.add, np.subtract, np.multiply, np.true_divide}

_helper: ContextVar[Array] = ContextVar("mercer_helper", default=None)


@contextlib.contextmanager
def device_lapack(reference: Array) -> Iterator[None]:
    """Decompose large host matrices on the device of an array, inside a ``with`` block."""
    token = _helper.set(reference if on_accelerator(reference) else None)
    try:
        yield
    finally:
        _helper.reset(token)


def eigh(A: Matrix, k: int | None = None) -> tuple[Vector, Matrix]:
    """Return the k largest eigenvalues of a symmetric host matrix, descending, and vectors."""
    import scipy.linalg

    N = A.shape[0]
    k = N if k is None else k
    helper = A.device_array if isinstance(A, DeviceMatrix) else _helper.get()
    if helper is not None and N >= _HELPED:
        xp = namespace(helper)
        # Each library has an error of its own for what does not converge: then the host tries.
        with contextlib.suppress(RuntimeError, np.linalg.LinAlgError):
            values, V = xp.linalg.eigh(like(A, helper, np.float64))
            return to_numpy(values)[::-1][:k].copy(), small_matrix(xp.flip(V[:, N - k :], axis=1))
    A = to_numpy(A)
    with lapack_threads(N):
        if 4 * k < N:  # beyond a quarter, all of them by divide and conquer come sooner
            with contextlib.suppress(np.linalg.LinAlgError):
                w, V = scipy.linalg.eigh(A, subset_by_index=[N - k, N - 1], check_finite=False)
                if len(w) == k:  # else LAPACK's bisection has lost some of a cluster
                    return w[::-1].copy(), np.ascontiguousarray(V[:, ::-1])
        # Divide and conquer (NumPy's, which lets other threads run), QR iteration, relatively
        # robust representations, and bisection, from fastest to slowest; each fails on matrices
        # that the others solve.
        for driver in ("evd", "ev", "evr", "evx"):
            try:
                if driver == "evd":
                    w, V = np.linalg.eigh(A)
                else:
                    w, V = scipy.linalg.eigh(A, driver=driver, check_finite=False)
                break
            except np.linalg.LinAlgError:
                if driver == "evx":
                    raise
    return w[::-1][:k].copy(), np.ascontiguousarray(V[:, ::-1][:, :k])


def eigvalsh(A: Matrix) -> Vector:
    """Return all eigenvalues of a symmetric host matrix, ascending."""
    try:
        return np.asarray(np.linalg.eigvalsh(A), np.float64)
    except np.linalg.LinAlgError:
        return eigh(A)[0][::-1].copy()


def orthonormalize(W: Array) -> tuple[Array, Matrix]:
    """Return Q, R of a tall matrix by Householder reflections, R on the host."""
    if isinstance(W, np.ndarray):
        import scipy.linalg

        # However few its columns, LAPACK cuts a tall matrix among threads.
        with lapack_threads(max(W.shape[1], min(len(W) // 32, _THREADED + 1))):
            Q, R = scipy.linalg.qr(W, mode="economic", check_finite=False)
        return Q, np.asarray(R, np.float64)
    xp = namespace(W)
    Q, R = xp.linalg.qr(W)
    return Q, to_numpy(R).astype(np.float64)


def orthogonalize(rows: Array, W: Array) -> tuple[Array, Array]:
    """Return the part of W that is orthogonal to orthonormal rows, and the overlaps rows @ W."""
    if not isinstance(W, np.ndarray):
        overlaps = rows @ W
        return W - rows.T @ overlaps, overlaps
    parts = shares(W.shape[0])
    overlaps = sum(in_threads(lambda part: rows[:, part] @ W[part], parts))
    rest = np.empty_like(W)

    def subtract(part: slice) -> None:
        np.subtract(W[part], rows[:, part].T @ overlaps, out=rest[part])

    in_threads(subtract, parts)
    return rest, overlaps


def triangle(A: Array) -> Array:
    """Return the R factor alone of a tall matrix."""
    if isinstance(A, np.ndarray):
        from scipy.linalg import lapack

        if not A.size:
            return A[: A.shape[1]]
        room = int(lapack.dgeqrf_lwork(*A.shape)[0])
        return np.triu(lapack.dgeqrf(A, lwork=room, overwrite_a=1)[0][: A.shape[1]])
    return namespace(A).linalg.qr(A)[1]


def svd(A: Matrix) -> tuple[Matrix, Vector, Matrix]:
    """Return the SVD of a small host matrix; falls back to the slower LAPACK driver."""
    with lapack_threads(min(A.shape)):
        try:
            return np.linalg.svd(A, full_matrices=False)
        except np.linalg.LinAlgError:
            import scipy.linalg

            return scipy.linalg.svd(
                A, full_matrices=False, check_finite=False, lapack_driver="gesvd"
            )


def column_signs(V: Array) -> Vector:
    """Return the signs that make the entry of largest magnitude of each column positive.

    The first of equals; 1 for a column of zeros. The sign convention of scikit-learn.
    """
    xp, (d, k) = namespace(V), V.shape
    if not d or not k:
        return np.ones(int(k))
    sizes = np.abs(V.T, order="C") if isinstance(V, np.ndarray) else xp.abs(V.T)
    largest = V[xp.argmax(sizes, axis=1), like(np.arange(k), V)]
    return np.where(to_numpy(largest) < 0.0, -1.0, 1.0)


def column_norms(A: Matrix) -> Vector:
    """Return the column norms without underflow."""
    largest = float(np.abs(A).max(initial=0.0))
    if largest == 0.0:
        return np.zeros(A.shape[1])
    return largest * np.asarray(np.sqrt(((A / largest) ** 2).sum(axis=0)))


def lapack_threads(N: int) -> Any:
    """Return a context with the best number of threads for a matrix of N rows."""
    return serial_blas() if _THREADED < N < _SERIAL else contextlib.nullcontext()


def cholesky_whitener(A: Matrix) -> Matrix | None:
    """Return T with TᵀAT = I, triangular, by a Cholesky decomposition; None where it fails."""
    if not isinstance(A, DeviceMatrix):
        import scipy.linalg.lapack

        L, failed = scipy.linalg.lapack.dpotrf(A, lower=1, clean=1)
        if failed:
            return None
        inverse, failed = scipy.linalg.lapack.dtrtri(L, lower=1)
        return None if failed else inverse.T
    xp = namespace(A.device_array)
    try:
        L = xp.linalg.cholesky(A.device_array)
    except Exception:  # each library has an error of its own for what is not positive definite
        return None
    eye = xp.eye(len(A), dtype=L.dtype, device=device(L))
    solve = getattr(xp.linalg, "solve_triangular", None)
    inverse = xp.linalg.solve(L, eye) if solve is None else solve(L, eye, upper=False)
    return small_matrix(inverse.T)


def is_positive_definite(A: Array, shift: float) -> bool:
    """Return whether A + `shift` I has a Cholesky factor, for a symmetric matrix; overwrites A."""
    if isinstance(A, np.ndarray):
        import scipy.linalg.lapack

        A.flat[:: len(A) + 1] += shift
        factor: Any = scipy.linalg.get_lapack_funcs("potrf", (A,))
        return int(factor(A.T, clean=0, overwrite_a=1)[1]) == 0
    xp = namespace(A)
    try:
        xp.linalg.cholesky(A + shift * xp.eye(len(A), dtype=A.dtype, device=device(A)))
    except Exception:  # each library has an error of its own for what is not positive definite
        return False
    return True


def squares(A: Array) -> float:
    """Return the sum of the squares of the entries."""
    if isinstance(A, np.ndarray):
        return float(np.einsum("ij,ij->i", A, A).sum(dtype=np.float64))
    A = getattr(A, "device_array", A)
    xp = namespace(A)
    if hasattr(A, "is_cuda"):  # torch's norm sums float32 as float64, without a copy
        return float(xp.linalg.vector_norm(A, dtype=xp.float64)) ** 2
    A = cast(A, np.float64)
    return float(xp.sum(A * A))


def diagonal(A: Array) -> Vector:
    """Return the diagonal, on the host, float64."""
    return to_numpy(namespace(A).linalg.diagonal(A)).astype(np.float64)


def double_product(A: Array, V: Array) -> Array:
    """Return A @ V in float64, some rows of A at a time."""
    n, xp = int(A.shape[0]), namespace(V)
    strips = (slice(start, min(start + _ROWS, n)) for start in range(0, n, _ROWS))
    return xp.concat([cast(A[strip, :], np.float64) @ V for strip in strips])


def longest_column(A: Array) -> float:
    """Return the largest absolute column sum, ‖A‖₁, which bounds ‖A‖₂ of a symmetric matrix."""
    A = getattr(A, "device_array", A)
    xp = namespace(A)
    return float(xp.max(xp.sum(xp.abs(A), axis=0)))


def small_matrix(x: Array) -> Matrix:
    """Return a float64 matrix: as a NumPy array, or where it is if it is large and on a device."""
    if isinstance(x, np.ndarray):
        return x
    if on_accelerator(x) and math.prod(x.shape) >= _LEAST:
        return DeviceMatrix(x)  # type: ignore[return-value]
    return np.asarray(to_numpy(x))


class DeviceMatrix(np.lib.mixins.NDArrayOperatorsMixin):
    """A float64 matrix on a device, `device_array`, that NumPy code can use."""

    dtype = np.dtype(np.float64)
    ndim = 2

    def __init__(self, device_array: Array) -> None:
        self.device_array = cast(device_array, np.float64)
        self.shape = tuple(int(size) for size in device_array.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        host = to_numpy(self.device_array)
        return host if dtype is None else host.astype(dtype, copy=False)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def T(self) -> Matrix:  # noqa: N802 (NumPy's name)
        return small_matrix(self.device_array.T)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, np.ndarray) and key.dtype.kind in "iu":
            xp, at = namespace(self.device_array), like(key, self.device_array)
            return small_matrix(xp.take(self.device_array, at, axis=0))
        keys = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(part, (int, slice)) for part in keys):
            return np.asarray(self)[key]
        part = self.device_array[key]
        return small_matrix(part) if part.ndim == 2 else to_numpy(part)

    def __setitem__(self, key: Any, value: Any) -> None:
        host = np.array(self)
        host[key] = value
        self.device_array[...] = like(host, self.device_array)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        (out,) = options.pop("out", (None,))
        if isinstance(out, DeviceMatrix):  # A -= B
            result = self.__array_ufunc__(ufunc, method, *inputs, **options)
            out.device_array[...] = like(result, out.device_array)
            return out
        options = options if out is None else {**options, "out": (out,)}
        if ufunc not in _THERE or method != "__call__" or options:
            inputs = tuple(np.asarray(x) if isinstance(x, DeviceMatrix) else x for x in inputs)
            return getattr(ufunc, method)(*inputs, **options)
        xp = namespace(self.device_array)
        result = getattr(xp, ufunc.__name__)(
            *(like(x, self.device_array, np.float64) for x in inputs)
        )
        return small_matrix(result) if result.ndim == 2 else to_numpy(result)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        linalg = namespace(self.device_array).linalg
        if func is np.trace and len(args) == 1:
            return np.float64(float(linalg.trace(self.device_array)))
        if func in (np.diag, np.diagonal) and len(args) == 1:
            return to_numpy(linalg.diagonal(self.device_array)).copy()
        return func(*(np.asarray(x) if isinstance(x, DeviceMatrix) else x for x in args), **kwargs)


# How far computed sums can be from exact ones, in unit roundoffs u = ε/2 of a precision.
#
# Float64 sums of n products are off by n u at most, whatever their order. For float32 that would
# say nothing: 3.3 u √n holds with 99.9 % where roundings are independent (Higham & Mary 2019), and
# roundings of equal terms, which are not, drift by a third of the terms that are added one after
# the other. A matrix product on the host adds a few hundred so, on a device it may be all.

FEW = 8.0
"""Unit roundoffs of an elementary function and the few operations around it."""
LIKELY = 3.3
"""Unit roundoffs for the root of the number of terms, which independent roundings stay below."""

_DRIFT, _RUN = 1.0 / 3.0, 384


def confidence(dtype: Any) -> float:
    """Return the probability with which bounds on rounding hold."""
    return 1.0 if np.dtype(dtype) == np.float64 else 0.999


def drift(terms: float, reference: Array = None) -> float:
    """Return what roundings of equal terms add up to in a float32 product."""
    device = reference is not None and on_accelerator(reference)
    return _DRIFT * (terms if device else min(terms, _RUN))


def summed(terms: float, dtype: Any, reference: Array = None) -> float:
    """Return the relative error of a sum of products where the reference lives."""
    if confidence(dtype) == 1.0:
        return float(terms)
    return min(float(terms), max(LIKELY * math.sqrt(terms), drift(terms, reference)))
