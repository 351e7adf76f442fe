"""Shares of the variance, and where rules would cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mercer.plotting.spectrum import Spectrum
from mercer.report.subject import Subject
from mercer.rules import (
    MLE,
    BrokenStick,
    Fraction,
    GavishDonoho,
    Kaiser,
    ParallelAnalysis,
    Rule,
)

Values = npt.NDArray[np.float64]

_SHARES: dict[str, Rule] = {
    "90 % of the variance": Fraction(0.9),
    "95 % of the variance": Fraction(0.95),
}
# These judge columns, of which a kernel's space has none.
_COLUMNS: dict[str, Rule] = {
    "eigenvalues above the mean (Kaiser)": Kaiser(),
    "broken stick (Jackson)": BrokenStick(),
    "parallel analysis (Horn)": ParallelAnalysis(20),
    "maximum likelihood (Minka)": MLE(),
    "optimal hard threshold (Gavish & Donoho)": GavishDonoho(),
}


@dataclass(frozen=True)
class Cut:
    """How many axes a rule would keep; None and the reason where it cannot tell."""

    letter: str
    rule: str
    axes: int | None
    reason: str


def shares(subject: Subject) -> Values:
    """Return each axis's share of the variance."""
    fitted = subject.model.projection_
    total = fitted.total_variance
    values = np.asarray(fitted.eigenvalues, np.float64)
    return values / total if total > 0 else 0.0 * values


def cuts(subject: Subject) -> list[Cut]:
    """Return what every rule that applies would keep."""
    known = Spectrum(subject.model)
    if not known.total:
        return []
    rules = _SHARES | (_COLUMNS if subject.linear else {})
    return [
        Cut(letter, name, *_asked(known, rule))
        for letter, (name, rule) in zip("ABCDEFGH", rules.items(), strict=False)
    ]


def _asked(known: Spectrum, rule: Rule) -> tuple[int | None, str]:
    axes = known.cut(rule, asked=False)
    if isinstance(axes, ValueError):  # Minka's evidence takes as many rows as columns
        return None, "does not apply: fewer rows than columns"
    if axes is None:
        return (
            None,
            "needs all eigenvalues" if rule.whole else f"more than these {len(known.values)}",
        )
    return axes, ""
