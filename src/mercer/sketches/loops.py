"""Compiled loops that apply sketches to rows.

All add in the order of the columns: sparse rows give the same bits as dense ones. Nothing is
compiled before its first call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from mercer.arrays import Matrix, Vector

Ints = npt.NDArray[Any]
Sparse = tuple[Ints, Ints, Vector]
"""Row pointers, columns and values of a CSR matrix."""


@njit(nogil=True, cache=True)
def add_products(rows: Sparse, at: Ints, ends: tuple[int, int], part: Matrix, out: Matrix) -> None:
    """Add sparse rows, columns ends[0] to ends[1] - 1, times a part of a dense matrix.

    `at` is the next entry of every row; it moves on.
    """
    pointers, columns, data = rows
    for i in range(out.shape[0]):
        p = at[i]
        total = out[i]
        while p < pointers[i + 1] and columns[p] < ends[1]:
            x, row = data[p], part[columns[p] - ends[0]]
            for k in range(total.size):
                total[k] += x * row[k]
            p += 1
        at[i] = p


@njit(nogil=True, cache=True)
def scatter(rows: Matrix, matrix: Sparse, out: Matrix) -> None:
    """Add the product of dense rows with a sparse matrix."""
    begin, places, values = matrix
    for i in range(out.shape[0]):
        total = out[i]
        for j in range(begin.size - 1):
            x = rows[i, j]
            for p in range(begin[j], begin[j + 1]):
                # Unsigned: a negative index would count from the end, which costs a test.
                total[np.uintp(places[p])] += x * values[p]


@njit(nogil=True, cache=True)
def scatter_sparse(rows: Sparse, matrix: Sparse, out: Matrix) -> None:
    """Add the product of sparse rows with a sparse matrix."""
    (pointers, columns, data), (begin, places, values) = rows, matrix
    for i in range(out.shape[0]):
        total = out[i]
        for p in range(pointers[i], pointers[i + 1]):
            j = columns[p]
            for e in range(begin[j], begin[j + 1]):
                total[np.uintp(places[e])] += data[p] * values[e]


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
def _write_sample(x: Vector, small: Matrix, sample: Ints, out: Vector) -> None:
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

    `signs` are zero beyond the columns; `small` is the transform of the last axis.
    """
    x = np.empty(signs.size, out.dtype)
    d = rows.shape[1]
    for i in range(out.shape[0]):
        for j in range(d):
            x[j] = rows[i, j] * signs[j]
        x[d:] = 0.0
        _butterflies(x, small.shape[0])
        _write_sample(x, small, sample, out[i])


@njit(nogil=True, cache=True)
def hadamard_sparse(rows: Sparse, signs: Vector, factors: tuple[Ints, Ints], out: Matrix) -> None:
    """Add the same for sparse rows, entry by entry.

    Entry (j, k) of the matrix is high[j // width, k] · low[j % width, k], with width = len(low).
    """
    (pointers, columns, data), (high, low) = rows, factors
    width = low.shape[0]
    for i in range(out.shape[0]):
        total = out[i]
        for p in range(pointers[i], pointers[i + 1]):
            j = columns[p]
            v, a, b = data[p] * signs[j], high[j // width], low[j % width]
            for k in range(total.size):
                total[k] += v * (a[k] * b[k])
