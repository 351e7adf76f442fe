"""The classes that a model file may name: these, and no others."""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any

from mercer import kernels, landmarks, methods, preimage, rules, sketches
from mercer.certificate import Certificate, Figure
from mercer.data import Seen
from mercer.estimators.denoiser import Denoiser
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.nearest import NearestProjection
from mercer.estimators.noises import SaltAndPepper
from mercer.estimators.novelty import NoveltyDetector
from mercer.estimators.pca import PCA
from mercer.estimators.subspace import SubspaceClassifier
from mercer.kernels import Frequencies, Sum
from mercer.linalg import Directions, Moments, Triangle, span
from mercer.linalg.solvers import Randomized
from mercer.methods.literature.lessons import Learning
from mercer.methods.literature.sparse import SparseProjection
from mercer.modelfile.foreign import SCIKIT
from mercer.modelfile.kinds import Kind, Summed, Translated, Whole, arguments
from mercer.modelfile.maps import maps
from mercer.params import Params
from mercer.planning.base import Candidate, Plan
from mercer.preimage.ridge import Learnt
from mercer.projection import KernelProjection, LinearProjection
from mercer.projection.fourier import FourierMap, FourierProjection, OfFeatures
from mercer.sketches.transformer import Transformer

_FAMILIES = (kernels, landmarks, methods, preimage, rules, sketches)
# Functions of the user's, or objects that may be anything.
_REFUSED = ("FromFunction", "Separable", "Fisher")
_COLUMNS = ("n_features_in_", "feature_names_in_", "_sklearn_output_config")
_BATCHES = ("_fold", "_stream", "_seen", "_begun", "_coarse")
_FITTED = ("projection_", "certificate_", "plan_", "fingerprint_", "n_components_", *_COLUMNS)
_VARIANCES = ("explained_variance_", "explained_variance_ratio_")
_ESTIMATORS: dict[type, tuple[str, ...]] = {
    PCA: (
        *_FITTED,
        *_VARIANCES,
        *_BATCHES,
        *("components_", "singular_values_", "mean_", "scale_", "n_samples_", "noise_variance_"),
    ),
    KernelPCA: (
        *_FITTED,
        *_VARIANCES,
        *_BATCHES,
        *("kernel_", "gamma_", "eigenvalues_", "eigenvectors_", "X_fit_", "_kernel", "_shift"),
        *("preimage_", "_way", "dual_coef_", "X_transformed_fit_"),
    ),
    NoveltyDetector: ("estimator_", "offset_"),
    SubspaceClassifier: ("estimators_", "classes_", "fingerprint_", *_COLUMNS),
    NearestProjection: ("estimator_", "neighbors_"),
    Denoiser: (
        *("estimator_", "n_components_", "gamma_", "validation_error_", "fingerprint_"),
        *_COLUMNS,
    ),
}
_DATA = (
    *(Certificate, LinearProjection, KernelProjection, SparseProjection, FourierProjection),
    *(FourierMap, Frequencies, Plan, Candidate, methods.Size, methods.Cost, Randomized),
    *(span.Basis, Learnt),
)


def _figure(figure: Figure) -> dict[str, Any]:
    return {"value": float(figure), "kind": figure.kind, "confidence": figure.confidence}


def _sum(terms: Any) -> Any:
    if not (isinstance(terms, list) and len(terms) > 1):
        raise ValueError("a sum is of two kernels or more")
    return Sum.of(terms)


def _of(module: ModuleType) -> list[Kind]:
    """Return what a module offers of parameter objects, each with what its fit leaves."""
    family, found = module.__name__.rsplit(".", 1)[-1], []
    for name in getattr(module, "__all__", dir(module)):
        cls = getattr(module, name)
        ours = inspect.isclass(cls) and cls.__module__.startswith(module.__name__)
        if not (ours and issubclass(cls, Params)) or inspect.isabstract(cls):
            continue
        if name not in _REFUSED and cls is not Sum:
            fitted = ("drawn_", *_COLUMNS) if issubclass(cls, Transformer) else ()
            found.append(Kind(f"{family}.{name}", cls, arguments(cls), fitted))
    return found


def _waits(fold: Any) -> bool:
    """Tell whether a fold holds more than its sums."""
    return fold.known is not None or bool(getattr(fold, "rows", None))


def _folds() -> list[Kind]:
    """Return what `partial_fit` keeps between batches."""
    moments = ("d", "reference", "products", "diagonal", "center")
    spanned = ("span", "source", "center")
    axes = ("matrix", "white", "parts", "longest", "spread")
    return [
        Summed("folds.Moments", Moments, moments, ("scatter", "offset")),
        Summed("folds.Triangle", Triangle, ("d", "reference", "center"), ("factor", "offset")),
        Summed(
            "folds.Directions",
            Directions,
            ("d", "size", "reference", "center"),
            ("sketch", "offset"),
        ),
        Summed("folds.OfFeatures", OfFeatures, ("features", "inner", "d"), ()),
        Summed("folds.KernelMoments", span.KernelMoments, spanned, ("scatter", "offset"), _waits),
        Summed("folds.Learning", Learning, spanned, ("scatter", "offset"), _waits),
        Whole("folds.Span", span.Span, ("kernel", "basis", "dtype", "reference", *axes)),
        Whole("folds.Seen", Seen, ("shape", "dtype", "names", "_reference", "_count")),
    ]


@functools.cache
def kinds() -> dict[str, Kind]:
    """Return all classes that a file may name, by the names it calls them."""
    found = [kind for module in _FAMILIES for kind in _of(module)]
    found.append(Translated("kernels.Sum", Sum, ("terms",), lambda x: {"terms": x.operands}, _sum))
    found.append(Kind("estimators.SaltAndPepper", SaltAndPepper, arguments(SaltAndPepper)))
    found += [
        Kind(f"estimators.{cls.__name__}", cls, cls._get_param_names(), fitted)  # type: ignore[attr-defined]
        for cls, fitted in _ESTIMATORS.items()
    ]
    found += [Kind(f"parts.{cls.__name__}", cls, arguments(cls)) for cls in _DATA]
    found.append(
        Translated("parts.Figure", Figure, ("value", "kind", "confidence"), _figure, Figure)
    )
    found += [*maps(), *_folds(), *SCIKIT]
    table = {kind.name: kind for kind in found}
    assert len(table) == len(found)
    return table


@functools.cache
def by_class() -> dict[type, Kind]:
    """Return the same by class."""
    return {kind.cls: kind for kind in kinds().values()}
