"""Candidates for the parameters of a denoiser, compared on rows that they were not fitted to."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.arrays import Matrix, Vector, to_numpy
from mercer.data import Source
from mercer.estimators.kernel_parameters import has_gamma
from mercer.estimators.linear_model import LinearModel
from mercer.kernels import Kernel

Index = np.ndarray[Any, np.dtype[np.intp]]


def as_candidates(value: Any) -> list[Any]:
    """Return candidates as a list; a single one, or None, is a list of one."""
    return [value] if value is None or np.ndim(value) == 0 else list(value)


def split_rows(
    validation: float | int, weights: Vector | None, n: int, rng: np.random.Generator
) -> tuple[Index, Index]:
    """Return validation rows, drawn from those with a weight, and the other rows."""
    rows = np.arange(n) if weights is None else np.flatnonzero(weights > 0)
    share = float(validation) * len(rows)
    count = int(validation) if isinstance(validation, Integral) else max(1, round(share))
    if len(rows) - count < 2:
        raise ValueError(
            f"validation={validation!r} takes {count} of {len(rows)} rows, and leaves "
            f"{max(0, len(rows) - count)} to fit to. Use a smaller validation, or one candidate."
        )
    drawn = np.sort(rng.permutation(rows)[:count])
    return drawn, np.setdiff1d(np.arange(n), drawn)


def candidate_errors(
    model: Any,
    source: Source,
    weights: Vector | None,
    candidates: tuple[Sequence[int | None], Sequence[float | None]],
    error: Callable[[Callable[[Matrix], Matrix]], float],
) -> dict[str, Vector]:
    """Return the error of every candidate; NaN for more components than there are.

    There is one fit for every γ, with the most components: fewer are the first of them.
    """
    counts, gammas = candidates
    table: dict[str, list[Any]] = {"n_components": [], "gamma": [], "error": []}
    most = None if counts[0] is None else max(counts)  # type: ignore[type-var]
    if most is not None and isinstance(model, LinearModel):  # an error would be raised for more
        most = min(most, *source.shape)
    for gamma in gammas:
        with warnings.catch_warnings():  # the final fit warns
            warnings.simplefilter("ignore")
            fitted = with_parameters(model, most, gamma).fit(source, sample_weight=weights)
            for k in counts:
                value = np.nan
                if k is None or k <= fitted.n_components_:
                    fewer = fitted if k is None else first_components(fitted, k)
                    if fewer is None:
                        fewer = with_parameters(model, k, gamma).fit(source, sample_weight=weights)
                    value = error(fewer.reconstruct)
                table["n_components"].append(fitted.n_components_ if k is None else k)
                table["gamma"].append(np.nan if gamma is None else gamma)
                table["error"].append(value)
    return {name: np.asarray(column) for name, column in table.items()}


def with_parameters(model: Any, k: int | None, gamma: float | None) -> Any:
    """Return an unfitted copy with these parameters; None leaves one as it is."""
    other = clone(model)
    if k is not None:
        other.set_params(n_components=int(k))
    if gamma is not None:
        other.set_params(**{gamma_name(other): float(gamma)})
    return other


def gamma_name(model: Any) -> str:
    """Return the name of the parameter that is the kernel's γ; raise if there is none."""
    kernel = getattr(model, "kernel", None)
    if isinstance(kernel, Kernel) and "gamma" in kernel.get_params():
        return "kernel__gamma"
    if isinstance(kernel, str) and has_gamma(kernel):
        return "gamma"
    raise ValueError(
        f"gamma is the scale of a kernel, and {model!r} has none. Pass a KernelPCA with such a "
        f'kernel, for example KernelPCA(kernel="rbf"), or leave gamma out.'
    )


def first_components(fitted: Any, k: int) -> Any:
    """Return a fitted model with its first k components; None if a fit with k has others."""
    if k == fitted.n_components_:
        return fitted
    other = copy.copy(fitted)
    other.n_components_ = k
    if isinstance(fitted, LinearModel):
        other.components_ = fitted.components_[:k]
        return other
    projection, products = fitted.projection_, getattr(fitted, "_way", None)
    # A learned inverse depends on all scores, and overlapping components on each other.
    if not isinstance(products, np.ndarray) or projection.overlaps is not None:
        return None
    other.projection_ = replace(
        projection, components=projection.components[:, :k], eigenvalues=projection.eigenvalues[:k]
    )
    other._way = np.column_stack([products[:, :k], products[:, -1]])
    return other


def dense_rows(source: Source) -> Matrix:
    """Return all rows as a float64 array."""
    rows = source.whole()
    rows = rows.toarray() if hasattr(rows, "tocsr") else to_numpy(rows)
    return np.asarray(rows, np.float64)
