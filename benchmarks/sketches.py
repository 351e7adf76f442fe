"""Axes from sketches: how good, how fast, in how much memory; every map, five data sets."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import decomposition
from sklearn.base import clone

import mercer
from benchmarks import data
from benchmarks.harness import Race, Row, Side, skipped
from benchmarks.peak import growth
from mercer.methods import Sketch
from mercer.metrics import eigenvalue_difference, similarity
from mercer.sketches import (
    Gaussian,
    Hadamard,
    Hashing,
    PixelGrouping,
    Resize,
    SketchMap,
    SparseSign,
)

REPEATS = 3
_K = 10
_SIZES = (100, 500, 1000, 2000)
_CIFAR = "cifar10_airplane_automobile_bird.npz"
_CLASSES = {"cifar airplane": 0, "cifar automobile": 1, "cifar bird": 2}
_FILES = {
    "orl": "orl_faces.npz",
    **dict.fromkeys(_CLASSES, _CIFAR),
    "cats and dogs": "cats_dogs_64.npz",
    "mice": "mice_genotypes.npz",
}
# Maps that are compared, each drawn so often: one draw's eigenvalues err together.
_DRAWS = {"gaussian": 5, "hashing, 5 hashes": 5}
_IMAGES = {
    "orl": (112, 92),
    **dict.fromkeys(_CLASSES, (32, 32, 3)),
    "cats and dogs": (64, 64, 3),
}
_GIB = 2**30


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Measure quality on every data set, then speed and memory."""
    rows: list[Row] = []
    for name in (*_FILES, "20 newsgroups"):
        try:
            X = rows_of(name, quick)
        except FileNotFoundError as absent:
            rows.append(skipped(f"sketches of {name}", absent))
            continue
        rows += _quality(name, X, (50,) if quick else _SIZES)
    return [*rows, *_sparse_speed(repeats or REPEATS, quick), *_disk(quick)]


def rows_of(name: str, quick: bool = False) -> Any:
    """Return a data set as float32 rows, or as a sparse matrix."""
    if name == "20 newsgroups":
        return data.news(quick)
    with np.load(data.find(_FILES[name])) as archive:
        X = archive["X"] if name not in _CLASSES else archive["X"][archive["y"] == _CLASSES[name]]
    X = X[: 200 if quick else None].astype(np.float32)
    return X.reshape(len(X), -1)


def maps(q: int, image: tuple[int, ...] | None) -> dict[str, SketchMap]:
    """Return the maps to q columns, or to about as many pixels."""
    found: dict[str, SketchMap] = {
        "gaussian": Gaussian(q),
        "hashing, 5 hashes": Hashing(q, hashes=5),
        "hashing, as printed": Hashing(q, hashes=5, scaling="paper"),
        "hash kernel, unsigned": Hashing(q, hashes=5, signed=False),
        "sparse signs": SparseSign(q),
        "hadamard": Hadamard(q),
    }
    if image is not None:
        h, w, *c = image
        channels = c[0] if c else 1
        share = min(1.0, (q / (h * w * channels)) ** 0.5)
        to = (max(1, round(h * share)), max(1, round(w * share)))
        found["resize"] = Resize(image, to)
        found["pixel groups"] = PixelGrouping(image, max(1, round(1 / share)))
    return found


def _quality(name: str, X: Any, sizes: tuple[int, ...]) -> list[Row]:
    """Compare the first ten eigenvalues and axes with exact ones, before and after the polish."""
    exact = mercer.PCA(_K, random_state=0).fit(X)
    rows = []
    for q in sizes:
        if q >= min(X.shape):
            continue
        errors: dict[str, float] = {}
        for label, sketch in maps(q, _IMAGES.get(name)).items():
            raw, polished = (_fitted(X, sketch, polish=polish) for polish in (False, True))
            difference, sim = compared(raw, exact)
            draws = [difference] + [
                compared(_fitted(X, clone(sketch).set_params(random_state=seed)), exact)[0]
                for seed in range(1, _DRAWS.get(label, 1))
            ]
            errors[label] = float(np.mean(draws))
            after, better = compared(polished, exact)
            note = f"Sim {sim:.3f}; polished: Diff {after:.1e}, Sim {better:.3f}"
            case = f"{name} {X.shape[0]}×{X.shape[1]}, q={q}, {label}"
            must = 1.5 * errors["gaussian"] if label.startswith("hashing, 5") else None
            rows.append(Row(case, "Diff of eigenvalues", errors[label], must=must, note=note))
    return rows


def _fitted(X: Any, sketch: SketchMap, polish: bool = False) -> mercer.PCA:
    return mercer.PCA(_K, svd_solver=Sketch(sketch, polish=polish), random_state=0).fit(X)


def compared(model: mercer.PCA, exact: mercer.PCA) -> tuple[float, float]:
    """Return the mean difference of eigenvalues and the mean similarity of axes."""
    values, truth = model.explained_variance_, exact.explained_variance_
    differences = eigenvalue_difference(truth, values)
    return float(np.mean(differences)), float(
        np.mean(similarity(model.components_, exact.components_))
    )


def _sparse_speed(repeats: int, quick: bool) -> list[Row]:
    try:
        X = rows_of("20 newsgroups", quick)
    except FileNotFoundError as absent:
        return [skipped("sketches of sparse rows", absent)]
    q = 50 if quick else 500
    race = Race(
        [Side("Hashing", lambda: Hashing(q).fit_transform(X))],
        [Side("Gaussian", lambda: Gaussian(q).fit_transform(X))],
        repeats,
    )
    return [race.row(f"sketch of 20 newsgroups {X.shape[0]}×{X.shape[1]}, q={q}", must=3.0)]


def _disk(quick: bool) -> list[Row]:
    """Fit cats and dogs, tiled to 25000 rows in a file, beside IncrementalPCA."""
    n = 2000 if quick else 25_000
    try:
        X = rows_of("cats and dogs")
    except FileNotFoundError as absent:
        return [skipped("sketch of a file", absent)]
    case = f"sketch of a file {n}×{X.shape[1]} float32, q=500"
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.npy")
        tiled(path, X, n)
        found = growth("benchmarks.sketches:prepare", path)
        start = time.perf_counter()
        incremental(path)
        peer = time.perf_counter() - start
    note = found["notes"]["sentence"]
    return [
        Row(case, "time", found["notes"]["seconds"], peer, unit="s", must=10.0, note=note),
        Row(case, "memory growth", found["growth"], unit="MiB", must=_GIB),
    ]


def tiled(path: str, X: Any, n: int) -> None:
    """Write the rows again and again, each time with a little noise of its own."""
    rng = np.random.default_rng(0)
    out = np.lib.format.open_memmap(path, "w+", np.float32, (n, X.shape[1]))
    for start in range(0, n, len(X)):
        rows = X[: min(len(X), n - start)]
        out[start : start + len(rows)] = rows + rng.standard_normal(rows.shape, dtype=np.float32)
    out.flush()


def prepare(path: str) -> Callable[[], Any]:
    """Return the fit of a file."""

    def fit() -> Any:
        start = time.perf_counter()
        with mercer.config_context(memory="1GiB"):
            model = mercer.PCA(_K, svd_solver=Sketch(Gaussian(500))).fit(path)
        seconds = time.perf_counter() - start
        model.notes = {"seconds": seconds, "sentence": model.certificate_.sentence}
        return model

    return fit


def incremental(path: str) -> decomposition.IncrementalPCA:
    """Fit the file by batches, as scikit-learn can."""
    X, model = np.load(path, mmap_mode="r"), decomposition.IncrementalPCA(_K)
    for rows in data.chunks(len(X), 1000):
        model.partial_fit(X[rows])
    return model
