"""Compiled loops of string kernels: common substrings, and common subsequences with gaps.

The strings of a group are concatenated in `codes`; string i is
``codes[offsets[i]:offsets[i + 1]]``. Nothing is compiled before its first call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from mercer.arrays import Matrix

Codes = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Strings = tuple[Codes, Offsets]

# Strings that are processed side by side, one to a vector lane. The size of loops over lanes
# must not be known to the compiler: LLVM would unroll them, and then not vectorize them.
_LANES = 16


@njit(nogil=True, cache=True)
def _relabel(key: Offsets, label: Offsets) -> int:
    """Number the distinct keys from 0 on, write each key's number, and return their count."""
    bits = 1
    while (1 << bits) < 2 * key.size:
        bits += 1
    slots = np.full(1 << bits, -1, np.int64)
    count = 0
    for k in range(key.size):
        # Fibonacci hashing; a slot holds the first position of its key.
        slot = (np.uint64(key[k]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)
        at = np.int64(slot)
        while slots[at] >= 0 and key[slots[at]] != key[k]:
            at = (at + 1) & (slots.size - 1)
        if slots[at] < 0:
            slots[at] = k
            label[k] = count
            count += 1
        else:
            label[k] = label[slots[at]]
    return count


@njit(nogil=True, cache=True)
def _order(values: Offsets, count: int) -> Offsets:
    """Return the positions of integers below count in ascending order, by a counting sort."""
    starts = np.zeros(count + 1, np.int64)
    for value in values:
        starts[value + 1] += 1
    for k in range(count):
        starts[k + 1] += starts[k]
    order = np.empty(values.size, np.int64)
    for k in range(values.size):
        order[starts[values[k]]] = k
        starts[values[k]] += 1
    return order


@njit(nogil=True, cache=True)
def _substrings(codes_x: Codes, codes_y: Codes, length: int) -> tuple[Offsets, Offsets]:
    """Number the substrings of one length that begin at each character; return their order too.

    The numbers of the substrings of length k at a position, and h <= k characters later, give
    those of length k + h. Substrings that run past the end of their string are left out later.
    """
    size = codes_x.size + codes_y.size
    key, label = np.empty(size, np.int64), np.empty(size, np.int64)
    for k in range(codes_x.size):
        key[k] = codes_x[k]
    for k in range(codes_y.size):
        key[codes_x.size + k] = codes_y[k]
    count = _relabel(key, label)
    done = 1
    while done < length:
        more = min(done, length - done)
        for k in range(size):
            key[k] = label[k] * count + (label[k + more] if k + more < size else 0)
        count = _relabel(key, label)
        done += more
    return label, _order(label, count)


@njit(nogil=True, cache=True)
def _sorted(
    label: Offsets, order: Offsets, offsets: Offsets, shift: int, length: int
) -> tuple[Offsets, Offsets]:
    """Return the numbers of the substrings of each string, ascending, and where they end."""
    owner = np.full(offsets[-1], -1, np.int64)
    for i in range(offsets.size - 1):
        for k in range(offsets[i], offsets[i + 1] - length + 1):
            owner[k] = i
    ends = offsets[:-1].copy()
    numbers = np.empty(offsets[-1], np.int64)
    for k in order:
        here = k - shift
        if 0 <= here < owner.size and owner[here] >= 0:
            numbers[ends[owner[here]]] = label[k]
            ends[owner[here]] += 1
    return numbers, ends


@njit(nogil=True, cache=True)
def _matches(a: Offsets, b: Offsets) -> float:
    """Return how many pairs of entries of two ascending lists are equal."""
    count = 0.0
    i = j = 0
    while i < a.size and j < b.size:
        if a[i] < b[j]:
            i += 1
        elif a[i] > b[j]:
            j += 1
        else:
            value, first, second = a[i], i, j
            while i < a.size and a[i] == value:
                i += 1
            while j < b.size and b[j] == value:
                j += 1
            count += float(i - first) * float(j - second)
    return count


@njit(nogil=True, cache=True)
def substring(x: Strings, y: Strings, length: int, decay: float, out: Matrix) -> None:
    """Write the sum over u, |u| = length, of decay^(2 |u|) times its counts in s and in t.

    Substrings have no gaps: psi_u(s) = sum over i with s[i : i + |u|] = u of decay^|u|, and
    k(s, t) = sum over u of psi_u(s) psi_u(t) (Marukatat 2022, Appendix B).
    """
    (codes_x, offsets_x), (codes_y, offsets_y) = x, y
    label, order = _substrings(codes_x, codes_y, length)
    left, ends_x = _sorted(label, order, offsets_x, 0, length)
    right, ends_y = _sorted(label, order, offsets_y, codes_x.size, length)
    weight = decay ** (2 * length)
    for i in range(out.shape[0]):
        a = left[offsets_x[i] : ends_x[i]]
        for j in range(out.shape[1]):
            out[i, j] = weight * _matches(a, right[offsets_y[j] : ends_y[j]])


@njit(nogil=True, cache=True)
def _lanes(codes: Codes, offsets: Offsets, chosen: Offsets, longest: int) -> Codes:
    """Return the chosen strings side by side, padded with -1, which no character equals."""
    lanes = np.full((longest, _LANES), -1, np.int32)
    for lane in range(chosen.size):
        begin = offsets[chosen[lane]]
        for k in range(offsets[chosen[lane] + 1] - begin):
            lanes[k, lane] = codes[begin + k]
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
    """Add what ends in the letter of s: K' of the prefixes of t before each match."""
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
    longest = 0
    for size in sizes:
        longest = max(longest, size)
    order = _order(sizes, longest + 1)
    K = np.empty((length, longest + 1, _LANES))
    run, total = np.empty(_LANES), np.empty(_LANES)
    for first in range(0, order.size, _LANES):
        chosen = order[first : first + _LANES]
        t = _lanes(codes_y, offsets_y, chosen, sizes[chosen[-1]])
        for i in range(out.shape[0]):
            _gaps(codes_x[offsets_x[i] : offsets_x[i + 1]], t, decay, K, run, total)
            for lane in range(chosen.size):
                out[i, chosen[lane]] = total[lane]
