"""How far from the best possible answer a result can be.

Every figure says what it is: a bound, a bound with its confidence, or an estimate. The
bounds come from residuals, traces and norms alone, so they hold for any symmetric operator
A, whatever method found the axes. Q is an orthonormal basis, Θ = QᵀAQ, B = (I − QQᵀ)AQ and
C = (I − QQᵀ)A(I − QQᵀ), the part of A that Q does not see.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector, eigvalsh


class Figure(float):
    """A number that says what it is.

    Attributes
    ----------
    kind : {"bound", "estimate"}
    confidence : float
        Probability with which a bound holds: 1 for one that always does.

    Examples
    --------
    >>> from mercer.certificate import Figure
    >>> Figure(0.25, "bound", 0.999)
    0.25 (at 99.9 % confidence)
    """

    kind: str
    confidence: float

    def __new__(cls, value: float, kind: str = "bound", confidence: float = 1.0) -> Figure:
        figure = super().__new__(cls, value)
        figure.kind = kind
        figure.confidence = confidence
        return figure

    def __getnewargs__(self) -> tuple[float, str, float]:  # type: ignore[override]
        return float(self), self.kind, self.confidence

    @property
    def label(self) -> str:
        """The kind in words: proven, at a confidence, or estimated."""
        if self.kind != "bound":
            return "estimated"
        return "proven" if self.confidence == 1.0 else f"at {100 * self.confidence:g} % confidence"

    def __repr__(self) -> str:
        return f"{float(self)!r} ({self.label})"


def weakest(*figures: Figure) -> dict[str, Any]:
    """Return kind and confidence of what is computed from figures that rest on one event."""
    kind = "bound" if all(figure.kind == "bound" for figure in figures) else "estimate"
    return {"kind": kind, "confidence": min(figure.confidence for figure in figures)}


# Bounds on λ_1 + … + λ_r of an operator A.


def pinching(ritz: Vector, trace: float, r: int) -> float:
    r"""Return Σ_{i≤r} θ_i + tr A − tr Θ: for a positive semi-definite A, after any product.

    What Q does not see can hold no more variance than its trace.
    """
    return float(ritz[:r].sum() + max(0.0, trace - float(ritz.sum())))


def schur(ritz: Vector, coupling: Matrix, unseen: float, r: int) -> float:
    r"""Return a bound on Σ_{i≤r} λ_i(A) after one product AQ; inf where it does not apply.

    With `unseen` δ ≥ ‖C‖ and θ_r > δ, λ_i(A) ≤ λ_i(Θ + BᵀB/(θ_r − δ)) for every i ≤ r: by
    inertia, λ_i(A) = μ > δ is an eigenvalue of the Schur complement Θ + Bᵀ(μ − C)⁻¹B, which
    is at most Θ + BᵀB/(μ − δ). So no eigenvalue was missed.

    Parameters
    ----------
    ritz : ndarray of shape (m,)
        Eigenvalues of Θ, largest first.
    coupling : ndarray of shape (m, m)
        BᵀB where Θ is diagonal.
    unseen : float
        Bound on the norm of C.
    r : int
        Number of eigenvalues.
    """
    if r == 0:
        return 0.0
    if r > len(ritz) or not ritz[r - 1] > unseen or not np.isfinite(coupling).all():
        return math.inf
    bounded = np.diag(ritz) + coupling / (float(ritz[r - 1]) - unseen)
    return float(eigvalsh(bounded)[::-1][:r].sum())


def unseen_frobenius(square: float, product: float, ritz: Vector) -> float:
    r"""Return ‖C‖_F from δ² = ‖A‖_F² − 2‖AQ‖_F² + ‖Θ‖_F²; inf where squares overflow."""
    left = square - 2.0 * product + float(ritz @ ritz)
    return math.sqrt(max(0.0, left)) if math.isfinite(left) else math.inf


def split(ritz: Vector, coupling: Matrix, unseen: float, r: int) -> float:
    r"""Return a bound on Σ_{i≤r} λ_i(A) after one product AQ, for any `unseen` δ ≥ λ_max(C).

    With B = [B₁ B₂], the first r Ritz vectors and the others, the off-diagonal blocks of A are
    at most diag(B₁ᵀB₁/s, B₂ᵀB₂/t, (s + t) I) for every s, t > 0. So the i-th eigenvalue of A
    is at most the i-th largest of λ(Θ₁ + B₁ᵀB₁/s), λ(Θ₂ + B₂ᵀB₂/t) and δ + s + t as often as
    it takes. Where θ_r > δ this comes close to `schur`; where it is not, it still says that
    nothing missed exceeds δ.
    """
    if r == 0:
        return 0.0
    if not np.isfinite(coupling).all():  # squares overflow
        return math.inf
    first, s = _bent(ritz[:r], coupling[:r, :r], [0.0])[0]
    others = _bent(ritz[r:], coupling[r:, r:], [max(0.0, float(ritz[r - 1]) - unseen)])
    best = math.inf
    for rest, t in others:
        values = np.sort(np.concatenate([first, rest]))[::-1][:r]
        best = min(best, float(np.maximum(values, unseen + s + t).sum()))
    return best


def _bent(ritz: Vector, coupling: Matrix, trials: list[float]) -> list[tuple[Vector, float]]:
    """Return the eigenvalues of Θ + BᵀB/t, and t, for the norm of B and the t's to try."""
    largest = float(eigvalsh(coupling)[-1]) if len(ritz) else 0.0
    norm = math.sqrt(max(0.0, largest))
    if norm == 0.0:
        return [(ritz, 0.0)]
    found: list[tuple[Vector, float]] = []
    for t in (norm, norm / 2, *(t / 2 for t in trials), *trials):
        if t > 0.0:
            values = eigvalsh(np.diag(ritz) + coupling / t)
            found.append((np.asarray(values, np.float64), t))
    return found


def lanczos_excess(steps: int, size: int, starts: int, confidence: float = 0.999) -> float:
    r"""Return the factor by which λ_max can exceed what block Lanczos finds of it.

    A random start and s steps on a positive semi-definite matrix of N rows miss more than a
    share ε with probability at most 1.648 √N ((1−√ε)/(1+√ε))^{s−1/2} (Kuczyński & Woźniakowski
    1992, Thm 4.2); independent starts must all fail.
    """
    odds = math.log(1.648 * math.sqrt(size)) - math.log(1.0 - confidence) / starts
    root = math.tanh(odds / (2 * steps - 1))
    return 1.0 / (1.0 - root * root)


@dataclass(frozen=True, eq=False)
class Certificate:
    """What the components explain, what no others can exceed, and how good each component is.

    Attributes
    ----------
    captured : Figure
        Share of the total variance that the components explain.
    optimum_upper : Figure
        Share that no set of as many components can exceed.
    residuals : ndarray of shape (k,)
        ‖Cv − λv‖ of each component v with variance λ: λ is no farther from an eigenvalue. Of
        kernel PCA, that of the centred kernel matrix and a unit vector over the rows, the
        component's coefficients or scores; of `Hebbian`, that of the component in feature space.
    eigenvalues : ndarray of shape (k,)
        The variances λ.
    spacing : ndarray of shape (k,)
        Distance of each λ to the nearest other eigenvalue that is known.
    converged : bool
        Whether the solver met its tolerance.
    notes : tuple of str
        What else should be known.
    negative : ndarray
        Negative eigenvalues of an indefinite kernel, as far as they were found; the most
        negative first.
    likely : float or None
        Share that the best components likely explain, where residuals are not known; an estimate.
    quotients : bool
        Whether the variances are Rayleigh quotients of the components, whose errors are quadratic.
    ratio : Figure or None
        Variance captured over the most that any components can capture, from below. None where the
        total is known, so that the shares tell it; a basis knows the total within a bracket only.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import PCA
    >>> print(PCA(2).fit(load_iris().data).certificate_.sentence)
    2 components explain 97.76 % of the variance. No 2 components can explain noticeably more:
    this is within 0.0001 % of optimal (proven).
    """

    captured: Figure
    optimum_upper: Figure
    residuals: Vector
    eigenvalues: Vector
    spacing: Vector
    converged: bool = True
    notes: tuple[str, ...] = field(default=())
    negative: Vector = field(default_factory=lambda: np.zeros(0))
    likely: float | None = None
    ratio: Figure | None = None
    quotients: bool = True

    @property
    def gap(self) -> Figure:
        """How far below the optimum the components can be.

        1 − captured / optimum_upper, or 1 − ratio.
        """
        if self.ratio is not None:
            return Figure(max(0.0, 1.0 - self.ratio), **weakest(self.ratio))
        best = float(self.optimum_upper)
        value = 1.0 - float(self.captured) / best if best > 0.0 else 0.0
        return Figure(max(0.0, value), **weakest(self.captured, self.optimum_upper))

    def rounded(self, dtype: Any, total: float) -> Certificate:
        """Return the certificate of the same axes and variances, rounded to a precision.

        ‖Cv − λv‖ of a unit vector v changes by u λ₁ at most, and by u λ for the variance; what
        the axes hold, by 2u‖Cv − λv‖ and u² λ₁ for each.
        """
        most = total * (float(self.optimum_upper) if self.optimum_upper.kind == "bound" else 1.0)
        unit = float(np.finfo(dtype).eps) / 2
        captured = self.captured
        if total > 0.0 and not np.isnan(self.residuals).any():
            lost = 2.0 * unit * (float(self.residuals.sum()) + len(self.residuals) * unit * most)
            value = max(0.0, float(captured) - lost / total)
            captured = Figure(value, captured.kind, captured.confidence)
        residuals = self.residuals + unit * (most + np.abs(self.eigenvalues))
        return replace(self, captured=captured, residuals=residuals)

    @property
    def gap_estimate(self) -> Figure:
        """The likely gap: what a sample of rows says, or what the residuals leave.

        Both know of the directions found only: where whole directions were missed, as by a basis
        of few points of very different rows, the gap is larger. Never above what is certain; NaN
        where neither is known.
        """
        if self.likely is not None:
            share = 1.0 - float(self.captured) / self.likely if self.likely > 0 else 0.0
            return Figure(max(0.0, share), "estimate")
        held = float(self.eigenvalues.sum())
        share = float(self.eigenvalue_errors.sum()) / held if held > 0 else 0.0
        certain = self.gap if self.gap.kind == "bound" else 1.0
        return Figure(share if math.isnan(share) else min(certain, share), "estimate")

    @property
    def confidence(self) -> float:
        """Probability with which `gap` holds."""
        return self.gap.confidence

    @property
    def eigenvalue_errors(self) -> Vector:
        """Estimate of the distance from each λ to an eigenvalue of the operator.

        ‖r‖ is a bound; ‖r‖²/s, of Rayleigh quotients whose spacing s to the other eigenvalues is
        larger than the residual (Kato–Temple), is an estimate because s comes from computed
        eigenvalues.
        """
        if not self.quotients:
            return self.residuals
        with np.errstate(divide="ignore", invalid="ignore"):
            quadratic = self.residuals**2 / self.spacing
        rounding = float(np.finfo(np.float64).eps) * np.abs(self.eigenvalues)
        close = np.maximum(quadratic, rounding)
        return np.where(self.spacing > self.residuals, close, self.residuals)

    @property
    def angles(self) -> Vector:
        """Estimate of the largest angle, in radians, between each component and the true one.

        sin θ ≤ ‖r‖/s (Davis–Kahan); an estimate because s comes from computed eigenvalues.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            sine = np.where(self.residuals == 0.0, 0.0, self.residuals / self.spacing)
        return np.arcsin(np.minimum(1.0, sine))

    @property
    def sentence(self) -> str:
        """The certificate in a sentence."""
        k = len(self.eigenvalues)
        found = f"{k} components explain" if k != 1 else "1 component explains"
        best = f"No {k} components" if k != 1 else "No component"
        gap, held, upper = self.gap, percent(self.captured), percent(self.optimum_upper)
        within = percent(max(gap, 1e-6), 4 if gap < 1e-4 else 2, up=True)
        if upper == held and gap < 1e-4:  # a limit with as many digits would be rounded up
            return (
                f"{found} {held} of the variance. {best} can explain noticeably more: this is "
                f"within {within} of optimal ({gap.label})."
            )
        upper = percent(self.optimum_upper, up=True)
        return (
            f"{found} {held} of the variance. {best} can explain more than {upper} ({gap.label}), "
            f"so this is within {within} of optimal."
        )

    def __str__(self) -> str:
        lines = [self.sentence]
        if not self.converged:
            lines.append("The solver did not meet its tolerance.")
        if self.likely is not None:
            likely = percent(self.gap_estimate, up=True)
            lines.append(f"Probably within {likely} of optimal (estimated).")
        lines += self.notes
        if len(self.negative):
            lines.append(
                f"The kernel is not positive semi-definite: {len(self.negative)} of the "
                f"eigenvalues found are negative, the smallest is {self.negative[0]:.3g}. No "
                f"component belongs to them. Shares are relative to the sum of all eigenvalues, "
                f"which the negative ones make smaller."
            )
        if len(self.eigenvalues) and not np.all(np.isnan(self.residuals)):
            lines += self._table()
        return "\n".join(lines)

    def _table(self) -> list[str]:
        """Return the components, a line each, the first and the last of them."""
        lines = [
            f"{'component':>9}  {'variance':>12}  {'residual':>9}  {'its error':>9}  angle",
            f"{'':>9}  {'':>12}  {'proven':>9}  {'estimated':>9}  estimated",
        ]
        angles = np.degrees(self.angles)
        rows = zip(self.eigenvalues, self.residuals, self.eigenvalue_errors, angles, strict=True)
        for i, (value, residual, error, angle) in enumerate(rows, start=1):
            if 6 < i < len(self.eigenvalues):
                lines += [f"{'…':>9}"] if i == 7 else []
                continue
            lines.append(f"{i:>9}  {value:12.6g}  {residual:9.1e}  {error:9.1e}  {angle:.2g}°")
        return lines

    def __repr__(self) -> str:
        return str(self)


def spacing_of(values: Vector, others: Vector) -> Vector:
    """Return each value's distance to the nearest of the others; to zero where none is known."""
    everything = np.sort(np.concatenate([values, others if len(others) else np.zeros(1)]))
    below = np.diff(everything, prepend=-np.inf)
    above = np.diff(everything, append=np.inf)
    at = np.searchsorted(everything, values)
    return np.minimum(below, above)[at]


def percent(share: float, digits: int = 2, *, up: bool = False) -> str:
    """Return a share in percent, rounded down: 99.998 % is not 100 %; or up, for what is a limit.

    Examples
    --------
    >>> percent(0.99998), percent(0.99998, up=True), percent(0.57)
    ('99.99 %', '100.00 %', '57.00 %')
    """
    whole = 100.0 * 10.0**digits
    last = whole * float(share)
    if math.isfinite(last):  # what rounding put beside a whole number is that number
        last = math.ceil(last - 1e-6) if up else math.floor(last + 1e-6)
        if not up and last == whole and share < 1.0 - 1e-12:
            last -= 1  # less than all is not 100 %, however many digits are shown
    return f"{last / 10.0**digits + 0.0:.{digits}f} %"
