"""Fitted models for other runtimes: ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import to_numpy
from mercer.config import format_bytes, get_config
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.pca import PCA
from mercer.onnx.graph import Graph
from mercer.onnx.kernels import Between, of
from mercer.projection import KernelProjection
from mercer.projection.fourier import FourierProjection

__all__ = ["to_onnx"]


def to_onnx(model: Any) -> Any:
    """Return a fitted model as an ONNX graph, which onnxruntime and others run without Python.

    The input ``X`` is float32, n rows of d columns; the output ``scores``, what `transform`
    returns, is float32. In between all is float64, so that rows with a large mean, and distances
    that are small beside it, keep their digits: to 1e-5 of the scores' scale and better.

    Parameters
    ----------
    model : PCA, KernelPCA or Pipeline
        A fitted `PCA`; a fitted `KernelPCA` whose kernel is written in dot products and Euclidean
        distances, on all rows, on a basis, or on random features, or precomputed; or a
        pipeline that ends in one, after a `SimpleImputer` of means, a `StandardScaler`, or both.

    Returns
    -------
    onnx.ModelProto
        Its metadata tell the kernel, the certificate and the fingerprint of the rows of the fit.

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
        inside = getattr(last, "estimator_", None)
        hint = " Its estimator_ can be." if isinstance(inside, (PCA, KernelPCA)) else ""
        raise TypeError(
            f"to_onnx: {type(last).__name__} cannot be written as a graph. PCA, KernelPCA and "
            f"pipelines that end in one of them can.{hint}"
        )
    check_is_fitted(model)
    graph = Graph()
    rows = graph.op("Cast", "X", to=graph.onnx.TensorProto.DOUBLE)
    for step in steps[:-1]:
        rows = _step(graph, step, rows)
    scores = _pca(graph, last, rows) if isinstance(last, PCA) else _kernel_pca(graph, last, rows)
    return graph.model(scores, int(steps[0].n_features_in_), last.n_components_, _told(last))


def _step(graph: Graph, step: Any, rows: str) -> str:
    """Return rows through a step before the model.

    Means and deviations as scikit-learn rounds them for rows of float32.
    """
    if isinstance(step, SimpleImputer) and step.strategy == "mean" and not step.add_indicator:
        means = np.asarray(step.statistics_, np.float64)
        there = np.flatnonzero(~np.isnan(means))
        if len(there) < len(means):  # scikit-learn drops columns that have no mean
            rows = graph.op("Gather", rows, graph.whole(there), axis=1)
        known = graph.floats(means[there].astype(np.float32)[None, :])
        return graph.op("Where", graph.op("IsNaN", rows), known, rows)
    if isinstance(step, StandardScaler):
        if step.with_mean:
            rows = graph.op("Sub", rows, graph.floats(step.mean_.astype(np.float32)[None, :]))
        if step.with_std:
            rows = graph.op("Div", rows, graph.floats(step.scale_.astype(np.float32)[None, :]))
        return rows
    raise TypeError(
        f"to_onnx: {step!r} cannot be written as a graph. SimpleImputer(strategy='mean') and "
        f"StandardScaler before the model can."
    )


def _pca(graph: Graph, model: PCA, rows: str) -> str:
    fitted, divide = model._map, model._whitening()
    V = to_numpy(fitted.components).astype(np.float64) / fitted.deviation[:, None]
    return _projected(graph, rows, fitted.mean, V if divide is None else V / divide)


def _projected(graph: Graph, rows: str, mean: Any, V: Any) -> str:
    """Return (x − mean) V: the mean goes first, so that no digits do."""
    centred = graph.op("Sub", rows, graph.floats(np.asarray(mean)[None, :]))
    return graph.op("MatMul", centred, graph.floats(V))


def _kernel_pca(graph: Graph, model: KernelPCA, rows: str) -> str:
    fitted = model.projection_
    V = to_numpy(fitted.components).astype(np.float64)
    if isinstance(fitted, FourierProjection):
        return _projected(graph, _waves(graph, fitted, rows), fitted.mean, V)
    if fitted.kernel is not None:
        if fitted.shift is not None:
            rows = graph.op("Sub", rows, graph.floats(fitted.shift[None, :]))
        rows = of(fitted.kernel, Between(graph, rows, _basis(fitted)))
    return _projected(graph, rows, fitted.mean, V)


def _waves(graph: Graph, fitted: FourierProjection, rows: str) -> str:
    """Return cosines of the rows, and sines beside them."""
    drawn = fitted.map.frequencies
    if fitted.map.shift is not None:
        rows = graph.op("Sub", rows, graph.floats(fitted.map.shift[None, :]))
    angles = graph.op("MatMul", rows, graph.floats(drawn.omega))
    a = graph.floats(drawn.amplitude[None, :])
    both = (graph.op("Mul", graph.op(kind, angles), a) for kind in ("Cos", "Sin"))
    return graph.op("Concat", *both, axis=1)


def _basis(fitted: KernelProjection) -> np.ndarray[Any, Any]:
    """Return the points of a map as a float64 array."""
    points = fitted.basis
    if isinstance(points, list):
        raise ValueError("to_onnx: rows are strings, and a graph takes numbers.")
    if hasattr(points, "tocsr"):
        needed, room = 8 * points.shape[0] * points.shape[1], get_config().budget
        if needed > room:
            raise MemoryError(
                f"to_onnx: the sparse rows of the fit take {format_bytes(needed)} as the dense "
                f"ones of a graph, more than the memory budget of {format_bytes(room)}. Fit on a "
                f"basis, such as method=Subset(1000)."
            )
        points = points.toarray()
    return to_numpy(points).astype(np.float64)


def _told(model: PCA | KernelPCA) -> dict[str, str]:
    kernel = repr(getattr(model, "kernel_", None))
    return {
        "estimator": type(model).__name__,
        "kernel": kernel if len(kernel) < 1000 else f"{kernel[:999]}…",
        "method": repr(model.plan_.method)[:1000],
        "certificate": model.certificate_.sentence,
        "fingerprint": model.fingerprint_,
    }
