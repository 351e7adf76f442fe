"""Whether the parts of what a file describes fit together.

A file may have been written by anyone. What is checked here keeps the methods of the objects to
the errors that they have for wrong rows: types and shapes, and numbers that loops trust.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer.arrays import is_foreign, numpy_dtype
from mercer.certificate import Certificate, Figure
from mercer.estimators.denoiser import Denoiser
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.nearest import NearestProjection
from mercer.estimators.novelty import NoveltyDetector
from mercer.estimators.pca import PCA
from mercer.estimators.subspace import SubspaceClassifier
from mercer.fourier import FourierMap, FourierProjection
from mercer.kernels import Frequencies, Kernel
from mercer.methods import Cost, Method, Size
from mercer.plan.base import Candidate, Plan
from mercer.preimage.base import Preimage
from mercer.preimage.ridge import Learnt
from mercer.projection import KernelProjection, LinearProjection, Projection
from mercer.sketches.drawn import Drawn
from mercer.sketches.transformer import Transformer

_TABLES = ("default", "pandas", "polars", None)


def agree(made: Any) -> None:
    """Refuse an object whose parts do not fit together; what is not known here is let through."""
    for cls, check in _CHECKS:
        if isinstance(made, cls):
            check(made)


def need(holds: bool, what: str) -> None:
    """Refuse what does not hold."""
    if not holds:
        raise ValueError(what)


def shape(found: Any) -> tuple[int, ...] | None:
    """Return the shape of an array of real numbers; None of anything else."""
    if not isinstance(found, np.ndarray) and not is_foreign(found) and not hasattr(found, "tocsr"):
        return None
    numbers = numpy_dtype(found).kind in "fiub"
    return tuple(int(size) for size in found.shape) if numbers else None


def _floats(found: Any, wanted: tuple[int, ...], name: str) -> None:
    real = isinstance(found, np.ndarray) or is_foreign(found)
    need(real and shape(found) == wanted and numpy_dtype(found).kind == "f", f"{name} is not one")


def _number(found: Any, name: str) -> None:
    need(isinstance(found, Real) and not isinstance(found, bool), f"{name} is not a number")


def _count(found: Any, name: str, least: int = 0) -> None:
    there = isinstance(found, Integral) and not isinstance(found, bool)
    need(there and least <= int(found) < 2**62, f"{name} is no count")


def _host(found: Any, *wanted: int) -> bool:
    """Tell whether this is a float64 array of NumPy's, of that shape."""
    return isinstance(found, np.ndarray) and found.dtype == np.float64 and found.shape == wanted


def _figure(figure: Figure) -> None:
    need(figure.kind in ("bound", "estimate"), "a figure is of no kind")
    _number(figure.confidence, "confidence")


def _certificate(found: Certificate) -> None:
    need(isinstance(found.captured, Figure), "captured is no figure")
    need(isinstance(found.optimum_upper, Figure), "optimum_upper is no figure")
    k = (shape(found.eigenvalues) or (0,))[0]
    for name in ("eigenvalues", "residuals", "spacing"):
        need(_host(getattr(found, name), k), f"{name} of the certificate are not one an axis")
    need(isinstance(found.negative, np.ndarray) and found.negative.ndim == 1, "negative is none")
    need(isinstance(found.notes, tuple) and all(isinstance(x, str) for x in found.notes), "notes")
    need(found.likely is None or isinstance(found.likely, Real), "likely is not a number")
    need(isinstance(found.converged, (bool, np.bool_)), "converged is not true or false")


def _projection(found: Projection) -> None:
    need(isinstance(found.certificate, Certificate), "a projection has no certificate")
    m, k = shape(found.components) or (0, 0)
    _floats(found.components, (m, k), "components")
    need(not hasattr(found.components, "tocsr"), "components are sparse")
    need(_host(found.mean, m) and _host(found.eigenvalues, k), "mean or eigenvalues do not fit")
    for name in ("total_variance", "rest"):
        _number(getattr(found, name), name)
    if isinstance(found, LinearProjection):
        need(_host(found.deviation, m), "deviations do not fit")
    if isinstance(found, KernelProjection):
        _kernel_projection(found, m, k)
    if isinstance(found, FourierProjection):
        need(isinstance(found.map, FourierMap) and isinstance(found.kernel, Kernel), "no features")
        need(found.map.width == m, "features do not fit")


def _kernel_projection(found: KernelProjection, m: int, k: int) -> None:
    need(found.kernel is None or isinstance(found.kernel, Kernel), "the kernel is none")
    need(_host(found.shares, m), "shares do not fit")
    need(found.overlaps is None or _host(found.overlaps, k, k), "overlaps do not fit")
    _number(found.height, "height")
    if found.kernel is None:
        return
    points = _rows(found.basis, "the basis")
    need(points[0] == m, "the basis does not fit")
    if found.shift is not None:
        need(len(points) == 2 and _host(found.shift, points[1]), "the shift does not fit")


def _rows(found: Any, name: str) -> tuple[int, ...]:
    """Return how many rows there are, and columns where they have some."""
    if isinstance(found, list):
        need(all(isinstance(text, str) for text in found), f"{name} holds no strings")
        return (len(found),)
    sizes = shape(found)
    need(sizes is not None and len(sizes) == 2, f"{name} has no rows")
    need(numpy_dtype(found).kind == "f", f"{name} is not of floats")
    assert sizes is not None
    return sizes


def _features(found: FourierMap) -> None:
    drawn = found.frequencies
    need(isinstance(drawn, Frequencies), "there are no frequencies")
    d, q = shape(drawn.omega) or (0, 0)
    need(_host(drawn.omega, d, q) and _host(drawn.amplitude, q), "frequencies do not fit")
    need(found.shift is None or _host(found.shift, d), "the shift does not fit")


def _plan(found: Plan) -> None:
    there = isinstance(found.candidates, tuple)
    need(there and all(isinstance(x, Candidate) for x in found.candidates), "a plan of nothing")
    need(isinstance(found.method, Method) and isinstance(found.size, Size), "a plan of nothing")
    need(isinstance(found.reason, str), "a plan without a reason")
    _count(found.budget, "budget")


def _candidate(found: Candidate) -> None:
    need(isinstance(found.method, Method) and isinstance(found.cost, Cost), "no candidate")


def _size(found: Size) -> None:
    for name in ("n", "d", "itemsize"):
        _count(getattr(found, name), name)
    for name in ("k", "nnz"):
        if getattr(found, name) is not None:
            _count(getattr(found, name), name)


def _cost(found: Cost) -> None:
    for name in ("passes", "products", "factor", "memory", "sparse"):
        _number(getattr(found, name), name)


def _estimator(found: Any) -> None:
    """Check what all estimators have: parameters, names of columns, the kind of table."""
    found._validate_params()
    if "n_features_in_" in vars(found):
        _count(found.n_features_in_, "n_features_in_")
    if "feature_names_in_" in vars(found):
        names = found.feature_names_in_
        there = isinstance(names, np.ndarray) and names.dtype == object and names.ndim == 1
        need(there and all(isinstance(x, str) for x in names.tolist()), "columns have no names")
        need(len(names) == found.n_features_in_, "columns have not a name each")
    config = vars(found).get("_sklearn_output_config", {})
    need(isinstance(config, dict) and config.keys() <= {"transform"}, "tables of no kind")
    need(config.get("transform") in _TABLES, "tables of no kind")
    need(isinstance(vars(found).get("fingerprint_", ""), str), "the fingerprint is no text")


def _fitted(found: Any, kind: type) -> None:
    need(isinstance(vars(found).get("projection_"), kind), "there is no projection")
    need(isinstance(vars(found).get("certificate_"), Certificate), "there is no certificate")
    need(isinstance(vars(found).get("plan_"), Plan), "there is no plan")
    _count(found.n_components_, "n_components_")


def _pca(found: PCA) -> None:
    if "projection_" not in vars(found):  # a parameter of another
        return
    _fitted(found, LinearProjection)
    k, d = found.n_components_, found.n_features_in_
    _floats(found.components_, (k, d), "components_")
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        _floats(getattr(found, name), (k,), name)
    for name in ("mean_", "scale_"):
        _floats(getattr(found, name), (d,), name)
    need(len(found.projection_.mean) == d, "the projection does not fit")
    need(len(found.projection_.eigenvalues) >= k, "the projection has too few eigenvalues")
    _count(found.n_samples_, "n_samples_")
    _number(found.noise_variance_, "noise_variance_")


def _kernel_pca(found: KernelPCA) -> None:
    if "projection_" not in vars(found):
        return
    _fitted(found, Projection)
    fitted, k = found.projection_, found.n_components_
    need(isinstance(fitted, (KernelProjection, FourierProjection)), "there is no kernel's map")
    need(fitted.kernel == found.kernel_, "the projection has another kernel")
    need((found.kernel_ is None) == (found.kernel == "precomputed"), "precomputed, or not")
    for name in ("eigenvalues_", "explained_variance_", "explained_variance_ratio_"):
        _floats(getattr(found, name), (k,), name)
    need(len(fitted.eigenvalues) == k, "the projection does not fit")
    points = (len(fitted.mean),) if found.kernel_ is None else _points(fitted)
    d = vars(found).get("n_features_in_")
    if len(points) == 2 or d is not None:
        need(len(points) == 1 or points[1] == d, "the projection has other columns")
    if found.kernel_ is not None and not isinstance(fitted, FourierProjection):
        words = isinstance(found.X_fit_, list)
        need(words == isinstance(fitted.basis, list), "rows are strings, or not")
        need(found.kernel_.takes in ("anything", "strings" if words else "vectors"), "wrong rows")
        need(words == (d is None), "strings have no columns")
    _way_back(found, k)


def _points(fitted: Any) -> tuple[int, ...]:
    if isinstance(fitted, FourierProjection):
        return tuple(fitted.map.frequencies.omega.shape[::-1])
    return _rows(fitted.basis, "the basis")


def _way_back(found: KernelPCA, k: int) -> None:
    parts = vars(found)
    need(("preimage_" in parts) == ("_way" in parts), "half a way back")
    if "_way" in parts:
        need(isinstance(found.preimage_, Preimage), "there is no pre-image")
        need(isinstance(found.projection_, KernelProjection), "there is no pre-image")
        found.preimage_.check()
        products = found.preimage_.products(found._way)
        need(_host(products, len(found.projection_.mean), k + 1), "the way back does not fit")
    need(("dual_coef_" in parts) == ("X_transformed_fit_" in parts), "half a way back")
    if "dual_coef_" in parts:
        n = (shape(found.dual_coef_) or (0,))[0]
        _floats(found.dual_coef_, (n, found.n_features_in_), "dual_coef_")
        _floats(found.X_transformed_fit_, (n, k), "X_transformed_fit_")
        need(found.kernel_ is not None, "there is no kernel")


def _learnt(found: Learnt) -> None:
    n, k = shape(found.scores) or (0, 0)
    d = (shape(found.mean) or (0,))[0]
    need(isinstance(found.kernel, Kernel), "the way back has no kernel")
    fits = _host(found.scores, n, k) and _host(found.dual, n, d) and _host(found.mean, d)
    need(fits and found.kernel.takes != "strings", "the way back does not fit")


def _around(found: Any) -> None:
    if "estimator_" not in vars(found):
        return
    need(isinstance(found.estimator_, (PCA, KernelPCA)), "there is no model inside")
    need("projection_" in vars(found.estimator_), "the model inside is not fitted")
    if isinstance(found, NoveltyDetector):
        _number(found.offset_, "offset_")
    if isinstance(found, Denoiser):
        need(found.n_features_in_ == found.estimator_.n_features_in_, "other columns inside")
        _count(found.n_components_, "n_components_")
        found._check_parameters()
    if isinstance(found, NearestProjection):
        search = found.neighbors_
        need(search.n_features_in_ == found.estimator_.n_components_, "other axes inside")


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


def _kernel(found: Kernel) -> None:
    found.check()


def _map(found: Transformer) -> None:
    if "drawn_" not in vars(found):
        return
    need(isinstance(found.drawn_, Drawn), "there is no map")
    _count(found.n_features_in_, "n_features_in_")
    need(found.drawn_.d == found.n_features_in_, "the map is of other columns")


def _drawn(found: Drawn) -> None:
    _count(found.d, "d", 1)
    _count(found.q, "q", 1)


def _scaler(found: StandardScaler) -> None:
    d = vars(found).get("n_features_in_")
    _count(d, "n_features_in_")
    for name in ("mean_", "var_", "scale_"):
        part = vars(found).get(name)
        need(part is None or (shape(part) == (d,) and part.dtype.kind == "f"), f"{name} is none")
    need(not found.with_mean or found.mean_ is not None, "a scaler without means")
    need(not found.with_std or found.scale_ is not None, "a scaler without deviations")


def _pipeline(found: Pipeline) -> None:
    model = found.steps[-1][1]
    known = (PCA, KernelPCA, NoveltyDetector, SubspaceClassifier, NearestProjection, Denoiser)
    need(isinstance(model, (*known, Transformer)), "a pipeline does not end in a model")


_CHECKS: tuple[tuple[type, Callable[[Any], None]], ...] = (
    (Figure, _figure),
    (Certificate, _certificate),
    (FourierMap, _features),
    (Projection, _projection),
    (Size, _size),
    (Cost, _cost),
    (Candidate, _candidate),
    (Plan, _plan),
    (Kernel, _kernel),
    (Learnt, _learnt),
    (Drawn, _drawn),
    (Transformer, _map),
    (PCA, _estimator),
    (PCA, _pca),
    (KernelPCA, _estimator),
    (KernelPCA, _kernel_pca),
    (SubspaceClassifier, _estimator),
    (SubspaceClassifier, _classes),
    (NoveltyDetector, _around),
    (NearestProjection, _around),
    (Denoiser, _estimator),
    (Denoiser, _around),
    (StandardScaler, _scaler),
    (Pipeline, _pipeline),
)
