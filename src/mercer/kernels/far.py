"""Sums of a kernel over points that lie elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Array, Matrix, Vector
from mercer.data import Block, Source
from mercer.data.remote import ACROSS, Terms
from mercer.kernels.base import Kernel
from mercer.kernels.evaluate import evaluate_into
from mercer.kernels.points import Points, cast_rows


def sums_over(
    kernel: Kernel,
    points: Any,
    source: Source,
    weights: tuple[Vector, Matrix],
    after: Callable[[Block], Array],
    width: int,
) -> Source:
    """Return what a function makes of Σ_y (k(x, y) − m_y) a_y and k(x, x) of every row.

    Neither the points y, of a Dask array, nor the kernel to them come here: what is summed is
    summed where they lie.

    Parameters
    ----------
    kernel : Kernel
    points : dask.array.Array
        The points y.
    source : Source
        Rows x, in the precision to compute in.
    weights : tuple of ndarray
        m, and a: a row for every point.
    after : callable
        What is made of a block whose last column is k(x, x).
    width : int
        How many columns that has.
    """
    from mercer.data.dask import across

    kind = source.dtype
    mean, A = (each.astype(kind) for each in weights)
    terms = KernelTerms(kernel, A.shape[1] + 1, kind)
    return across(source, points, terms, lambda i, j: (i == 0, mean[i:j], A[i:j]), after, width)


@dataclass(frozen=True)
class KernelTerms(Terms):
    """The terms (k(x, y) − m_y) a_y of sums over points y; beside the first points k(x, x).

    Attributes
    ----------
    kernel : Kernel
    width : int
        Sums of a row: one more than a_y has numbers.
    dtype : dtype
        Precision of kernel values and of the sums.
    """

    kernel: Kernel
    width: int
    dtype: np.dtype[Any]

    def share(self, y: Block, beside: Any) -> Callable[[Block], Array]:
        first, mean, A = beside
        points = Points(cast_rows(y.rows, self.dtype), y.start)

        def sums(block: Block) -> Array:
            x = Points(cast_rows(block.rows, self.dtype), block.start)
            total = np.zeros((block.length, self.width), self.dtype)
            for start in range(0, len(points), ACROSS):
                there = slice(start, min(start + ACROSS, len(points)))
                h = np.empty((block.length, there.stop - start), self.dtype)
                evaluate_into(self.kernel.on, x, points.part(there), h)
                total[:, :-1] += (h - mean[there]) @ A[there]
            if first:
                total[:, -1] = self.kernel.on_diagonal(x)
            return total

        return sums
