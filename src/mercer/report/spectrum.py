"""Shares of the variance, and where rules would cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
    "above the mean eigenvalue (Kaiser)": Kaiser(),
    "above a broken stick (Jackson)": BrokenStick(),
    "above noise, parallel analysis (Horn)": ParallelAnalysis(20),
    "largest evidence (Minka)": MLE(),
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
    fitted, size = subject.model.projection_, subject.model.plan_.size
    if not fitted.total_variance > 0:
        return []
    n, d = (size.n, size.d) if subject.linear else (size.n, size.n)
    rules = _SHARES | (_COLUMNS if subject.linear else {})
    found = []
    for letter, (name, rule) in zip("ABCDEFGH", rules.items(), strict=False):
        axes, reason = _asked(rule, np.asarray(fitted.eigenvalues), fitted.total_variance, n, d)
        found.append(Cut(letter, name, axes, reason))
    return found


def _asked(rule: Rule, values: Values, total: float, n: int, d: int) -> tuple[Any, str]:
    try:
        axes = rule.choose(values, total, n, d)
    except ValueError:  # Minka's evidence takes as many rows as columns
        return None, "does not apply: fewer rows than columns"
    if axes is not None:
        return int(axes), ""
    if rule.whole:
        return None, "takes the whole spectrum"
    return None, f"more than these {len(values)}"
