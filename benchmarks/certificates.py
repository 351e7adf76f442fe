"""How close to the truth certificates are, and what they cost beside the fit alone.

The truth is exact kernel PCA of the same rows. `python -m benchmarks basis` compares ways to a
gap, and `python -m benchmarks gpu` measures the certificate on a GPU.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

import mercer
from benchmarks import basis_gap, data
from benchmarks.harness import Race, Row, Side, skipped
from benchmarks.sketches import rows_of, tiled
from mercer.methods import RandomFeatures, Sketch, Subset
from mercer.sketches import Gaussian

REPEATS = 3
_GAMMA = 0.01


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Measure kernel PCA of digits on a basis and by features, then a sketch of a file."""
    repeats = repeats or (1 if quick else REPEATS)
    n, m, q = (2000, 100, 50) if quick else (60_000, 1000, 500)
    rows: list[Row] = []
    try:
        X = data.digits(n, np.float32)
    except FileNotFoundError as absent:
        rows.append(skipped("certificates of MNIST", absent))
    else:
        exact = fitted(X, 50, "exact").explained_variance_
        for k, must, aim in ((10, 0.035, 0.02), (50, 0.07, 0.04)):
            best = float(exact[:k].sum())
            rows += _basis(X, k, m, best, must, aim, repeats)
        rows += _features(X, q, float(exact[:10].sum()), repeats)
        rows += _within(X)
    return [*rows, *_sketch(repeats, quick)]


def fitted(X: data.Array, k: int, method: Any, certificate: bool | str = True) -> mercer.KernelPCA:
    """Fit kernel PCA of digits."""
    model = mercer.KernelPCA(
        k, kernel="rbf", gamma=_GAMMA, method=method, certificate=certificate, random_state=0
    )
    return model.fit(X)


def race(fit: Any, repeats: int) -> Race:
    """Race the fit with its certificate against the fit alone."""
    with_it, alone = (Side(name, lambda on=on: fit(on)) for name, on in _SIDES.items())
    return Race([with_it], [alone], repeats)


_SIDES = {"with certificate": True, "alone": False}


def _basis(
    X: data.Array, k: int, m: int, best: float, must: float, aim: float, repeats: int
) -> list[Row]:
    case = f"MNIST {len(X)}×784 float32, RBF({_GAMMA}), Subset({m}), {k} components"
    times = race(lambda on: fitted(X, k, Subset(m), on), repeats)
    model = times.models["with certificate"]
    # In the span of the basis, the variances are what the components explain.
    true = 1.0 - float(model.explained_variance_.sum()) / best
    without = float(times.models["alone"].certificate_.gap)
    return [
        _gap(case, model, true, must, aim, f"; from the span alone {without:.2%}"),
        times.row(f"{case}, fit and certificate beside the fit", must=1 / 2.2),
    ]


def _gap(
    case: str, model: Any, true: float | None, must: float, aim: float | None, more: str = ""
) -> Row:
    certificate = model.certificate_
    known = "" if true is None else f"; true distance {true:.2%}"
    note = f"{certificate.optimum_from}{known}{more}"
    gap = float(certificate.gap)
    return Row(case, "certified gap", gap, true, unit="%", must=must, aim=aim, note=note)


def _features(X: data.Array, q: int, best: float, repeats: int) -> list[Row]:
    case = f"MNIST {len(X)}×784 float32, RBF({_GAMMA}), RandomFeatures({q}), 10 components"
    times = race(lambda on: fitted(X, 10, RandomFeatures(q), on), repeats)
    model = times.models["with certificate"]
    true = 1.0 - explained_by_scores(X, np.asarray(model.transform(X))) / best
    return [
        _gap(case, model, true, 1.5 * true + 0.03, None),
        times.row(f"{case}, fit and certificate beside the fit"),
    ]


def _within(X: data.Array) -> list[Row]:
    case = f"MNIST {len(X)}×784 float32, RBF at the median width, gap=0.01, 10 components"
    start = time.perf_counter()
    model = basis_gap.fitted(X)
    seconds = time.perf_counter() - start
    return [
        _gap(case, model, None, 0.01, None),
        Row(case, "seconds", seconds, must=15.0, aim=8.0, note=model.told),
    ]


def explained_by_scores(X: data.Array, scores: data.Array) -> float:
    """Return the variance in feature space along scores, tr QᵀK̃Q/(n − 1), by scikit-learn."""
    scores = scores.astype(np.float64)
    Q, _ = np.linalg.qr(scores - scores.mean(axis=0))
    energy = 0.0
    for rows in data.chunks(len(X), 1024):
        energy += float(np.sum(Q[rows] * (rbf_kernel(X[rows], X, gamma=_GAMMA) @ Q)))
    return energy / (len(X) - 1)


def _sketch(repeats: int, quick: bool) -> list[Row]:
    n, q = (2000, 50) if quick else (25_000, 500)
    try:
        X = rows_of("cats and dogs")
    except FileNotFoundError as absent:
        return [skipped("certificate of a sketch of a file", absent)]
    case = f"file of {n}×{X.shape[1]} float32, Sketch(Gaussian({q})), 10 components"
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.npy")
        tiled(path, X, n)
        times = race(lambda on: _sketched(path, q, on), repeats)
    return [
        _gap(case, times.models["with certificate"], None, 0.02, 0.01),
        times.row(f"{case}, fit and certificate beside the fit", must=1 / 2.0),
    ]


def _sketched(path: str, q: int, certificate: bool) -> mercer.PCA:
    model = mercer.PCA(10, svd_solver=Sketch(Gaussian(q)), certificate=certificate, random_state=0)
    with mercer.config_context(memory="1GiB"):
        return model.fit(path)
