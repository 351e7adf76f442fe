"""Products and distances of sparse rows, compiled.

Numba is imported here, in `loops` and in `words` alone; nothing is compiled before its first
call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from mercer.arrays import Matrix, Vector

Whole = npt.NDArray[np.int64]


@njit(nogil=True, cache=True)
def _product(
    starts: Whole,
    columns: Whole,
    values: Vector,
    tops: Whole,
    rows: Whole,
    others: Vector,
    out: Matrix,
) -> None:
    total = np.empty(out.shape[1], np.float64)  # sums of equal terms drift in float32
    for i in range(out.shape[0]):
        total[:] = 0
        for at in range(starts[i], starts[i + 1]):
            value, k = values[at], columns[at]
            there, entries = rows[tops[k] : tops[k + 1]], others[tops[k] : tops[k + 1]]
            for j in range(there.size):
                # Without a sign: there is no counting from the end to look out for.
                total[np.uintp(there[j])] += value * entries[j]
        out[i] = total


def product(x: Any, y: Any, out: Matrix) -> None:
    """Write x yᵀ to a dense array: x in compressed rows, y in compressed columns."""
    _product(x.indptr, x.indices, x.data, y.indptr, y.indices, y.data, out)


@njit(nogil=True, cache=True)
def _apart(
    starts: Whole,
    columns: Whole,
    values: Vector,
    tops: Whole,
    others: Whole,
    opposite: Vector,
    norms: tuple[Vector, Vector],
    share: float,
    width: int,
    out: Matrix,
) -> None:
    left, right = norms
    apart = np.zeros(0, out.dtype)
    for i in range(out.shape[0]):
        close = 0
        for j in range(out.shape[1]):
            both = left[i] + right[j]
            out[i, j] = both - 2 * out[i, j]
            close += not (out[i, j] > share * both)
        if not close:
            continue
        for j in range(out.shape[1]):
            both = left[i] + right[j]
            if out[i, j] > share * both or both != both:
                continue
            if apart.size == 0:
                apart = np.zeros(width, out.dtype)
            for at in range(starts[i], starts[i + 1]):
                apart[columns[at]] += values[at]
            for at in range(tops[j], tops[j + 1]):
                apart[others[at]] -= opposite[at]
            total = 0.0
            # Entries are cleared when they are counted: those of both rows count once.
            for at in range(starts[i], starts[i + 1]):
                total += apart[columns[at]] ** 2
                apart[columns[at]] = 0
            for at in range(tops[j], tops[j + 1]):
                total += apart[others[at]] ** 2
                apart[others[at]] = 0
            out[i, j] = total


def apart(
    dot: Matrix,
    norms: tuple[Vector, Vector],
    share: float,
    x: tuple[Any, slice],
    y: tuple[Any, slice],
) -> Matrix:
    """Return the squared distances of compressed rows, given their dot products and lengths.

    Those below a share of the squared lengths are summed from the differences themselves;
    rows with a NaN stay NaN.
    """
    out = dot.copy()
    (a, i), (b, j) = x, y
    # Where the rows begin says which they are: their entries are not copied.
    starts, tops = a.indptr[i.start : i.stop + 1], b.indptr[j.start : j.stop + 1]
    kind, width = out.dtype.type, a.shape[1]
    _apart(starts, a.indices, a.data, tops, b.indices, b.data, norms, kind(share), width, out)
    return out
