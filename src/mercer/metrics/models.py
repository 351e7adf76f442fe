"""The fitted map of a model, and rows that it takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Matrix, to_numpy
from mercer.data import Source, StringSource, as_source
from mercer.projection import KernelProjection, LinearProjection
from mercer.projection.fourier import FourierProjection


def projection_of(model: Any) -> LinearProjection | KernelProjection:
    """Return the fitted map of an estimator, or the map itself."""
    found = getattr(model, "projection_", model)
    if isinstance(found, (LinearProjection, KernelProjection)):
        return found
    if isinstance(found, FourierProjection):
        raise ValueError(
            "random features have no components in the kernel's space until rows are named: pass "
            "mercer.metrics.kernel_axes(model, X), with the rows X of the fit, instead of the "
            "model."
        )
    fitted = "is not fitted: call fit first" if hasattr(model, "fit") else "is none"
    raise TypeError(
        f"a fitted mercer.PCA or mercer.KernelPCA is needed, or its projection_, and "
        f"{type(model).__name__} {fitted}."
    )


def coefficients(projection: LinearProjection | KernelProjection) -> Matrix:
    """Return what each component is made of, on the host, in float64."""
    return np.asarray(to_numpy(projection.components), np.float64)


def width(projection: LinearProjection | KernelProjection) -> int | None:
    """Return how many columns its rows have; None where they are strings."""
    if isinstance(projection, LinearProjection) or projection.kernel is None:
        return len(projection.mean)
    return None if isinstance(projection.basis, list) else int(projection.basis.shape[1])


def rows_of(model: Any, X: Any) -> Source:
    """Return rows as a source; refuse what the model cannot take."""
    source, columns = as_source(X), width(projection_of(model))
    strings = isinstance(source, StringSource)
    if strings != (columns is None):
        held, taken = ("strings", "numbers") if strings else ("numbers", "strings")
        raise ValueError(f"X holds {held}, and the model was fitted to {taken}.")
    if not strings and source.shape[1] != columns:
        raise ValueError(f"X has {source.shape[1]} columns, and the model was fitted to {columns}.")
    fitted = getattr(model, "feature_names_in_", None)
    if fitted is not None and source.names is not None and list(fitted) != list(source.names):
        raise ValueError(
            f"the columns of X are {list(source.names)}, and those of the fit {list(fitted)}."
        )
    if source.shape[0] == 0:
        raise ValueError("X has no rows, and a mean needs one.")
    return source
