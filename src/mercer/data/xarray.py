"""Rows of xarray: one or several dimensions are the samples, the others are stacked as columns."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.arrays import is_dask
from mercer.data.derived import count_missing
from mercer.data.errors import format_names, not_numeric
from mercer.data.in_memory import ArraySource
from mercer.data.source import Source
from mercer.extras import extra
from mercer.messages import counted

Values = npt.NDArray[Any]


def from_xarray(data: Any, dim: Hashable | Iterable[Hashable]) -> Source:
    """Return a DataArray or Dataset as rows: one for each entry of `dim`.

    All other dimensions, and the variables of a Dataset, are stacked as columns, which are named
    after their coordinates, as in ``"lat=52.5, lon=13.0"``. Columns that are missing in every
    sample, such as the land points of a sea surface temperature, are left out; `to_xarray` returns
    them as NaN. Dask arrays become Dask rows without being loaded; files are Dask arrays if they
    are opened with ``chunks={}``.

    Parameters
    ----------
    data : xarray.DataArray or xarray.Dataset
        Numbers. Every variable must have the dimensions `dim`.
    dim : str or iterable of str
        The dimension of the samples, or several, such as ``("time", "member")``: then every
        combination of their entries is a sample.

    Returns
    -------
    Source
        The coordinate of `dim` names the rows.

    Raises
    ------
    ValueError
        A column is missing in the first sample, but not in every sample. (A column that is missing
        in other samples only is refused by the fit.)

    Notes
    -----
    To find the columns that are missing takes a pass over the data if the first sample has missing
    entries, and none otherwise.

    Points of a grid in latitude and longitude stand for areas of different size. Weight the
    columns by these areas: ``PCA(feature_weight=column_weights(data, dim, weights))`` with
    ``weights = np.cos(np.deg2rad(data.lat))``. Variables of different units are comparable with
    ``PCA(scale=True)``.

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
    >>> rows = mercer.from_xarray(field, dim="time")
    >>> rows.shape, rows.names[:2]
    ((20, 6), ['lat=-30, lon=0', 'lat=-30, lon=120'])
    >>> pca = mercer.PCA(2).fit(rows)
    >>> mercer.to_xarray(pca, field, dim="time").components.dims
    ('component', 'lat', 'lon')
    """
    stack = Stack(data, dim)
    return stack.source(stack.present())


def column_weights(data: Any, dim: Hashable | Iterable[Hashable], weights: Any) -> Values:
    """Return weights of points as an array of weights of the columns of `from_xarray`.

    Parameters
    ----------
    data, dim
        As for `from_xarray`. Columns that are missing are looked for again.
    weights : xarray.DataArray
        Weights along some of the other dimensions, for example
        ``np.cos(np.deg2rad(data.lat))``. They are the same along those they lack.

    Returns
    -------
    ndarray of shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from mercer import column_weights
    >>> field = xr.DataArray(np.zeros((9, 2, 2)), {"lat": [0, 60]}, ("time", "lat", "lon"))
    >>> column_weights(field, "time", np.cos(np.deg2rad(field.lat))).round(2)
    array([1. , 1. , 0.5, 0.5])
    """
    stack = Stack(data, dim)
    parts = []
    for variable in stack.variables:
        point = variable.isel(dict.fromkeys(stack.dims, 0))
        if not set(weights.dims) <= set(point.dims):
            raise ValueError(
                f"weights have the dimensions {weights.dims}, but columns have {point.dims}."
            )
        parts.append(weights.broadcast_like(point).transpose(*point.dims).to_numpy().ravel())
    return np.concatenate(parts)[stack.present()]


def read_data_array(X: Any) -> Source:
    """Return a DataArray of two dimensions: samples, and columns with the names they have."""
    if X.ndim != 2:
        dims = tuple(map(str, X.dims))
        raise ValueError(
            f"X is a DataArray with the dimensions {dims}. Pass mercer.from_xarray(X, "
            f"dim={dims[0] if dims else 'time'!r}), where dim is the dimension of the samples."
        )
    source = Stack(X, X.dims[0]).source(np.arange(X.shape[1]))
    if X.dims[1] not in X.coords:
        source.names = None
    return source


def refuse_dataset(X: Any) -> Source:
    """Refuse a Dataset, which does not say what a sample is."""
    raise ValueError(
        f"X is a Dataset of xarray with the dimensions {tuple(map(str, X.sizes))}. Pass "
        f"mercer.from_xarray(X, dim='time'), where dim is the dimension of the samples."
    )


class Stack:
    """A DataArray or Dataset as a table: samples by columns.

    Attributes
    ----------
    dims : tuple
        Dimensions of the samples.
    variables : list of DataArray
        The variables, with the dimensions of the samples first.
    """

    def __init__(self, data: Any, dim: Hashable | Iterable[Hashable]) -> None:
        xarray = extra("xarray", "xarray", "from_xarray requires")
        if not isinstance(data, (xarray.DataArray, xarray.Dataset)):
            raise TypeError(f"data is a {type(data).__name__}, not a DataArray or a Dataset.")
        several = isinstance(dim, Iterable) and not isinstance(dim, str)
        self.dims: tuple[Any, ...] = tuple(dim) if several else (dim,)  # type: ignore[arg-type]
        self.several = isinstance(data, xarray.Dataset)
        named = dict(data.data_vars) if self.several else {data.name: data}
        for name, variable in named.items():
            lost = [each for each in self.dims if each not in variable.dims]
            if lost:
                what = f"Variable {name!r}" if self.several else "data"
                raise ValueError(
                    f"{what} has no dimension {format_names(map(str, lost))}: its dimensions are "
                    f"{format_names(map(str, variable.dims))}."
                )
        odd = {str(name): str(x.dtype) for name, x in named.items() if x.dtype.kind not in "fiub"}
        if odd:
            raise ValueError(f"{not_numeric('data', odd)} Drop them, or convert them to numbers.")
        if not named:
            raise ValueError("The Dataset has no variables.")
        self.variables = [variable.transpose(*self.dims, ...) for variable in named.values()]
        sizes = [[variable.sizes[each] for each in self.dims] for variable in self.variables]
        self.shape: tuple[int, ...] = tuple(sizes[0])
        self.n = math.prod(self.shape)

    @cached_property
    def widths(self) -> list[int]:
        """Number of columns of every variable."""
        return [math.prod(x.shape[len(self.dims) :]) for x in self.variables]

    @cached_property
    def rows(self) -> Any:
        """The rows as an array of NumPy or Dask, with all columns."""
        pairs = zip(self.variables, self.widths, strict=True)
        parts: list[Any] = [variable.data.reshape(self.n, width) for variable, width in pairs]
        if len(parts) == 1:
            return parts[0]
        rows: Any = np.concatenate(parts, axis=1)  # of Dask, if one of them is
        return rows.rechunk({1: -1}) if is_dask(rows) else rows

    @cached_property
    def names(self) -> list[str]:
        """Names of all columns."""
        return [
            f"{variable.name}({place})" if self.several and place else place or str(variable.name)
            for variable in self.variables
            for place in _places(variable, variable.dims[len(self.dims) :])
        ]

    def present(self) -> Values:
        """Return the columns that are not missing in every sample; raise if one is in some."""
        every = np.arange(sum(self.widths))
        if self.rows.dtype.kind != "f" or not np.isnan(np.asarray(self.rows[:1])).any():
            return every
        missing = count_missing(self.source(every))
        partly = np.flatnonzero((missing > 0) & (missing < self.n))
        if len(partly):
            j = int(partly[0])
            more = f", and in {counted(len(partly) - 1, 'more column')}" if len(partly) > 1 else ""
            raise ValueError(
                f"data are missing at {self.names[j]} in {missing[j]} of {self.n} samples{more}. "
                f"Drop these samples or columns, or interpolate, for example with "
                f"data.interpolate_na({str(self.dims[0])!r})."
            )
        present = np.flatnonzero(missing == 0)
        if not len(present):
            raise ValueError("data have no values: all columns are missing in every sample.")
        return present

    def source(self, columns: Values) -> Source:
        """Return some columns as rows, with the names of columns and rows."""
        rows = self.rows if len(columns) == sum(self.widths) else self.rows[:, columns]
        if is_dask(rows):
            from mercer.data.dask import DaskSource

            source: Source = DaskSource(rows)
        else:
            source = ArraySource(np.asarray(rows))
        source.names = [self.names[j] for j in columns]
        source.extra_columns = dict(self._sample_names())
        source.id = next(iter(source.extra_columns), None) if len(self.dims) == 1 else None
        return source

    def _sample_names(self) -> Iterator[tuple[str, Values]]:
        """Yield the coordinates of the samples, one for every row."""
        for axis, name in enumerate(self.dims):
            if name in self.variables[0].coords:
                values = self.variables[0].coords[name].to_numpy()
                if values.dtype.kind == "O":
                    values = np.array([*map(str, values), None], dtype=object)[:-1]
                shape = [-1 if i == axis else 1 for i in range(len(self.dims))]
                yield str(name), np.broadcast_to(values.reshape(shape), self.shape).ravel()


def _places(variable: Any, dims: Sequence[Hashable]) -> Iterator[str]:
    """Yield the coordinates of every column of a variable; "" if it has no other dimensions."""
    labels = [_labels(variable, dim, only=len(dims) == 1) for dim in dims]
    yield from map(", ".join, product(*labels))


def _labels(variable: Any, dim: Hashable, *, only: bool) -> list[str]:
    """Return the coordinates along a dimension; numbers from 0 without coordinates."""
    known = dim in variable.coords
    values = variable.coords[dim].to_numpy() if known else np.arange(variable.sizes[dim])
    if only and values.dtype.kind in "OUT":  # names, which need no dimension
        return list(map(str, values))
    if values.dtype.kind == "M":
        values = np.datetime_as_string(values, unit="auto")
    return [f"{dim}={value!s}" for value in values]
