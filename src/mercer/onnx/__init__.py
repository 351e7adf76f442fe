"""Fitted models for other runtimes: ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import to_numpy
from mercer.config import BASIS, require_budget
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.pca import PCA
from mercer.onnx.graph import Graph, Tensor, kernel_values
from mercer.projection.fourier import FourierProjection

__all__ = ["to_onnx"]


def to_onnx(model: Any) -> Any:
    """Return a fitted model as an ONNX graph, which onnxruntime and others run without Python.

    The input ``X`` is float32, n rows of d columns; the output ``scores``, what `transform`
    returns, is float32. The graph computes in float64, so rows with a large mean and small
    distances keep their digits: scores agree with `transform` to 1e-5 of their scale or better.

    Parameters
    ----------
    model : PCA, KernelPCA or Pipeline
        A fitted `PCA`; a fitted `KernelPCA` with a kernel of dot products and Euclidean
        distances, on all rows, on a basis or on random features, or precomputed; or a pipeline
        that ends in one, after a `SimpleImputer` of means, a `StandardScaler`, or both.

    Returns
    -------
    onnx.ModelProto
        Its metadata hold the kernel, the method and the certificate.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import mercer
    >>> kpca = mercer.KernelPCA(2, kernel="rbf", gamma=0.1).fit(load_iris().data)
    >>> graph = mercer.to_onnx(kpca).graph
    >>> graph.input[0].name, graph.output[0].name
    ('X', 'scores')
    """
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    last = steps[-1]
    if not isinstance(last, (PCA, KernelPCA)):
        inner = getattr(last, "estimator_", None)
        hint = " Its estimator_ can." if isinstance(inner, (PCA, KernelPCA)) else ""
        raise TypeError(
            f"to_onnx: {type(last).__name__} cannot be exported. PCA, KernelPCA and pipelines "
            f"that end in one of them can.{hint}"
        )
    check_is_fitted(model)
    graph, columns = Graph(), int(getattr(steps[0], "n_features_in_", 0))  # strings have none
    rows = graph.input(columns)
    for step in steps[:-1]:
        rows = _preprocessed(step, rows)
    return graph.model(_scores(last, rows), columns, last.n_components_, _texts(last))


def _preprocessed(step: Any, rows: Tensor) -> Tensor:
    """Return rows after a step before the model.

    scikit-learn rounds means and deviations to float32 for rows of float32.
    """
    xp = rows.graph.namespace
    if isinstance(step, SimpleImputer) and step.strategy == "mean" and not step.add_indicator:
        means = np.asarray(step.statistics_, np.float64)
        known = np.flatnonzero(~np.isnan(means))
        if len(known) < len(means):  # scikit-learn drops columns without a mean
            rows = xp.take(rows, known, axis=1)
        return xp.where(xp.isnan(rows), means[known].astype(np.float32)[None, :], rows)
    if isinstance(step, StandardScaler):
        rows = rows - step.mean_.astype(np.float32)[None, :] if step.with_mean else rows
        return rows / step.scale_.astype(np.float32)[None, :] if step.with_std else rows
    raise TypeError(
        f"to_onnx: {step!r} cannot be exported. Use SimpleImputer(strategy='mean') or "
        f"StandardScaler before the model."
    )


def _scores(model: PCA | KernelPCA, rows: Tensor) -> Tensor:
    """Return (h(x) − mean) V; subtracting the mean first keeps digits."""
    projection: Any = model.projection_
    V = to_numpy(projection.components).astype(np.float64)
    if isinstance(model, PCA):
        divisor = model._whitening()
        V = V / projection.divisor[:, None]
        V = V if divisor is None else V / divisor
    elif isinstance(projection, FourierProjection):
        features, xp = projection.map, rows.graph.namespace
        if features.shift is not None:
            rows = rows - features.shift[None, :]
        angles = rows @ features.frequencies.omega
        waves = (angles.apply(operator, angles) for operator in ("Cos", "Sin"))
        rows = xp.concat([wave * features.frequencies.amplitude[None, :] for wave in waves], axis=1)
    elif projection.kernel is not None:
        if projection.shift is not None:
            rows = rows - projection.shift[None, :]
        rows = kernel_values(projection.kernel, rows, _basis(projection.basis))
    centered: Tensor = rows - np.asarray(projection.mean)[None, :]
    scores: Tensor = centered @ V
    return scores


def _basis(points: Any) -> np.ndarray[Any, Any]:
    if isinstance(points, list):
        raise ValueError("to_onnx: models fitted to strings cannot be exported.")
    if hasattr(points, "tocsr"):
        size, what = 8 * math.prod(points.shape), "to_onnx: a dense copy of the sparse rows"
        require_budget(size, what, BASIS)
        points = points.toarray()
    return to_numpy(points).astype(np.float64)


def _texts(model: PCA | KernelPCA) -> dict[str, str]:
    kernel = repr(getattr(model, "kernel_", None))
    return {
        "estimator": type(model).__name__,
        "kernel": kernel if len(kernel) < 1000 else f"{kernel[:999]}…",
        "method": repr(model.plan_.method)[:1000],
        "certificate": model.certificate_.sentence,
    }
