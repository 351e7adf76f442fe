"""Which of several candidates denoises best: judged on rows that the axes were not learnt from."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.arrays import Matrix, Vector, to_numpy
from mercer.estimators.axes import Axes
from mercer.estimators.noises import noisy_rows
from mercer.sources import ArraySource, Source, SparseSource

# The probe of Stein's divergence, as a share of the noise: far above what the pre-images'
# tolerance hides, far below what turns the map.
_PROBE = 0.1


@dataclass(frozen=True)
class Judge:
    """Held-out rows, and what a map must make of them.

    Attributes
    ----------
    rows : ndarray of shape (q, d)
        What is to be denoised.
    truth : ndarray of shape (q, d) or None
        What they were before the noise. None: not known, and Stein's estimate takes its place.
    sigma : float
        Deviation of the noise, where the truth is not known.
    probe : ndarray of shape (q, d) or None
        Signs, the directions that the divergence is probed in.
    weights : ndarray of shape (q,) or None
        How often each row counts.
    """

    rows: Matrix
    truth: Matrix | None
    sigma: float = 0.0
    probe: Matrix | None = None
    weights: Vector | None = None

    def error(self, denoise: Callable[[Matrix], Matrix]) -> float:
        r"""Return the mean squared error of a map, or Stein's unbiased estimate of it.

        .. math:: \|f(x)-x\|^2 - d\sigma^2 + 2\sigma^2\,\mathrm{div} f(x),\qquad
                  \mathrm{div} f(x) \approx b^T(f(x+\epsilon b)-f(x))/\epsilon

        with signs b, one draw a row: Stein (1981); Ramani, Blu & Unser (2008), "Monte-Carlo
        SURE", (12)–(14).
        """
        made = denoise(self.rows)
        if self.truth is not None:
            each = np.mean((made - self.truth) ** 2, axis=1)
        else:
            assert self.probe is not None
            step = _PROBE * self.sigma
            turned = self.probe * (denoise(self.rows + step * self.probe) - made) / step
            apart = (made - self.rows) ** 2 - self.sigma**2 + 2.0 * self.sigma**2 * turned
            each = np.mean(apart, axis=1)
        return float(np.average(each, weights=self.weights))


def judge(
    rows: Matrix,
    truth: Matrix | None,
    noise: Any,
    noisy: bool,
    weights: Vector | None,
    rng: np.random.Generator,
) -> Judge:
    """Return who judges: by pairs, by noise added to clean rows, or by Stein's estimate."""
    if truth is not None:
        return Judge(rows, truth, weights=weights)
    if not noisy:
        return Judge(noisy_rows(noise, rows, rng), rows, weights=weights)
    probe = rng.choice(np.array([-1.0, 1.0]), rows.shape)
    return Judge(rows, None, float(noise), probe, weights)


def best(
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


def changed(model: Any, k: int | None, gamma: float | None) -> Any:
    """Return an unfitted copy with so many axes and this γ, where they are given."""
    made = clone(model)
    if k is not None:
        made.set_params(n_components=int(k))
    if gamma is not None:
        made.set_params(**{gamma_of(made): float(gamma)})
    return made


def gamma_of(model: Any) -> str:
    """Return what the γ of a model is called."""
    names = model.get_params()
    for name in ("kernel__gamma", "gamma"):
        if name in names and not (name == "gamma" and hasattr(model.kernel, "get_params")):
            return name
    raise ValueError(
        f"gamma is the scale of a kernel, and {model!r} has none. Pass a KernelPCA with such a "
        f'kernel, as KernelPCA(kernel="rbf"), or leave gamma out.'
    )


def first_axes(fitted: Any, k: int) -> Any:
    """Return a fitted model with its first k axes; None where fewer are not the first of more."""
    if k == fitted.n_components_:
        return fitted
    made = copy.copy(fitted)
    made.n_components_ = k
    if isinstance(fitted, Axes):
        made.components_ = fitted.components_[:k]
        return made
    projection, way = fitted.projection_, getattr(fitted, "_way", None)
    # What else a way back has learnt is of all scores; axes that overlap share what they hold.
    if not isinstance(way, np.ndarray) or projection.overlaps is not None:
        return None
    made.projection_ = replace(
        projection, components=projection.components[:, :k], eigenvalues=projection.eigenvalues[:k]
    )
    made._way = np.column_stack([way[:, :k], way[:, -1]])
    return made


def some(source: Source, at: np.ndarray[Any, Any]) -> Source:
    """Return some rows, in memory."""
    if source.sparse:  # rows that are taken would be dense
        return SparseSource(source.whole()[at], source.names)
    return ArraySource(source.take(at), source.names)


def dense(source: Source) -> Matrix:
    """Return all rows as float64."""
    rows = source.whole()
    rows = rows.toarray() if hasattr(rows, "tocsr") else to_numpy(rows)
    return np.asarray(rows, np.float64)
