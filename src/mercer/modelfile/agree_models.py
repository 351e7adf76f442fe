"""Whether the parts of fitted models fit together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from mercer.certificate import Certificate
from mercer.data import Fold
from mercer.estimators.denoiser import Denoiser
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.nearest import NearestProjection
from mercer.estimators.novelty import NoveltyDetector
from mercer.estimators.pca import PCA
from mercer.estimators.subspace import SubspaceClassifier
from mercer.kernels import Kernel
from mercer.methods import Streaming
from mercer.modelfile.shapes import columns, count, floats, host, need, number, rows_of, shape
from mercer.planning.base import Plan
from mercer.preimage.base import Preimage
from mercer.projection import KernelProjection, LinearProjection, Projection
from mercer.projection.fourier import FourierProjection
from mercer.sketches.transformer import Transformer

_MOST_JOBS = 1024
_TABLES = ("default", "pandas", "polars", None)


def _estimator(found: Any) -> None:
    """Check what all estimators have: parameters, names of columns, the kind of table."""
    found._validate_params()
    columns(found)
    config = vars(found).get("_sklearn_output_config", {})
    need(isinstance(config, dict) and config.keys() <= {"transform"}, "tables of no kind")
    need(config.get("transform") in _TABLES, "tables of no kind")
    need(isinstance(vars(found).get("fingerprint_", ""), str), "the fingerprint is no text")
    _batches(found)


def _batches(found: Any) -> None:
    """Check what `partial_fit` goes on from."""
    parts = vars(found)
    if not parts.keys() & {"_fold", "_stream", "_seen", "_begun", "_coarse"}:
        return
    need(isinstance(parts.get("_fold"), Fold), "there are no sums of batches")
    need(isinstance(parts.get("_stream"), Streaming), "there is no method for batches")
    need(isinstance(parts.get("_coarse"), np.dtype), "batches have no precision")
    need(isinstance(parts.get("_begun"), tuple), "batches have no parameters")
    count(parts.get("_seen"), "_seen")
    if isinstance(found, KernelPCA):
        need(isinstance(parts.get("_kernel"), Kernel), "batches have no kernel")
        shift, d = parts.get("_shift"), parts.get("n_features_in_")
        need("_shift" in parts and (shift is None or host(shift, d)), "the shift does not fit")


def _fitted(found: Any, kind: type) -> None:
    need(isinstance(vars(found).get("projection_"), kind), "there is no projection")
    need(isinstance(vars(found).get("certificate_"), Certificate), "there is no certificate")
    need(isinstance(vars(found).get("plan_"), Plan), "there is no plan")
    count(found.n_components_, "n_components_")


def _one_library(found: Any, *names: str) -> None:
    """Refuse arrays of NumPy's beside some of torch's."""
    libraries = {type(getattr(found, name)) for name in names}
    need(len(libraries) == 1, "arrays are of several libraries")


def _pca(found: PCA) -> None:
    if "projection_" not in vars(found):  # a parameter of another
        return
    _fitted(found, LinearProjection)
    k, d = found.n_components_, found.n_features_in_
    floats(found.components_, (k, d), "components_")
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        floats(getattr(found, name), (k,), name)
    for name in ("mean_", "scale_"):
        floats(getattr(found, name), (d,), name)
    need(len(found.projection_.mean) == d, "the projection does not fit")
    need(len(found.projection_.eigenvalues) >= k, "the projection has too few eigenvalues")
    count(found.n_samples_, "n_samples_")
    number(found.noise_variance_, "noise_variance_")
    _one_library(found, "components_", "explained_variance_", "mean_", "scale_")


def _kernel_pca(found: KernelPCA) -> None:
    if "projection_" not in vars(found):
        return
    _fitted(found, Projection)
    fitted, k = found.projection_, found.n_components_
    need(isinstance(fitted, (KernelProjection, FourierProjection)), "there is no kernel's map")
    need(fitted.kernel == found.kernel_, "the projection has another kernel")
    need((found.kernel_ is None) == (found.kernel == "precomputed"), "precomputed, or not")
    for name in ("eigenvalues_", "explained_variance_", "explained_variance_ratio_"):
        floats(getattr(found, name), (k,), name)
    _one_library(found, "eigenvalues_", "explained_variance_", "explained_variance_ratio_")
    need(len(fitted.eigenvalues) == k, "the projection does not fit")
    points = (len(fitted.mean),) if found.kernel_ is None else _points(fitted)
    d = vars(found).get("n_features_in_")
    if len(points) == 2 or d is not None:
        need(len(points) == 1 or points[1] == d, "the projection has other columns")
    words = isinstance(found.X_fit_, list)
    if found.kernel_ is not None and not isinstance(fitted, FourierProjection):
        need(words == isinstance(fitted.basis, list), "rows are strings, or not")
        need(found.kernel_.takes in ("anything", "strings" if words else "vectors"), "wrong rows")
        need(words == (d is None), "strings have no columns")
    _way_back(found, k)


def _points(fitted: Any) -> tuple[int, ...]:
    if isinstance(fitted, FourierProjection):
        return tuple(fitted.map.frequencies.omega.shape[::-1])
    return rows_of(fitted.basis, "the basis")


def _way_back(found: KernelPCA, k: int) -> None:
    parts = vars(found)
    need(("preimage_" in parts) == ("_way" in parts), "half a way back")
    if "_way" in parts:
        need(isinstance(found.preimage_, Preimage), "there is no pre-image")
        need(isinstance(found.projection_, KernelProjection), "there is no pre-image")
        found.preimage_.check()
        products = found.preimage_.products(found._way)
        need(host(products, len(found.projection_.mean), k + 1), "the way back does not fit")
    need(("dual_coef_" in parts) == ("X_transformed_fit_" in parts), "half a way back")
    if "dual_coef_" in parts:
        n = (shape(found.dual_coef_) or (0,))[0]
        floats(found.dual_coef_, (n, found.n_features_in_), "dual_coef_")
        floats(found.X_transformed_fit_, (n, k), "X_transformed_fit_")
        need(found.kernel_ is not None, "there is no kernel")
        _one_library(found, "dual_coef_", "X_transformed_fit_", "eigenvalues_")


def _around(found: Any) -> None:
    if "estimator_" not in vars(found):
        return
    need(isinstance(found.estimator_, (PCA, KernelPCA)), "there is no model inside")
    need("projection_" in vars(found.estimator_), "the model inside is not fitted")
    if isinstance(found, NoveltyDetector):
        number(found.offset_, "offset_")
    if isinstance(found, Denoiser):
        need(found.n_features_in_ == found.estimator_.n_features_in_, "other columns inside")
        count(found.n_components_, "n_components_")
        found._check_parameters()
    if isinstance(found, NearestProjection):
        search = found.neighbors_
        need(search.n_features_in_ == found.estimator_.n_components_, "other components inside")
        for jobs in (found.n_jobs, search.n_jobs):  # as many threads would be started
            need(jobs is None or abs(jobs) <= _MOST_JOBS, "n_jobs is more than any machine has")


def _classes(found: SubspaceClassifier) -> None:
    if "estimators_" not in vars(found):
        return
    models, classes = found.estimators_, found.classes_
    need(isinstance(models, list) and len(models) > 1, "there are no classes")
    need(isinstance(classes, np.ndarray) and classes.shape == (len(models),), "no classes")
    for model in models:
        need(isinstance(model, (PCA, KernelPCA)), "a class has no model")
        need("projection_" in vars(model), "the model of a class is not fitted")
        need(type(model) is type(models[0]), "classes have models of several kinds")
        same = vars(model).get("n_features_in_") == vars(found).get("n_features_in_")
        need(same, "a class has other columns")


def _pipeline(found: Pipeline) -> None:
    model = found.steps[-1][1]
    known = (PCA, KernelPCA, NoveltyDetector, SubspaceClassifier, NearestProjection, Denoiser)
    need(isinstance(model, (*known, Transformer)), "a pipeline does not end in a model")


MODELS: tuple[tuple[type, Callable[[Any], None]], ...] = (
    (PCA, _estimator),
    (PCA, _pca),
    (KernelPCA, _estimator),
    (KernelPCA, _kernel_pca),
    (SubspaceClassifier, _estimator),
    (SubspaceClassifier, _classes),
    (NoveltyDetector, _estimator),
    (NoveltyDetector, _around),
    (NearestProjection, _estimator),
    (NearestProjection, _around),
    (Denoiser, _estimator),
    (Denoiser, _around),
    (Pipeline, _pipeline),
)
"""What is checked of each class."""
