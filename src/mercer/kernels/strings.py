"""Kernels of strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Array
from mercer.kernels.algebra import require
from mercer.kernels.base import Either, Kernel
from mercer.kernels.pair import Diagonal, Points


class Strings(Kernel):
    """A kernel of what two strings have in common."""

    takes = "strings"

    def __init__(self, length: int = 3, decay: float = 1.0) -> None:
        self.length, self.decay = length, decay

    def check(self) -> None:
        whole = self.length == int(self.length) and self.length >= 1
        require(self, "length", whole, "must be a whole number, 1 or more")
        require(self, "decay", 0 < self.decay <= 1, "must be above 0 and at most 1")

    def loop(self, x: Any, y: Any, out: Array) -> None:
        """Write the kernel of encoded strings to `out`, compiled."""
        raise NotImplementedError

    def on(self, pair: Either) -> Any:
        if isinstance(pair, Diagonal):
            return np.array([self._between([s], [s])[0, 0] for s in pair.points.rows])
        x, y = pair.block.x.rows[pair.rows], pair.block.y.rows[pair.columns]
        return self._between(x, y)

    def on_itself(self, points: Points) -> Array:
        return np.asarray(self.on(Diagonal(points)), np.float64).reshape(len(points))

    def _between(self, x: list[str], y: list[str]) -> Array:
        from mercer.kernels.words import encode

        out = np.empty((len(x), len(y)))
        self.loop(encode(x), encode(y), out)
        return out


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
