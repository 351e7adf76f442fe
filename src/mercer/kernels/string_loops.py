"""Compiled loops over two groups of strings: common subsequences with gaps.

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
    K = np.empty((length, longest + 1, _LANES))
    run, total = np.empty(_LANES), np.empty(_LANES)
    for first in range(0, order.size, _LANES):
        chosen = order[first : first + _LANES]
        t = _lanes(codes_y, offsets_y, chosen, sizes[chosen[-1]])
        for i in range(out.shape[0]):
            _gaps(codes_x[offsets_x[i] : offsets_x[i + 1]], t, decay, K, run, total)
            for lane in range(chosen.size):
                out[i, chosen[lane]] = total[lane]
