"""AnnData objects: in memory, backed by a file, or on Dask; matrix and variables to use.

Nothing here imports anndata: the object brings all that is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.arrays import is_dask, is_foreign
from mercer.data.containers import is_anndata
from mercer.data.errors import format_names
from mercer.data.source import Source
from mercer.messages import counted, format_parameter, warn


def from_anndata(
    adata: Any, *, layer: str | None = None, use_rep: str | None = None, mask_var: Any = None
) -> Source:
    """Return a matrix of an AnnData object as rows: X, a layer, or an array of obsm.

    Estimators accept AnnData objects directly and use X with all variables; this function selects
    anything else. The columns are named by var_names, made unique as AnnData does, and the rows by
    obs_names.

    Parameters
    ----------
    adata : AnnData
        In memory, a view, with a Dask array, or backed: then X is read block by block from the
        .h5ad file and never loaded whole. A view of a backed object may select variables, but not
        observations. Variables of ``adata.raw`` are those of ``adata.raw.to_adata()``.
    layer : str, optional
        Key of layers, instead of X.
    use_rep : str, optional
        Key of obsm, instead of X. Its columns have names only if it is a DataFrame.
    mask_var : str or array of bool, optional
        The variables to use: a boolean column of var, such as "highly_variable", or an array with
        one entry for each variable. By default all variables are used, whatever var contains.

    Returns
    -------
    Source

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import mercer
    >>> X = np.random.default_rng(0).poisson(1.0, (100, 30)).astype(np.float32)
    >>> adata = anndata.AnnData(X, layers={"counts": X})
    >>> adata.var["highly_variable"] = np.arange(30) < 20
    >>> mercer.PCA(5).fit(adata).components_.shape
    (5, 30)
    >>> rows = mercer.from_anndata(adata, layer="counts", mask_var="highly_variable")
    >>> mercer.PCA(5).fit(rows).feature_names_in_[:3]
    array(['0', '1', '2'], dtype=object)
    """
    if not is_anndata(adata):
        raise TypeError(f"adata is a {type(adata).__name__}, expected an AnnData object.")
    require_one_matrix(layer, use_rep, mask_var)
    if use_rep is not None:
        return _described(_as_rows(_member(adata, "obsm", use_rep), f"obsm[{use_rep!r}]"), adata)
    at = None if mask_var is None else np.flatnonzero(mask_of(adata, mask_var))
    return select_variables(adata, layer, at)


def select_variables(
    adata: Any,
    layer: str | None = None,
    at: npt.NDArray[np.intp] | None = None,
    *,
    quiet: bool = False,
) -> Source:
    """Return X or a layer of an AnnData object, of all variables or of those with these numbers."""
    names, repeated = unique_names([str(name) for name in adata.var_names])
    if repeated and not quiet:
        warn(f"{counted(repeated, 'name')} in var_names are not unique; numbers are appended.")
    if at is not None:
        names = [names[j] for j in at]
    if layer is None and getattr(adata, "isbacked", False):
        from mercer.data.files.anndata import read_backed

        source = read_backed(adata, at)
    else:
        matrix = adata.X if layer is None else _member(adata, "layers", layer)
        if matrix is None:
            there = format_names(sorted(adata.layers)) or "none"
            raise ValueError(f"The AnnData object has no X. Its layers: {there}.")
        name = "X" if layer is None else f"layers[{layer!r}]"
        source = _as_rows(matrix, name, at)
    source.names = names
    return _described(source, adata)


def require_one_matrix(layer: str | None, use_rep: str | None, mask_var: Any) -> None:
    """Raise if a representation is combined with a layer or a mask of variables."""
    for name, value in (("layer", layer), ("mask_var", mask_var)):
        if use_rep is not None and value is not None:
            raise ValueError(f"{name} and use_rep={use_rep!r} exclude each other: pass only one.")


def match_names(
    known: Iterable[str], names: Sequence[str]
) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Return the numbers of the variables with these names, and the names that are not known."""
    place = {name: j for j, name in enumerate(unique_names(list(map(str, known)))[0])}
    missing = [name for name in names if name not in place]
    return np.array([place[name] for name in names if name in place], dtype=np.intp), missing


def mask_of(adata: Any, mask_var: Any) -> npt.NDArray[np.bool_]:
    """Return a mask of variables: a boolean column of var, or an array, one entry for each."""
    what, n = "mask_var", len(adata.var_names)
    if isinstance(mask_var, str):
        what = format_parameter("mask_var", mask_var)
        if mask_var not in adata.var:
            flags = [str(name) for name in adata.var if np.asarray(adata.var[name]).dtype == bool]
            raise ValueError(
                f"{what} is not a column of var. Its boolean columns: "
                f"{format_names(flags) or 'none'}."
            )
        mask_var = adata.var[mask_var]
    elif hasattr(mask_var, "iloc") and list(mask_var.index) != list(adata.var_names):
        raise ValueError(
            "mask_var is a Series whose index differs from var_names. Pass "
            "mask_var.reindex(adata.var_names), or mask_var.to_numpy() if the order is right."
        )
    values = np.asarray(mask_var)
    if values.shape != (n,):
        raise ValueError(
            f"{what} has shape {values.shape}, but there are {counted(n, 'variable')}: expected "
            f"{(n,)}."
        )
    if values.dtype == object and all(isinstance(value, (bool, np.bool_)) for value in values):
        values = values.astype(bool)
    if values.dtype != bool:
        other = next((v for v in values.tolist() if not isinstance(v, bool)), None)
        raise ValueError(
            f"{what} must contain only True and False, but contains {other!r}. Pass a boolean "
            f"array without missing entries."
        )
    if not values.any():
        raise ValueError(f"{what} is False for all variables: none is left.")
    return values


def unique_names(names: Sequence[str]) -> tuple[list[str], int]:
    """Return names with numbers appended to repeated ones, as AnnData does, and how many repeat.

    The first of equal names stays; the others become "name-1", "name-2", …, unless those exist.
    """
    unique: list[str] = []
    numbers, taken, seen = Counter[str](), set(names), set[str]()
    if len(taken) == len(names):
        return list(names), 0
    for name in names:
        new = name
        while name in seen and new in taken:
            numbers[name] += 1
            new = f"{name}-{numbers[name]}"
        seen.add(name)
        taken.add(new)
        unique.append(new)
    return unique, len(numbers)


def _member(adata: Any, group: str, key: str) -> Any:
    """Return an array of layers or obsm by its key, or name those that exist."""
    members = getattr(adata, group)
    if key not in members:
        there = format_names(sorted(map(str, members.keys()))) or "none"
        raise ValueError(f"The AnnData object has no {group}[{key!r}]. Its {group}: {there}.")
    return members[key]


def _as_rows(matrix: Any, name: str, at: npt.NDArray[np.intp] | None = None) -> Source:
    """Return columns of a matrix as rows; raise unless it is in memory or a Dask array."""
    from mercer.data import as_source

    known = isinstance(matrix, np.ndarray) or hasattr(matrix, "tocsr") or is_dask(matrix)
    if not (known or hasattr(matrix, "iloc") or is_foreign(matrix)):
        raise ValueError(
            f"{name} of the AnnData object is a {type(matrix).__name__}, which is not in memory. "
            f"Pass adata.to_memory(), or the path of the .h5ad file."
        )
    every = at is None or np.array_equal(at, np.arange(matrix.shape[1]))
    return as_source(matrix if every else matrix[:, at])


def _described(source: Source, adata: Any) -> Source:
    """Add the names of the observations."""
    source.id = "obs_names"
    source.extra_columns = {source.id: np.asarray(adata.obs_names, dtype=object)}
    return source
