"""What of scikit-learn a model file may hold: a neighbours' search, and steps before a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer.modelfile.kinds import Kind, LostError, Translated

_NAMES = ("n_features_in_", "feature_names_in_")
_BEFORE = (SimpleImputer, StandardScaler)


class Step(Kind):
    """A step before a model: parameters, and what its fit has found, all of it public."""

    def parts(self, obj: Any) -> dict[str, Any]:
        given = {name: getattr(obj, name) for name in self.given}
        return given | {name: getattr(obj, name) for name in self.fitted if hasattr(obj, name)}


class Filled(Step):
    """An imputer of column means."""

    def parts(self, obj: Any) -> dict[str, Any]:
        missing = isinstance(obj.missing_values, float) and np.isnan(obj.missing_values)
        if obj.strategy != "mean" or not missing or obj.add_indicator:
            raise LostError(
                "", 'is not SimpleImputer(strategy="mean") of NaN, the one that is saved'
            )
        return super().parts(obj) | {"dtype": obj._fit_dtype}

    def make(self, parts: dict[str, Any]) -> Any:
        kind = parts.pop("dtype", None)
        self.require(parts)
        missing = parts.get("missing_values", np.nan)
        if parts.get("strategy", "mean") != "mean" or not missing != missing:
            raise ValueError("it fills in something else than means")
        means = parts.get("statistics_")
        if not (isinstance(means, np.ndarray) and means.ndim == 1 and means.dtype.kind == "f"):
            raise ValueError("it has no means")
        if not (isinstance(kind, np.dtype) and kind.kind in "fiub"):
            raise ValueError("it has no dtype")
        obj = SimpleImputer(**{name: parts[name] for name in self.given})
        # Fitted to one row: what scikit-learn keeps beside the means is its own affair.
        obj.fit(np.nan_to_num(means)[None, :].astype(kind))
        for name in self.fitted & parts.keys():
            setattr(obj, name, parts[name])
        return obj


def _neighbours(search: KNeighborsClassifier) -> dict[str, Any]:
    given = {name: getattr(search, name) for name in _SEARCH}
    return {**given, "scores": search._fit_X, "labels": _labels(search)}


def _labels(search: KNeighborsClassifier) -> Any:
    """Return the labels of the fit: what was kept of them are their numbers among the classes."""
    if isinstance(search.classes_, list):
        columns = zip(search.classes_, search._y.T, strict=True)
        return np.column_stack([classes[at] for classes, at in columns])
    return search.classes_[search._y]


def _search(scores: Any, labels: Any, **given: Any) -> KNeighborsClassifier:
    if not (isinstance(scores, np.ndarray) and isinstance(labels, np.ndarray)):
        raise ValueError("neighbours are arrays of scores and of labels")
    return KNeighborsClassifier(**given).fit(scores, labels)


def _steps(pipeline: Pipeline) -> dict[str, Any]:
    if pipeline.memory is not None:
        raise LostError("memory", "is a cache of this machine. Set it to None first")
    for name, step in pipeline.steps[:-1]:
        # Of another step the encoder may know how to write it, but `_pipeline` takes none.
        if not isinstance(step, _BEFORE):
            what = repr(step) if isinstance(step, str) else f"a {type(step).__name__}"
            raise LostError(
                f"steps[{name!r}]",
                f"is {what}. Before a model only SimpleImputer and StandardScaler are saved; save "
                f"other steps by themselves",
            )
    return {"steps": [[name, step] for name, step in pipeline.steps], "verbose": pipeline.verbose}


def _pipeline(steps: Any, verbose: Any) -> Pipeline:
    pairs = isinstance(steps, list) and all(isinstance(s, list) and len(s) == 2 for s in steps)
    if not pairs or not steps or not all(isinstance(name, str) for name, _ in steps):
        raise ValueError("it has no steps")
    before = all(isinstance(step, _BEFORE) for _, step in steps[:-1])
    if not before or isinstance(steps[-1][1], (Pipeline, *_BEFORE)):
        raise ValueError("its steps are not an imputer, a scaler and a model")
    return Pipeline([(name, step) for name, step in steps], verbose=bool(verbose))


_SEARCH = tuple(KNeighborsClassifier._get_param_names())
SCIKIT: list[Kind] = [
    Filled(
        "scikit-learn.SimpleImputer",
        SimpleImputer,
        SimpleImputer._get_param_names(),
        ("statistics_", *_NAMES),
    ),
    Step(
        "scikit-learn.StandardScaler",
        StandardScaler,
        StandardScaler._get_param_names(),
        ("mean_", "var_", "scale_", "n_samples_seen_", *_NAMES),
    ),
    Translated(
        "scikit-learn.KNeighborsClassifier",
        KNeighborsClassifier,
        (*_SEARCH, "scores", "labels"),
        _neighbours,
        _search,
    ),
    Translated("scikit-learn.Pipeline", Pipeline, ("steps", "verbose"), _steps, _pipeline),
]
