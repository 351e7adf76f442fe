"""Kernels as graphs: a kernel's own formula, evaluated on symbolic tensors.

`GraphPair` gives a formula the dot products and squared distances of rows and points as tensors
of a graph; the formula's operations on them add nodes. A formula that needs more than that, such
as sums over columns or a user's function, cannot be written as a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn

import numpy as np

from mercer.kernels import Kernel
from mercer.kernels.base import KERNELS
from mercer.kernels.pair import ColumnSum, Pair
from mercer.kernels.points import inverse_sqrt
from mercer.onnx.graph import Graph

Rows = np.ndarray[Any, Any]


class NotInGraph(Exception):  # noqa: N818 (it never leaves this module)
    """A formula asks for what a graph does not have."""


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise NotInGraph


class Tensor:
    """A float64 tensor of a graph, with the operations that formulas use."""

    dtype = np.dtype(np.float64)
    __bool__ = __len__ = __getitem__ = __array__ = __dlpack__ = __dlpack_device__ = _refuse

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __array_namespace__(self, api_version: str | None = None) -> type[Functions]:
        return Functions

    def op(self, kind: str, *inputs: Any) -> Tensor:
        """Return the result of a node; numbers among its inputs become constants."""
        names = (x.name if isinstance(x, Tensor) else self.graph.floats(x) for x in inputs)
        return Tensor(self.graph, self.graph.op(kind, *names))

    def __add__(self, other: Any) -> Tensor:
        return self.op("Add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Tensor:
        return self.op("Sub", self, other)

    def __mul__(self, other: Any) -> Tensor:
        return self.op("Mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Tensor:
        return self.op("Div", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self.op("Div", other, self)

    def __pow__(self, power: float) -> Tensor:
        return self.op("Pow", self, float(power))

    def __neg__(self) -> Tensor:
        return self.op("Neg", self)

    def __gt__(self, other: Any) -> Tensor:
        return self.op("Greater", self, other)

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return self.op("Equal", self, other)

    __hash__ = None  # type: ignore[assignment]


class Functions:
    """The functions of arrays that formulas use, as nodes of a graph."""

    @staticmethod
    def exp(x: Tensor) -> Tensor:
        return x.op("Exp", x)

    @staticmethod
    def expm1(x: Tensor) -> Tensor:
        return x.op("Exp", x) - 1.0

    @staticmethod
    def log1p(x: Tensor) -> Tensor:
        return x.op("Log", x + 1.0)

    @staticmethod
    def sqrt(x: Tensor) -> Tensor:
        return x.op("Sqrt", x)

    @staticmethod
    def tanh(x: Tensor) -> Tensor:
        return x.op("Tanh", x)

    @staticmethod
    def maximum(x: Tensor, y: Any) -> Tensor:
        return x.op("Max", x, y)

    @staticmethod
    def where(condition: Tensor, x: Any, y: Any) -> Tensor:
        return condition.op("Where", condition, x, y)


class GraphPair(Pair):
    """The rows of a graph's input and the points of a basis; or, without points, rows alone.

    Distances are computed after the mean of the points is subtracted from both: a large common
    offset costs no digits.
    """

    def __init__(self, graph: Graph, rows: str, points: Rows | None) -> None:
        self.graph, self.rows, self.points = graph, rows, points
        self._known: dict[str, Tensor] = {}

    @property
    def dot(self) -> Tensor:
        return self._once("dot", self._dot)

    def _dot(self) -> str:
        if self.points is None:
            return self.graph.squares(self.rows)
        return self.graph.op("MatMul", self.rows, self.graph.floats(self.points.T))

    @property
    def sqdist(self) -> Tensor:
        return self._once("sqdist", self._sqdist)

    def _sqdist(self) -> str:
        g = self.graph
        if self.points is None:
            return (self.dot * 0.0).name
        mean = self.points.mean(axis=0)
        x, y = g.op("Sub", self.rows, g.floats(mean)), self.points - mean
        across = g.op("MatMul", x, g.floats(-2.0 * y.T))
        both = g.op("Add", g.squares(x), g.floats((y * y).sum(axis=1)[None, :]))
        return g.op("Max", g.op("Add", across, both), g.floats(0.0))

    def _once(self, name: str, compute: Callable[[], str]) -> Tensor:
        if name not in self._known:
            self._known[name] = Tensor(self.graph, compute())
        return self._known[name]

    @property
    def norms(self) -> tuple[Tensor, Any]:
        own = self.diagonal.dot
        return own, own if self.points is None else (self.points**2).sum(axis=1)[None, :]

    @property
    def diagonal(self) -> GraphPair:
        return GraphPair(self.graph, self.rows, None)

    def diagonals(self, kernel: Kernel) -> tuple[Any, Any]:
        own = kernel.on(self.diagonal)
        if self.points is None:
            return own, own
        values = np.asarray(kernel.diag(self.points), np.float64)[None, :]
        return own, Tensor(self.graph, self.graph.floats(values))

    def on_columns(self, columns: Sequence[int]) -> GraphPair:
        chosen = [int(column) for column in columns]
        rows = self.graph.op("Gather", self.rows, self.graph.whole(chosen), axis=1)
        return GraphPair(self.graph, rows, None if self.points is None else self.points[:, chosen])

    @property
    def normalized(self) -> GraphPair:
        scale = inverse_sqrt(self.diagonal.dot)
        rows = self.graph.op("Mul", self.rows, scale.name)
        points = self.points
        if points is not None:
            points = points * inverse_sqrt((points**2).sum(axis=1))[:, None]
        return GraphPair(self.graph, rows, points)

    @property
    def sides(self) -> NoReturn:
        raise NotInGraph

    def column_sum(self, f: ColumnSum, owner: Any) -> NoReturn:
        raise NotInGraph

    def mapped(self, key: Hashable, f: Callable[[Any], Any]) -> NoReturn:
        raise NotInGraph


def kernel_tensor(kernel: Kernel, graph: Graph, rows: str, points: Rows) -> str:
    """Return the tensor of a kernel between the rows of a graph and points."""
    pair = GraphPair(graph, rows, points)
    try:
        values = kernel.on(pair)
    except NotInGraph:
        names = sorted({cls.__name__ for cls in KERNELS.values() if _has_graph(cls())})
        raise ValueError(
            f"to_onnx: {kernel!r} is not a function of dot products and Euclidean distances alone. "
            f"Kernels that are: {', '.join(names)} and combinations of them; Laplacian with "
            f"norm='l2', Matern with nu 0.5, 1.5 or 2.5."
        ) from None
    return values.name if isinstance(values, Tensor) else (pair.dot * 0.0 + values).name


def _has_graph(kernel: Kernel) -> bool:
    if kernel.takes == "strings":
        return False
    try:
        kernel.on(GraphPair(Graph(), "X", np.zeros((1, 1))))
    except NotInGraph:
        return False
    return True
