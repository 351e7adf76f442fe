"""Pre-images: rows whose images are near points of feature space."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels import RBF, Kernel, Linear
from mercer.kernels.pair import DiagonalPair
from mercer.kernels.points import Points
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
    "as_preimage",
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
        kernel.slopes(DiagonalPair(Points(np.ones((1, 1)))))
    except ValueError:
        return "ridge"
    return "gradient"


def as_preimage(method: Any) -> Preimage:
    """Return the method with this name; a method itself."""
    if isinstance(method, Preimage):
        return method
    if isinstance(method, str) and method in PREIMAGES:
        return PREIMAGES[method]()
    names = ", ".join(f'"{name}"' for name in PREIMAGES)
    raise ValueError(
        f"preimage={method!r} is not one of {names}, nor a method such as Ridge(alpha=0.1)."
    )
