"""The points that two models' components are made of, as one set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np

from mercer.arrays import (
    Matrix,
    Vector,
    cast,
    device,
    is_dask,
    like,
    namespace,
    numpy_dtype,
    to_numpy,
)
from mercer.kernels.points import Points
from mercer.metrics.models import coefficients
from mercer.projection import KernelProjection

# Coefficients that sum to less than this share of their size sum to zero.
_ZERO = 1e-9


def in_one_frame(p: KernelProjection, q: KernelProjection) -> tuple[Any, Any]:
    """Return both bases less the same shift; the components stay what they are."""
    p, q = (
        replace(each, basis=to_numpy(each.basis)) if is_dask(each.basis) else each
        for each in (p, q)
    )
    sparse = any(hasattr(each.basis, "tocsr") for each in (p, q))
    frames = [None] if sparse else sorted((p.shift, q.shift), key=lambda shift: shift is None)
    for frame in frames:
        moved = [_moved(each, frame) for each in (p, q)]
        if all(_stays(*each) for each in zip((p, q), moved, strict=True)):
            return moved[0], moved[1]
    raise ValueError(
        f"the models moved their rows by different means, and the components of {p.kernel!r} "
        f"depend on that. Fit both to the same rows, or with center=False."
    )


def _moved(projection: KernelProjection, frame: Vector | None) -> Any:
    shift, rows = projection.shift, projection.basis
    if shift is frame or (shift is not None and frame is not None and np.array_equal(shift, frame)):
        return rows
    # First the rows as they were: those that two models share become equal again.
    rows = cast(rows, np.float64)
    rows = rows if shift is None else rows + like(shift, rows)
    return rows if frame is None else rows - like(frame, rows)


def _stays(projection: KernelProjection, moved: Any) -> bool:
    """Tell whether components are the same after their points were moved.

    A kernel that `moves` changes by f(x) + f(y), which coefficients that sum to zero do not
    see; where k(x,x) stays, f is zero.
    """
    kernel = projection.kernel
    if moved is projection.basis:
        return True
    A = coefficients(projection)
    if np.all(np.abs(A.sum(axis=0)) <= _ZERO * np.abs(A).sum(axis=0)):
        return True
    assert kernel is not None
    before, after = (
        to_numpy(kernel.on_diagonal(Points(cast(rows, np.float64))))
        for rows in (projection.basis, moved)
    )
    return bool(np.allclose(before, after, rtol=1e-13, atol=0.0))


def merged(first: Any, second: Any, A: Matrix, B: Matrix) -> tuple[Any, Matrix]:
    """Return the distinct points of two bases, and the coefficients of all components over them."""
    first, second = _alike(first, second)
    places: dict[Any, int] = {}
    kept: list[int] = []
    at = np.empty(len(A) + len(B), np.int64)
    for i, key in enumerate(chain(_keys(first), _keys(second))):
        if key not in places:
            places[key] = len(kept)
            kept.append(i)
        at[i] = places[key]
    m, k = A.shape
    U = np.zeros((len(kept), k + B.shape[1]))
    np.add.at(U[:, :k], at[:m], A)
    np.add.at(U[:, k:], at[m:], B)
    index = np.array(kept)
    mine, theirs = index[index < m], index[index >= m] - m
    return _joined(_some(first, mine), _some(second, theirs)), U


def _alike(first: Any, second: Any) -> tuple[Any, Any]:
    """Return rows of the same kind: sparse where one is, else where the first live."""
    if isinstance(first, list):
        return first, second
    if hasattr(first, "tocsr") or hasattr(second, "tocsr"):
        from scipy.sparse import csr_array

        made = [x if hasattr(x, "tocsr") else csr_array(to_numpy(x)) for x in (first, second)]
        return made[0], made[1]
    if namespace(first) is not namespace(second) or device(first) != device(second):
        second = like(to_numpy(second), first)
    return first, second


def _keys(rows: Any) -> Sequence[Any]:
    """Return what tells a row from others: equal rows have equal keys."""
    if isinstance(rows, list):
        return rows
    if hasattr(rows, "tocsr"):
        csr = rows.tocsr()
        ends = np.split(np.arange(csr.nnz), csr.indptr[1:-1])
        return [_digest(csr.indices[at], csr.data[at]) for at in ends]
    return [_digest(row) for row in to_numpy(rows)]


def _digest(*parts: np.ndarray[Any, Any]) -> bytes:
    made = blake2b(digest_size=16)
    for part in parts:  # in one precision, and −0 as 0
        made.update((part.astype(np.float64) + 0.0).tobytes())
    return made.digest()


def _some(rows: Any, at: np.ndarray[Any, Any]) -> Any:
    if isinstance(rows, list):
        return [rows[i] for i in at]
    if len(at) == int(rows.shape[0]):
        return rows
    if isinstance(rows, np.ndarray) or hasattr(rows, "tocsr"):
        return rows[at]
    return namespace(rows).take(rows, like(at, rows), axis=0)


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, list):
        return first + second
    if not int(second.shape[0]):
        return first
    if hasattr(first, "tocsr"):
        from scipy.sparse import vstack

        return vstack([first, second], format="csr")
    kind = np.result_type(numpy_dtype(first), numpy_dtype(second))
    return namespace(first).concat([cast(first, kind), cast(second, kind)], axis=0)
