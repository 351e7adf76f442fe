"""Landmarks: which points form the basis of kernel PCA; one rule a file."""

from __future__ import annotations

from typing import Any

from mercer.landmarks.base import Landmarks
from mercer.landmarks.forward import Forward
from mercer.landmarks.given import Given
from mercer.landmarks.pivoted_cholesky import PivotedCholesky
from mercer.landmarks.rp_cholesky import RPCholesky
from mercer.landmarks.uniform import Uniform

__all__ = [
    "RULES",
    "Forward",
    "Given",
    "Landmarks",
    "PivotedCholesky",
    "RPCholesky",
    "Uniform",
    "as_landmarks",
]

RULES: dict[str, type[Landmarks]] = {
    rule.name: rule for rule in (Uniform, Forward, PivotedCholesky, RPCholesky)
}
"""Rules by the names that `select` takes."""


def as_landmarks(select: Any) -> Landmarks:
    """Return a rule by its name; points or numbers of rows as `Given`."""
    if isinstance(select, Landmarks):
        return select
    if isinstance(select, str):
        if select not in RULES:
            raise ValueError(f"select={select!r} is not one of {', '.join(sorted(RULES))}.")
        return RULES[select]()
    return Given(select)
