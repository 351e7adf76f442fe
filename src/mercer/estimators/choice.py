"""Candidates judged by rows that their axes were not learnt from."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector, to_numpy
from mercer.data import Source
from mercer.estimators.axes import LinearModel
from mercer.estimators.variants import changed, first_axes

Index = np.ndarray[Any, np.dtype[np.intp]]


def held_out(
    validation: float | int, weights: Vector | None, n: int, rng: np.random.Generator
) -> tuple[Index, Index]:
    """Return rows to judge by, drawn from those that have a weight, and the others."""
    at = np.arange(n) if weights is None else np.flatnonzero(weights > 0)
    counted = isinstance(validation, Integral)
    many = int(validation) if counted else max(1, round(float(validation) * len(at)))
    if len(at) - many < 2:
        raise ValueError(
            f"validation={validation!r} holds {many} of {len(at)} rows out, and leaves "
            f"{max(0, len(at) - many)} to learn from. Hold fewer out, or leave no choice."
        )
    out = np.sort(rng.permutation(at)[:many])
    return out, np.setdiff1d(np.arange(n), out)


def several(given: Any) -> list[Any]:
    """Return candidates as a list; one, or none, is a list of one."""
    return [given] if given is None or np.ndim(given) == 0 else list(given)


def judged(
    model: Any,
    source: Source,
    weights: Vector | None,
    candidates: tuple[Sequence[int | None], Sequence[float | None]],
    error: Callable[[Callable[[Matrix], Matrix]], float],
) -> dict[str, Vector]:
    """Return every candidate with its error, NaN where there are not so many axes.

    One fit for every γ, with the most axes asked for: fewer are the first of them.
    """
    counts, gammas = candidates
    table: dict[str, list[Any]] = {"n_components": [], "gamma": [], "error": []}
    most = None if counts[0] is None else max(counts)  # type: ignore[type-var]
    if most is not None and isinstance(model, LinearModel):  # which refuses more than there can be
        most = min(most, *source.shape)
    for gamma in gammas:
        with warnings.catch_warnings():  # of what is chosen, the last fit tells
            warnings.simplefilter("ignore")
            fitted = changed(model, most, gamma).fit(source, sample_weight=weights)
            for k in counts:
                found = np.nan
                if k is None or k <= fitted.n_components_:
                    fewer = fitted if k is None else first_axes(fitted, k)
                    if fewer is None:
                        fewer = changed(model, k, gamma).fit(source, sample_weight=weights)
                    found = error(lambda rows, by=fewer: by.reconstruct(rows))  # type: ignore[misc]
                table["n_components"].append(fitted.n_components_ if k is None else k)
                table["gamma"].append(np.nan if gamma is None else gamma)
                table["error"].append(found)
    return {name: np.asarray(column) for name, column in table.items()}


def dense(source: Source) -> Matrix:
    """Return all rows as float64."""
    rows = source.whole()
    rows = rows.toarray() if hasattr(rows, "tocsr") else to_numpy(rows)
    return np.asarray(rows, np.float64)
