"""Kernels as graphs: those that are written in dot products and squared distances."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from mercer.kernels import (
    RBF,
    Constant,
    Cosine,
    InSpace,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    OnColumns,
    Polynomial,
    Power,
    Product,
    RationalQuadratic,
    Scaled,
    Sum,
    Tanh,
)
from mercer.onnx.graph import Graph

Rows = np.ndarray[Any, Any]


class Between:
    """Rows and the points of a basis: their dot products and squared distances, made once.

    Distances are taken after the points' mean is off both sides: a large common offset costs
    no digits.
    """

    def __init__(self, graph: Graph, rows: str, points: Rows) -> None:
        self.graph, self.rows, self.points = graph, rows, points
        self._dot: str | None = None
        self._sqdist: str | None = None

    @property
    def dot(self) -> str:
        """Tensor n×m of dot products."""
        if self._dot is None:
            self._dot = self.graph.op("MatMul", self.rows, self.graph.floats(self.points.T))
        return self._dot

    @property
    def sqdist(self) -> str:
        """Tensor n×m of squared distances."""
        if self._sqdist is None:
            g, middle = self.graph, self.points.mean(axis=0)
            x, y = g.op("Sub", self.rows, g.floats(middle)), self.points - middle
            across = g.op("MatMul", x, g.floats(-2.0 * y.T))
            both = g.op("Add", g.squares(x), g.floats((y * y).sum(axis=1)[None, :]))
            apart = g.op("Add", across, both)
            self._sqdist = g.op("Max", apart, g.floats(0.0))
        return self._sqdist

    def columns(self, which: list[int]) -> Between:
        """Return the same of some columns."""
        some = self.graph.op("Gather", self.rows, self.graph.whole(which), axis=1)
        return Between(self.graph, some, self.points[:, which])

    def own(self, kernel: Kernel) -> tuple[str, str]:
        """Return k(x, x) as a column, and k(y, y) as a row."""
        itself = Itself(self.graph, self.rows)
        points = np.asarray(kernel.diag(self.points), np.float64)
        return of(kernel, itself), self.graph.floats(points[None, :])


class Itself:
    """Rows, each with itself, as a column."""

    def __init__(self, graph: Graph, rows: str) -> None:
        self.graph, self.rows = graph, rows

    @property
    def dot(self) -> str:
        """Squared lengths."""
        return self.graph.squares(self.rows)

    @property
    def sqdist(self) -> str:
        """Zeros."""
        return self.graph.op("Mul", self.dot, self.graph.floats(0.0))

    def columns(self, which: list[int]) -> Itself:
        """Return the same of some columns."""
        return Itself(
            self.graph, self.graph.op("Gather", self.rows, self.graph.whole(which), axis=1)
        )

    def own(self, kernel: Kernel) -> tuple[str, str]:
        """Return k(x, x), twice."""
        made = of(kernel, self)
        return made, made


Pair = Between | Itself


def of(kernel: Kernel, pair: Pair) -> str:
    """Return the tensor of a kernel between rows and points."""
    make = _MADE.get(type(kernel))
    if make is None:
        refuse(kernel)
    return make(kernel, pair)


def refuse(kernel: Any) -> NoReturn:
    """Say which kernels can be written as a graph."""
    names = ", ".join(cls.__name__ for cls in _MADE)
    raise ValueError(
        f"to_onnx: {kernel!r} is not written in dot products or Euclidean distances. "
        f"Kernels that are: {names}; Laplacian with norm='l2', Matern with nu 0.5, 1.5 or 2.5."
    )


def _linear(_: Linear, pair: Pair) -> str:
    return pair.dot


def _inner(kernel: Polynomial | Tanh, pair: Pair) -> str:
    g = pair.graph
    scaled = g.op("Mul", pair.dot, g.floats(kernel.gamma))
    return g.op("Add", scaled, g.floats(kernel.coef0))


def _polynomial(kernel: Polynomial, pair: Pair) -> str:
    return _power(pair.graph, _inner(kernel, pair), int(kernel.degree))


def _power(g: Graph, base: str, power: int) -> str:
    return base if power == 1 else g.op("Pow", base, g.floats(float(power)))


def _tanh(kernel: Tanh, pair: Pair) -> str:
    return pair.graph.op("Tanh", _inner(kernel, pair))


def _cosine(_: Cosine, pair: Pair) -> str:
    return _normalized(Normalized(Linear()), pair)


def _exponential(g: Graph, apart: str, rate: float) -> str:
    return g.op("Exp", g.op("Mul", apart, g.floats(-rate)))


def _rbf(kernel: RBF, pair: Pair) -> str:
    return _exponential(pair.graph, pair.sqdist, kernel.gamma)


def _laplacian(kernel: Laplacian, pair: Pair) -> str:
    if kernel.norm != "l2":
        refuse(kernel)
    g = pair.graph
    return _exponential(g, g.op("Sqrt", pair.sqdist), kernel.gamma)


def _matern(kernel: Matern, pair: Pair) -> str:
    g = pair.graph
    if kernel.nu not in (0.5, 1.5, 2.5):
        refuse(kernel)
    scale = g.floats(math.sqrt(2.0 * kernel.nu) / kernel.length)
    z = g.op("Mul", g.op("Sqrt", pair.sqdist), scale)
    falls = _exponential(g, z, 1.0)
    if kernel.nu == 0.5:
        return falls
    inner, one = z, g.floats(1.0)
    if kernel.nu == 2.5:
        third = g.op("Mul", z, g.floats(1.0 / 3.0))
        inner = g.op("Mul", z, g.op("Add", one, third))
    return g.op("Mul", g.op("Add", one, inner), falls)


def _rational(kernel: RationalQuadratic, pair: Pair) -> str:
    g = pair.graph
    width = g.floats(2.0 * kernel.alpha * kernel.length * kernel.length)
    base = g.op("Add", g.op("Div", pair.sqdist, width), g.floats(1.0))
    return g.op("Pow", base, g.floats(-float(kernel.alpha)))


def _constant(kernel: Constant, pair: Pair) -> str:
    g = pair.graph
    shape = pair.dot  # of which only the shape is used
    return g.op("Add", g.op("Mul", shape, g.floats(0.0)), g.floats(kernel.value))


def _sum(kernel: Sum, pair: Pair) -> str:
    g, terms = pair.graph, [of(term, pair) for term in kernel.terms]
    return terms[0] if len(terms) == 1 else g.op("Sum", *terms)


def _product(kernel: Product, pair: Pair) -> str:
    return pair.graph.op("Mul", of(kernel.k1, pair), of(kernel.k2, pair))


def _scaled(kernel: Scaled, pair: Pair) -> str:
    return pair.graph.op("Mul", of(kernel.kernel, pair), pair.graph.floats(kernel.scale))


def _to_the_power(kernel: Power, pair: Pair) -> str:
    return _power(pair.graph, of(kernel.kernel, pair), int(kernel.power))


def _normalized(kernel: Normalized, pair: Pair) -> str:
    """The quotient; 0 where a length is."""
    g, zero = pair.graph, pair.graph.floats(0.0)
    made = of(kernel.kernel, pair)
    for own in pair.own(kernel.kernel):
        there = g.op("Greater", own, zero)
        root = g.op("Sqrt", g.op("Where", there, own, g.floats(1.0)))
        made = g.op("Where", there, g.op("Div", made, root), zero)
    return made


def _in_space(kernel: InSpace, pair: Pair) -> str:
    g, (x, y) = pair.graph, pair.own(kernel.kernel)
    across = g.op("Mul", of(kernel.kernel, pair), g.floats(-2.0))
    apart = g.op("Max", g.op("Sum", across, x, y), g.floats(0.0))
    return _exponential(g, apart, kernel.gamma)


def _on_columns(kernel: OnColumns, pair: Pair) -> str:
    return of(kernel.kernel, pair.columns([int(column) for column in kernel.columns]))


_MADE: dict[type, Callable[[Any, Any], str]] = {
    Linear: _linear,
    Polynomial: _polynomial,
    Tanh: _tanh,
    Cosine: _cosine,
    RBF: _rbf,
    Laplacian: _laplacian,
    Matern: _matern,
    RationalQuadratic: _rational,
    Constant: _constant,
    Sum: _sum,
    Product: _product,
    Scaled: _scaled,
    Power: _to_the_power,
    Normalized: _normalized,
    InSpace: _in_space,
    OnColumns: _on_columns,
}
