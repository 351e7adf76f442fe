"""Fitted maps: what every method ends in."""

from mercer.projection.base import Projection
from mercer.projection.fourier import FourierMap, FourierProjection
from mercer.projection.kernel import KernelProjection, joint_residuals
from mercer.projection.linear import LinearProjection

__all__ = [
    "FourierMap",
    "FourierProjection",
    "KernelProjection",
    "LinearProjection",
    "Projection",
    "joint_residuals",
]
