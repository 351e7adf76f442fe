"""Rows that come in batches."""

from __future__ import annotations

from typing import Any

from mercer.arrays import on_accelerator
from mercer.config import format_bytes, get_config
from mercer.methods import (
    SVD,
    ConvergenceWarning,
    Covariance,
    FrequentDirections,
    Method,
    Size,
    Streaming,
)
from mercer.notices import warn
from mercer.problem import require_finite
from mercer.sources import Source


def stream_method(solver: str | Method, d: int) -> Streaming:
    """Return the method that batches of d columns go through: the most accurate that fits."""
    if isinstance(solver, Streaming):
        return solver
    needed, budget = 0.0, get_config().budget
    for method in (SVD(), Covariance()):
        needed = method.cost(Size(n=d, d=d, k=1)).memory
        if needed <= budget:
            return method
    warn(
        f"partial_fit: to decompose a matrix of {d}×{d} takes {format_bytes(needed)}, more "
        f"than the memory budget of {format_bytes(budget)}, so it is not exact; "
        f"certificate_ bounds what it loses. config_context(memory=...) raises the budget.",
        ConvergenceWarning,
    )
    return FrequentDirections()


def joined(fold: Any, batch: Source) -> Any:
    """Return a fold that has seen a batch more; the one given stays as it is."""
    _require_one_place(fold, batch)
    part = batch.fold(fold.spawn())
    require_finite(batch, *part.arrays().values())
    both = fold.spawn()
    both.restore(fold.arrays())
    both.merge(part)
    return both


def _require_one_place(fold: Any, batch: Source) -> None:
    """Refuse a batch that is worked on elsewhere than those before it."""
    for array in fold.arrays().values():
        if on_accelerator(array) != on_accelerator(batch.reference) and array.ndim > 1:
            raise ValueError(
                "The sums of earlier batches lie on a device, and these rows do not, or the other "
                "way round. Pass all batches from one place, with the same "
                "config_context(device=...)."
            )
