"""What can be saved by itself: a model, not a part of one."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from mercer.estimators.denoiser import Denoiser
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.nearest import NearestProjection
from mercer.estimators.novelty import NoveltyDetector
from mercer.estimators.pca import PCA
from mercer.estimators.subspace import SubspaceClassifier
from mercer.modelfile.errors import ModelFileError
from mercer.sketches.transformer import Transformer

_MODELS = (PCA, KernelPCA, NoveltyDetector, SubspaceClassifier, NearestProjection, Denoiser)


def require_model(model: Any) -> None:
    """Refuse what is no model of Mercer's, nor a pipeline that ends in one."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(last, (*_MODELS, Transformer)):
        names = ", ".join(cls.__name__ for cls in _MODELS)
        raise ModelFileError(
            f"{type(last).__name__} is no model of Mercer's. Saved are {names}, the maps of "
            f"mercer.sketches, and pipelines of an imputer of means, a scaler and one of them."
        )
