"""Landmark rules: how the points of a basis for kernel PCA are chosen."""

from __future__ import annotations

from typing import Any

from mercer.landmarks.base import Given, Landmarks, Uniform
from mercer.landmarks.cholesky import PivotedCholesky, RPCholesky
from mercer.landmarks.kmeans import KernelKMeans, KMeans
from mercer.landmarks.sampling import ColumnNorm, Diagonal, Leverage
from mercer.landmarks.search import Backward, Forward, ForwardBackward, Ransac

__all__ = [
    "RULES",
    "Backward",
    "ColumnNorm",
    "Diagonal",
    "Forward",
    "ForwardBackward",
    "Given",
    "KMeans",
    "KernelKMeans",
    "Landmarks",
    "Leverage",
    "PivotedCholesky",
    "RPCholesky",
    "Ransac",
    "Uniform",
    "as_landmarks",
]

RULES: dict[str, type[Landmarks]] = {
    rule.name: rule
    for rule in (
        *(Uniform, Diagonal, ColumnNorm, KMeans, KernelKMeans, Forward, Backward, ForwardBackward),
        *(Ransac, PivotedCholesky, RPCholesky, Leverage),
    )
}
"""Rules by the names that `select` accepts."""


def as_landmarks(select: Any) -> Landmarks:
    """Return the rule with this name; points or indices of rows as `Given`."""
    if isinstance(select, Landmarks):
        return select
    if isinstance(select, str):
        if select not in RULES:
            raise ValueError(f"select={select!r} is not one of {', '.join(sorted(RULES))}.")
        return RULES[select]()
    if not (hasattr(select, "__len__") or hasattr(select, "shape")):
        raise ValueError(
            f"select={select!r} must be a rule of mercer.landmarks, its name, points, or row "
            f"indices."
        )
    return Given(select)
