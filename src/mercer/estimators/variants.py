"""A model with another number of axes, another γ, or a way back to rows."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.estimators.axes import LinearModel
from mercer.estimators.kernel import has_gamma
from mercer.estimators.kernel_pca import KernelPCA
from mercer.kernels import Kernel


def changed(model: Any, k: int | None, gamma: float | None) -> Any:
    """Return an unfitted copy with so many axes and this γ, where they are given."""
    made = clone(model)
    if k is not None:
        made.set_params(n_components=int(k))
    if gamma is not None:
        made.set_params(**{gamma_of(made): float(gamma)})
    return made


def gamma_of(model: Any) -> str:
    """Return what the γ of a model is called."""
    kernel = getattr(model, "kernel", None)
    if isinstance(kernel, Kernel) and "gamma" in kernel.get_params():
        return "kernel__gamma"
    if isinstance(kernel, str) and has_gamma(kernel):
        return "gamma"
    raise ValueError(
        f"gamma is the scale of a kernel, and {model!r} has none. Pass a KernelPCA with such a "
        f'kernel, as KernelPCA(kernel="rbf"), or leave gamma out.'
    )


def first_axes(fitted: Any, k: int) -> Any:
    """Return a fitted model with its first k axes; None where fewer are not the first of more."""
    if k == fitted.n_components_:
        return fitted
    made = copy.copy(fitted)
    made.n_components_ = k
    if isinstance(fitted, LinearModel):
        made.components_ = fitted.components_[:k]
        return made
    projection, way = fitted.projection_, getattr(fitted, "_way", None)
    # What else a way back has learnt is of all scores; axes that overlap share what they hold.
    if not isinstance(way, np.ndarray) or projection.overlaps is not None:
        return None
    made.projection_ = replace(
        projection, components=projection.components[:, :k], eigenvalues=projection.eigenvalues[:k]
    )
    made._way = np.column_stack([way[:, :k], way[:, -1]])
    return made


def with_way_back(model: Any) -> Any:
    """Return an unfitted copy that can go back from scores to rows."""
    made = clone(model)
    if not isinstance(made, KernelPCA) or made.preimage or made.fit_inverse_transform:
        return made
    return made.set_params(preimage="auto")
