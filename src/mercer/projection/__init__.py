"""Fitted maps, the results of all methods."""

from mercer.projection.fourier import FourierMap, FourierProjection
from mercer.projection.kernel import (
    KernelProjection,
    best_in_span,
    joint_residuals,
    row_expansion,
    span_variance,
    weighted_signs,
)
from mercer.projection.linear import LinearProjection, Projection

__all__ = [
    "FourierMap",
    "FourierProjection",
    "KernelProjection",
    "LinearProjection",
    "Projection",
    "best_in_span",
    "joint_residuals",
    "row_expansion",
    "span_variance",
    "weighted_signs",
]
