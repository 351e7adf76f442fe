"""Certificates: what the components explain, and what no others can exceed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mercer.arrays import Vector
from mercer.certificate.evidence import Axes, Evidence
from mercer.linalg.bounds import Figure, least_certain
from mercer.messages import percent


@dataclass(frozen=True, eq=False)
class Certificate(Evidence):
    """What the components explain, what no others can exceed, and how good each component is.

    Besides the attributes of the evidence it rests on:

    Attributes
    ----------
    captured : Figure
        Share of the total variance that the components explain.
    optimum_upper : Figure
        Share of the total variance that no set of as many components can exceed.
    gap : Figure
        Upper bound on the relative distance of the explained variance from the optimum.

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
        """Share of the total variance that the components explain.

        A share of the most that the total can be: never too large.
        """
        return self._share(self.explained, self.total[1], 0.0)

    @property
    def optimum_upper(self) -> Figure:
        """Share of the total variance that no set of as many components can exceed.

        A share of the least that the total can be: never too small. Where the total is within
        rounding error of zero, shares are unknown and the bound is 1.
        """
        if not len(self.eigenvalues):
            return self.explained.like(0.0)
        return self._share(self.optimum, self.total[0], float(self.total[1] > 0.0))

    def _share(self, variance: Figure, total: Figure, unknown: float) -> Figure:
        share = float(variance) / float(total) if total > 0.0 else unknown
        return Figure(min(1.0, share) if self.psd else share, **least_certain(variance, total))

    @property
    def confidence(self) -> float:
        """Probability with which `gap` holds."""
        return self.gap.confidence

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


def certify(problem: Any, axes: Axes) -> Certificate:
    """Judge the components that a method found; the only judge of a fit.

    Nothing explains more than the optimum: where rounding says otherwise, the optimum counts.
    """
    evidence = axes.evidence
    facts = {field.name: getattr(evidence, field.name) for field in fields(Evidence)}
    optimum = evidence.optimum
    if optimum.kind == "bound" and evidence.explained > optimum:
        facts["explained"] = evidence.explained.like(float(optimum))
    return Certificate(**facts)
