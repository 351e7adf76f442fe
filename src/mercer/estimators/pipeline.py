"""Pipelines that end in a model: their parts, and rows through their steps, block by block."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from mercer.data import Source, SparseSource

# What a step needs for an entry of a row, beside what it takes and gives: copies of its own.
_COPIES = 16


def parts(model: Any) -> tuple[list[Any], Any]:
    """Return the steps before the last, and the last: what is at the end of searches and pipelines.

    A model alone is the last, with none before it.
    """
    before: list[Any] = []
    while hasattr(model, "best_estimator_") or hasattr(model, "steps"):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
            continue
        *steps, model = [step for _, step in model.steps]
        before += [step for step in steps if step not in (None, "passthrough")]
    return before, model


def through(steps: Sequence[Any], source: Source, width: int | None = None) -> Source:
    """Return rows through fitted steps, computed when they are read.

    `width` is how many columns they have then, as many as before if not given. Sparse rows that
    stay sparse are taken as a whole.
    """
    if not steps:
        return source
    nameless = [copy.copy(step) for step in steps]  # blocks have no names: compared before
    for step in nameless:
        step.__dict__.pop("feature_names_in_", None)

    def treated(rows: Any) -> Any:
        for step in nameless:
            rows = step.transform(rows)
        return rows

    if source.sparse:
        made = treated(source.whole())
        if hasattr(made, "tocsr"):
            return SparseSource(made).weighted(source.weights)
    return mapped(source, treated, width or source.shape[1])


def mapped(source: Source, f: Callable[[Any], Any], width: int) -> Source:
    """Return rows through a function of plain arrays."""
    extra = _COPIES * (source.shape[1] + width)
    return source.map(lambda block: f(block.dense(source.dtype)), width, extra_bytes=extra)
