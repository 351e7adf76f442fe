"""An ONNX graph under construction, and tensors whose arithmetic builds it.

A kernel writes its formula once, on a pair of rows: dot products, squared distances, norms. On
the pair of tensors here the same formula adds nodes to a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

import numpy as np

from mercer import __version__
from mercer.arrays import Matrix
from mercer.extras import extra
from mercer.kernels import Kernel
from mercer.kernels.pair import Pair

# Read by onnxruntime since 1.15 and by most other runtimes.
OPSET, IR_VERSION = 17, 8
# Protocol buffers hold at most 2 GiB, with some room for names.
LARGEST = 2**31 - 2**20


class Graph:
    """Nodes and constants, all float64 between input and output.

    Constants that float32 represents exactly are stored in half the size.
    """

    def __init__(self) -> None:
        for module in ("onnx.helper", "onnx.numpy_helper", "onnx"):
            self.onnx: Any = extra(module, "onnx", "to_onnx requires")
        self.namespace = Namespace()
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def input(self, columns: int) -> Tensor:
        """Return the input X, float32 rows, as float64."""
        name = self.node("Cast", "X", to=self.onnx.TensorProto.DOUBLE)
        return Tensor(self, name, (None, columns))

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = f"{operator.lower()}_{len(self._nodes) + 1}"
        node = self.onnx.helper.make_node(operator, list(inputs), [name], **attributes)
        self._nodes.append(node)
        return name

    def name(self, value: Any) -> str:
        """Return the name of a tensor, or of a new constant."""
        if isinstance(value, Tensor):
            return value.name
        values, name = np.asarray(value), f"constant_{len(self._constants) + 1}"
        indices = values.dtype.kind in "iu" and values.ndim
        values = values.astype(np.int64 if indices else np.float64, order="C")
        with np.errstate(over="ignore"):
            short = values.astype(np.float32)
        exact = np.array_equal(short.astype(np.float64), values)
        halve = exact and values.size >= 16 and not indices
        stored = short if halve else values
        self._constants.append(self.onnx.numpy_helper.from_array(stored, name))
        return self.node("Cast", name, to=self.onnx.TensorProto.DOUBLE) if halve else name

    def model(self, scores: Tensor, columns: int, components: int, texts: dict[str, str]) -> Any:
        """Return the model: float32 rows named X in, float32 scores out, texts as metadata."""
        helper, single = self.onnx.helper, self.onnx.TensorProto.FLOAT
        size = sum(len(constant.raw_data) for constant in self._constants)
        if size > LARGEST:
            raise ValueError(
                f"to_onnx: the model takes {size} bytes; an ONNX file holds at most {LARGEST}. Fit "
                f"on a basis, such as method=Subset(1000)."
            )
        self._nodes.append(helper.make_node("Cast", [scores.name], ["scores"], to=single))
        graph = helper.make_graph(
            self._nodes,
            "mercer",
            [helper.make_tensor_value_info("X", single, ["n", columns])],
            [helper.make_tensor_value_info("scores", single, ["n", components])],
            self._constants,
        )
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)
        model.producer_name, model.producer_version = "mercer", __version__
        helper.set_model_props(model, texts)
        return model


def _binary(operator: str, *, reflected: bool = False) -> Callable[[Tensor, Any], Tensor]:
    def method(self: Tensor, other: Any) -> Tensor:
        inputs = (other, self) if reflected else (self, other)
        return self.apply(operator, *inputs)

    return method


class Tensor:
    """A tensor of a graph; arithmetic adds nodes.

    It follows the array API as far as formulas of kernels use it, so a formula that is written
    for arrays builds its own graph.
    """

    __array_ufunc__ = None  # NumPy leaves arithmetic of its arrays with tensors to tensors
    dtype, device = "float64", "cpu"

    def __init__(self, graph: Graph, name: str, shape: tuple[int | None, ...] = ()) -> None:
        self.graph, self.name, self.shape = graph, name, shape

    def __array_namespace__(self, api_version: str | None = None) -> Namespace:
        return self.graph.namespace

    def apply(self, operator: str, *inputs: Any, **attributes: Any) -> Tensor:
        names = (self.graph.name(value) for value in inputs)
        return Tensor(self.graph, self.graph.node(operator, *names, **attributes), self.shape)

    __add__, __radd__ = _binary("Add"), _binary("Add", reflected=True)
    __sub__, __rsub__ = _binary("Sub"), _binary("Sub", reflected=True)
    __mul__, __rmul__ = _binary("Mul"), _binary("Mul", reflected=True)
    __truediv__, __rtruediv__ = _binary("Div"), _binary("Div", reflected=True)
    __pow__, __matmul__ = _binary("Pow"), _binary("MatMul")
    __gt__, __lt__, __and__ = _binary("Greater"), _binary("Less"), _binary("And")
    __eq__ = _binary("Equal")  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __neg__(self) -> Tensor:
        return self.apply("Neg", self)

    def __invert__(self) -> Tensor:
        return self.apply("Not", self)

    def __getitem__(self, key: Any) -> Tensor:
        if key != (slice(None), None):
            raise TypeError("tensors support only x[:, None]")
        return self.apply("Unsqueeze", self, np.array([1]))

    def __bool__(self) -> bool:
        raise TypeError("a tensor has no values yet")


def _unary(operator: str) -> Callable[[Namespace, Tensor], Tensor]:
    return lambda self, x: x.apply(operator, x)


class Namespace:
    """Functions of the array API on tensors."""

    __name__ = "mercer.onnx.graph"
    int64, float64 = "int64", "float64"

    exp, sqrt, tanh = _unary("Exp"), _unary("Sqrt"), _unary("Tanh")
    isnan = _unary("IsNaN")

    def asarray(self, values: Any, **how: Any) -> Any:
        return np.asarray(values)

    def expm1(self, x: Tensor) -> Tensor:
        return self.exp(x) - 1.0

    def log1p(self, x: Tensor) -> Tensor:
        return x.apply("Log", 1.0 + x)

    def maximum(self, x: Tensor, y: Any) -> Tensor:
        return x.apply("Max", x, y)

    def where(self, condition: Tensor, x: Any, y: Any) -> Tensor:
        return condition.apply("Where", condition, x, y)

    def any(self, x: Tensor) -> bool:
        """Return False: formulas ask it of squares that overflow, which those of float32 do not."""
        return False

    def sum(self, x: Tensor, axis: int, keepdims: bool = False) -> Tensor:
        return x.apply("ReduceSum", x, np.array([axis]), keepdims=int(keepdims))

    def take(self, x: Tensor, indices: Any, axis: int) -> Tensor:
        columns = x.apply("Gather", x, indices, axis=axis)
        columns.shape = (None, len(indices))
        return columns

    def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
        return tensors[0].apply("Concat", *tensors, axis=axis)


def kernel_values(kernel: Kernel, rows: Tensor, points: Matrix) -> Tensor:
    """Return the tensor k(x, y) of rows x and points y."""
    pair = GraphPair(rows, points)
    try:
        values = kernel.on(pair)
    except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
        raise ValueError(
            f"to_onnx: {kernel!r} cannot be exported. Kernels of dot products and Euclidean "
            f"distances can, such as Linear, Polynomial, RBF, Laplacian with norm='l2', Matern "
            f"with nu 0.5, 1.5 or 2.5, and combinations of them."
        ) from error
    return values if isinstance(values, Tensor) else 0.0 * pair.dot + values


class GraphPair(Pair):
    """Rows, a tensor, and points, an array; without points, every row paired with itself."""

    def __init__(self, rows: Tensor, points: Matrix | None = None) -> None:
        self.rows, self.points = rows, points

    @cached_property
    def dot(self) -> Tensor:
        return _squared_norms(self.rows) if self.points is None else self.rows @ self.points.T

    @cached_property
    def sqdist(self) -> Tensor:
        """Squared distances, after the mean of the points is subtracted from both sides.

        A large common offset costs no digits.
        """
        if self.points is None:
            return 0.0 * self.dot
        mean = self.points.mean(axis=0)
        rows, points = self.rows - mean, self.points - mean
        norms = _squared_norms(rows) + (points * points).sum(axis=1)[None, :]
        return self.rows.graph.namespace.maximum(rows @ (-2.0 * points.T) + norms, 0.0)

    @property
    def norms(self) -> tuple[Any, Any]:
        if self.points is None:
            return self.dot, self.dot
        return _squared_norms(self.rows), (self.points * self.points).sum(axis=1)[None, :]

    def diagonals(self, kernel: Kernel) -> tuple[Any, Any]:
        values = kernel.on(self.diagonal)
        if self.points is None:
            return values, values
        return values, np.asarray(kernel.diag(self.points), np.float64)[None, :]

    @property
    def diagonal(self) -> GraphPair:
        return self if self.points is None else GraphPair(self.rows)

    def mapped(self, key: Hashable, f: Callable[[Any], Any]) -> GraphPair:
        return GraphPair(f(self.rows), None if self.points is None else f(self.points))


def _squared_norms(rows: Tensor) -> Tensor:
    return rows.graph.namespace.sum(rows * rows, axis=1, keepdims=True)
