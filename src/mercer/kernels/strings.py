"""Kernels of strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Array
from mercer.arrays.rounding import FEW
from mercer.checks import check_fraction, check_whole
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DiagonalPair, Pair, TilePair
from mercer.kernels.points import Points

__all__ = ["Subsequence", "Substring"]


class StringKernel(Kernel):
    """A kernel that counts what two strings have in common.

    A subclass names its compiled loop in `mercer.kernels.string_loops`.
    """

    takes = "strings"
    loop: str

    def __init__(self, length: int = 3, decay: float = 1.0) -> None:
        self.length, self.decay = length, decay

    def check(self) -> None:
        check_whole(self, "length")
        check_fraction(self, "decay")

    def on(self, pair: Pair) -> Any:
        if isinstance(pair, DiagonalPair):
            x = pair.points
            rows = [slice(i, i + 1) for i in range(len(x))]
            return np.array([self._between(x, i, x, i)[0, 0] for i in rows], np.float64)
        assert isinstance(pair, TilePair)
        x, y = pair.groups
        return self._between(x, pair.rows, y, pair.columns)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """Sums of terms of one sign, one for every letter of a string and of a subsequence."""
        letters = max((len(string) for string in (*x.rows, *y.rows)), default=0)
        return 4.0 * (self.length + 1.0) * letters + FEW

    def _between(self, x: Points, i: slice, y: Points, j: slice) -> Array:
        from mercer.kernels import string_loops

        out = np.empty((i.stop - i.start, j.stop - j.start))
        loop = getattr(string_loops, self.loop)
        loop(_codes(x, i), _codes(y, j), int(self.length), float(self.decay), out)
        return out


def _codes(points: Points, part: slice) -> tuple[Array, Array]:
    """Return the code points of some strings, concatenated, and where each string begins."""
    codes, offsets = points.cached("codes", lambda points: encode_strings(points.rows))
    at = offsets[part.start : part.stop + 1]
    return codes[at[0] : at[-1]], at - at[0]


def encode_strings(strings: list[str]) -> tuple[Array, Array]:
    """Return the code points of all strings, concatenated, and where each string begins."""
    text = "".join(strings).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(text, dtype="<i4").astype(np.int32)
    offsets = np.zeros(len(strings) + 1, dtype=np.int64)
    np.cumsum([len(string) for string in strings], out=offsets[1:])
    return codes, offsets


class Substring(StringKernel):
    r"""Common substrings of a length, :math:`\sum_{|u|=p} \lambda^{2p}\,\#_u(s)\,\#_u(t)`.

    :math:`\#_u(s)` is how often u occurs in s, without gaps. Source: marukatat App. B.

    Parameters
    ----------
    length : int
        The length p.
    decay : float
        The weight λ of every letter.

    Examples
    --------
    >>> from mercer.kernels import Substring
    >>> Substring(2)(["banana"], ["ananas"])
    array([[8.]])
    """

    name = "substring"
    loop = "substring"


class Subsequence(StringKernel):
    r"""Common subsequences of a length, weighed by how far they stretch.

    .. math:: \sum_{|u|=p} \sum_{i:\,u=s[i]} \sum_{j:\,u=t[j]} \lambda^{l(i)+l(j)}

    l(i) is the span from the first letter to the last, gaps included.
    Source: Lodhi, Saunders, Shawe-Taylor, Cristianini & Watkins (2002).

    Parameters
    ----------
    length : int
        The length p.
    decay : float
        The weight λ of every place that is spanned.

    Examples
    --------
    >>> from mercer.kernels import Subsequence
    >>> Subsequence(2, 0.5)(["cat"], ["car"])
    array([[0.0625]])
    """

    name = "subsequence"
    loop = "subsequence"

    def __init__(self, length: int = 3, decay: float = 0.5) -> None:
        super().__init__(length, decay)
