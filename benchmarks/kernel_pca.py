"""Exact kernel PCA: MNIST with an RBF kernel, beside scikit-learn and beyond its reach."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import decomposition

import mercer
from benchmarks import data
from benchmarks.harness import Race, Row, Side, skipped
from benchmarks.peak import growth
from mercer.methods import Exact

REPEATS = 3
_K, _GAMMA = 10, 0.02
_GIB = 2**30


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Race both on 8000 rows; then all rows, little memory, new rows, and ever more rows."""
    repeats = repeats or REPEATS
    try:
        X = data.digits(800 if quick else 8000, "float64")
    except FileNotFoundError as absent:
        return [skipped("kernel PCA of MNIST", absent)]
    return [
        *_race(X, repeats),
        *_transform(X, quick, repeats),
        *_alone("all rows", 2000 if quick else 60_000, None),
        *_alone("little memory", 1000 if quick else 20_000, "2GiB"),
        _growth(quick),
    ]


def ours(store: str | None = None) -> mercer.KernelPCA:
    """Return the estimator of all cases."""
    method = "auto" if store is None else Exact(store=store)
    return mercer.KernelPCA(_K, kernel="rbf", gamma=_GAMMA, method=method, random_state=0)


def theirs(solver: str) -> decomposition.KernelPCA:
    """Return the peer's."""
    return decomposition.KernelPCA(
        _K, kernel="rbf", gamma=_GAMMA, eigen_solver=solver, random_state=0
    )


def _race(X: data.Array, repeats: int) -> list[Row]:
    case = f"kernel PCA {len(X)}×{X.shape[1]} float64, k={_K}"
    fast = Race(
        [Side("Mercer", lambda: ours().fit(X))],
        [Side("scikit-learn, arpack", lambda: theirs("arpack").fit(X))],
        repeats,
    )
    slow = Race(
        [Side("Mercer", lambda: ours().fit(X))],
        [Side("scikit-learn, its default", lambda: theirs("auto").fit(X))],
        1,
    )
    model = fast.models["Mercer"]
    residual = float(model.certificate_.residuals.max() / model.certificate_.eigenvalues[0])
    return [
        slow.row(f"{case}, default", must=12.0, aim=25.0),
        fast.row(f"{case}, arpack", must=1.5, aim=3.0),
        Row(case, "largest residual / λ₁", residual, must=1e-8, note=model.certificate_.sentence),
    ]


def _transform(X: data.Array, quick: bool, repeats: int) -> list[Row]:
    new = data.digits(11_000 if not quick else 1000, "float64")[-(10_000 if not quick else 500) :]
    mine, other = ours().fit(X), theirs("arpack").fit(X)
    race = Race(
        [Side("Mercer", lambda: mine.transform(new))],
        [Side("scikit-learn", lambda: other.transform(new))],
        repeats,
    )
    row = race.row(f"transform of {len(new)} rows against {len(X)}", must=2.0)
    apart = np.abs(race.models["Mercer"]) - np.abs(race.models["scikit-learn"])
    row.note = f"largest difference {np.abs(apart).max():.0e}; {row.note}"
    return [row]


def _alone(name: str, n: int, memory: str | None) -> list[Row]:
    """Fit in a fresh process: time, memory, residual, and eigenvalues against those in float64."""
    rows = []
    stores = (None,) if memory is None else (None, "none")
    for store in stores:
        kept = "" if store is None else ", kernel matrix not kept"
        case = f"{name}: {n} rows float32{'' if memory is None else f', memory {memory}'}{kept}"
        try:
            found = growth("benchmarks.kernel_pca:prepare", n, memory, store)
        except OSError as error:
            rows.append(skipped(case, error))
            continue
        notes = found["notes"]
        # All of the process where nothing else is said, what the fit adds where memory is.
        most = 2 * _GIB if memory else 9e9 - found["before"]
        note = f"{notes['method']}; {notes['sentence']}"
        must, aim = (None, None) if memory else (300.0, 120.0)
        rows += [
            Row(case, "seconds", notes["seconds"], must=must, aim=aim, note=note),
            Row(case, "memory growth", found["growth"], unit="MiB", must=most),
            Row(case, "largest residual / λ₁", notes["residual"], must=1e-6),
        ]
        if memory is not None:
            values = ours().fit(data.digits(n, "float32")).eigenvalues_.astype(float)
            error = float(np.abs(np.array(notes["values"]) / values - 1).max())
            rows.append(Row(case, "eigenvalues, relative difference", error, must=1e-6))
    return rows


def prepare(n: int, memory: str | None, store: str | None) -> Callable[[], Any]:
    """Make the rows and return the fit."""
    X = data.digits(n, "float32")
    ours().fit(X[:200])

    def fit() -> Any:
        with mercer.config_context(**({} if memory is None else {"memory": memory})):
            start = time.perf_counter()
            model = ours(store).fit(X)
        certificate = model.certificate_
        model.notes = {
            "seconds": time.perf_counter() - start,
            "residual": float(certificate.residuals.max() / certificate.eigenvalues[0]),
            "values": model.eigenvalues_.astype(float).tolist(),
            "method": repr(model.plan_.method),
            "sentence": certificate.sentence,
        }
        return model

    return fit


def _growth(quick: bool) -> Row:
    """Fit the exponent of the time as the rows double."""
    sizes = [500, 1000, 2000] if quick else [5000, 10_000, 20_000, 40_000]
    X = data.digits(sizes[-1], "float64")
    times = []
    for n in sizes:
        start = time.perf_counter()
        ours().fit(X[:n])
        times.append(time.perf_counter() - start)
    slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    told = ", ".join(f"{n}: {t:.1f} s" for n, t in zip(sizes, times, strict=True))
    return Row(
        f"{sizes[0]} to {sizes[-1]} rows", "exponent of the time", slope, must=2.1, note=told
    )
