"""Kernels of strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Array
from mercer.arrays.rounding import FEW
from mercer.kernels.base import Either, Kernel
from mercer.kernels.pair import Diagonal
from mercer.kernels.parameters import share, whole
from mercer.kernels.points import Points


class Strings(Kernel):
    """A kernel of what two strings have in common."""

    takes = "strings"

    def __init__(self, length: int = 3, decay: float = 1.0) -> None:
        self.length, self.decay = length, decay

    def check(self) -> None:
        whole(self, "length")
        share(self, "decay")

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """Sums of terms of one sign, one for every letter of a string and of a subsequence."""
        letters = max((len(string) for string in (*x.rows, *y.rows)), default=0)
        return 4.0 * (self.length + 1.0) * letters + FEW

    def loop(self, x: Any, y: Any, out: Array) -> None:
        """Write the kernel of encoded strings to `out`, compiled."""
        raise NotImplementedError

    def on(self, pair: Either) -> Any:
        if isinstance(pair, Diagonal):
            n = len(pair.points)
            each = [slice(i, i + 1) for i in range(n)]
            return np.array([self._between(pair.points, i, pair.points, i)[0, 0] for i in each])
        return self._between(pair.block.x, pair.rows, pair.block.y, pair.columns)

    def on_itself(self, points: Points) -> Array:
        return np.asarray(self.on(Diagonal(points)), np.float64).reshape(len(points))

    def _between(self, x: Points, i: slice, y: Points, j: slice) -> Array:
        out = np.empty((i.stop - i.start, j.stop - j.start))
        self.loop(_codes(x, i), _codes(y, j), out)
        return out


def _codes(points: Points, part: slice) -> tuple[Array, Array]:
    """Return the letters of some strings, one after the other, and where each begins."""
    from mercer.kernels.words import encode

    letters, starts = points.once("letters", lambda points: encode(points.rows))
    at = starts[part.start : part.stop + 1]
    return letters[at[0] : at[-1]], at - at[0]


class Substring(Strings):
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

    def loop(self, x: Any, y: Any, out: Array) -> None:
        from mercer.kernels.words import substring

        substring(x[0], x[1], y[0], y[1], int(self.length), float(self.decay), out)


class Subsequence(Strings):
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

    def __init__(self, length: int = 3, decay: float = 0.5) -> None:
        super().__init__(length, decay)

    def loop(self, x: Any, y: Any, out: Array) -> None:
        from mercer.kernels.words import subsequence

        subsequence(x[0], x[1], y[0], y[1], int(self.length), float(self.decay), out)
