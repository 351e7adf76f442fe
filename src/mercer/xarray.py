"""Results for xarray: components as fields, scores along the samples."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import __version__
from mercer.arrays import to_numpy
from mercer.data.xarray import Stack
from mercer.extras import extra

__all__ = ["to_xarray"]


def to_xarray(model: Any, data: Any, dim: Hashable | Iterable[Hashable]) -> Any:
    """Return the components and scores of a model with the coordinates of the data.

    Parameters
    ----------
    model : PCA or KernelPCA
        Fitted to ``from_xarray(data, dim)``, to a DataArray of two dimensions, or to the same
        columns at other times.
    data : xarray.DataArray or xarray.Dataset
        The data to transform, whose coordinates the result has.
    dim : str or iterable of str
        The dimension of the samples, or several, as in `from_xarray`.

    Returns
    -------
    xarray.Dataset
        With ``scores`` (samples × component), ``explained_variance`` and
        ``explained_variance_ratio``. A `PCA` adds ``components`` (component × the other
        dimensions), ``mean`` and, if it scales columns, ``scale``: NaN where a column was left
        out. Of a Dataset, every variable has its own: ``components_NAME`` and so on. Components are
        numbered from 1. The attributes hold the model and its certificate.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> import mercer
    >>> field = xr.DataArray(
    ...     np.random.default_rng(0).normal(size=(20, 2, 3)),
    ...     coords={"time": np.arange(20), "lat": [-30, 30], "lon": [0, 120, 240]},
    ...     dims=("time", "lat", "lon"),
    ... )
    >>> pca = mercer.PCA(2).fit(mercer.from_xarray(field, dim="time"))
    >>> result = mercer.to_xarray(pca, field, dim="time")
    >>> dict(result.scores.sizes), dict(result.components.sizes)
    ({'time': 20, 'component': 2}, {'component': 2, 'lat': 2, 'lon': 3})
    >>> float(result.components.sel(component=1, lat=30, lon=120).round(3))
    0.197
    """
    if not hasattr(model, "explained_variance_ratio_"):
        raise TypeError(f"to_xarray takes a fitted PCA or KernelPCA, not {model!r}.")
    xarray = extra("xarray", "xarray", "to_xarray requires")
    array, stack = xarray.DataArray, Stack(data, dim)
    if "component" in data.dims:
        raise ValueError("data has a dimension 'component', which the result needs. Rename it.")
    columns = _columns(model, stack)
    scores = np.asarray(model.transform(stack.source(columns)))
    numbers = {"component": np.arange(1, scores.shape[1] + 1)}
    samples = _coordinates(stack.variables[0], stack.dims)
    scores = scores.reshape((*stack.shape, -1))
    arrays = {"scores": array(scores, samples | numbers, (*stack.dims, "component"))}
    for name in ("explained_variance", "explained_variance_ratio"):
        arrays[name] = array(to_numpy(getattr(model, f"{name}_")), numbers, ("component",))
    for name, values in _fields(model).items():
        first = numbers if name == "components" else {}
        full = np.full((*values.shape[:-1], sum(stack.widths)), np.nan, values.dtype)
        full[..., columns] = values
        parts = np.split(full, np.cumsum(stack.widths)[:-1], axis=-1)
        for variable, part in zip(stack.variables, parts, strict=True):
            dims = variable.dims[len(stack.dims) :]
            part = part.reshape((*values.shape[:-1], *(variable.sizes[each] for each in dims)))
            field = array(part, first | _coordinates(variable, dims), (*first, *dims))
            arrays[f"{name}_{variable.name}" if stack.several else name] = field
    return xarray.Dataset(arrays, attrs=_attributes(model))


def _columns(model: Any, stack: Stack) -> npt.NDArray[Any]:
    """Return the columns that the model was fitted to; raise if the data lack one of them."""
    width, names = sum(stack.widths), getattr(model, "feature_names_in_", None)
    if names is None:
        columns = np.arange(width)
    else:
        place = {name: j for j, name in enumerate(stack.names)}
        lost = [str(name) for name in names if name not in place]
        if lost:
            raise ValueError(
                f"The model was fitted to {len(lost)} columns that data do not have, such as "
                f"{lost[0]!r}. Pass data with the variables and coordinates of the fit."
            )
        columns = np.array([place[str(name)] for name in names])
    if len(columns) != model.n_features_in_:
        raise ValueError(
            f"The model was fitted to {model.n_features_in_} columns, but data have {width}."
        )
    return columns


def _fields(model: Any) -> dict[str, npt.NDArray[Any]]:
    """Return the attributes of a linear model that have an entry for every column."""
    if not hasattr(model, "components_"):
        return {}
    names = ["components", "mean", *(["scale"] if getattr(model, "scale", False) else [])]
    return {name: to_numpy(getattr(model, f"{name}_")) for name in names}


def _coordinates(variable: Any, dims: Iterable[Hashable]) -> dict[Hashable, Any]:
    """Return the coordinates along some dimensions only."""
    return {
        name: coordinate.variable
        for name, coordinate in variable.coords.items()
        if coordinate.dims and set(coordinate.dims) <= set(dims)
    }


def _attributes(model: Any) -> dict[str, str]:
    certificate = getattr(model, "certificate_", None)
    sentence = {} if certificate is None else {"certificate": certificate.sentence}
    return {"model": repr(model), **sentence, "mercer_version": __version__}
