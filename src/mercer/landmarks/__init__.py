"""Landmarks: which points form the basis of kernel PCA; one rule a file."""

from __future__ import annotations

from typing import Any

from mercer.landmarks.backward import Backward
from mercer.landmarks.base import Landmarks
from mercer.landmarks.column_norm import ColumnNorm
from mercer.landmarks.diagonal import Diagonal
from mercer.landmarks.forward import Forward
from mercer.landmarks.forward_backward import ForwardBackward
from mercer.landmarks.given import Given
from mercer.landmarks.kernel_kmeans import KernelKMeans
from mercer.landmarks.kmeans import KMeans
from mercer.landmarks.leverage import Leverage
from mercer.landmarks.pivoted_cholesky import PivotedCholesky
from mercer.landmarks.ransac import Ransac
from mercer.landmarks.rp_cholesky import RPCholesky
from mercer.landmarks.uniform import Uniform

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

_ALL: tuple[type[Landmarks], ...] = (
    Uniform,
    Diagonal,
    ColumnNorm,
    KMeans,
    KernelKMeans,
    Forward,
    Backward,
    ForwardBackward,
    Ransac,
    PivotedCholesky,
    RPCholesky,
    Leverage,
)
RULES: dict[str, type[Landmarks]] = {rule.name: rule for rule in _ALL}
"""Rules by the names that `select` takes."""


def as_landmarks(select: Any) -> Landmarks:
    """Return a rule by its name; points or numbers of rows as `Given`."""
    if isinstance(select, Landmarks):
        return select
    if isinstance(select, str):
        if select not in RULES:
            raise ValueError(f"select={select!r} is not one of {', '.join(sorted(RULES))}.")
        return RULES[select]()
    if not (hasattr(select, "__len__") or hasattr(select, "shape")):
        raise ValueError(
            f"select={select!r} is no rule of mercer.landmarks nor the name of one, and holds "
            f"neither points nor numbers of rows."
        )
    return Given(select)
