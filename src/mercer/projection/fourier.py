"""Fourier features of rows, and the fitted map that rests on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.arrays import (
    Array,
    Vector,
    cast,
    empty,
    is_finite,
    like,
    namespace,
    reference_of,
    to_numpy,
)
from mercer.data import Block, Fold, Source, require_finite_rows
from mercer.kernels import Frequencies
from mercer.kernels.base import Kernel
from mercer.kernels.points import cast_rows
from mercer.projection.linear import LinearProjection, Projection

_TURN = 2.0 * math.pi
# Beyond this, float64 angles are not known to a turn, and are not reduced.
_MANY_TURNS = 1e12


@dataclass(frozen=True)
class FourierMap:
    r"""Fourier features :math:`z(x) = [a_i\cos\omega_i^T(x-s),\ a_i\sin\omega_i^T(x-s)]`.

    :math:`z(x)^Tz(y)` is an unbiased estimate of k(x, y), whatever the shift s (Rahimi & Recht
    2007, Random features for large-scale kernel machines).
    """

    frequencies: Frequencies  # ω and a, q of them: there are 2q features
    shift: Vector | None = None  # s, with which angles keep their digits

    @property
    def width(self) -> int:
        """Number of features."""
        return 2 * len(self.frequencies.amplitude)

    def of(self, source: Source, dtype: Any = None) -> Source:
        """Return z(x) of every row, computed when it is read, on the device of the rows."""
        dtype, parameters = np.dtype(dtype or source.dtype), self._near(source.reference)

        def features(block: Block) -> Array:
            require_finite_rows(block, source)
            z = _waves(*parameters, block.rows, dtype)
            if not is_finite(z):
                raise _too_far(z, block)
            return z

        dense = not source.sparse or self.shift is not None
        extra = self.row_bytes(source.shape[1] if dense else 0, dtype)
        return source.map(features, self.width, dtype, extra)

    def row_bytes(self, d: int, dtype: Any) -> int:
        """Return what a row needs besides itself and its features: float64 rows and angles."""
        return 8 * d + (4 + int(np.dtype(dtype).itemsize)) * self.width

    def _near(self, reference: Array) -> tuple[Array, Array, Array]:
        """Return ω, a and s on the device of the rows."""
        drawn = self.frequencies
        shift = None if self.shift is None else like(self.shift, reference)
        return like(drawn.omega, reference), like(drawn.amplitude, reference), shift

    def __call__(self, rows: Any, dtype: Any) -> Array:
        """Return z(x) of some rows, without checks."""
        return _waves(*self._near(reference_of(rows)), rows, np.dtype(dtype))


def _waves(omega: Array, amplitude: Array, shift: Array, rows: Any, dtype: np.dtype[Any]) -> Array:
    """Return cosines and sines, side by side.

    Angles are float64 for any rows: a float32 angle of 1e5 would leave the features two digits.
    After whole turns are subtracted, float32 is as good, and faster.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # checked by the caller
        angles, xp = _angles(cast_rows(rows, np.float64), omega, shift), namespace(omega)
        if dtype != np.float64 and float(xp.max(xp.abs(angles))) < _MANY_TURNS:
            angles = cast(angles - _TURN * xp.round(angles * (1.0 / _TURN)), dtype)
        q, a = int(angles.shape[1]), cast(amplitude, dtype)
        out = empty((int(angles.shape[0]), 2 * q), omega, dtype)
        out[:, :q] = cast(xp.cos(angles), dtype)
        out[:, q:] = cast(xp.sin(angles), dtype)
        out[:, :q] *= a
        out[:, q:] *= a
    return out


def _angles(rows: Any, omega: Array, shift: Array) -> Array:
    """Return ωᵀ(x − s) of every row."""
    if shift is None:
        return rows @ omega
    # Sparse rows far from zero are shifted before the product: after it, digits are lost.
    return ((rows.toarray() if hasattr(rows, "tocsr") else rows) - shift) @ omega


def _too_far(features: Array, block: Block) -> ValueError:
    bad = block.start + np.flatnonzero(~np.isfinite(to_numpy(features)).all(axis=1))
    return ValueError(
        f"{len(bad)} rows (first: row {bad[0]}) are too large for Fourier features: their angles "
        f"overflow. Scale the rows, or change the kernel's parameters."
    )


@dataclass(frozen=True)
class FourierProjection(Projection):
    r"""The map :math:`y(x) = (z(x) - \bar z)\, V` of Fourier features."""

    kernel: Kernel  # which the features approximate
    map: FourierMap
    centred: bool

    @property
    def shift(self) -> Vector | None:
        """What is subtracted from rows first."""
        return self.map.shift

    @property
    def linear(self) -> LinearProjection:
        """The map of the features themselves."""
        return LinearProjection(
            mean=self.mean,
            components=self.components,
            eigenvalues=self.eigenvalues,
            total_variance=self.total_variance,
            rest=self.rest,
            deviation=np.ones(len(self.mean)),
        )

    def scores(self, source: Source, dtype: Any = None, divide: Vector | None = None) -> Source:
        return self.linear.scores(self.map.of(source, dtype), dtype, divide)

    def residuals(self, source: Source, dtype: Any = None) -> Source:
        """Return one column: an estimate of the squared distance of each row in feature space."""
        return self.linear.residuals(self.map.of(source, dtype), dtype)


class FeatureFold(Fold):
    """Adds float64 Fourier features of rows of d columns to a fold; keeps no rows."""

    def __init__(self, features: FourierMap, inner: Any, d: int) -> None:
        self.features, self.inner, self.d = features, inner, d
        self.weight = 0.0
        self.label, self.nbytes = inner.label, inner.nbytes
        self.row_bytes = inner.row_bytes + features.row_bytes(d, np.float64) + 8 * features.width

    def add(self, block: Block) -> None:
        self.weight += float(block.count.sum())
        rows = self.features(block.rows, np.float64)
        self.inner.add(Block(block.start, rows, block.weights))

    def merge(self, other: Self) -> None:
        self.weight += other.weight
        self.inner.merge(other.inner)

    def spawn(self) -> Self:
        return type(self)(self.features, self.inner.spawn(), self.d)

    def arrays(self) -> dict[str, Array]:
        return {"rows": np.array(self.weight), **self.inner.arrays()}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.weight = float(arrays["rows"])
        self.inner.restore({name: part for name, part in arrays.items() if name != "rows"})

    def settle(self) -> None:
        self.inner.settle()
