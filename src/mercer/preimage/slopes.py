"""Whether a kernel has the gradient that a method needs."""

from __future__ import annotations

from typing import Any

from mercer.kernels.pair import DiagonalPair
from mercer.kernels.points import Points
from mercer.preimage.target import Axes


def require_slopes(owner: Any, axes: Axes) -> None:
    """Refuse kernels that have no gradient, and name the methods that need none."""
    try:
        axes.kernel.slopes(DiagonalPair(Points(axes.basis.rows[:1])))
    except ValueError as error:
        raise ValueError(
            f'{owner!r} follows the gradient of the kernel. {error} Use "ridge", which works with '
            f"any kernel."
        ) from None
