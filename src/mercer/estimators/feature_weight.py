"""Weights of columns, which define the metric of linear PCA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.arrays import Vector, to_numpy
from mercer.data import Source
from mercer.data.errors import format_names
from mercer.messages import counted, format_parameter

_REMEDY = "Weights must be finite and not negative; 0 leaves a column out"


def check_feature_weight(feature_weight: Any, source: Source) -> Vector:
    """Return the weights of the columns of a source, float64, in their order."""
    d, names, called = source.shape[1], source.names, format_parameter("feature_weight")
    by_name = _by_name(feature_weight, called)
    values = feature_weight if by_name is None else _in_order(by_name, names, called)
    if np.ma.is_masked(values):
        raise ValueError(
            f"{called} has masked entries. Fill them; {called}.filled(0) leaves those columns out."
        )
    try:
        if np.iscomplexobj(values):
            raise TypeError("they are complex")
        w = np.array(to_numpy(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{called} must be numbers, one for each of {counted(d, 'column')}: {error}."
        ) from None
    if w.shape != (d,):
        raise ValueError(
            f"{called} has shape {w.shape}, but X has {counted(d, 'column')}. Pass one weight for "
            f"each, in their order."
        )
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        j = int(bad[0])
        at = repr(str(names[j])) if by_name is not None and names is not None else j
        raise ValueError(f"{called}[{at}] is {w[j]}. {_REMEDY}.")
    if not w.any():
        raise ValueError(
            f"All entries of {called} are zero: no column has a share in the components. Pass a "
            f"positive weight for those that should."
        )
    return w


def _by_name(weights: Any, called: str) -> dict[Any, Any] | None:
    """Return the weights of a dict, or of a Series with names, by name; None of an array."""
    if isinstance(weights, dict):
        return weights
    labels = getattr(weights, "index", None)  # a list has a method of this name
    if labels is None or callable(labels) or not all(isinstance(x, str) for x in labels):
        return None
    by_name = dict(zip(labels, np.asarray(weights), strict=True))
    if len(by_name) < len(labels):
        raise ValueError(f"{called} has two weights of one name. Pass one for each column.")
    return by_name


def _in_order(by_name: dict[Any, Any], names: Sequence[Any] | None, called: str) -> list[Any]:
    """Return the weights in the order of the columns."""
    if names is None:
        raise ValueError(
            f"{called} has names, but the columns of X have none. Pass an array with one weight "
            f"for each column, or a DataFrame as X."
        )
    columns = [str(name) for name in names]
    missing = [name for name in columns if name not in by_name]
    unknown = [str(name) for name in by_name if name not in columns]
    if missing or unknown:
        wrong = f"no weight for {format_names(missing)}" if missing else ""
        more = f"weights for {format_names(unknown)}, which X does not have" if unknown else ""
        raise ValueError(
            f"{called} has {' and '.join(filter(None, (wrong, more)))}. Pass one weight for each "
            f"column; 1 leaves it as it is, and 0 leaves it out."
        )
    return [by_name[name] for name in columns]
