"""What a sketch of the rows is gathered in, and how its eigenvectors become axes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from mercer.arrays import Array, Vector, cast, like, numpy_dtype
from mercer.data import Block, Fold
from mercer.linalg import Centre, Moments
from mercer.linalg.products import Sum
from mercer.sketches.drawn import Drawn


class Sketched(Fold):
    """Moments of the rows, column by column, and of what a sketch makes of them, whole.

    Rows are shifted before they are sketched: a large mean would cost the sketch its digits.
    """

    label = "sketch"

    def __init__(self, sketch: Shifted, rows: Moments, small: Moments) -> None:
        self.sketch, self.rows, self.small = sketch, rows, small
        self.nbytes = rows.nbytes + small.nbytes
        drawn = sketch.drawn
        self.row_bytes = rows.row_bytes + small.row_bytes + 8 * (drawn.d + 2 * drawn.q)

    def add(self, block: Block) -> None:
        self.rows.add(block)
        self.small.add(replace(block, rows=self.sketch(block.rows)))

    def merge(self, other: Self) -> None:
        self.rows.merge(other.rows)
        self.small.merge(other.small)

    def spawn(self) -> Self:
        return type(self)(self.sketch, self.rows.spawn(), self.small.spawn())

    def arrays(self) -> dict[str, Array]:
        parts = {"rows": self.rows.arrays(), "small": self.small.arrays()}
        return {f"{name}.{key}": a for name, part in parts.items() for key, a in part.items()}

    def restore(self, arrays: dict[str, Array]) -> None:
        for name, fold in (("rows", self.rows), ("small", self.small)):
            own = {k.partition(".")[2]: v for k, v in arrays.items() if k.startswith(f"{name}.")}
            fold.restore(own)

    def settle(self) -> None:
        self.rows.settle()
        self.small.settle()


class Shifted:
    """A sketch of rows less a shift, divided by deviations; sparse rows are not shifted."""

    def __init__(self, drawn: Drawn, shift: Vector, deviation: Vector) -> None:
        self.drawn, self.shift, self.deviation = drawn, shift, deviation
        self.plain = not np.any(deviation != 1.0)

    def __call__(self, rows: Any) -> Array:
        if hasattr(rows, "tocsr"):
            scaled = rows if self.plain else rows.multiply(1.0 / self.deviation).tocsr()
            return self.drawn.apply(scaled)
        kind = numpy_dtype(rows)
        rows = rows - like(self.shift, rows, kind)
        return self.drawn.apply(rows if self.plain else rows / like(self.deviation, rows, kind))


class Lifted(Sum):
    r"""The product :math:`\sum_i w_i (x_i-\mu)(f(x_i) - \bar f)^T U`: axes from a sketch's."""

    label = "components"

    def __init__(
        self, centre: Centre, V: Array, shape: tuple[int, int], sketch: Shifted, mean: Vector
    ) -> None:
        super().__init__(centre, V, shape)
        self.sketch, self.small_mean = sketch, mean
        drawn = sketch.drawn
        self.row_bytes += 8 * (drawn.d + 2 * drawn.q)

    def add(self, block: Block) -> None:
        small = cast(self.sketch(block.rows), np.float64) - like(self.small_mean, self.V)
        scores = cast(small @ self.V, self.centre.dtype)
        if block.weights is not None:
            scores = scores * like(block.weights, scores, self.centre.dtype)[:, None]
        self.result += self.centre.transposed_times(self.centre(block.rows), scores)

    def spawn(self) -> Self:
        return type(self)(self.centre, self.V, self.shape, self.sketch, self.small_mean)
