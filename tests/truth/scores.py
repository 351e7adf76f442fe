"""Promises about scores, and about a second fit with other blocks."""

import numpy as np

from mercer.methods import Exact
from tests.truth import oracle
from tests.truth.checks import in_space, kernel_error, look
from tests.truth.oracle import EPS64, LD, norms


def transformed(fitted, X, rows):
    """`transform` of the rows of the fit, against exact scores along the components."""
    model, truth = fitted.estimator, fitted.truth
    if not fitted.k or isinstance(fitted.axes, np.ndarray):
        return
    scores = np.asarray(model.transform(X), LD)
    if isinstance(truth, oracle.Linear):
        true, allowed = _linear(fitted, rows)
    else:
        true, allowed = _kernel(fitted)
    off = np.where(np.isfinite(allowed), np.abs(scores - true) - allowed, 0)
    i, j = np.unravel_index(int(np.argmax(off)), off.shape)
    text = lambda: (  # noqa: E731
        f"row {i}, component {j}: {float(scores[i, j])!r}, and it is {float(true[i, j])!r} "
        f"(rounding {float(allowed[i, j]):.1e})"
    )
    yield look("transform", bool(off[i, j] <= 0), text)


def _linear(fitted, rows):
    """Scores of rows less the mean, and what rounding in their precision may do to them."""
    model = fitted.estimator
    mean, deviation = (np.asarray(x, LD) for x in _treatment(model))
    Z = (np.asarray(rows, LD) - mean) / deviation
    V = np.asarray(model.components_, LD).T
    divide = np.sqrt(np.asarray(model.projection_.eigenvalues, LD))[None, :]
    there = divide > 1e-7 * divide.max(initial=0)
    divide = np.where(there, divide, np.inf) if model.whiten else LD(1)
    size = norms(Z.T)[:, None] + LD(EPS64) * norms((mean / deviation)[:, None])[0]
    width = (Z.shape[1] + 8) ** 0.5
    # Sparse rows are centred after the product.
    rows = Z if not hasattr(fitted.data.X, "tocsr") else np.abs(Z) + np.abs(mean / deviation)
    allowed = 32 * fitted.eps * width * (np.abs(rows) @ np.abs(V) + size * fitted.eps)
    # A component of no variance is divided by rounding: nothing is promised of it.
    return Z @ V / divide, np.where(np.isinf(divide), np.inf, allowed / divide)


def _treatment(model):
    deviation = model.projection_.deviation
    return model.projection_.mean, oracle.divisor(deviation, model.feature_weight)


def _kernel(fitted):
    """Scores over the map's points, and what rounding of kernel values may do to them.

    Squared distances are dot products where rows are not close: they lose three digits of
    float64, two of float32, before they are summed again.
    """
    axes, truth = fitted.axes, fitted.truth
    projection = fitted.estimator.projection_
    A = np.asarray(projection.components, LD)
    # Centred as the map says.
    true = axes.at_basis @ A - np.asarray(projection.mean, LD) @ A
    lengths = np.sqrt(np.abs(np.diag(axes.gram)))
    own = axes.gram if axes.own is None else axes.own  # of shifted rows, if the map shifts them
    size = np.sqrt(np.abs(np.diag(own)))[:, None]
    more = np.abs(axes.at_basis).max(initial=0) if not truth.psd else LD(0)
    each = size * lengths[None, :] + np.abs(np.asarray(projection.mean, LD))[None, :] + more
    error = (32768 if fitted.eps < 1e-10 else 1024) * fitted.eps
    if in_space(fitted):
        error = max(error, kernel_error(fitted, np.float32 if fitted.eps > 1e-10 else np.float64))
    # The scores are rounded to the precision of the rows.
    return true, error * (each @ np.abs(A)) + fitted.eps * np.abs(true)


def again(fitted, other, scores):
    """The same fit with other blocks: the same variances; fit_transform is fit and transform."""
    model, truth = fitted.estimator, fitted.truth
    first, second = (np.asarray(m.certificate_.eigenvalues) for m in (model, other))
    rough = 1e-8 if fitted.eps < 1e-10 else 1e-4
    if isinstance(truth, oracle.Kernel) and not isinstance(model.plan_.method, Exact):
        rough = max(rough, 1e-4)  # rounding is divided by directions of the basis down to 1e-11
    amount = float(getattr(truth, "amount", truth.total))
    floor = 64 * len(scores) * fitted.eps * amount
    known = _known(model) + _known(other)
    text = lambda: f"{first[:12]} and {second[:12]}"  # noqa: E731
    largest = float(np.max(np.abs(first), initial=0.0))
    allowed = rough * largest + floor + known + truth.floor
    if model.gap is not None:  # an iteration stops as soon as the certificate meets the gap
        allowed += model.gap * float(np.sum(np.abs(first)))
    k = min(len(first), len(second))
    left = np.concatenate([first[k:], second[k:]])
    same = bool(np.all(np.abs(first[:k] - second[:k]) <= allowed))
    if isinstance(model.n_components, int):  # a rule may choose one more at a threshold
        same = same and bool(np.all(left <= allowed))
    yield look("blocks", same, text)


def _known(model):
    known = np.asarray(model.certificate_.residuals)
    return float(np.max(np.where(np.isnan(known), 0.0, known), initial=0.0))


def both_ways(fitted, other, scores, after):
    """`fit_transform` against `fit` and `transform` of the same model.

    They differ by (Av − λv)/√λ of each eigenvector v: by the residual, and by rounding.
    """
    truth, k = fitted.truth, len(other.certificate_.eigenvalues)
    if not k:
        return
    values = np.maximum(np.asarray(other.projection_.eigenvalues, LD), LD(np.finfo(float).tiny))
    known = np.asarray(other.certificate_.residuals, LD)
    known = np.where(np.isnan(known), 0, known)
    # Kernels that are not positive semi-definite may have a diagonal of zeros.
    amount = max(getattr(truth, "amount", truth.total), np.abs(truth.spectrum.values).sum())
    allowed = known + 256 * len(scores) ** 0.5 * fitted.eps * amount
    allowed = np.sqrt(truth.count) * allowed / np.sqrt(values)
    if other.get_params().get("whiten"):
        allowed = allowed / np.sqrt(values)
    apart = norms(np.asarray(scores, LD) - np.asarray(after, LD))
    j = int(np.argmax(apart - allowed))
    text = lambda: f"component {j}: {float(apart[j]):.2e} apart, {float(allowed[j]):.1e} allowed"  # noqa: E731
    yield look("fit_transform", bool(apart[j] <= allowed[j]), text)


def deviations(fitted, rows, weights):
    """`scale_` is the deviation of each column, over n or n − 1."""
    model = fitted.estimator
    if not model.scale:
        return
    squares, size, w = columns(rows, weights, model.center)
    found = np.asarray(model.projection_.deviation, LD)
    constant = (found == 1) & (np.sqrt(squares / w.sum()) <= 64 * fitted.eps * size)
    if model.feature_weight is not None:
        constant |= (found == 1) & (model.feature_weight == 0)
    off = [np.abs(found / np.sqrt(np.where(squares > 0, squares / c, 1)) - 1) for c in _counts(w)]
    off = np.where(constant | (squares == 0), 0, np.minimum(*off))
    j = int(np.argmax(off))
    rough = 1e-9 if fitted.eps < 1e-10 else 1e-4
    text = lambda: f"column {j}: {float(found[j])!r}, off by {float(off[j]):.1e}"  # noqa: E731
    yield look("scale", bool(off[j] <= rough), text)


def columns(rows, weights, center):
    """Return the sum of squares of each column, its largest entry, and the weights."""
    X = np.asarray(rows, LD)
    w = np.ones(len(X), LD) if weights is None else np.asarray(weights, LD)
    X, w = X[w > 0], w[w > 0]
    Z = oracle.centred(X, w) if center else X
    return (w[:, None] * Z**2).sum(axis=0), np.abs(X).max(axis=0, initial=0), w


def _counts(w):
    return w.sum(), w.sum() - 1
