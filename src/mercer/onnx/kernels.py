"""Kernels as graphs: the formula of a kernel, evaluated on tensors.

A kernel writes its formula once, on a pair of rows: dot products, squared distances, norms. On
the pairs here the same formula adds nodes to a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

import numpy as np

from mercer.arrays import Matrix
from mercer.kernels import Kernel
from mercer.kernels.pair import ColumnSum, Pair
from mercer.onnx.graph import Tensor


def kernel_values(kernel: Kernel, rows: Tensor, points: Matrix) -> Tensor:
    """Return the tensor k(x, y) of rows x and points y."""
    pair = GraphPair(rows, points)
    try:
        values = kernel.on(pair)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"to_onnx: {kernel!r} cannot be written as a graph. Kernels of dot products and "
            f"Euclidean distances can, such as Linear, Polynomial, RBF, Laplacian with norm='l2', "
            f"Matern with nu 0.5, 1.5 or 2.5, and what is made of them."
        ) from error
    return values if isinstance(values, Tensor) else 0.0 * pair.dot + values


class TensorPair(Pair):
    """What the two kinds of pairs here have not: rows one by one."""

    @property
    def sides(self) -> tuple[Any, Any]:
        raise TypeError("a graph has no rows to call a function with")

    def column_sum(self, f: ColumnSum, owner: Any) -> Any:
        raise TypeError("a graph has no loop over columns")


class GraphPair(TensorPair):
    """Rows, a tensor, and points, an array."""

    def __init__(self, rows: Tensor, points: Matrix) -> None:
        self.rows, self.points = rows, points

    @cached_property
    def dot(self) -> Tensor:
        return self.rows @ self.points.T

    @cached_property
    def sqdist(self) -> Tensor:
        """Squared distances, after the mean of the points is subtracted from both sides.

        A large common offset costs no digits.
        """
        mean = self.points.mean(axis=0)
        rows, points = self.rows - mean, self.points - mean
        norms = squared_norms(rows) + (points * points).sum(axis=1)[None, :]
        return self.rows.graph.namespace.maximum(rows @ (-2.0 * points.T) + norms, 0.0)

    @property
    def norms(self) -> tuple[Any, Any]:
        return squared_norms(self.rows), (self.points * self.points).sum(axis=1)[None, :]

    def diagonals(self, kernel: Kernel) -> tuple[Any, Any]:
        own = np.asarray(kernel.diag(self.points), np.float64)[None, :]
        return kernel.on(self.diagonal), own

    @property
    def diagonal(self) -> Pair:
        return GraphDiagonal(self.rows)

    def mapped(self, key: Hashable, f: Callable[[Any], Any]) -> Pair:
        return GraphPair(f(self.rows), f(self.points))


class GraphDiagonal(TensorPair):
    """Every row paired with itself, as a column."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    @cached_property
    def dot(self) -> Tensor:
        return squared_norms(self.rows)

    @property
    def sqdist(self) -> Tensor:
        return 0.0 * self.dot

    @property
    def norms(self) -> tuple[Any, Any]:
        return self.dot, self.dot

    def diagonals(self, kernel: Any) -> tuple[Any, Any]:
        values = kernel.on(self)
        return values, values

    @property
    def diagonal(self) -> Pair:
        return self

    def mapped(self, key: Hashable, f: Callable[[Any], Any]) -> Pair:
        return GraphDiagonal(f(self.rows))


def squared_norms(rows: Tensor) -> Tensor:
    """Return the squared norm of every row, as a column."""
    return rows.graph.namespace.sum(rows * rows, axis=1, keepdims=True)
