"""PCA and kernel PCA at any scale, with a proof of how close to optimal every result is."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mercer import kernels, landmarks, methods, metrics, modelfile, plotting, rules, sketches
    from mercer.anndata import to_anndata
    from mercer.certificate import Certificate
    from mercer.config import config_context, get_config, set_config
    from mercer.data import Source, as_source, from_anndata
    from mercer.data.xarray import column_weights, from_xarray
    from mercer.estimators.denoiser import Denoiser
    from mercer.estimators.kernel_parameters import KernelScaleWarning
    from mercer.estimators.kernel_pca import KernelPCA
    from mercer.estimators.nearest import NearestProjection
    from mercer.estimators.noise import SaltAndPepper
    from mercer.estimators.novelty import NoveltyDetector
    from mercer.estimators.pca import PCA
    from mercer.estimators.subspace import SubspaceClassifier
    from mercer.methods.base import ConvergenceWarning
    from mercer.modelfile import load, save
    from mercer.onnx import to_onnx
    from mercer.planning import Plan
    from mercer.xarray import to_xarray

__all__ = [
    "PCA",
    "Certificate",
    "ConvergenceWarning",
    "Denoiser",
    "KernelPCA",
    "KernelScaleWarning",
    "NearestProjection",
    "NoveltyDetector",
    "Plan",
    "SaltAndPepper",
    "Source",
    "SubspaceClassifier",
    "as_source",
    "column_weights",
    "config_context",
    "from_anndata",
    "from_xarray",
    "get_config",
    "kernels",
    "landmarks",
    "load",
    "methods",
    "metrics",
    "modelfile",
    "plotting",
    "rules",
    "save",
    "set_config",
    "sketches",
    "to_anndata",
    "to_onnx",
    "to_xarray",
]

_HOMES = {
    "PCA": "estimators.pca",
    "Certificate": "certificate",
    "ConvergenceWarning": "methods.base",
    "Denoiser": "estimators.denoiser",
    "KernelPCA": "estimators.kernel_pca",
    "KernelScaleWarning": "estimators.kernel_parameters",
    "NearestProjection": "estimators.nearest",
    "NoveltyDetector": "estimators.novelty",
    "Plan": "planning",
    "SaltAndPepper": "estimators.noise",
    "Source": "data",
    "SubspaceClassifier": "estimators.subspace",
    "as_source": "data",
    "column_weights": "data.xarray",
    "config_context": "config",
    "from_anndata": "data",
    "from_xarray": "data.xarray",
    "get_config": "config",
    "load": "modelfile",
    "save": "modelfile",
    "set_config": "config",
    "to_anndata": "anndata",
    "to_onnx": "onnx",
    "to_xarray": "xarray",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    module = importlib.import_module(f"mercer.{_HOMES.get(name, name)}")
    globals()[name] = value = getattr(module, name) if name in _HOMES else module
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
