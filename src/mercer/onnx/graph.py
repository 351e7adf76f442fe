"""An ONNX graph under construction, and tensors whose arithmetic builds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer import __version__
from mercer.extras import extra

# Read by onnxruntime since 1.15 and by most other runtimes.
OPSET, IR_VERSION = 17, 8
# Protocol buffers hold at most 2 GiB, with some room for names.
LARGEST = 2**31 - 2**20


class Graph:
    """Nodes and constants, all float64 between input and output.

    Constants that float32 represents exactly are stored in half the size.
    """

    def __init__(self) -> None:
        self.onnx = onnx_package()
        self.namespace = Namespace(self)
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
        values = np.asarray(value)
        if values.dtype.kind in "iu" and values.ndim:  # indices and axes
            return self._constant(values.astype(np.int64))
        values = values.astype(np.float64)
        with np.errstate(over="ignore"):
            short = values.astype(np.float32)
        if values.size < 16 or not np.array_equal(short.astype(np.float64), values):
            return self._constant(values)
        return self.node("Cast", self._constant(short), to=self.onnx.TensorProto.DOUBLE)

    def _constant(self, values: np.ndarray[Any, Any]) -> str:
        name = f"constant_{len(self._constants) + 1}"
        packed = np.asarray(values, order="C")
        self._constants.append(self.onnx.numpy_helper.from_array(packed, name))
        return name

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
        """Return the result of an operator of ONNX."""
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
            raise TypeError("of a tensor only x[:, None] is known")
        return self.apply("Unsqueeze", self, np.array([1]))

    def __bool__(self) -> bool:
        raise TypeError("a tensor has no values yet")


class Namespace:
    """Functions of the array API on tensors."""

    __name__ = "mercer.onnx.graph"
    int64, float64 = "int64", "float64"

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def asarray(self, values: Any, **how: Any) -> Any:
        return np.asarray(values)

    def exp(self, x: Tensor) -> Tensor:
        return x.apply("Exp", x)

    def expm1(self, x: Tensor) -> Tensor:
        return self.exp(x) - 1.0

    def log1p(self, x: Tensor) -> Tensor:
        return x.apply("Log", 1.0 + x)

    def sqrt(self, x: Tensor) -> Tensor:
        return x.apply("Sqrt", x)

    def tanh(self, x: Tensor) -> Tensor:
        return x.apply("Tanh", x)

    def isnan(self, x: Tensor) -> Tensor:
        return x.apply("IsNaN", x)

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
        taken = x.apply("Gather", x, indices, axis=axis)
        taken.shape = (None, len(indices))
        return taken

    def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
        return tensors[0].apply("Concat", *tensors, axis=axis)


def onnx_package() -> Any:
    """Return the onnx package, or say how to install it."""
    for module in ("onnx.helper", "onnx.numpy_helper"):
        extra(module, "onnx", "to_onnx makes its graph with")
    return extra("onnx", "onnx", "to_onnx makes its graph with")
