"""Evidence: what a method knows about the components it found."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from mercer.arrays import Vector
from mercer.linalg.bounds import Figure, least_certain
from mercer.projection import Projection


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a method knows about the components it found, in units of variance.

    Attributes
    ----------
    explained : Figure
        Variance in the span of the components: a bound from below, or an estimate.
    bounds : tuple of Figure
        Bounds on the variance that any set of as many components can explain.
    total : tuple of Figure
        The least and the most that the total variance can be.
    eigenvalues : ndarray of shape (k,)
        The explained variances λ.
    residuals : ndarray of shape (k,)
        ‖Cv − λv‖ of each component v with variance λ: some eigenvalue is no farther from λ than
        this. For kernel PCA, the residual of the centred kernel matrix and a unit vector over the
        rows, the coefficients or the scores of the component; for `Hebbian`, the residual of the
        component in feature space. NaN where it is unknown.
    spacing : ndarray of shape (k,)
        Distance from each λ to the nearest other known eigenvalue.
    converged : bool
        Whether the solver met its tolerance.
    notes : tuple of str
        Remarks for the reader of the certificate.
    negative : ndarray
        The negative eigenvalues of an indefinite kernel that were found, most negative first.
    likely : float or None
        Estimate of the largest variance that any as many components explain.
    rayleigh : bool
        Whether each λ is the Rayleigh quotient of its component, so that its error is quadratic
        in the residual.
    psd : bool
        Whether no eigenvalue can be negative, so that shares of the variance are at most 1.
    """

    explained: Figure
    bounds: tuple[Figure, ...]
    total: tuple[Figure, Figure]
    eigenvalues: Vector
    residuals: Vector
    spacing: Vector
    converged: bool = True
    notes: tuple[str, ...] = ()
    negative: Vector = field(default_factory=lambda: np.zeros(0))
    likely: float | None = None
    rayleigh: bool = True
    psd: bool = True

    @property
    def optimum(self) -> Figure:
        """The best of the bounds: no set of as many components explains more variance."""
        if not len(self.eigenvalues):
            return self.explained.like(0.0)
        return min((*self.bounds, self.total[1]) if self.psd else self.bounds, key=float)

    @property
    def gap(self) -> Figure:
        """How far below the optimum the explained variance can be, relative to the optimum."""
        optimum = self.optimum
        gap = 1.0 - float(self.explained) / float(optimum) if optimum > 0.0 else 0.0
        return Figure(min(1.0, max(0.0, gap)), **least_certain(self.explained, optimum))

    @property
    def gap_estimate(self) -> Figure:
        """The likely gap, estimated from a sample of rows or from the residuals.

        Both look only at the directions that were found. If whole directions were missed, as by a
        basis of few points of very different rows, the gap is larger. Never above a proven gap;
        NaN where neither is known.
        """
        if self.likely is not None:
            share = 1.0 - self.explained / self.likely if self.likely > 0 else 0.0
            return Figure(max(0.0, share), "estimate")
        explained = float(self.eigenvalues.sum())
        share = float(self.eigenvalue_errors.sum()) / explained if explained > 0 else 0.0
        certain = self.gap if self.gap.kind == "bound" else 1.0
        return Figure(share if math.isnan(share) else min(certain, share), "estimate")

    @property
    def eigenvalue_errors(self) -> Vector:
        """Estimate of the distance from each λ to an eigenvalue of the operator.

        ‖r‖ is a bound; ‖r‖²/s, of Rayleigh quotients whose spacing s to the other eigenvalues is
        larger than the residual (Kato–Temple), is an estimate because s comes from computed
        eigenvalues.
        """
        if not self.rayleigh:
            return self.residuals
        with np.errstate(divide="ignore", invalid="ignore"):
            quadratic = self.residuals**2 / self.spacing
        rounding = float(np.finfo(np.float64).eps) * np.abs(self.eigenvalues)
        close = np.maximum(quadratic, rounding)
        return np.where(self.spacing > self.residuals, close, self.residuals)

    def scaled(self, factor: float) -> Self:
        """Return the same evidence for data whose variances are `factor` times as large."""
        low, high = self.total
        return replace(
            self,
            explained=self.explained.like(self.explained * factor),
            bounds=tuple(bound.like(bound * factor) for bound in self.bounds),
            total=(low.like(low * factor), high.like(high * factor)),
            eigenvalues=self.eigenvalues * factor,
            residuals=self.residuals * factor,
            spacing=self.spacing * factor,
            negative=self.negative * factor,
            likely=None if self.likely is None else self.likely * factor,
        )

    def rounded(self, dtype: Any) -> Self:
        """Return the evidence about the same components, rounded to a precision.

        For a unit vector v, ‖Cv − λv‖ grows by u λ₁ at most, and by u λ because λ is rounded; the
        explained variance falls by 2u‖Cv − λv‖ + u² λ₁ for each component.
        """
        optimum, unit = self.optimum, float(np.finfo(dtype).eps) / 2
        most = float(optimum if optimum.kind == "bound" else self.total[1])
        explained = self.explained
        if not np.isnan(self.residuals).any():
            lost = 2.0 * unit * (float(self.residuals.sum()) + len(self.residuals) * unit * most)
            explained = explained.like(max(0.0, explained - lost))
        residuals = self.residuals + unit * (most + np.abs(self.eigenvalues))
        return replace(self, explained=explained, residuals=residuals)

    def annotated(self, *notes: str) -> Self:
        """Return the evidence with more notes."""
        return replace(self, notes=(*self.notes, *notes))


@dataclass(frozen=True)
class Axes:
    """What a method returns: the fitted map, and the evidence about its components."""

    projection: Projection
    evidence: Evidence


def spacing_of(values: Vector, others: Vector) -> Vector:
    """Return each value's distance to the nearest of the others; to zero where none is known."""
    everything = np.sort(np.concatenate([values, others if len(others) else np.zeros(1)]))
    steps = np.full(len(everything) + 1, np.inf)
    np.subtract(everything[1:], everything[:-1], out=steps[1:-1])
    at = np.searchsorted(everything, values)
    return np.asarray(np.minimum(steps[at], steps[at + 1]))
