"""A graph of ONNX under construction: float64 from the input to the output."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.extras import extra
from mercer.modelfile.header import version

# Widely read: by onnxruntime since 1.15, and by most other runtimes.
OPSET, IR = 17, 8
# What protocol buffers hold at most, and some room for names.
MOST_BYTES = 2**31 - 2**20


class Graph:
    """Nodes and constants; tensors are known by their names.

    Everything is float64. Constants that float32 holds exactly are stored so, at half the size.
    """

    def __init__(self) -> None:
        self.onnx = library()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._count = 0

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of one output; return the output's name."""
        self._count += 1
        name = f"{kind.lower()}_{self._count}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def floats(self, values: Any) -> str:
        """Add a constant, float64 for those that use it; return its name."""
        values = np.asarray(values, np.float64)
        with np.errstate(over="ignore"):
            short = values.astype(np.float32)
        if values.size < 16 or not np.array_equal(short.astype(np.float64), values):
            return self._constant(values)
        return self.op("Cast", self._constant(short), to=self.onnx.TensorProto.DOUBLE)

    def whole(self, values: Any) -> str:
        """Add a constant of whole numbers; return its name."""
        return self._constant(np.asarray(values, np.int64))

    def _constant(self, values: np.ndarray[Any, Any]) -> str:
        self._count += 1
        name = f"constant_{self._count}"
        made = self.onnx.numpy_helper.from_array(np.ascontiguousarray(values), name)
        self.constants.append(made)
        return name

    def squares(self, rows: str) -> str:
        """Return the squared length of every row, as a column."""
        return self.op("ReduceSum", self.op("Mul", rows, rows), self.whole([1]), keepdims=1)

    def model(self, output: str, columns: int, axes: int, told: dict[str, str]) -> Any:
        """Return the model: rows of float32 named X in, float32 named scores out."""
        helper, single = self.onnx.helper, self.onnx.TensorProto.FLOAT
        needed = sum(len(constant.raw_data) for constant in self.constants)
        if needed > MOST_BYTES:
            raise ValueError(
                f"to_onnx: the model takes {needed} bytes, and an ONNX file holds {MOST_BYTES} of "
                f"them. Fit on a basis, such as method=Subset(1000)."
            )
        self.nodes.append(helper.make_node("Cast", [output], ["scores"], to=single))
        graph = helper.make_graph(
            self.nodes,
            "mercer",
            [helper.make_tensor_value_info("X", single, ["n", columns])],
            [helper.make_tensor_value_info("scores", single, ["n", axes])],
            self.constants,
        )
        opset = [helper.make_opsetid("", OPSET)]
        made = helper.make_model(graph, opset_imports=opset, ir_version=IR)
        made.producer_name, made.producer_version = "mercer", version()
        helper.set_model_props(made, told)
        return made


def library() -> Any:
    """Return the onnx package, or say how to get it."""
    for module in ("onnx.helper", "onnx.numpy_helper"):
        extra(module, "onnx", "to_onnx makes its graph with")
    return extra("onnx", "onnx", "to_onnx makes its graph with")
