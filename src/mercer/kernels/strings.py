"""Kernels of strings."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import FEW, Array
from mercer.checks import check_fraction, check_integer
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DiagonalPair, Pair, TilePair
from mercer.kernels.points import Points

__all__ = ["Subsequence", "Substring"]

Strings = tuple[Array, Array]


class StringKernel(Kernel):
    """A kernel that counts common substrings or subsequences of two strings."""

    takes = "strings"

    def __init__(self, length: int = 3, decay: float = 1.0) -> None:
        self.length, self.decay = length, decay

    def check(self) -> None:
        check_integer(self, "length")
        check_fraction(self, "decay")

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """Sums of terms of one sign, one for every letter of a string and of a subsequence."""
        letters = max((len(string) for string in (*x.rows, *y.rows)), default=0)
        return 4.0 * (self.length + 1.0) * letters + FEW


def encode_strings(strings: list[str]) -> Strings:
    """Return the code points of all strings, concatenated, and where each string begins."""
    text = "".join(strings).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(text, dtype="<i4").astype(np.int32)
    offsets = np.zeros(len(strings) + 1, dtype=np.int64)
    np.cumsum([len(string) for string in strings], out=offsets[1:])
    return codes, offsets


class Substring(StringKernel):
    r"""Common substrings of a given length, :math:`\sum_{|u|=p} \lambda^{2p}\,\#_u(s)\,\#_u(t)`.

    :math:`\#_u(s)` is how often u occurs in s, without gaps. Source: marukatat App. B.

    Parameters
    ----------
    length, decay : int, float
        The length p and the weight λ of every letter.

    Examples
    --------
    >>> from mercer.kernels import Substring
    >>> Substring(2)(["banana"], ["ananas"])
    array([[8.]])
    """

    name = "substring"

    def on(self, pair: Pair) -> Any:
        weight = float(self.decay) ** (2 * int(self.length))
        if isinstance(pair, DiagonalPair):
            counts = _substring_counts(pair.points.rows, int(self.length))
            return weight * counts.multiply(counts).sum(axis=1)
        x, y = pair.sides
        counts = _substring_counts(x + y, int(self.length))
        return weight * (counts[: len(x)] @ counts[len(x) :].T).toarray()


def _substring_counts(strings: list[str], length: int) -> sp.csr_array:
    """Return how often every substring of a length occurs in each string.

    Substrings of length k are numbered at every character; those numbers at a character, and
    h ≤ k characters later, give the numbers of length k + h.
    """
    codes, offsets = encode_strings(strings)
    sizes = np.diff(offsets)
    _, numbers = np.unique(codes, return_inverse=True)
    done = 1
    while done < length:
        step = min(done, length - done)
        later = np.zeros_like(numbers)
        later[:-step] = numbers[step:]
        pairs = numbers * (numbers.max(initial=0) + 1) + later
        _, numbers = np.unique(pairs, return_inverse=True)
        done += step
    # Substrings that would run past the end of their string do not count.
    whole = np.arange(len(codes)) + length <= np.repeat(offsets[1:], sizes)
    owner = np.repeat(np.arange(len(strings)), sizes)[whole]
    shape = len(strings), int(numbers.max(initial=-1)) + 1
    return sp.csr_array((np.ones(len(owner)), (owner, numbers[whole])), shape)


class Subsequence(StringKernel):
    r"""Common subsequences of a given length, weighted by their span.

    .. math:: \sum_{|u|=p} \sum_{i:\,u=s[i]} \sum_{j:\,u=t[j]} \lambda^{l(i)+l(j)}

    l(i) is the span from the first letter to the last, gaps included.
    Source: Lodhi, Saunders, Shawe-Taylor, Cristianini & Watkins (2002).

    Parameters
    ----------
    length, decay : int, float
        The length p and the weight λ of every place that is spanned.

    Examples
    --------
    >>> from mercer.kernels import Subsequence
    >>> Subsequence(2, 0.5)(["cat"], ["car"])
    array([[0.0625]])
    """

    name = "subsequence"

    def __init__(self, length: int = 3, decay: float = 0.5) -> None:
        super().__init__(length, decay)

    def on(self, pair: Pair) -> Any:
        if isinstance(pair, DiagonalPair):
            x = pair.points
            rows = [slice(i, i + 1) for i in range(len(x))]
            return np.array([self._between(x, i, x, i)[0, 0] for i in rows], np.float64)
        assert isinstance(pair, TilePair)
        x, y = pair.groups
        return self._between(x, pair.rows, y, pair.columns)

    def _between(self, x: Points, i: slice, y: Points, j: slice) -> Array:
        from mercer.kernels.loops import subsequence

        out = np.empty((i.stop - i.start, j.stop - j.start))
        subsequence(_codes(x, i), _codes(y, j), int(self.length), float(self.decay), out)
        return out


def _codes(points: Points, part: slice) -> Strings:
    """Return the code points of some strings, which are computed once for all."""
    codes, offsets = points.cached("codes", lambda points: encode_strings(points.rows))
    at = offsets[part.start : part.stop + 1]
    return codes[at[0] : at[-1]], at - at[0]
