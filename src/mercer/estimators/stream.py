"""Rows that come in batches."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from mercer.arrays import on_accelerator
from mercer.config import format_bytes, get_config
from mercer.data import Source
from mercer.messages import warn
from mercer.methods import (
    SVD,
    ConvergenceWarning,
    Covariance,
    FrequentDirections,
    Method,
    Size,
    Streaming,
)
from mercer.methods.preparation import require_finite_sums
from mercer.params import same


def fixed(estimator: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return parameters as a stream begins with them: copies, which set_params does not reach."""
    return tuple(clone(getattr(estimator, name), safe=False) for name in names)


def require_fixed(estimator: Any, names: tuple[str, ...], begun: tuple[Any, ...]) -> None:
    """Refuse to go on with other parameters than the stream was begun with."""
    for name, before in zip(names, begun, strict=False):
        now = getattr(estimator, name)
        if not same(now, before):
            raise ValueError(
                f"{name}={now!r} was {before!r} at the first batch: {', '.join(names[:-1])} and "
                f"{names[-1]} cannot change between calls of partial_fit, because the rows seen "
                f"so far are summed already. Begin again with a clone."
            )


def warn_if_forgotten(estimator: Any) -> None:
    """Say that a stream begins without the rows of an earlier fit."""
    if estimator.__sklearn_is_fitted__():
        warn(
            "partial_fit begins anew: the rows of the earlier fit are not among those seen, "
            "because fit keeps no sums of them. Pass those rows to partial_fit too, or begin "
            "with a clone."
        )


def stream_method(solver: str | Method, d: int) -> Streaming:
    """Return the method that batches of d columns go through: the most accurate that fits."""
    if isinstance(solver, Streaming):
        own: Streaming = clone(solver)  # set_params changes a method where it stands
        return own
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


def add_batch(fold: Any, batch: Source) -> Any:
    """Return a fold that has seen a batch more; the one given stays as it is."""
    _require_one_place(fold, batch)
    part = batch.fold(fold.spawn())
    require_finite_sums(batch, *part.arrays().values())
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
