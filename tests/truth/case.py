"""One case: data, a model and its truth, all from a seed and an index."""

import contextlib
import time
import traceback
import warnings
from dataclasses import dataclass, field
from functools import cache
from unittest import mock

import numpy as np
import scipy.sparse
from sklearn.base import clone

from mercer import as_source, config_context
from mercer.methods import Sparse
from mercer.projection.fourier import FourierProjection
from tests.truth import checks, data, families, models, oracle, scores
from tests.truth.oracle import LD


@dataclass
class Result:
    """What a case was, and what was found."""

    seed: int
    index: int
    generator: str
    way: str
    kernel: str
    looks: list = field(default_factory=list)
    seconds: float = 0.0
    refused: str = ""
    text: str = ""

    @property
    def violations(self):
        return [look for look in self.looks if look.wrong is not None]


@cache
def _round(seed, number):
    """The ways of a round in random order, and how far generators are shifted in it."""
    rng = np.random.default_rng([seed, 1, number % len(data.GENERATORS)])
    shifts = np.random.default_rng([seed, 2]).permutation(len(data.GENERATORS))
    return rng.permutation(len(models.WAYS)), int(shifts[number % len(shifts)])


def chosen(seed, index):
    """Return the way and the generator of a case: each pair once in a cycle of rounds."""
    ways, generators = list(models.WAYS), list(data.GENERATORS)
    order, shift = _round(seed, index // len(ways))
    at = int(order[index % len(ways)])
    return models.WAYS[ways[at]], generators[(at + shift) % len(generators)]


def drawn(seed, index):
    """Return the model, the data and the kernel of a case."""
    way, generator = chosen(seed, index)
    rng = np.random.default_rng([seed, index])
    kernel = None
    if way.kernel and not way.fourier and not way.batches and rng.random() < 0.02:
        kernel, texts = families.draw_strings(rng)
        weights = data.draw_weights(rng, len(texts))
        found = data.Data("strings", texts, np.zeros((len(texts), 1)), weights)
    else:
        found = data.draw(rng, generator, way.largest)
        if way.kernel:
            kernel = families.draw(rng, found.rows, way.fourier)
            found = found._replace(X=found.rows) if kernel.dense else found
            kernel, found = _given(rng, way, kernel, found)
    model = models.draw(rng, way, found, {} if kernel is None else kernel.settings)
    return model, found, kernel


def _given(rng, way, kernel, found):
    """Some kernels as a precomputed matrix."""
    if way.fourier or way.batches or rng.random() >= 0.03 or found.rows.shape[0] > 300:
        return kernel, found
    rows = np.asarray(found.rows, LD)
    with np.errstate(all="ignore"):
        K = kernel.formula(rows, rows).astype(np.float64)
    if not np.isfinite(K).all():
        return kernel, found
    K = (K + K.T) / 2
    exact = families.Kernel("precomputed", {"kernel": "precomputed"}, lambda X, Y: X)
    return exact, data.Data(found.name, K, K, found.weights)


@contextlib.contextmanager
def small_blocks(rows):
    """Let blocks of so few rows bound the optimum, and search their eigenvalues as large ones'."""
    if not rows:
        yield
        return
    with (
        mock.patch("mercer.planning.Plan.block_rows", rows),
        mock.patch("mercer.certificate.partition.LEAST_ROWS", 1),
        mock.patch("mercer.certificate.partition.MOST_ROWS", max(rows, 4)),
        mock.patch("mercer.linalg.top_sum._DENSE", 6),
        mock.patch("mercer.linalg.top_sum._SHARE", 0.5),
    ):
        yield


def fit(model, found):
    """Fit in place."""
    estimator, weights = model.estimator, found.weights
    with config_context(**model.config), small_blocks(model.bound):
        if not model.batch:
            return estimator.fit(found.X, sample_weight=weights)
        n = found.rows.shape[0]
        X = found.X.toarray() if scipy.sparse.issparse(found.X) else found.X
        for start in range(0, n, model.batch):
            part = slice(start, start + model.batch)
            estimator.partial_fit(X[part], sample_weight=None if weights is None else weights[part])
    return estimator


def run(seed, index):
    """Run a case."""
    started = time.perf_counter()
    model, found, kernel = drawn(seed, index)
    name = "linear PCA" if kernel is None else kernel.name
    result = Result(seed, index, found.name, model.way.name, name)
    result.text = described(model, found, kernel)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit(model, found)
        except Exception as error:
            result.looks.append(checks.refusal(error))
            result.refused = f"{type(error).__name__}: {' '.join(str(error).split())[:90]}"
    if not result.refused and hasattr(model.estimator, "certificate_"):
        result.looks += examined(model, found, kernel, list(caught))
    result.seconds = time.perf_counter() - started
    return result


def examined(model, found, kernel, caught):
    """Return looks at all promises of a fitted model."""
    looks = []
    try:
        truth, axes = known(model, found, kernel)
        fitted = checks.Fitted(model, found, truth, axes, caught)
        for check in checks.CERTIFICATE if truth is None else checks.CERTIFICATE + checks.TRUTH:
            looks += check(fitted)
        if truth is not None:
            looks += of_scores(fitted, kernel)
    except Exception:  # what is returned cannot be examined: as bad as a false promise
        looks.append(checks.Look("examination", traceback.format_exc(limit=-3)))
    return looks


def of_scores(fitted, kernel):
    """Return looks at scores, and of some cases at a second fit with other blocks."""
    model, found = fitted.model, fitted.data
    if kernel is None:
        yield from scores.deviations(fitted, found.rows, found.weights)
        yield from scores.transformed(fitted, found.X, found.rows)
    else:
        rows, _, X = weighing(found, kernel)
        yield from scores.transformed(fitted, X, rows)
    if model.batch or not model.again:
        return
    other = clone(model.estimator)
    settings = config_context(block_rows=model.again)
    with settings, small_blocks(model.bound), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        together = other.fit_transform(found.X, sample_weight=found.weights)
        after = other.transform(found.X)
    if not isinstance(model.estimator.plan_.method, Sparse):  # a documented exception
        yield from scores.again(fitted, other, together)
    yield from scores.both_ways(fitted, other, together, after)


def known(model, found, kernel):
    """Return the truth about the data, and the components as the fitted map has them."""
    estimator, center = model.estimator, model.settings["center"]
    if kernel is None:
        deviation = estimator.projection_.deviation if model.settings["scale"] else None
        if deviation is not None:  # columns that are constant to rounding have no share
            squares, size, w = scores.columns(found.rows, found.weights, center)
            constant = np.sqrt(squares / w.sum()) <= 8 * oracle.EPS64 * size
            deviation = np.where(constant & (deviation == 1.0), np.inf, deviation)
        metric = model.settings.get("feature_weight")
        return oracle.Linear(found.rows, found.weights, center, deviation, metric), None
    rows, weights, X = weighing(found, kernel)
    truth = oracle.Kernel(kernel, rows, weights, center, scipy.sparse.issparse(found.X))
    if not truth.finite:
        return None, None
    truth.psd = kernel.name != "precomputed" and estimator.kernel_.psd is True
    if isinstance(estimator.projection_, FourierProjection):
        waves = estimator.projection_.scores(as_source(X), np.float64).collect()
        return truth, np.asarray(waves, LD) * truth.root[:, None]
    return truth, oracle.Axes(truth, estimator.projection_, rows)


def weighing(found, kernel):
    """Return the rows of some weight, exact and as they were given, and their weights."""
    texts = isinstance(found.X, list)
    rows = found.X if texts else np.asarray(found.rows, LD)
    if found.weights is None or kernel.name == "precomputed":
        return rows, found.weights, found.X
    at = np.flatnonzero(found.weights > 0)
    some = [rows[i] for i in at] if texts else rows[at]
    return some, found.weights[at], some if texts else found.X[at]


def described(model, found, kernel):
    """Say what a case is."""
    n, d = found.rows.shape
    kind = "strings" if isinstance(found.X, list) else str(found.rows.dtype)
    sparse = ", sparse" if scipy.sparse.issparse(found.X) else ""
    weights = "" if found.weights is None else ", weights"
    config = "".join(f", {name}={value}" for name, value in model.config.items())
    batch = f", batches of {model.batch}" if model.batch else ""
    bound = f", bound by blocks of {model.bound}" if model.bound else ""
    return (
        f"{model.estimator!r} on {found.name} {n}×{d} {kind}{sparse}{weights}{config}{batch}{bound}"
    )
