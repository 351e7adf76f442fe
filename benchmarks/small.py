"""Small data, where every function call counts: Iris, digits, and 1000 rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import datasets, decomposition

import mercer
from benchmarks.harness import Row

# Fits of each side.
REPEATS = 300
# The least ratio peer/ours: a fit takes at most 1.5 times as long.
_MUST = 1 / 1.5


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Time both sides in turn; the least time of each counts."""
    iris, digits = datasets.load_iris().data, datasets.load_digits().data
    normal = np.random.default_rng(0).standard_normal((1000, 20))
    count = 3 if quick else repeats or REPEATS
    return [
        _row("Iris 150×4, PCA(2)", lambda library: library.PCA(2).fit(iris), count, _MUST),
        _row("Iris 150×4, RBF, KernelPCA(2)", lambda library: _kernel(library, iris), count, _MUST),
        _row("digits 1797×64, PCA(10)", lambda library: library.PCA(10).fit(digits), count),
        _row("normal 1000×20, RBF, KernelPCA(2)", lambda library: _kernel(library, normal), count),
    ]


def _kernel(library: Any, X: Any) -> Any:
    return library.KernelPCA(2, kernel="rbf", gamma=1 / X.shape[1]).fit(X)


def _row(case: str, fit: Callable[[Any], Any], count: int, must: float | None = None) -> Row:
    times: dict[str, list[float]] = {"mercer": [], "sklearn": []}
    for _ in range(count):
        for own, library in zip(times.values(), (mercer, decomposition), strict=True):
            start = time.perf_counter()
            fit(library)
            own.append(time.perf_counter() - start)
    least = map(min, times.values())
    return Row(case, "least time", *least, unit="s", must=must, times=times)
