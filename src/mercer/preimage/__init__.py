"""Pre-images: rows whose images are near points of feature space."""

from __future__ import annotations

import numpy as np

from mercer.kernels import RBF, Kernel, Linear
from mercer.preimage.base import Preimage, Preimages
from mercer.preimage.closed_form import Distances, Ridge
from mercer.preimage.descent import FixedPoint, Gradient

__all__ = [
    "PREIMAGES",
    "Distances",
    "FixedPoint",
    "Gradient",
    "Preimage",
    "Preimages",
    "Ridge",
    "suited_to",
]

PREIMAGES: dict[str, type[Preimage]] = {
    "fixed_point": FixedPoint,
    "gradient": Gradient,
    "ridge": Ridge,
    "distances": Distances,
}
"""Pre-image methods by name."""


def suited_to(kernel: Kernel | None) -> str:
    """Return the name of the method that suits a kernel; None means a precomputed kernel."""
    if isinstance(kernel, (RBF, Linear)):
        return "fixed_point"
    if kernel is None:
        return "ridge"
    try:
        Gradient().probe(kernel, np.ones((1, 1)))
    except ValueError:
        return "ridge"
    return "gradient"
