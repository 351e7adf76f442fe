"""Results in AnnData objects, under the keys and in the form of scanpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.arrays import to_numpy
from mercer.data import as_source, from_anndata, is_anndata
from mercer.data.anndata import mask_of, match_names, require_one_matrix, select_variables
from mercer.data.errors import format_names
from mercer.estimators.base import fitted_array
from mercer.estimators.inspection import through, unwrap
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.pca import PCA
from mercer.messages import counted

Numbers = npt.NDArray[np.intp]
Fields = dict[str, dict[str, Any]]
"""Members of obsm, varm and uns, by group and key; None deletes a member."""


def to_anndata(
    model: Any,
    adata: Any,
    scores: Any = None,
    *,
    layer: str | None = None,
    use_rep: str | None = None,
    mask_var: Any = None,
    key_added: str | None = None,
) -> None:
    """Write a fitted model to an AnnData object as `scanpy.pp.pca` does.

    Functions of scanpy, such as `pp.neighbors`, `pl.pca`, `pl.pca_variance_ratio` and
    `pl.pca_loadings`, then use the result. If anything is wrong, nothing is written. Otherwise

    - ``obsm["X_pca"]`` has the scores of the observations, float32;
    - ``varm["PCs"]`` has the components: one row for each variable of `adata`, zeros if the model
      does not use it. If columns are scaled by the model, or by steps before it, they are those
      of the scaled variables. The components of a `KernelPCA` do not combine variables: nothing
      is written, and an earlier entry is deleted;
    - ``uns["pca"]`` has the entries ``"variance"``, ``"variance_ratio"`` and ``"params"``.

    Parameters
    ----------
    model : PCA, KernelPCA or Pipeline
        A fitted model, or a pipeline that ends in one. Its columns are variables of `adata`,
        matched by name, or by their order if it was fitted to columns without names.
    adata : AnnData
        In memory, a view of one in memory, or backed: the file of a backed object is not changed.
    scores : array or Source of shape (n_obs, k), optional
        The scores, if they are known. By default they are computed from X, or from the matrix
        that `layer` or `use_rep` names.
    layer, use_rep : str, optional
        What the model was fitted to instead of X: a key of layers, or of obsm. The components of
        columns of obsm are in ``uns["pca"]["components"]`` instead of varm.
    mask_var : str or array of bool, optional
        The variables that the model was fitted to: a boolean column of var, or an array. Required
        only if the columns of the model have no names; ``uns["pca"]["params"]`` records it.
    key_added : str, optional
        Key in obsm, varm and uns, instead of "X_pca", "PCs" and "pca".

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import mercer
    >>> X = np.random.default_rng(0).poisson(1.0, (100, 30)).astype(np.float32)
    >>> adata = anndata.AnnData(X)
    >>> mercer.to_anndata(mercer.PCA(5).fit(adata), adata)
    >>> adata.obsm["X_pca"].shape, adata.varm["PCs"].shape, sorted(adata.uns["pca"])
    ((100, 5), (30, 5), ['params', 'variance', 'variance_ratio'])
    """
    if not is_anndata(adata):
        raise TypeError(f"adata is a {type(adata).__name__}, expected an AnnData object.")
    if getattr(adata, "isbacked", False) and adata.is_view:
        raise ValueError(
            "adata is a view of a backed AnnData object, to which nothing can be written. Pass "
            "the whole object, or adata.to_memory()."
        )
    require_one_matrix(layer, use_rep, mask_var)
    require_model(model)
    at = None if use_rep is not None else _variables(model, adata, mask_var)
    if scores is None:
        rows = (
            select_variables(adata, layer, at, quiet=True)
            if use_rep is None
            else from_anndata(adata, use_rep=use_rep)
        )
        steps, estimator = unwrap(model)
        scores = estimator.transform(through(steps, rows))
    shape = len(adata.obs_names), len(adata.var_names)
    matrix = {"layer": layer, "use_rep": use_rep, "mask_var": mask_var}
    fields = pca_fields(model, scores, shape, at, key_added, **matrix)
    for group, members in fields.items():
        mapping = getattr(adata, group)
        for key, value in members.items():
            if value is not None:
                mapping[key] = value
            elif key in mapping:
                del mapping[key]


def require_model(model: Any) -> None:
    """Raise unless a model is a fitted PCA or KernelPCA, or a pipeline that ends in one."""
    steps, last = unwrap(model)
    if not isinstance(last, (PCA, KernelPCA)):
        raise TypeError(
            f"A {type(last).__name__} cannot be written to AnnData. PCA, KernelPCA and pipelines "
            f"that end in one of them can."
        )
    last._require_fitted()
    if steps and steps[0].n_features_in_ != last.n_features_in_:
        raise ValueError(
            f"{type(steps[0]).__name__} and the steps after it turn {steps[0].n_features_in_} "
            f"columns into {last.n_features_in_}: the components do not combine variables."
        )


def model_names(model: Any) -> list[str] | None:
    """Return the names of the columns that a model was fitted to, if they had names."""
    steps, last = unwrap(model)
    names = getattr(steps[0] if steps else last, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def pca_fields(
    model: Any,
    scores: Any,
    shape: tuple[int, int],
    at: Numbers | None,
    key_added: str | None = None,
    **matrix: Any,
) -> Fields:
    """Return what `scanpy.pp.pca` writes to AnnData of a shape: the entries, keys and dtypes.

    `at` has the numbers of the variables that the columns of the model are, None with `use_rep`;
    `matrix` is layer, use_rep and mask_var.
    """
    estimator, (n, d) = unwrap(model)[1], shape
    rows, k = as_source(scores), int(estimator.n_components_)
    if rows.shape != (n, k):
        raise ValueError(
            f"scores have shape {rows.shape}, expected {(n, k)}: {counted(n, 'observation')} and "
            f"{counted(k, 'component')}."
        )
    entries = {
        "params": _params(estimator, at, d, **matrix),
        "variance": to_numpy(estimator.explained_variance_).copy(),
        "variance_ratio": to_numpy(estimator.explained_variance_ratio_).copy(),
    }
    loadings = None
    if isinstance(estimator, PCA):
        V = to_numpy(estimator.components_).T
        if at is None:
            entries["components"] = V.copy()
        else:
            loadings = np.zeros((d, k), np.float64 if len(at) < d else V.dtype)
            loadings[at] = V
    with progress.session():
        values = fitted_array(to_numpy(rows.collect()), np.dtype(np.float32), np.empty(0))
    X_pca, PCs, pca = ("X_pca", "PCs", "pca") if key_added is None else [key_added] * 3
    return {"obsm": {X_pca: values}, "varm": {PCs: loadings}, "uns": {pca: entries}}


def _params(
    estimator: Any,
    at: Numbers | None,
    d: int,
    layer: str | None = None,
    use_rep: str | None = None,
    mask_var: Any = None,
) -> dict[str, Any]:
    """Return the parameters that scanpy records, and the kernel."""
    if at is not None and mask_var is None and len(at) < d:
        mask_var = np.isin(np.arange(d), at)
    named = isinstance(mask_var, str)
    params = {
        "zero_center": bool(estimator.center),
        "use_highly_variable": named and mask_var == "highly_variable",
        "mask_var": mask_var if named or mask_var is None else np.asarray(mask_var, bool),
    }
    others = {"layer": layer, "obsm": use_rep}
    if isinstance(estimator, KernelPCA):
        kernel = estimator.kernel_
        others["kernel"] = "precomputed" if kernel is None else repr(kernel)
    return params | {name: value for name, value in others.items() if value is not None}


def _variables(model: Any, adata: Any, mask_var: Any) -> Numbers:
    """Return the numbers of the variables that the columns of a model are, in their order."""
    mask = None if mask_var is None else mask_of(adata, mask_var)
    names, n = model_names(model), len(adata.var_names)
    if names is not None:
        at, missing = match_names(adata.var_names, names)
        if missing:
            raise ValueError(
                f"adata lacks {counted(len(missing), 'variable')} of the model: "
                f"{format_names(missing)}."
            )
        if mask is not None and (mask.sum() != len(at) or not mask[at].all()):
            raise ValueError(
                f"mask_var selects {counted(int(mask.sum()), 'variable')}, but not those that the "
                f"model was fitted to, of which there are {len(at)}. Leave it out: they are known "
                f"by name."
            )
        return at
    at = np.arange(n) if mask is None else np.flatnonzero(mask)
    steps, last = unwrap(model)
    d = getattr([*steps, last][0], "n_features_in_", len(at))  # strings have no columns
    if len(at) != d and getattr(last, "kernel", None) != "precomputed":
        whose = "adata has" if mask is None else "mask_var selects"
        raise ValueError(
            f"The model was fitted to {counted(d, 'column')} without names, but {whose} "
            f"{counted(len(at), 'variable')}. Pass the mask_var that selects the columns."
        )
    return at
