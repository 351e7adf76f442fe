"""Kernel matrices: 3000×3000 of 256 columns and 20000×1000 of 784, and strings."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import pairwise

from benchmarks import data
from benchmarks.harness import MIB, Race, Row, Side, peers, skipped
from benchmarks.peak import growth
from mercer import kernels

REPEATS = 5
_SHAPES = {"square": (3000, 3000, 256), "tall": (20_000, 1000, 784)}

Pair = tuple[kernels.Kernel, Callable[[Any, Any], Any]]


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Time every kernel that both have; a sum against one of its terms; strings; memory."""
    repeats, rows = repeats or REPEATS, []
    for name, (n, m, d) in _SHAPES.items():
        n, m = (n // 10, m // 10) if quick else (n, m)
        for dtype in ("float64", "float32"):
            X, Y = rows_of(n, m, d, dtype)
            case = f"{name} {n}×{m}×{d} {dtype}"
            for label, (ours, theirs) in both(1.0 / d).items():
                rows.append(_race(f"{label}, {case}", ours, theirs, X, Y, dtype, repeats))
            rows.append(_sum(case, X, Y, 1.0 / d, repeats))
    return [*rows, _strings(), *_memory(quick)]


def rows_of(n: int, m: int, d: int, dtype: str) -> tuple[data.Array, data.Array]:
    """Return two groups of histograms: rows that every kernel takes."""
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(n + m, d)).astype(dtype)
    return X[:n], X[n:]


def both(gamma: float) -> dict[str, Pair]:
    """Return our kernels and scikit-learn's."""
    return {
        "linear": (kernels.Linear(), pairwise.linear_kernel),
        "polynomial": (
            kernels.Polynomial(3, 1.0, gamma),
            lambda X, Y: pairwise.polynomial_kernel(X, Y, 3, gamma, 1.0),
        ),
        "rbf": (kernels.RBF(gamma), lambda X, Y: pairwise.rbf_kernel(X, Y, gamma)),
        "tanh": (kernels.Tanh(gamma), lambda X, Y: pairwise.sigmoid_kernel(X, Y, gamma, 0.0)),
        "cosine": (kernels.Cosine(), pairwise.cosine_similarity),
        "laplacian, city block": (
            kernels.Laplacian(gamma, norm="l1"),
            lambda X, Y: pairwise.laplacian_kernel(X, Y, gamma),
        ),
        "chi-square": (
            kernels.ExponentialChiSquare(gamma),
            lambda X, Y: pairwise.chi2_kernel(X, Y, gamma),
        ),
        "additive chi-square": (kernels.AdditiveChi2(), pairwise.additive_chi2_kernel),
    }


def _must(label: str, dtype: str) -> float | None:
    if "chi-square" in label:
        return 5.0
    if "city block" in label:
        return 4.0
    if dtype == "float64":
        return 0.95
    return 1.5 if label.startswith("rbf") else None


def _race(
    case: str,
    ours: kernels.Kernel,
    theirs: Callable[[Any, Any], Any],
    X: data.Array,
    Y: data.Array,
    dtype: str,
    repeats: int,
) -> Row:
    ours(X[:64], Y[:64])  # compiled before it is timed
    # A matrix product takes a twentieth of a second, chi-square of scikit-learn minutes.
    slow = "chi" in case or "city" in case
    many = 8 * repeats if len(X) < 10_000 else repeats
    turns = many if not slow else repeats if len(X) < 10_000 else 1
    race = Race(
        [Side("Mercer", lambda: ours(X, Y))],
        peers("scikit-learn", lambda: theirs(X, Y)),
        turns,
    )
    apart = np.abs(race.models["Mercer"] - race.models[race.best()]).max()
    row = race.row(case, must=_must(case, dtype))
    row.note = f"largest difference {apart:.0e}; {row.note}"
    return row


def _sum(case: str, X: data.Array, Y: data.Array, gamma: float, repeats: int) -> Row:
    """Time RBF + polynomial + tanh beside RBF alone, in pairs."""
    one = kernels.RBF(gamma)
    three = one + kernels.Polynomial(3, 1.0, gamma) + kernels.Tanh(gamma)
    ratios = []
    for _ in range(2 * repeats + 1):
        times = []
        for kernel in (one, three):
            time.sleep(0.05)
            start = time.perf_counter()
            kernel(X, Y)
            times.append(time.perf_counter() - start)
        ratios.append(times[1] / times[0])
    middle = statistics.median(ratios)
    return Row(f"rbf + polynomial + tanh, {case}", "times rbf alone", middle, must=1.6)


def _strings() -> Row:
    case = "subsequences of 5 letters, promoters 106×106"
    try:
        strings = data.promoters()
    except FileNotFoundError as absent:
        return skipped(case, absent)
    kernel = kernels.Subsequence(5, 0.5)
    kernel(strings[:3])
    start = time.perf_counter()
    kernel(strings)
    taken = time.perf_counter() - start
    return Row(case, "seconds, compiled", taken, must=1.0)


def _memory(quick: bool) -> list[Row]:
    n, m, d = (2000, 2000, 64) if quick else (8000, 8000, 64)
    rows = []
    for name in ("linear", "rbf"):
        case = f"memory of {name} {n}×{m} float32"
        try:
            grown = growth("benchmarks.kernels:prepare", name, n, m, d)["growth"]
        except OSError as error:
            rows.append(skipped(case, error))
            continue
        size = 4 * n * m
        note = f"the matrix alone {size / MIB:.0f} MiB"
        rows.append(Row(case, "memory growth", grown, unit="MiB", must=size + 64 * MIB, note=note))
    return rows


def prepare(name: str, n: int, m: int, d: int) -> Callable[[], Any]:
    """Make rows and return the evaluation of a kernel on them."""
    X, Y = rows_of(n, m, d, "float32")
    kernel, _ = both(1.0 / d)[name]
    kernel(X[:64], Y[:64])

    class Held:
        """What `growth` looks for arrays in."""

    def fit() -> Any:
        held = Held()
        held.matrix = kernel(X, Y)  # type: ignore[attr-defined]
        return held

    return fit
