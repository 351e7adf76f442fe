"""Sums, products, multiples and powers of kernels."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from mercer.arrays import to_numpy
from mercer.checks import check_integer, check_nonnegative, check_positive, require
from mercer.kernels.base import Frequencies, Kernel
from mercer.kernels.pair import Pair, Slopes, power_error
from mercer.kernels.points import Points

__all__ = ["Constant", "Power", "Product", "Scaled", "Sum"]


class Constant(Kernel):
    """The same value for every pair: k(x,y) = c, c ≥ 0.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear() + 1
    Linear() + 1.0
    """

    name = "constant"
    operation = "constant"
    takes = "anything"
    shift_invariant = True
    lipschitz = 0.0

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def check(self) -> None:
        check_nonnegative(self, "value")

    def on(self, pair: Pair) -> float:
        return float(self.value)

    def sqdist(self, pair: Pair) -> float:
        return 0.0

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return 1.0

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        return ()

    def draw(self, d: int, q: int, rng: Generator, orthogonal: bool) -> Frequencies:
        return Frequencies(np.zeros((d, q)), np.full(q, math.sqrt(self.value / q)))


class Combination(Kernel):
    """A kernel made of others."""

    operand_names: ClassVar[tuple[str, ...]] = ("kernel",)
    """The parameters that are kernels."""

    @property
    def parts(self) -> list[Kernel]:
        return [getattr(self, name) for name in self.operand_names]

    def check(self) -> None:
        self.check_operands()
        for part in self.parts:
            part.check()

    def check_operands(self) -> None:
        for name in self.operand_names:
            valid = isinstance(getattr(self, name), Kernel)
            require(self, name, valid, "a kernel, such as RBF() or Constant(1)")

    def require_spectrum(self) -> None:
        super().require_spectrum()
        for part in self.parts:
            part.require_spectrum()

    @property
    def takes(self) -> str:
        takes = {part.takes for part in self.parts} - {"anything"}
        if len(takes) > 1:
            raise ValueError(
                f"{self!r} combines kernels of strings and of vectors. Use kernels of one kind."
            )
        return takes.pop() if takes else "anything"

    @property
    def psd(self) -> bool | None:
        return True if all(part.psd for part in self.parts) else None


def operand_property(name: str) -> Any:
    """Return a property that is that of the operand `kernel`."""
    return property(lambda combination: getattr(combination.kernel, name))


class Sum(Combination):
    """k₁(x,y) + k₂(x,y).

    Examples
    --------
    >>> from mercer.kernels import RBF, Polynomial
    >>> k = RBF(0.1) + 2 * Polynomial(5)
    >>> k([[1.0]]).round(6)
    array([[65.]])
    """

    operation = "sum"
    operand_names = ("k1", "k2")

    def __init__(self, k1: Kernel, k2: Kernel) -> None:
        self.k1, self.k2 = k1, k2

    # All methods loop over the terms: recursion from sum to sum would be as deep as there are
    # terms, beyond Python's limit for a sum of a thousand.

    @property
    def terms(self) -> list[Kernel]:
        """The terms of the sum, with nested sums flattened."""
        terms: list[Kernel] = []
        stack: list[Kernel] = [self]
        while stack:
            part = stack.pop()
            if isinstance(part, Sum):
                stack += [part.k2, part.k1]
            else:
                terms.append(part)
        return terms

    @property
    def parts(self) -> list[Kernel]:
        return self.terms

    @property
    def _chain(self) -> list[Kernel]:
        """The first kernel of the chain k₁ + k₂ + …, and those added to it, in order."""
        added: list[Kernel] = []
        left: Kernel = self
        while isinstance(left, Sum):
            added.append(left.k2)
            left = left.k1
        return [left, *reversed(added)]

    def check_operands(self) -> None:
        sums = [self]
        for node in sums:  # grows while iterated
            super(Sum, node).check_operands()
            sums += [part for part in (node.k1, node.k2) if isinstance(part, Sum)]

    def on(self, pair: Pair) -> Any:
        return functools.reduce(operator.add, [term.on(pair) for term in self.terms])

    def sqdist(self, pair: Pair) -> Any:
        return functools.reduce(operator.add, [term.sqdist(pair) for term in self.terms])

    def input_sqdist(self, sqdist: Any) -> Any:
        """Constants add no distance; those of other sums cannot be inverted."""
        rest = [term for term in self.terms if not isinstance(term, Constant)]
        return rest[0].input_sqdist(sqdist) if len(rest) == 1 else super().input_sqdist(sqdist)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """The largest bound of a term: the terms' √(k(x,x)k(y,y)) add up to at most the sum's.

        A shift of the rows for the sake of one term rounds them, which changes their distances
        for the others.
        """
        terms = self.terms
        largest = functools.reduce(np.maximum, (term.roundings(x, y, dtype) for term in terms))
        if self.shift_invariant and self.offset_sensitive and self.lipschitz > 0.0:
            left, right = (np.sqrt(to_numpy(side.norms).astype(np.float64)) for side in (x, y))
            largest = largest + 2.0 * self.lipschitz * (left + np.max(right, initial=0.0))
        return largest + len(terms)

    @property
    def shift_invariant(self) -> bool:
        return all(term.shift_invariant for term in self.terms)

    @property
    def offset_sensitive(self) -> bool:
        """Whether a term is offset-sensitive and all terms are Lipschitz."""
        return any(term.offset_sensitive for term in self.terms) and math.isfinite(self.lipschitz)

    @property
    def lipschitz(self) -> float:
        return float(max(term.lipschitz for term in self.terms))

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        return tuple(slope for term in self.terms for slope in term.slopes(pair))

    def draw(self, d: int, q: int, rng: Generator, orthogonal: bool) -> Frequencies:
        """Draw from each term in proportion to its value at distance zero, at least one."""
        terms = self.terms
        values = np.array([term.value_at_zero(d) for term in terms])
        if q < len(terms):
            raise ValueError(f"{self!r}: {q} frequencies are too few for {len(terms)} kernels.")
        counts = 1 + np.floor((q - len(terms)) * values / (values.sum() or 1.0)).astype(int)
        counts[np.argmax(values)] += q - counts.sum()
        parts = [
            term.spectrum(d, int(count), rng, orthogonal=orthogonal)
            for term, count in zip(terms, counts, strict=True)
        ]
        return Frequencies.concat(parts)

    def __repr__(self) -> str:
        first, *rest = self._chain
        texts = [
            repr(float(kernel.value))
            if isinstance(kernel, Constant)
            else parenthesized(kernel, Sum)
            for kernel in rest
        ]
        return " + ".join([repr(first), *texts])

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.reduce, (Sum, self._chain)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sum):
            return NotImplemented
        # Equal chains, of which only those added can be sums.
        return self._chain == other._chain

    def __hash__(self) -> int:
        return hash((Sum, *self.terms))


class Product(Combination):
    """k₁(x,y) k₂(x,y).

    Examples
    --------
    >>> from mercer.kernels import RBF, Linear
    >>> (RBF(1.0) * Linear())([[2.0]])
    array([[4.]])
    """

    operation = "product"
    operand_names = ("k1", "k2")

    def __init__(self, k1: Kernel, k2: Kernel) -> None:
        self.k1, self.k2 = k1, k2

    def on(self, pair: Pair) -> Any:
        return self.k1.on(pair) * self.k2.on(pair)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        first, second = (k.roundings(x, y, dtype) for k in (self.k1, self.k2))
        return first + second + first * second * float(np.finfo(dtype).eps) / 2 + 1.0

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        first, second = self.k1.on(pair), self.k2.on(pair)
        return (
            *(slope.times(second) for slope in self.k1.slopes(pair)),
            *(slope.times(first) for slope in self.k2.slopes(pair)),
        )

    def draw(self, d: int, q: int, rng: Generator, orthogonal: bool) -> Frequencies:
        first = self.k1.spectrum(d, q, rng, orthogonal=orthogonal)
        return _product_spectrum(first, self.k2.spectrum(d, q, rng, orthogonal=orthogonal), rng)

    def __repr__(self) -> str:
        return f"{parenthesized(self.k1, Sum)} * {parenthesized(self.k2, Sum, Product, Scaled)}"


class Scaled(Combination):
    """c k(x,y), c > 0.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> 2 * RBF(0.5)
    2.0 * RBF(0.5)
    """

    operation = "scaled"
    psd = operand_property("psd")
    shift_invariant = operand_property("shift_invariant")
    offset_sensitive = operand_property("offset_sensitive")
    lipschitz = operand_property("lipschitz")

    def __init__(self, scale: float, kernel: Kernel) -> None:
        self.scale, self.kernel = scale, kernel

    def check(self) -> None:
        check_positive(self, "scale")
        super().check()

    def on(self, pair: Pair) -> Any:
        return self.kernel.on(pair) * self.scale

    def sqdist(self, pair: Pair) -> Any:
        return self.kernel.sqdist(pair) * self.scale

    def input_sqdist(self, sqdist: Any) -> Any:
        return self.kernel.input_sqdist(sqdist / self.scale)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return self.kernel.roundings(x, y, dtype) + 1.0

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        return tuple(slope.times(self.scale) for slope in self.kernel.slopes(pair))

    def draw(self, d: int, q: int, rng: Generator, orthogonal: bool) -> Frequencies:
        frequencies = self.kernel.spectrum(d, q, rng, orthogonal=orthogonal)
        return replace(frequencies, amplitude=frequencies.amplitude * math.sqrt(self.scale))

    def __repr__(self) -> str:
        return f"{float(self.scale)!r} * {parenthesized(self.kernel, Sum, Product, Scaled)}"


class Power(Combination):
    """k(x,y)^p for an integer p ≥ 1.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> ((Linear() + 1) ** 2)([[1.0]])
    array([[4.]])
    """

    operation = "power"

    def __init__(self, kernel: Kernel, power: int) -> None:
        self.kernel, self.power = kernel, power

    def check(self) -> None:
        check_integer(self, "power")
        super().check()

    def on(self, pair: Pair) -> Any:
        return self.kernel.on(pair) ** int(self.power)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return power_error(self.kernel.roundings(x, y, dtype) + 2.0, int(self.power), dtype)

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        outer = self.power * self.kernel.on(pair) ** (int(self.power) - 1)
        return tuple(slope.times(outer) for slope in self.kernel.slopes(pair))

    def draw(self, d: int, q: int, rng: Generator, orthogonal: bool) -> Frequencies:
        frequencies = self.kernel.spectrum(d, q, rng, orthogonal=orthogonal)
        for _ in range(int(self.power) - 1):
            other = self.kernel.spectrum(d, q, rng, orthogonal=orthogonal)
            frequencies = _product_spectrum(frequencies, other, rng)
        return frequencies

    def __repr__(self) -> str:
        return f"{as_operand(self.kernel)} ** {int(self.power)}"


def parenthesized(kernel: Kernel, *looser: type[Kernel]) -> str:
    """Return the repr, in parentheses if the kernel binds less tightly than its surroundings."""
    return f"({kernel!r})" if isinstance(kernel, looser) else repr(kernel)


def as_operand(kernel: Kernel) -> str:
    """Return the repr for use before ``**`` or a dot."""
    return parenthesized(kernel, Sum, Product, Scaled, Power)


def _product_spectrum(a: Frequencies, b: Frequencies, rng: Generator) -> Frequencies:
    """Return the frequencies of a product: sums of frequencies, paired at random."""
    order = rng.permutation(len(b.amplitude))
    return Frequencies(
        a.omega + b.omega[:, order], a.amplitude * b.amplitude[order] * math.sqrt(len(order))
    )
