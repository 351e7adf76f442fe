"""One model for the rows of every class: what all must have in common, and what each can have."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from mercer import session
from mercer.arrays import is_dask, to_numpy
from mercer.checkpoint import CheckpointError
from mercer.data import Source, StringSource, require_finite_entries
from mercer.estimators.kernel import resolved
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.pca import PCA
from mercer.estimators.validation import some, there
from mercer.kernels import Linear
from mercer.landmarks import Given
from mercer.messages import counted, warn
from mercer.methods import OnBasis
from mercer.projection import KernelProjection, joint_residuals

Model = PCA | KernelPCA
Numbers = np.ndarray[Any, Any]
# Rows that are looked at, to see whether a subspace holds those of other classes too; and the
# share of a class's variance that is rounding.
_LOOKED_AT, _NOTHING = 200, 1e-10
# The most points whose kernel is taken at once: blocks of rows stay long enough for a product.
_JOINED = 4096


def rows_of_classes(y: Numbers, source: Source) -> tuple[Numbers, list[Numbers]]:
    """Return the classes, and the numbers of the rows of each; rows of no weight are none."""
    at = np.arange(len(y)) if source.weights is None else np.flatnonzero(source.weights > 0)
    classes, which = np.unique(y[at], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"2 classes or more are needed, and y holds 1 class with weight, {_name(classes[0])}."
        )
    return classes, [at[which == i] for i in range(len(classes))]


def shared_model(estimator: Model | None, source: Source) -> Model:
    """Return the model of every class, with what all of them must have in common.

    Distances are compared, so they must be taken in one space: with one kernel, by one seed.
    """
    if not isinstance(source, StringSource):  # here, where rows have their own numbers still
        require_finite_entries(source)
    if estimator is None:
        estimator = KernelPCA(0.9, kernel="rbf", gamma="scale")
    model: Model = clone(estimator)
    if not isinstance(model.random_state, Integral):
        drawn = check_random_state(model.random_state).randint(2**31 - 1)
        model.random_state = session.seed(int(drawn))
    if isinstance(model, PCA):
        if model.scale:
            raise ValueError(
                "PCA(scale=True) divides the rows of every class by deviations of their own: their "
                "distances cannot be compared. Put a StandardScaler in front instead."
            )
        return model
    if isinstance(model.kernel, str) and model.kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' does not tell k(x, x) of new rows, which their distance from a "
            "subspace takes. Use the kernel itself."
        )
    _require_no_numbers(model.method)
    rest = (model.degree, model.coef0, model.kernel_params)
    _, gamma = resolved(model.kernel, model.gamma, *rest, source)  # or say what is wrong with it
    if isinstance(model.gamma, str):
        model.gamma = gamma
    return model


def fitted_models(
    model: Model, source: Source, classes: Numbers, rows: list[Numbers]
) -> list[Model]:
    """Fit a copy of the model to each class; say which have fewer axes than were asked for."""
    for label, at in zip(classes, rows, strict=True):
        _require_two(source, at, label)
    models: list[Model] = []
    fewer: list[str] = []
    for label, at in zip(classes, rows, strict=True):
        part = _part(source, at)  # one at a time: rows of a file are in memory then
        own, asked = clone(model), model.n_components
        where = f"class {_name(label)} ({counted(part.shape[0], 'row')})"
        try:
            most = _most_axes(own, part.shape[0])
            if isinstance(asked, Integral) and most < asked:
                own.n_components = most
                fewer.append(where)
            own.fit(part)
        except CheckpointError:
            raise
        except ValueError as error:
            raise ValueError(f"In {where}: {error}") from error
        if isinstance(own, PCA):
            _shorten(own)
        _require_outside(own, where)
        models.append(own)
    if fewer:
        more = f" and {len(fewer) - 3} more" if len(fewer) > 3 else ""
        warn(
            f"n_components={model.n_components} were asked for, and "
            f"{', '.join(fewer[:3])}{more} cannot have as many: as many are taken as there can be."
        )
    _warn_of_everything(source, classes, rows, models)
    return models


def residuals_of(models: Sequence[Model], source: Source) -> list[tuple[list[int], Source]]:
    """Return distances from every model, those of some of them together: which, and a column each.

    Small bases of one kernel are joined, so that one matrix product serves many classes.
    """
    together: dict[int, KernelProjection] = {}
    for i, model in enumerate(models):
        fitted = model.projection_
        if isinstance(fitted, KernelProjection) and _joins(fitted):
            together[i] = fitted
    if sum(len(fitted.mean) for fitted in together.values()) > _JOINED:
        together = {}
    alone = [i for i in range(len(models)) if i not in together]
    parts = [([i], models[i]._residuals(source)) for i in alone]
    if together:
        parts.append(([*together], joint_residuals([*together.values()], source)))
    return parts


def _joins(fitted: KernelProjection) -> bool:
    """Tell whether a map can be evaluated together with those of other classes: one kernel's."""
    dense = hasattr(fitted.basis, "shape") and not hasattr(fitted.basis, "tocsr")
    return dense and not is_dask(fitted.basis) and fitted.shift is None


def as_counts(weights: Numbers | None) -> Numbers | None:
    """Return weights that are one or more on the average: axes do not depend on their scale."""
    if weights is None:
        return None
    return np.asarray(weights * max(1.0, np.count_nonzero(weights) / weights.sum()))


def _require_two(source: Source, at: Numbers, label: Any) -> None:
    """Refuse a class of one row that does not count twice."""
    if len(at) == 1 and (source.weights is None or source.weights[at[0]] <= 1):
        raise ValueError(
            f"Class {_name(label)} has one row, and a subspace takes two or more. Add rows of that "
            f"class, or leave it out."
        )


def _part(source: Source, at: Numbers) -> Source:
    """Return the rows of a class, two at least."""
    part = there(source, at)
    if len(at) > 1:
        return part.weighted(as_counts(part.weights))
    # One row of weight w is a row of weight w/2 twice.
    return some(source, at.repeat(2)).weighted(np.full(2, part.count / 2))


def _most_axes(model: Model, n: int) -> int:
    """Return how many axes n rows can have: one fewer where their mean is taken off."""
    most = n - model.center
    if isinstance(model, KernelPCA) and isinstance(model.method, OnBasis):
        most = min(most, model.method.points(n, most))
    return max(1, most)


def _shorten(model: PCA) -> None:
    """Take off axes of no variance: they are arbitrary, and so would be distances from them."""
    values = to_numpy(model.explained_variance_).astype(np.float64)
    eps = float(np.finfo(model._kind).eps) * max(model.n_samples_, model.n_features_in_)
    k = int((values > eps**2 * np.max(values, initial=0.0)).sum())
    model.components_ = model.components_[:k, :]
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        setattr(model, name, getattr(model, name)[:k])
    model.n_components_ = k


def _require_no_numbers(method: Any) -> None:
    """Refuse points of a basis that are named by numbers of rows."""
    rule = method.rule if isinstance(method, OnBasis) else None
    if not isinstance(rule, Given):
        return
    words = isinstance(rule.points, list) and any(isinstance(x, str) for x in rule.points)
    if not words and len(getattr(rule.points, "shape", np.shape(rule.points))) == 1:
        raise ValueError(
            f"method={method!r} names rows by number, and every class has rows of its own. Give "
            f"the points themselves, or a rule to select them."
        )


def _require_outside(model: Model, where: str) -> None:
    """Refuse axes that span all columns."""
    linear = isinstance(model, PCA) or isinstance(model.kernel_, Linear)
    if linear and model.n_components_ >= model.n_features_in_:
        k = model.n_components_
        found = "1 component spans" if k == 1 else f"{k} components span"
        raise ValueError(
            f"In {where}: {found} the whole space of n_features={model.n_features_in_}, so that no "
            f"row is far from it. Take fewer components, a smaller share of the variance, or a "
            f"kernel."
        )


def _warn_of_everything(
    source: Source, classes: Numbers, rows: list[Numbers], models: Sequence[Model]
) -> None:
    """Say which subspaces hold the other classes too, by some rows of each."""
    most = max(1, _LOOKED_AT // len(rows))
    few = [at[:: -(-len(at) // most)] for at in rows]
    seen, whose = some(source, np.concatenate(few)), np.repeat(range(len(few)), [*map(len, few)])
    full = []
    for i, model in enumerate(models):
        left = to_numpy(model._residuals(seen).collect(label="residuals"))[whose != i]
        if left.max() <= _NOTHING * model.projection_.total_variance:
            full.append(_name(classes[i]))
    if full:
        warn(
            f"Other classes lie in the subspace of class {', '.join(full[:3])}, as far as rounding "
            f"shows: their rows cannot be told from its own. Take fewer components, or another "
            f"kernel."
        )


def _name(label: Any) -> str:
    """Return a class as the user writes it."""
    return repr(label.item() if isinstance(label, np.generic) else label)
