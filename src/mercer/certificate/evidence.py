"""Certificates: explained variance, a bound on the optimum, and the evidence for both."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from mercer.arrays import Array, Vector
from mercer.arrays.linear import FEW, summed
from mercer.certificate import words
from mercer.certificate.words import SPECTRUM as SPECTRUM
from mercer.linalg.bounds import pinching_bound, schur_bound, split_bound, unseen_frobenius
from mercer.linalg.operator import Figure as Figure
from mercer.linalg.operator import Operator, least_certain
from mercer.linalg.solvers import Spectrum, unseen_norm
from mercer.projection import Projection
from mercer.threads import serial_blas

# A bound this close to the explained variance, as a share of it, needs no better one.
_CLOSE = 1e-6


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a method knows about the components it found, in units of variance.

    Attributes
    ----------
    explained : Figure
        Variance in the span of the components: a bound from below, or an estimate.
    bounds : dict of str to Figure
        Bounds on the variance that any set of as many components can explain, by what gave them.
    total : tuple of Figure
        Lower and upper bound on the total variance.
    eigenvalues : ndarray of shape (k,)
        The explained variances λ.
    residuals : ndarray of shape (k,)
        ‖Cv − λv‖ of each component v with variance λ: some eigenvalue is no farther from λ than
        this. For kernel PCA, of the centered kernel matrix and the unit vector of the coefficients
        or scores; for `Hebbian`, in feature space. NaN where it is unknown.
    residuals_kind : {"bound", "estimate"}
        "estimate" where a Krylov recurrence yields the residuals: its rounding is estimated.
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
    slope : float or None
        Estimate of what the bound of blocks of s rows exceeds the optimum by, times s.
    rayleigh : bool
        Whether each λ is the Rayleigh quotient of its component, so that its error is quadratic
        in the residual.
    psd : bool
        Whether no eigenvalue can be negative, so that shares of the variance are at most 1.
    """

    explained: Figure
    bounds: dict[str, Figure]
    total: tuple[Figure, Figure]
    eigenvalues: Vector
    residuals: Vector
    spacing: Vector
    converged: bool = True
    notes: tuple[str, ...] = ()
    negative: Vector = field(default_factory=functools.partial(np.zeros, 0))
    likely: float | None = None
    slope: float | None = None
    rayleigh: bool = True
    psd: bool = True
    residuals_kind: str = "bound"

    @property
    def optimum(self) -> Figure:
        """The best of the bounds: no set of as many components explains more variance."""
        if not len(self.eigenvalues):
            return self.explained.like(0.0)
        bounds = self.bounds.values()
        return min((*bounds, self.total[1]) if self.psd else bounds, key=float)

    @property
    def optimum_from(self) -> str:
        """What the best of the bounds rests on."""
        best = min(self.bounds, key=lambda name: float(self.bounds[name]), default="")
        total = self.psd and (not best or float(self.total[1]) < float(self.bounds[best]))
        return "the total variance" if total else best

    @property
    def gap(self) -> Figure:
        """How far below the optimum the explained variance can be, relative to the optimum."""
        optimum = self.optimum
        gap = 1.0 - float(self.explained) / float(optimum) if optimum > 0.0 else 0.0
        return Figure(min(1.0, max(0.0, gap)), **least_certain(self.explained, optimum))

    @property
    def gap_estimate(self) -> Figure:
        """The likely gap, estimated from the bound or from the residuals; NaN if unknown.

        It is larger if whole directions were missed, and never above a proven gap.
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

        ‖r‖; or ‖r‖²/s for Rayleigh quotients with a spacing s above the residual (Kato–Temple).
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
            bounds={name: bound.like(bound * factor) for name, bound in self.bounds.items()},
            total=(low.like(low * factor), high.like(high * factor)),
            eigenvalues=self.eigenvalues * factor,
            residuals=self.residuals * factor,
            spacing=self.spacing * factor,
            negative=self.negative * factor,
            likely=None if self.likely is None else self.likely * factor,
            slope=None if self.slope is None else self.slope * factor,
        )

    def bounded_by(self, other: Evidence | None) -> Self:
        """Return the evidence with the bounds about as many components of the same rows, too."""
        if other is None or len(other.eigenvalues) != len(self.eigenvalues):
            return self
        (low, high), (least, most) = self.total, other.total
        return replace(
            self,
            bounds={**other.bounds, **self.bounds},
            total=(max(low, least, key=float), min(high, most, key=float)),
            likely=other.likely if self.likely is None else self.likely,
            slope=other.slope if self.slope is None else self.slope,
        )

    def annotated(self, *notes: str) -> Self:
        """Return the evidence with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    @classmethod
    def of_estimates(
        cls, values: Vector, others: Vector, total: float, note: str, *, converged: bool = True
    ) -> Self:
        """Return the evidence about components of which nothing but estimated variances is known.

        `others` are the variances after those of the components.
        """
        return cls(
            explained=Figure(min(total, float(values.sum())), "estimate"),
            bounds={},
            total=(Figure(total), Figure(total)),
            eigenvalues=values,
            residuals=np.full(len(values), np.nan),
            spacing=spacing_of(values, others),
            converged=converged,
            notes=(note,),
        )


@dataclass(frozen=True)
class Axes:
    """What a method returns: the fitted map, and the evidence about its components."""

    projection: Projection
    evidence: Evidence


@dataclass(frozen=True, eq=False)
class Certificate(Evidence):
    """Explained variance, the bound on the optimum, and the accuracy of each component.

    It has the attributes of the evidence that it rests on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import PCA
    >>> print(PCA(2).fit(load_iris().data).certificate_.sentence)
    2 components explain 97.76 % of the variance. No 2 components can explain noticeably more:
    this is within 0.0001 % of optimal (proven).
    """

    @property
    def captured(self) -> Figure:
        """Share of the total variance that the components explain, never too large."""
        return self._share(self.explained, self.total[1], 0.0)

    @property
    def optimum_upper(self) -> Figure:
        """Share of the total variance that no set of as many components can exceed.

        Never too small: 1 where the total is within rounding error of zero.
        """
        if not len(self.eigenvalues):
            return self.explained.like(0.0)
        return self._share(self.optimum, self.total[0], float(self.total[1] > 0.0))

    def _share(self, variance: Figure, total: Figure, unknown: float) -> Figure:
        share = float(variance) / float(total) if total > 0.0 else unknown
        return Figure(min(1.0, share) if self.psd else share, **least_certain(variance, total))

    @property
    def angles(self) -> Vector:
        """Estimate of the largest angle, in radians, between each component and the true one.

        sin θ ≤ ‖r‖/s (Davis–Kahan); an estimate because s comes from computed eigenvalues.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            sine = np.where(self.residuals == 0.0, 0.0, self.residuals / self.spacing)
        return np.arcsin(np.minimum(1.0, sine))

    @property
    def residuals_label(self) -> str:
        """How certain the residuals are: proven or estimated."""
        return Figure(0.0, self.residuals_kind).label

    @property
    def sentence(self) -> str:
        """The certificate in a sentence."""
        return words.sentence(self)

    @property
    def table(self) -> str:
        """The components, a line each, the first and the last of them; empty if nothing is known.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA
        >>> print(PCA(2).fit(load_iris().data).certificate_.table.splitlines()[0])
        component      variance   residual      error  angle
        """
        return words.table(self)

    def __str__(self) -> str:
        return "\n".join((self.sentence, *words.remarks(self)))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return words.html(self)


def certify(problem: Any, axes: Axes) -> Certificate:
    """Return the certificate of a fit, given the evidence of its method.

    Nothing explains more than the optimum: where rounding says otherwise, the optimum counts. The
    components are rounded to the precision of the rows. For a unit vector v, ‖Cv − λv‖ grows by
    u λ₁ at most, and by u λ because λ is rounded; the explained variance falls by
    2u‖Cv − λv‖ + u² λ₁ for each component. No residual exceeds λ₁, where it is unknown.
    """
    evidence, optimum = axes.evidence, axes.evidence.optimum
    unit = float(np.finfo(problem.source.dtype).eps) / 2
    explained, most = float(evidence.explained), float(evidence.total[1])
    if optimum.kind == "bound" or evidence.explained.kind == "estimate":
        explained, most = min(explained, float(optimum)), float(optimum)
    residuals = evidence.residuals
    known = float(np.where(np.isnan(residuals), most, residuals).sum())
    lost = 2.0 * unit * (known + len(residuals) * unit * most)
    changes = {
        "explained": evidence.explained.like(max(0.0, explained - lost)),
        "residuals": residuals + unit * (most + np.abs(evidence.eigenvalues)),
    }
    return Certificate(**{**vars(evidence), **changes})


def spacing_of(values: Vector, others: Vector) -> Vector:
    """Return each value's distance to the nearest of the others; to zero where none is known."""
    everything = np.sort(np.concatenate([values, others if len(others) else np.zeros(1)]))
    steps = np.full(len(everything) + 1, np.inf)
    np.subtract(everything[1:], everything[:-1], out=steps[1:-1])
    at = np.searchsorted(everything, values)
    return np.asarray(np.minimum(steps[at], steps[at + 1]))


def spectral_evidence(
    operator: Operator, spectrum: Spectrum, k: int, rng: np.random.Generator, *, probe: bool = True
) -> Evidence:
    """Return the variance of the first k eigenpairs, and a bound for any k components.

    A dense decomposition misses nothing, so only rounding counts. Otherwise the bounds of
    `mercer.linalg.bounds` apply; with `probe`, and where it helps, also the one at 99.9 %
    confidence, which takes six to sixteen more products of four vectors.
    """
    total, rounding = operator.trace, operator.rounding
    values, residuals = spectrum.values[:k], spectrum.residuals[:k]
    slack = rounding * k**0.5
    if spectrum.complete:
        # Residuals include the rounding of the matrix, which is in the slack already.
        errors = np.maximum(residuals - rounding, 0.0)
        error = math.hypot(*errors) * k**0.5
        upper = Figure(float(values.sum()) + error, "bound", operator.confidence)
    else:
        with serial_blas():
            upper = _optimum(operator, spectrum, k, rng if probe else None)
    others = spectrum.values[k:] if spectrum.ritz is None else spectrum.ritz[k:]
    sure = operator.confidence
    return Evidence(
        explained=Figure(max(0.0, float(values.sum()) - slack), "bound", sure),
        bounds={SPECTRUM: Figure(upper + slack, upper.kind, upper.confidence)},
        total=(
            Figure(max(total - rounding, 0.0) if operator.psd else total - rounding, "bound", sure),
            Figure(total + rounding, "bound", sure),
        ),
        eigenvalues=values,
        residuals=residuals,
        residuals_kind=spectrum.residuals_kind,
        spacing=spacing_of(values, others),
        converged=spectrum.converged,
        psd=operator.psd,
    )


def lifted_evidence(
    evidence: Evidence, total: float, n: int, products: Any = np.float64
) -> Evidence:
    """Return the evidence for v = Xᵀu/σ, given that for eigenvectors u of the dot-product matrix.

    Cv − λv = Xᵀ(Gu − λu)/σ is longer by √(λ₁/λ) at most, and a product of n terms rounds v by
    n u ‖X‖_F/σ. No unit vector has a residual above λ₁.
    """
    values = evidence.eigenvalues
    largest = float(np.max(values + evidence.residuals, initial=0.0))
    unit = (summed(n, products) + FEW) * float(np.finfo(products).eps) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = evidence.residuals * np.sqrt(largest / values)
        residuals += unit * largest * np.sqrt(total / values)
    return replace(evidence, residuals=np.fmin(residuals, largest))


def _optimum(
    operator: Operator, spectrum: Spectrum, k: int, rng: np.random.Generator | None
) -> Figure:
    """Return the best bound on the sum of the k largest eigenvalues of an iterative solver."""
    ritz, coupling = spectrum.ritz, spectrum.coupling
    assert ritz is not None  # every solver that is not complete returns them
    assert coupling is not None
    explained = float(ritz[:k].sum())

    def bound(unseen: float) -> float:
        both = schur_bound(ritz, coupling, unseen, k), split_bound(ritz, coupling, unseen, k)
        return min(both)

    # The part of the trace that rounding hides may be unseen, too.
    trace = operator.trace + operator.rounding
    unseen = max(0.0, trace - float(ritz.sum())) if operator.psd else np.inf
    best = bound(unseen)
    if operator.psd:
        best = min(best, pinching_bound(ritz, trace, k))
    optimum = Figure(best, "bound", operator.confidence)
    if operator.square is not None:
        product = float(ritz @ ritz) + float(np.trace(coupling))
        unseen = min(unseen, unseen_frobenius(operator.square, product, ritz))
        tighter = bound(unseen)
        if tighter < optimum:
            certain = min(operator.confidence, operator.square.confidence)
            optimum = Figure(tighter, "bound", certain)
    if operator.unseen_bound is not None and spectrum.products <= len(ritz):  # nothing was dropped
        likely = bound(min(unseen, operator.unseen_bound))
        if likely < optimum:
            optimum = Figure(likely, "bound", 0.999)
    cheap = operator.psd and operator.probe_dtype is not None
    if rng is None or not cheap or optimum <= explained * (1 + _CLOSE):
        return optimum

    def probed(norm: float) -> float:
        return split_bound(ritz, coupling, min(norm, unseen), k)

    basis: Array = spectrum.basis
    if basis is None:
        basis = spectrum.state.rows[: len(ritz), :].T
    norm = unseen_norm(operator, basis, rng, lambda norm: probed(norm) <= explained * (1 + _CLOSE))
    likely = probed(norm)
    return min(optimum, norm.like(likely), key=float)
