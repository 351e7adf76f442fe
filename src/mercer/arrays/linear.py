"""Decompositions of small matrices, where they are fastest."""

from __future__ import annotations

import contextlib
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
from mercer.arrays.remote import Remote, held
from mercer.threads import in_threads, serial_blas, shares

# A LAPACK call smaller than this gains nothing from a second thread and can lose much.
_SERIAL = 1000
# One smaller than this runs in one thread anyway.
_THREADED = 32
# One smaller than this is not worth the way to a device.
_HELPED = 500

_helper: ContextVar[Array] = ContextVar("mercer_helper", default=None)


@contextlib.contextmanager
def helped_by(reference: Array) -> Iterator[None]:
    """Let the device that an array lives on decompose the larger host matrices inside."""
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
    helper = A.there if isinstance(A, Remote) else _helper.get()
    if helper is not None and N >= _HELPED:
        xp = namespace(helper)
        # Each library has an error of its own for what does not converge: then the host tries.
        with contextlib.suppress(RuntimeError, np.linalg.LinAlgError):
            values, V = xp.linalg.eigh(like(A, helper, np.float64))
            return to_numpy(values)[::-1][:k].copy(), held(xp.flip(V[:, N - k :], axis=1))
    A = to_numpy(A)
    with lapack_threads(N):
        if 4 * k < N:  # beyond a quarter, all of them by divide and conquer come sooner
            with contextlib.suppress(np.linalg.LinAlgError):
                w, V = scipy.linalg.eigh(A, subset_by_index=[N - k, N - 1], check_finite=False)
                if len(w) == k:  # else LAPACK's bisection has lost some of a cluster
                    return w[::-1].copy(), np.ascontiguousarray(V[:, ::-1])
        w, V = _all_pairs(A)
    return w[::-1][:k].copy(), np.ascontiguousarray(V[:, ::-1][:, :k])


def _all_pairs(A: Matrix) -> tuple[Vector, Matrix]:
    """Return all eigenvalues, ascending, and vectors, by the fastest LAPACK driver that ends.

    Divide and conquer, QR iteration, relatively robust representations, and bisection; each
    fails on matrices that the others solve.
    """
    import scipy.linalg

    for driver in ("evd", "ev", "evr"):
        with contextlib.suppress(np.linalg.LinAlgError):
            return scipy.linalg.eigh(A, driver=driver, check_finite=False)
    return scipy.linalg.eigh(A, driver="evx", check_finite=False)


def eigvalsh(A: Matrix) -> Vector:
    """Return all eigenvalues of a symmetric host matrix, ascending."""
    try:
        return np.asarray(np.linalg.eigvalsh(A), np.float64)
    except np.linalg.LinAlgError:
        return _all_pairs(A)[0]


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


def column_signs(V: Array) -> Vector:
    """Return the signs that make the entry of largest magnitude of each column positive.

    The first of equals; 1 for a column of zeros. The sign convention of scikit-learn.
    """
    xp = namespace(V)
    rows = np.ascontiguousarray(V.T) if isinstance(V, np.ndarray) else V.T
    if not rows.shape[0] or not rows.shape[1]:
        return np.ones(int(rows.shape[0]))
    top, bottom = to_numpy(xp.argmax(rows, axis=1)), to_numpy(xp.argmin(rows, axis=1))
    high = np.array([float(rows[i, int(j)]) for i, j in enumerate(top)])
    low = np.array([float(rows[i, int(j)]) for i, j in enumerate(bottom)])
    positive = (high > -low) | ((high == -low) & (top <= bottom))
    return np.where(positive, 1.0, -1.0)


def lapack_threads(N: int) -> Any:
    """Return a context with the threads that serve a matrix of N rows best."""
    return serial_blas() if _THREADED < N < _SERIAL else contextlib.nullcontext()


def whitened(A: Matrix) -> Matrix | None:
    """Return T with TᵀAT = I, triangular, by a Cholesky decomposition; None where it fails."""
    import scipy.linalg.lapack

    if isinstance(A, Remote):
        return _whitened_there(A)
    L, failed = scipy.linalg.lapack.dpotrf(A, lower=1, clean=1)
    if failed:
        return None
    inverse, failed = scipy.linalg.lapack.dtrtri(L, lower=1)
    return None if failed else inverse.T


def _whitened_there(A: Remote) -> Matrix | None:
    xp = namespace(A.there)
    try:
        L = xp.linalg.cholesky(A.there)
    except Exception:  # each library has an error of its own for what is not positive definite
        return None
    eye = xp.eye(len(A), dtype=L.dtype, device=device(L))
    solve = getattr(xp.linalg, "solve_triangular", None)
    inverse = xp.linalg.solve(L, eye) if solve is None else solve(L, eye, upper=False)
    return held(inverse.T)


def squares(A: Array) -> float:
    """Return the sum of the squares of the entries."""
    A = getattr(A, "there", A)
    if isinstance(A, np.ndarray):
        return float(np.einsum("ij,ij->", A, A))
    xp = namespace(A)
    if hasattr(A, "is_cuda"):  # torch's norm sums float32 as float64, without a copy
        return float(xp.linalg.vector_norm(A, dtype=xp.float64)) ** 2
    A = cast(A, np.float64)
    return float(xp.sum(A * A))


def longest_column(A: Array) -> float:
    """Return the largest sum of the sizes of a column's entries: a bound on ‖A‖₂ of symmetric A."""
    A = getattr(A, "there", A)
    xp = namespace(A)
    return float(xp.max(xp.sum(xp.abs(A), axis=0)))
