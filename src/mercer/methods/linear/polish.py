"""What a Rayleigh–Ritz step changes of the axes that a sketch gave."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Matrix, Vector


def changed(before: Vector, after: Vector, overlaps: Matrix) -> str:
    """Say how far off variances were, and by how much axes of unit length overlapped."""
    with np.errstate(divide="ignore", invalid="ignore"):
        off = float(np.max(np.abs(before / after - 1.0), initial=0.0))
    overlap = np.abs(overlaps - np.eye(len(overlaps))).max(initial=0.0)
    return (
        f"Before the polish the sketch's variances were off by up to {100 * off:.2g} %, and its "
        f"components overlapped by up to {overlap:.2g}."
    )
