"""Compiled loops over two groups of rows or of strings.

`column_sum` writes the sum over l of f(x_il, y_jl) to out[i, j], in the dtype of out. The
innermost loop runs along packed columns of y, in unit stride whatever the layout of x and y. All
f are 0 at (0, 0), so packed blocks are padded with zeros.

The strings of a group are concatenated in `codes`; string i is
``codes[offsets[i]:offsets[i + 1]]``. Nothing is compiled before its first call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from mercer.arrays import Matrix, Vector

Sparse = tuple[npt.NDArray[Any], npt.NDArray[Any], Vector]
"""Row pointers, columns and values of a CSR matrix, or the same of a CSC matrix."""

Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Strings = tuple[Codes, Offsets]

# Columns and rows of y in a packed block: 32 KiB in float64, for the first-level cache.
_DEPTH = 32
_WIDTH = 128
# Columns that one pass along the packed rows adds up.
_STEP = 4
# The length of packed rows is a multiple of this, for whole vectors.
_LANES = 16
# Strings that are processed side by side, one to a vector lane. The size of loops over lanes
# must not be known to the compiler: LLVM would unroll them, and then not vectorize them.
_STRINGS = 16
# Columns of a row that are summed in its dtype, before the sums are added in float64.
_RUN = 512

_MINIMUM, _CITY_BLOCK, _HARMONIC, _CHI_SQUARE, _JENSEN_SHANNON = range(5)
_CODES = {
    "minimum": _MINIMUM,
    "city_block": _CITY_BLOCK,
    "harmonic": _HARMONIC,
    "chi_square": _CHI_SQUARE,
    "jensen_shannon": _JENSEN_SHANNON,
}

# 2 artanh(w) / (w log 2) in powers of w^2, for 0 <= w <= 1/3: relative error below 5e-17.
_ARTANH = (
    2.8853900817779268,
    0.9617966939262051,
    0.5770780162875998,
    0.41219859090498345,
    0.32059844553352324,
    0.26232321663323,
    0.2216509953409951,
    0.19608109023253079,
    0.14254965360722935,
    0.2565221979515153,
)


@njit(nogil=True, cache=True)
def _allocate(x: Matrix, out: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Return x in the dtype of out, and room for a packed block of y and for the sums."""
    n, d = x.shape
    width = max(_LANES, min(_WIDTH, (out.shape[1] + _LANES - 1) // _LANES * _LANES))
    left = np.zeros((n, (d + _STEP - 1) // _STEP * _STEP), out.dtype)
    left[:, :d] = x
    return left, np.zeros((_DEPTH, width), out.dtype), np.empty((n, width), out.dtype)


@njit(nogil=True, cache=True)
def _pack_right(y: Matrix, first: int, start: int, right: Matrix) -> None:
    """Write the columns of y from `start`, of the rows from `first`, to the rows of right."""
    part = y[first : first + right.shape[1], start : start + _DEPTH]
    right[part.shape[1] :] = 0
    for k in range(part.shape[1]):
        row = right[k]
        for j in range(part.shape[0]):
            row[j] = part[j, k]


@njit(nogil=True, cache=True)
def _add(total: Vector, sums: Vector) -> None:
    # A block is summed separately before it is added: rounding errors grow with d / _DEPTH.
    for j in range(total.size):
        sums[j] += total[j]
        total[j] = 0


@njit(nogil=True, cache=True)
def _simple_terms(left: Matrix, start: int, right: Matrix, absolute: bool, sums: Matrix) -> None:
    """Add |x - y|, or min(x, y)."""
    total = np.zeros(sums.shape[1], sums.dtype)
    for i in range(left.shape[0]):
        for k in range(0, min(_DEPTH, left.shape[1] - start), _STEP):
            a = left[i, start + k : start + k + _STEP]
            p = right[k : k + _STEP]
            a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
            for j in range(total.size):
                p0, p1, p2, p3 = p[0, j], p[1, j], p[2, j], p[3, j]
                if absolute:
                    low, high = abs(a0 - p0) + abs(a1 - p1), abs(a2 - p2) + abs(a3 - p3)
                else:
                    # In this order a NaN in y stays; one in x is restored by `column_sum`.
                    low = (a0 if a0 < p0 else p0) + (a1 if a1 < p1 else p1)
                    high = (a2 if a2 < p2 else p2) + (a3 if a3 < p3 else p3)
                total[j] += low + high
        _add(total, sums[i])


@njit(nogil=True, cache=True)
def _limits(block: Matrix) -> tuple[float, float, float]:
    """Return 1, the smallest normal number, and one whose powers from -4 to 4 are normal."""
    dtype = block.dtype.type
    tiny = np.finfo(block.dtype).tiny
    return dtype(1), dtype(tiny), dtype(4 * tiny**0.25)


@njit(nogil=True, cache=True)
def _moderate(block: Matrix, start: int, depth: int) -> bool:
    """Return whether products of four sums of nonzero entries stay normal numbers."""
    one, _, small = _limits(block)
    odd = 0
    for i in range(block.shape[0]):
        row = block[i, start : start + depth]
        for k in range(row.size):
            odd += (row[k] != 0) & ((row[k] < small) | (row[k] > one / small))
    return odd == 0


@njit(nogil=True, cache=True, error_model="numpy")
def _quotients(left: Matrix, start: int, right: Matrix, square: bool, sums: Matrix) -> None:
    """Add (x - y)^2 / (x + y), or x y / (x + y)."""
    depth = min(_DEPTH, left.shape[1] - start)
    if _moderate(left, start, depth) and _moderate(right[:depth], 0, right.shape[1]):
        _paired_quotients(left, start, right, square, sums)
    else:
        _single_quotients(left, start, right, square, sums)


@njit(nogil=True, cache=True, error_model="numpy")
def _paired_quotients(left: Matrix, start: int, right: Matrix, square: bool, sums: Matrix) -> None:
    """Share a division between two columns: u / s + v / t is (t u + s v) / (s t).

    Without fused multiply-add: which of the two products it fuses depends on whether this
    function was loaded from the cache, and so would the last digit.
    """
    total = np.zeros(sums.shape[1], sums.dtype)
    one, _, small = _limits(sums)
    # Added to a sum of entries this changes zero, which may not divide, and nothing else.
    bump = small * sums.dtype.type(np.finfo(sums.dtype).eps / 4)
    for i in range(left.shape[0]):
        for k in range(0, min(_DEPTH, left.shape[1] - start), _STEP):
            a = left[i, start + k : start + k + _STEP]
            p = right[k : k + _STEP]
            a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
            b0, b1, b2, b3 = a0 + bump, a1 + bump, a2 + bump, a3 + bump
            for j in range(total.size):
                p0, p1, p2, p3 = p[0, j], p[1, j], p[2, j], p[3, j]
                s, t = b0 + p0, b1 + p1
                u, v = ((a0 - p0) ** 2, (a1 - p1) ** 2) if square else (a0 * p0, a1 * p1)
                low = (t * u + s * v) * (one / (s * t))
                s, t = b2 + p2, b3 + p3
                u, v = ((a2 - p2) ** 2, (a3 - p3) ** 2) if square else (a2 * p2, a3 * p3)
                total[j] += low + (t * u + s * v) * (one / (s * t))
        _add(total, sums[i])


@njit(nogil=True, cache=True, error_model="numpy")
def _single_quotients(left: Matrix, start: int, right: Matrix, square: bool, sums: Matrix) -> None:
    """Divide before anything is squared: for numbers of any size."""
    total = np.zeros(sums.shape[1], sums.dtype)
    one, tiny, _ = _limits(sums)
    for i in range(left.shape[0]):
        for k in range(min(_DEPTH, left.shape[1] - start)):
            a, p = left[i, start + k], right[k]
            for j in range(total.size):
                s = a + p[j]
                u, v = (a - p[j], a - p[j]) if square else (a, p[j])
                total[j] += u * (v / (one if s < tiny else s))
        _add(total, sums[i])


@njit(nogil=True, cache=True)
def _logarithms(block: Matrix) -> Matrix:
    """Return log2 of the entries, 0 for 0."""
    return np.log2(np.where(block != 0, block, block.dtype.type(1)))


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def _jensen_shannon(left: Matrix, logs: Matrix, start: int, right: Matrix, sums: Matrix) -> None:
    total = np.zeros(sums.shape[1], sums.dtype)
    others = _logarithms(right)
    one, tiny, _ = _limits(sums)
    dtype = sums.dtype.type
    c0, c1, c2, c3 = dtype(_ARTANH[0]), dtype(_ARTANH[1]), dtype(_ARTANH[2]), dtype(_ARTANH[3])
    c4, c5, c6, c7 = dtype(_ARTANH[4]), dtype(_ARTANH[5]), dtype(_ARTANH[6]), dtype(_ARTANH[7])
    c8, c9 = dtype(_ARTANH[8]), dtype(_ARTANH[9])
    for i in range(left.shape[0]):
        for k in range(min(_DEPTH, left.shape[1] - start)):
            a, log_a = left[i, start + k], logs[i, start + k]
            p, log_p = right[k], others[k]
            for j in range(total.size):
                low, high = (a, p[j]) if a < p[j] else (p[j], a)
                s = a + p[j]
                t = s + high
                w = low / (one if t < tiny else t)
                z = w * w
                f = c4 + z * (c5 + z * (c6 + z * (c7 + z * (c8 + z * c9))))
                f = c0 + z * (c1 + z * (c2 + z * (c3 + z * f)))
                total[j] += s * (w * f) + low * abs(log_a - log_p[j])
        _add(total, sums[i])


@njit(nogil=True, cache=True)
def _column_sum(code: int, x: Matrix, y: Matrix, out: Matrix) -> None:
    left, right, sums = _allocate(x, out)
    logs = _logarithms(left) if code == _JENSEN_SHANNON else left
    for first in range(0, y.shape[0], sums.shape[1]):
        sums[:] = 0
        for start in range(0, x.shape[1], _DEPTH):
            _pack_right(y, first, start, right)
            if code == _JENSEN_SHANNON:
                _jensen_shannon(left, logs, start, right, sums)
            elif code in (_CHI_SQUARE, _HARMONIC):
                _quotients(left, start, right, code == _CHI_SQUARE, sums)
            else:
                _simple_terms(left, start, right, code == _CITY_BLOCK, sums)
        width = min(sums.shape[1], y.shape[0] - first)
        out[:, first : first + width] = sums[:, :width]


def column_sum(name: str, x: Matrix, y: Matrix, out: Matrix) -> None:
    """Write a sum over columns l.

    "minimum" : min(x_l, y_l).
    "city_block" : |x_l - y_l|.
    "harmonic" : x_l y_l / (x_l + y_l), with 0 / 0 = 0; x and y are not negative.
    "chi_square" : (x_l - y_l)^2 / (x_l + y_l), with 0 / 0 = 0; x and y are not negative.
    "jensen_shannon" : -[x_l log2(x_l / (x_l + y_l)) + y_l log2(y_l / (x_l + y_l))], with
    0 log 0 = 0. Computed as (x + y) log2(1 + low / high) + low |log2 x - log2 y|, in which no
    term is negative: one division each, no cancellation, and logarithms of x and of y alone.
    """
    _column_sum(_CODES[name], x, y, out)
    if name == "minimum":
        out[np.isnan(x).any(axis=1)] = np.nan


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _square(x: Vector, y: Vector) -> float:
    total = x.dtype.type(0)
    for k in range(x.size):
        total += (x[k] - y[k]) * (x[k] - y[k])
    return total


@njit(nogil=True, cache=True)
def sqdist_where(marked: Matrix, x: Matrix, y: Matrix, out: Matrix) -> None:
    """Write sum_l (x_l - y_l)^2 where `marked` says so; x and y are in C order."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            if marked[i, j]:
                total = 0.0
                for start in range(0, x.shape[1], _RUN):
                    total += _square(x[i, start : start + _RUN], y[j, start : start + _RUN])
                out[i, j] = total


@njit(nogil=True, cache=True)
def sparse_product(x: Sparse, y: Sparse, out: Matrix) -> None:
    """Write x yᵀ to a dense array, for x in CSR and y in CSC format."""
    (starts, columns, values), (tops, rows, others) = x, y
    total = np.empty(out.shape[1], np.float64)  # rounding errors of equal terms add up in float32
    for i in range(out.shape[0]):
        total[:] = 0
        for at in range(starts[i], starts[i + 1]):
            value, k = values[at], columns[at]
            places, entries = rows[tops[k] : tops[k + 1]], others[tops[k] : tops[k + 1]]
            for j in range(places.size):
                # Unsigned: a negative index would count from the end, which costs a test.
                total[np.uintp(places[j])] += value * entries[j]
        out[i] = total


@njit(nogil=True, cache=True)
def _lanes(codes: Codes, offsets: Offsets, chosen: Offsets, longest: int) -> Codes:
    """Return the chosen strings side by side, padded with -1, which no character equals."""
    lanes = np.full((longest, _STRINGS), -1, np.int32)
    for lane in range(chosen.size):
        string = codes[offsets[chosen[lane]] : offsets[chosen[lane] + 1]]
        lanes[: string.size, lane] = string
    return lanes


@njit(nogil=True, cache=True, fastmath={"contract"})
def _advance(letter: int, t: Codes, decay: float, before: Any, after: Any, run: Any) -> None:
    """Extend s by a letter: update K' of one length (`after`) from K' of one less (`before`).

    `run` holds K'' of s extended by the letter and of ever longer prefixes of t.
    """
    for lane in range(t.shape[1]):
        run[lane] = 0
    for k in range(t.shape[0]):
        letters, shorter, longer = t[k], before[k], after[k + 1]
        for lane in range(t.shape[1]):
            match = decay * decay * shorter[lane] if letters[lane] == letter else 0.0
            run[lane] = decay * run[lane] + match
            longer[lane] = decay * longer[lane] + run[lane]


@njit(nogil=True, cache=True, fastmath={"contract"})
def _count(letter: int, t: Codes, weight: float, before: Any, total: Any) -> None:
    """Add matches that end in the letter of s: K' of the prefixes of t before each."""
    for k in range(t.shape[0]):
        letters, shorter = t[k], before[k]
        for lane in range(t.shape[1]):
            total[lane] += weight * shorter[lane] if letters[lane] == letter else 0.0


@njit(nogil=True, cache=True)
def _gaps(s: Codes, t: Codes, decay: float, K: Any, run: Any, total: Any) -> None:
    """Write the kernel of s and of each of the strings side by side in t to total."""
    length, size = K.shape[0], t.shape[0] + 1
    total[:] = 0
    K[0, :size] = 1
    K[1:, :size] = 0
    for k in range(s.size):
        _count(s[k], t, decay * decay, K[length - 1], total)
        # From long to short: each length reads the shorter one as it was before this letter.
        for h in range(min(length - 1, k + 1), 0, -1):
            _advance(s[k], t, decay, K[h - 1], K[h], run)


@njit(nogil=True, cache=True)
def subsequence(x: Strings, y: Strings, length: int, decay: float, out: Matrix) -> None:
    """Write the sum over u, |u| = length, i with s[i] = u, j with t[j] = u of decay^(l(i) + l(j)).

    The tuples i and j ascend, and l(i) = i_last - i_first + 1 counts the gaps. By the recursion
    of Lodhi et al. (2002), K' and K'' of Definition 2, in O(length |s| |t|) a pair.
    """
    (codes_x, offsets_x), (codes_y, offsets_y) = x, y
    sizes = offsets_y[1:] - offsets_y[:-1]
    longest = sizes.max() if sizes.size else 0
    order = np.argsort(sizes)
    K = np.empty((length, longest + 1, _STRINGS))
    run, total = np.empty(_STRINGS), np.empty(_STRINGS)
    for first in range(0, order.size, _STRINGS):
        chosen = order[first : first + _STRINGS]
        t = _lanes(codes_y, offsets_y, chosen, sizes[chosen[-1]])
        for i in range(out.shape[0]):
            _gaps(codes_x[offsets_x[i] : offsets_x[i + 1]], t, decay, K, run, total)
            for lane in range(chosen.size):
                out[i, chosen[lane]] = total[lane]
