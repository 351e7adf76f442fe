"""From feature space back to rows: pre-images, one method a file."""

from __future__ import annotations

from typing import Any

from mercer.preimage.base import Found, Preimage
from mercer.preimage.distances import Distances
from mercer.preimage.fixed_point import FixedPoint
from mercer.preimage.gradient import Gradient
from mercer.preimage.ridge import Ridge

__all__ = [
    "PREIMAGES",
    "Distances",
    "FixedPoint",
    "Found",
    "Gradient",
    "Preimage",
    "Ridge",
    "as_preimage",
]

PREIMAGES: dict[str, type[Preimage]] = {
    "fixed_point": FixedPoint,
    "gradient": Gradient,
    "ridge": Ridge,
    "distances": Distances,
}
"""What pre-image methods are called."""


def as_preimage(method: Any) -> Preimage:
    """Return the method that a name stands for; a method as it is.

    Examples
    --------
    >>> from mercer.preimage import as_preimage
    >>> as_preimage("ridge")
    Ridge()
    """
    if isinstance(method, Preimage):
        return method
    if isinstance(method, str) and method in PREIMAGES:
        return PREIMAGES[method]()
    names = ", ".join(f'"{name}"' for name in PREIMAGES)
    raise ValueError(
        f"preimage={method!r} is not one of {names}, nor a method such as Ridge(alpha=0.1)."
    )
