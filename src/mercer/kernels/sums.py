"""Sums of kernels, constants, and what all kernels that are made of others share."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from mercer.arrays import to_numpy
from mercer.kernels.base import Either, Kernel
from mercer.kernels.parameters import not_negative, require
from mercer.kernels.points import Points
from mercer.kernels.slopes import Frequencies, Slopes


class Constant(Kernel):
    """The same number for every pair: k(x,y) = c, c ≥ 0.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear() + 1
    Linear() + 1.0
    """

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    takes = "anything"
    moves = True

    def check(self) -> None:
        not_negative(self, "value")

    def on(self, pair: Either) -> float:
        return float(self.value)

    def apart(self, pair: Either) -> float:
        return 0.0

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return 1.0

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        return ()

    def height(self, d: int) -> float:
        return float(self.value)

    def spectrum(
        self, d: int, q: int, rng: np.random.Generator, *, orthogonal: bool = False
    ) -> Frequencies:
        self._draws(d, q)
        return Frequencies(np.zeros((d, q)), np.full(q, math.sqrt(self.value / q)))


class Composed(Kernel):
    """A kernel made of others."""

    made_of: tuple[str, ...] = ("kernel",)
    """The parameters that are kernels."""

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels it is made of."""
        return tuple(getattr(self, name) for name in self.made_of)

    def check(self) -> None:
        for name in self.made_of:
            _require_kernel(self, name)
        for part in self.parts:
            part.check()

    @property
    def takes(self) -> str:  # type: ignore[override]
        """What rows must be."""
        kinds = {part.takes for part in self.parts} - {"anything"}
        if len(kinds) > 1:
            raise ValueError(
                f"{self!r} joins kernels of strings and of vectors: rows are one or the other."
            )
        return kinds.pop() if kinds else "anything"

    @property
    def psd(self) -> bool | None:
        known = [part.psd for part in self.parts]
        return True if all(known) else None


class Sum(Composed):
    """k₁(x,y) + k₂(x,y).

    Examples
    --------
    >>> from mercer.kernels import RBF, Polynomial
    >>> k = RBF(0.1) + 2 * Polynomial(5)
    >>> k([[1.0]]).round(6)
    array([[65.]])
    """

    made_of = ("k1", "k2")

    def __init__(self, k1: Kernel, k2: Kernel) -> None:
        self.k1, self.k2 = k1, k2

    # Over its terms, not from sum to sum: a sum of a thousand is no deeper than one of two.

    def check(self) -> None:
        for part in _nodes(self):
            for name in self.made_of:
                _require_kernel(part, name)
        for term in self.terms:
            term.check()

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels it is made of."""
        return tuple(self.terms)

    def on(self, pair: Either) -> Any:
        return _total([term.on(pair) for term in self.terms])

    def apart(self, pair: Either) -> Any:
        return _total([term.apart(pair) for term in self.terms])

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """Each term's relative to its √(k(x,x)k(y,y)); those add up to no more than the sum's.

        Rows that were shifted for one term are rounded, which moves the distances of the others.
        """
        terms = self.terms
        largest = functools.reduce(np.maximum, (term.roundings(x, y, dtype) for term in terms))
        steepest = max(term.steepest for term in terms)
        if self.moves and self.far and steepest > 0.0:
            lengths = (np.sqrt(to_numpy(points.norms).astype(np.float64)) for points in (x, y))
            left, right = lengths
            largest = largest + 2.0 * steepest * (left + np.max(right, initial=0.0))
        return largest + len(terms)

    def sqdist_of(self, apart: Any) -> Any:
        """Constants add no distance; that of other sums has no inverse."""
        rest = [term for term in self.terms if not isinstance(term, Constant)]
        return rest[0].sqdist_of(apart) if len(rest) == 1 else super().sqdist_of(apart)

    @property
    def moves(self) -> bool:  # type: ignore[override]
        """Whether the centred matrix stays the same when all rows are shifted."""
        return all(term.moves for term in self.terms)

    @property
    def far(self) -> bool:  # type: ignore[override]
        """Whether rows far from zero cost a term its digits, none of which a shift would spoil."""
        terms = self.terms
        return any(term.far for term in terms) and all(math.isfinite(t.steepest) for t in terms)

    @property
    def terms(self) -> list[Kernel]:
        """What it adds, sums within sums taken apart."""
        found: list[Kernel] = []
        left: list[Kernel] = [self]
        while left:
            part = left.pop()
            if isinstance(part, Sum):
                left += [part.k2, part.k1]
            else:
                found.append(part)
        return found

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        return tuple(slope for term in self.terms for slope in term.slopes(pair))

    def height(self, d: int) -> float:
        return sum(term.height(d) for term in self.terms)

    def spectrum(
        self, d: int, q: int, rng: np.random.Generator, *, orthogonal: bool = False
    ) -> Frequencies:
        """Draw from each as much as it weighs at distance zero, at least one."""
        self._draws(d, q)
        terms = self.terms
        heights = np.array([term.height(d) for term in terms])
        if q < len(terms):
            raise ValueError(f"{self!r}: {q} frequencies cannot stand for {len(terms)} kernels.")
        shares = 1 + np.floor((q - len(terms)) * heights / (heights.sum() or 1.0)).astype(int)
        shares[np.argmax(heights)] += q - shares.sum()
        parts = [
            term.spectrum(d, int(n), rng, orthogonal=orthogonal)
            for term, n in zip(terms, shares, strict=True)
        ]
        return Frequencies.joined(parts)

    def __repr__(self) -> str:
        first, *rest = self._chain
        shown = (repr(float(k.value)) if isinstance(k, Constant) else tight(k, Sum) for k in rest)
        return " + ".join([repr(first), *shown])

    @property
    def _chain(self) -> list[Kernel]:
        """Its left side's left side and so on, and what is added to it, in order."""
        added: list[Kernel] = []
        left: Kernel = self
        while isinstance(left, Sum):
            added.append(left.k2)
            left = left.k1
        return [left, *reversed(added)]

    def __reduce__(self) -> tuple[Any, ...]:
        return _added, (self._chain,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sum):
            return NotImplemented
        pairs: list[tuple[object, object]] = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if isinstance(a, Sum) and isinstance(b, Sum):
                pairs += [(a.k1, b.k1), (a.k2, b.k2)]
            elif isinstance(a, Sum) or isinstance(b, Sum) or not (a is b or a == b):
                return False
        return True

    def __hash__(self) -> int:
        return hash((Sum, *self.terms))


def _require_kernel(owner: Kernel, name: str) -> None:
    part = getattr(owner, name)
    require(owner, name, isinstance(part, Kernel), "a kernel, such as RBF() or Constant(1)")


def _nodes(kernel: Sum) -> list[Sum]:
    """Return a sum and the sums within it."""
    found = [kernel]
    for node in found:
        found += [part for part in (node.k1, node.k2) if isinstance(part, Sum)]
    return found


def _total(parts: list[Any]) -> Any:
    """Return the sum, from the first on."""
    return functools.reduce(operator.add, parts)


def tight(kernel: Kernel, *looser: type[Kernel]) -> str:
    """Return the repr, in parentheses where the kernel binds less tightly."""
    return f"({kernel!r})" if isinstance(kernel, looser) else repr(kernel)


def _added(chain: list[Kernel]) -> Sum:
    """Return the sum of a chain, each added to those before: the inverse of `_chain`."""
    return functools.reduce(Sum, chain)  # type: ignore[return-value]
