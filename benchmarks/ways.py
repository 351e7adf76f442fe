"""Kernel PCA without a basis of rows: passes of the Hebbian gains, features of a file."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import Pipeline, make_pipeline

import mercer
from benchmarks import data
from benchmarks.harness import Race, Row, Side, peers, say, skipped
from benchmarks.peak import growth
from mercer.kernels import RBF
from mercer.methods import Hebbian, RandomFeatures
from mercer.metrics import empirical_error

_GAINS = {"kha": "KHA", "et": "KHA/et", "smd": "KHA-SMD"}
_COUNTS = (2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40)
# An error so much above the best is as good as it.
_NEAR = 1e-3
_MEMORY = "200MiB"


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Count passes; then time features, and see what they add to the memory."""
    return [*_passes(quick), *_features(repeats or 3, quick)]


def _passes(quick: bool) -> list[Row]:
    """Count passes over USPS until the error is near the least."""
    n, k = (300, 4) if quick else (2000, 8)
    case = f"USPS {n}×256, RBF(1/128), {k} axes"
    try:
        with np.load(data.find("usps.npz")) as table:
            X = table["X"][:n] / float(table["scale"])
    except FileNotFoundError as error:
        return [skipped(case, error)]
    kernel = RBF(1 / 128)
    best = empirical_error(mercer.KernelPCA(k, kernel=kernel).fit(X), X)
    found = {gain: _until_near(X, kernel, k, gain, best) for gain in _GAINS}
    rows = [
        Row(f"{case}, {_GAINS[gain]}", "passes to 0.1 % above the least error", float(count))
        for gain, count in found.items()
    ]
    fewer = found["smd"] / found["kha"]
    return [*rows, Row(case, "passes of KHA-SMD / of KHA", fewer, must=0.99)]


def _until_near(X: data.Array, kernel: RBF, k: int, gain: str, best: float) -> float:
    for count in _COUNTS:
        method = Hebbian(gain, max_passes=count)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it stops before it converges
            model = mercer.KernelPCA(k, kernel=kernel, method=method, random_state=0).fit(X)
        error = empirical_error(model, X)
        say(f"  {_GAINS[gain]}, {count} passes: {100 * (error / best - 1):.3f} % above the least")
        if error <= (1 + _NEAR) * best:
            return float(count)
    return float("inf")


def _features(repeats: int, quick: bool) -> list[Row]:
    """Fit features of a file inside a budget."""
    n, d, q = (2000, 32, 50) if quick else (60_000, 784, 500)
    case = f"RandomFeatures({q}) of a file of {n}×{d} float32, 10 axes, memory {_MEMORY}"
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.npy")
        data.write_rows(Path(path), n, d)
        theirs = peers("RBFSampler, PCA in memory", lambda: pipeline(path, q))
        race = Race([Side("RandomFeatures", lambda: fitted(path, q))], theirs, repeats)
        timed = race.row(case)
        try:
            more = growth("benchmarks.ways:prepare", path, q)["growth"]
        except OSError as error:
            return [timed, skipped(case, error)]
    return [timed, Row(case, "growth of the process", more, unit="MiB", must=200 * 2**20)]


def fitted(path: str, q: int) -> mercer.KernelPCA:
    """Fit features of a file."""
    method = RandomFeatures(q)
    with mercer.config_context(memory=_MEMORY):
        return mercer.KernelPCA(10, kernel=RBF(0.01), method=method, random_state=0).fit(path)


def pipeline(path: str, q: int) -> Pipeline:
    """Fit scikit-learn's features, as many of them, all in memory."""
    sampler = RBFSampler(gamma=0.01, n_components=2 * q, random_state=0)
    return make_pipeline(sampler, PCA(10)).fit(np.load(path))


def prepare(path: str, q: int) -> Callable[[], Any]:
    """Return the fit of a file."""
    few = np.load(path, mmap_mode="r")[:200]
    mercer.KernelPCA(2, kernel=RBF(0.01), method=RandomFeatures(10)).fit(few)
    return lambda: fitted(path, q)
