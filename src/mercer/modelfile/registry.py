"""The classes that a model file may name: these, and no others."""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any

import scipy.sparse as sp

from mercer import kernels, landmarks, methods, preimage, rules, sketches, span
from mercer.certificate import Certificate, Figure
from mercer.eigen import Randomized
from mercer.estimators.denoiser import Denoiser
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.nearest import NearestProjection
from mercer.estimators.noises import SaltAndPepper
from mercer.estimators.novelty import NoveltyDetector
from mercer.estimators.pca import PCA
from mercer.estimators.subspace import SubspaceClassifier
from mercer.folds import Directions, Moments, Triangle
from mercer.fourier import FourierMap, FourierProjection, OfFeatures
from mercer.kernels.slopes import Frequencies
from mercer.kernels.sums import Sum, _added
from mercer.methods.lessons import Learning
from mercer.methods.sparse import SparseProjection
from mercer.modelfile.foreign import SCIKIT
from mercer.modelfile.kinds import Kind, Summed, Translated, Whole, arguments
from mercer.params import Params
from mercer.plan.base import Candidate, Plan
from mercer.preimage.ridge import Learnt
from mercer.projection import KernelProjection, LinearProjection
from mercer.sketches import drawn, gaussian, grouping, hadamard, hashing, scattered, sparse_sign
from mercer.sketches.transformer import Transformer
from mercer.sources import Seen

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


def _matrix(fixed: scattered.Fixed) -> dict[str, Any]:
    begin, places, values = fixed.given
    return {"matrix": sp.csr_array((values, places, begin), (fixed.d, fixed.q))}


def _sum(chain: Any) -> Any:
    if not (isinstance(chain, list) and len(chain) > 1):
        raise ValueError("a sum is of two kernels or more")
    return _added(chain)


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


def _maps() -> list[Kind]:
    """Return the maps that sketches draw; what they keep for speed is made again."""
    plain = ("d", "q", "seed")
    return [
        Translated("drawn.Same", drawn.Same, ("d",), lambda x: {"d": x.d}, drawn.Same),
        *(
            Translated(f"drawn.{name}", cls, plain, _taken(*plain), cls)
            for name, cls in (("Gaussian", gaussian.Projection), ("Hadamard", hadamard.Transform))
        ),
        Translated(
            "drawn.SparseSign",
            sparse_sign.Signs,
            ("d", "q", "each", "seed"),
            _taken("d", "q", "each", "seed"),
            sparse_sign.Signs,
        ),
        Translated(
            "drawn.Hashing",
            hashing.Buckets,
            ("d", "q", "hashes", "signed", "scale", "seed"),
            lambda x: {"hashes": x.each, **_taken("d", "q", "signed", "scale", "seed")(x)},
            hashing.Buckets,
        ),
        Translated("drawn.Fixed", scattered.Fixed, ("matrix",), _matrix, scattered.Fixed),
        Translated(
            "drawn.Grouped",
            grouping.Grouped,
            ("d", "groups", "bound"),
            _taken("d", "groups", "bound"),
            grouping.Grouped,
        ),
    ]


def _taken(*names: str) -> Any:
    return lambda obj: {name: getattr(obj, name) for name in names}


def _folds() -> list[Kind]:
    """Return what `partial_fit` keeps between batches."""
    moments = ("d", "reference", "products", "diagonal", "center")
    spanned = ("span", "source", "center")
    axes = ("matrix", "white", "parts", "longest", "spread")
    return [
        Summed("folds.Moments", Moments, moments),
        Summed("folds.Triangle", Triangle, ("d", "reference", "center")),
        Summed("folds.Directions", Directions, ("d", "size", "reference", "center")),
        Summed("folds.OfFeatures", OfFeatures, ("features", "inner", "d")),
        Summed(
            "folds.KernelMoments",
            span.KernelMoments,
            spanned,
            waits=lambda fold: fold.known is not None,
        ),
        Summed(
            "folds.Learning",
            Learning,
            spanned,
            waits=lambda fold: fold.known is not None or bool(fold.rows),
        ),
        Whole("folds.Span", span.Span, ("kernel", "basis", "dtype", "reference", *axes)),
        Whole("folds.Seen", Seen, ("shape", "dtype", "names", "_reference", "_count")),
    ]


@functools.cache
def kinds() -> dict[str, Kind]:
    """Return all classes that a file may name, by the names it calls them."""
    found = [kind for module in _FAMILIES for kind in _of(module)]
    found.append(Translated("kernels.Sum", Sum, ("chain",), lambda x: {"chain": x._chain}, _sum))
    found.append(Kind("estimators.SaltAndPepper", SaltAndPepper, arguments(SaltAndPepper)))
    found += [
        Kind(f"estimators.{cls.__name__}", cls, cls._get_param_names(), fitted)  # type: ignore[attr-defined]
        for cls, fitted in _ESTIMATORS.items()
    ]
    found += [Kind(f"parts.{cls.__name__}", cls, arguments(cls)) for cls in _DATA]
    found.append(
        Translated("parts.Figure", Figure, ("value", "kind", "confidence"), _figure, Figure)
    )
    found += [*_maps(), *_folds(), *SCIKIT]
    table = {kind.name: kind for kind in found}
    assert len(table) == len(found)
    return table


@functools.cache
def by_class() -> dict[type, Kind]:
    """Return the same by class."""
    return {kind.cls: kind for kind in kinds().values()}
