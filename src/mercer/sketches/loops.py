"""What maps do to rows that no matrix product does: compiled loops.

All write sums in the order of the columns, so a map given piece by piece gives the same bits
as a map given whole, and sparse rows those of dense ones. Nothing is compiled before its first
call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from mercer.arrays import Matrix, Vector

Ints = npt.NDArray[Any]


@njit(nogil=True, cache=True)
def add_products(
    at: Ints,
    pointers: Ints,
    columns: Ints,
    data: Vector,
    ends: tuple[int, int],
    piece: Matrix,
    out: Matrix,
) -> None:
    """Add sparse rows, columns ends[0] to ends[1] - 1, times a piece of a dense matrix.

    `at` is where every row has come to; it moves on.
    """
    for i in range(out.shape[0]):
        p = at[i]
        made = out[i]
        while p < pointers[i + 1] and columns[p] < ends[1]:
            x, row = data[p], piece[columns[p] - ends[0]]
            for k in range(made.size):
                made[k] += x * row[k]
            p += 1
        at[i] = p


@njit(nogil=True, cache=True)
def scatter(
    rows: Matrix, first: int, begin: Ints, places: Ints, values: Vector, out: Matrix
) -> None:
    """Add columns from `first` on to their places: column first + j to those of entry j."""
    for i in range(out.shape[0]):
        made = out[i]
        for j in range(begin.size - 1):
            x = rows[i, first + j]
            for p in range(begin[j], begin[j + 1]):
                made[places[p]] += x * values[p]


@njit(nogil=True, cache=True)
def scatter_sparse(
    at: Ints,
    pointers: Ints,
    columns: Ints,
    data: Vector,
    ends: tuple[int, int],
    begin: Ints,
    places: Ints,
    values: Vector,
    out: Matrix,
) -> None:
    """Do the same to sparse rows, columns ends[0] to ends[1] - 1."""
    for i in range(out.shape[0]):
        p = at[i]
        made = out[i]
        while p < pointers[i + 1] and columns[p] < ends[1]:
            j = columns[p] - ends[0]
            for e in range(begin[j], begin[j + 1]):
                made[places[e]] += data[p] * values[e]
            p += 1
        at[i] = p


@njit(nogil=True, cache=True)
def _butterflies(x: Vector, h: int) -> None:
    """Transform x by Hadamard's matrix along its axis of steps of h, in place."""
    while 4 * h <= x.size:
        for i in range(0, x.size, 4 * h):
            a, b = x[i : i + h], x[i + h : i + 2 * h]
            c, d = x[i + 2 * h : i + 3 * h], x[i + 3 * h : i + 4 * h]
            for j in range(h):
                u, v, s, t = a[j] + b[j], a[j] - b[j], c[j] + d[j], c[j] - d[j]
                a[j], b[j], c[j], d[j] = u + s, v + t, u - s, v - t
        h *= 4
    if 2 * h <= x.size:
        a, b = x[:h], x[h:]
        for j in range(h):
            a[j], b[j] = a[j] + b[j], a[j] - b[j]


@njit(nogil=True, cache=True)
def _sampled(x: Vector, small: Matrix, sample: Ints, out: Vector) -> None:
    """Write the sampled coordinates, with the last axis transformed for them alone."""
    width = small.shape[0]
    for k in range(sample.size):
        first, signs = sample[k] // width * width, small[sample[k] % width]
        total = x[first] * signs[0]
        for j in range(1, width):
            total += x[first + j] * signs[j]
        out[k] = total


@njit(nogil=True, cache=True)
def hadamard(rows: Matrix, signs: Vector, small: Matrix, sample: Ints, out: Matrix) -> None:
    """Write the sampled coordinates of Hadamard's transform of rows with random signs.

    `signs` has the length of the transform, zero beyond the columns; `small` is the transform
    of the last axis.
    """
    x = np.empty(signs.size, out.dtype)
    d = rows.shape[1]
    for i in range(out.shape[0]):
        for j in range(d):
            x[j] = rows[i, j] * signs[j]
        x[d:] = 0.0
        _butterflies(x, small.shape[0])
        _sampled(x, small, sample, out[i])


@njit(nogil=True, cache=True)
def hadamard_sparse(
    pointers: Ints,
    columns: Ints,
    data: Vector,
    signs: Vector,
    small: Matrix,
    sample: Ints,
    high: Ints,
    low: Ints,
    out: Matrix,
) -> None:
    """Do the same to sparse rows: by the transform, or entry by entry where they are few.

    The entry (j, k) of the matrix is high[j // low's rows, k] times low[j % low's rows, k].
    """
    x = np.empty(signs.size, out.dtype)
    width = low.shape[0]
    for i in range(out.shape[0]):
        made = out[i]
        first, stop = pointers[i], pointers[i + 1]
        if (stop - first) * made.size > 8 * x.size:
            x[:] = 0.0
            for p in range(first, stop):
                x[columns[p]] += data[p] * signs[columns[p]]
            _butterflies(x, small.shape[0])
            _sampled(x, small, sample, made)
            continue
        made[:] = 0.0
        for p in range(first, stop):
            j = columns[p]
            v, a, b = data[p] * signs[j], high[j // width], low[j % width]
            for k in range(made.size):
                made[k] += v * (a[k] * b[k])
