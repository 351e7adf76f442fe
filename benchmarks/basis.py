"""Kernel PCA on a basis: how good, how fast, in how much memory, and the price of a certificate.

The source that figures are compared with is Y. Washizawa, Subset basis approximation of kernel
principal component analysis (2012). Where its text leaves something open:

- The 1000 points of its Table 1 are not described. Ours are normal in the plane, independent,
  of deviation 2.2. Improved's operator is nearly zero there, so its 4.7998 is one over the error
  of exact kernel PCA without centring; a deviation of 2.2 gives 4.8. Ours are drawn anew for
  every trial; the source kept its points, as Improved's deviation of 0.0000 shows. The order of
  the methods is the source's but for one pair: with k-means, Nyström comes after Improved here.
  Nyström counts every point n/m times, and k-means takes more points from the tails than their
  share of the rows; counted by the rows of its cluster, each point would bring Nyström within 1 %
  of exact. What the equal counts cost depends on the tails: some 10 % where points fill a square
  evenly, 390 % for ours; the source's are in between. Forward search goes to the tails in any
  case, and does the same to Reduced and Nyström there as here.
- Its MNIST kernel, exp(−10^-5.1 ‖x−y‖²), has the error that it reports, 4.57e-5, where pixels run
  from 0 to 1. From 0 to 255 it is nearly the identity matrix. Both are measured.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import decomposition
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline, make_pipeline

import mercer
from benchmarks import basis_gap, basis_quality, data
from benchmarks.harness import MIB, Race, Row, Side, peers, say, skipped
from benchmarks.peak import growth
from mercer.kernels import RBF
from mercer.methods import Cholesky, Method, Subset
from mercer.metrics import empirical_error

REPEATS = 3
_SOURCE_GAMMA = 10**-5.1
# Growth that two files of different length may differ by: a few blocks of rows.
_APART = 16 * MIB


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Measure quality, then speed, growth with the rows, and routes to a certificate."""
    repeats = repeats or (1 if quick else REPEATS)
    return [
        *basis_quality.run(quick),
        *_against_pipeline(repeats, quick),
        *_against_cholesky(quick),
        _exponent(repeats, quick),
        _memory(quick),
        *basis_gap.run(repeats, quick),
    ]


def kernel_pca(k: int, kernel: RBF, method: Method, seed: int = 0) -> mercer.KernelPCA:
    """Return the estimator of all cases."""
    return mercer.KernelPCA(k, kernel=kernel, method=method, random_state=seed)


def pipeline(k: int, m: int, gamma: float, seed: int = 0) -> Pipeline:
    """Return the peer's: Nyström features, then PCA of them."""
    features = Nystroem(gamma=gamma, n_components=m, random_state=seed)
    return make_pipeline(features, decomposition.PCA(k, random_state=seed))


def _against_pipeline(repeats: int, quick: bool) -> list[Row]:
    """Race both; compare errors on the points that each has drawn, and on the peer's for both."""
    n, m, k = (1500, 60, 10) if quick else (60_000, 1000, 50)
    try:
        X = data.digits(n, np.float32)
    except FileNotFoundError as absent:
        return [skipped("Subset and Nystroem, PCA of MNIST", absent)]
    kernel = RBF.from_median(X)
    case = f"MNIST {n}×784 float32, RBF({kernel.gamma:.2g}), {k} axes of {m} points"
    race = Race(
        [Side("Subset", lambda: kernel_pca(k, kernel, Subset(m)).fit(X))],
        peers("Nystroem, PCA", lambda: pipeline(k, m, kernel.gamma).fit(X)),
        repeats,
    )
    peer = race.models[race.best()]
    theirs = pipeline_error(peer, X)
    rows = peer[0].component_indices_
    same = empirical_error(kernel_pca(k, kernel, Subset(select=rows)).fit(X), X)
    drawn = empirical_error(race.models["Subset"], X)
    return [
        race.row(case, must=3.0, aim=5.0),
        _above(f"{case}, the peer's points", same, theirs, must=1e-6),
        _above(f"{case}, points of each", drawn, theirs, must=5e-3),
    ]


def _above(case: str, ours: float, theirs: float, must: float) -> Row:
    note = f"E_emp {ours:.6g}, the peer's {theirs:.6g}"
    return Row(case, "E_emp above the peer's", ours / theirs - 1, unit="%", must=must, note=note)


def pipeline_error(peer: Pipeline, X: data.Array) -> float:
    """Return E_emp of the peer's axes in feature space, in float64.

    Its scores are those of axes over its points, with coefficients A = N V: N normalises the
    kernel's features, V are the axes among them. E_emp about the mean's projection on the span is
    that of the best operator with its axes, as if they were orthonormal to the last digit.
    """
    features, pca = peer
    points = features.components_.astype(np.float64)
    kernel = RBF(features.gamma)
    A = (pca.components_.astype(np.float64) @ features.normalization_).T
    Ky = kernel(points)
    total, mean, S = 0.0, np.zeros(len(points)), np.zeros((A.shape[1],) * 2)
    middle = kernel(points[:1], points)[0]  # taken off before products are formed
    for rows in data.chunks(len(X)):
        H = kernel(X[rows].astype(np.float64), points) - middle
        total, mean = total + len(H), mean + H.sum(axis=0)
        S += (H @ A).T @ (H @ A)
    mean /= len(X)
    S = S / len(X) - np.outer(mean @ A, mean @ A)
    mean += middle
    height = mean @ np.linalg.pinv(Ky, rcond=1e-10, hermitian=True) @ mean
    held = np.trace(np.linalg.pinv(A.T @ Ky @ A, hermitian=True) @ S)
    return float(total / len(X) - height - held)


def _against_cholesky(quick: bool) -> list[Row]:
    """Time the source's way, scores by kernels to all rows, once, and ours; then the errors."""
    n, m, k = (600, 60, 10) if quick else (60_000, 1000, 145)
    try:
        unit = data.digits(n, np.float32)
    except FileNotFoundError as absent:
        return [skipped("Subset and Cholesky of MNIST", absent)]
    kernel = RBF(_SOURCE_GAMMA)
    found = []
    for name, X in (("1", unit), ("255", unit * np.float32(255))):
        race = Race(
            [Side("Subset", lambda X=X: _scored(kernel_pca(k, kernel, Subset(m)), X))],
            [
                Side(
                    "Cholesky",
                    lambda X=X: _scored(kernel_pca(k, kernel, Cholesky(m, on="rows")), X),
                )
            ],
            1,
        )
        row = race.row(f"MNIST {n}×784, pixels 0…{name}, RBF(10^-5.1), {k} axes of {m} points", 5.0)
        errors = {side: empirical_error(model, X) for side, model in race.models.items()}
        told = ", ".join(f"{side} {error:.3g}" for side, error in errors.items())
        row.note = f"fit and scores of all rows; E_emp: {told}; {row.note}"
        found.append(row)
    found[0].note = f"source: E_emp 4.57e-5 in 28 s, 4.59e-5 in 156 s; {found[0].note}"
    return found


def _scored(model: mercer.KernelPCA, X: data.Array) -> mercer.KernelPCA:
    """Fit, and take the rows to their scores as new rows are."""
    model.fit(X).transform(X)
    return model


def _exponent(repeats: int, quick: bool) -> Row:
    """Fit the exponent of the time as the rows double: medians, sizes turn about."""
    m, d = (50, 16) if quick else (500, 64)
    sizes = [2000, 4000, 8000] if quick else [25_000, 50_000, 100_000, 200_000, 400_000]
    X = data.decaying(sizes[-1], d, np.float32)
    times: dict[int, list[float]] = {n: [] for n in sizes}
    for _ in range(repeats):
        for n in sizes:
            start = time.perf_counter()
            kernel_pca(10, RBF(1 / d), Subset(m)).fit(X[:n])
            times[n].append(time.perf_counter() - start)
            say(f"{n} rows: {times[n][-1]:.2f} s")
    medians = [float(np.median(times[n])) for n in sizes]
    told = ", ".join(f"{n}: {t:.2f} s" for n, t in zip(sizes, medians, strict=True))
    slope = float(np.polyfit(np.log(sizes), np.log(medians), 1)[0])
    case = f"Subset of {m} points, {sizes[0]} to {sizes[-1]} rows of {d} columns"
    return Row(case, "exponent of the time", slope, must=1.05, note=told)


def _memory(quick: bool) -> Row:
    """Compare the growth of the process over files of which one is eight times as long."""
    m, d, sizes = (50, 16, (4000, 32_000)) if quick else (500, 16, (200_000, 1_600_000))
    case = f"Subset of {m} points, files of {sizes[0]} and {sizes[1]} rows of {d} columns"
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path = Path(folder) / f"{n}.npy"
            data.write_rows(path, n, d)
            try:
                found.append(growth("benchmarks.basis:prepare", str(path), m)["growth"])
            except OSError as error:
                return skipped(case, error)
    told = ", ".join(f"{size / MIB:.0f} MiB" for size in found)
    more = max(0.0, found[1] - found[0])
    note = f"growth {told}; the files differ by {4 * d * (sizes[1] - sizes[0]) / MIB:.0f} MiB"
    return Row(case, "more memory", more, unit="MiB", must=_APART, note=note)


def prepare(path: str, m: int) -> Callable[[], Any]:
    """Return the fit of a file."""
    kernel = RBF(1 / 16)
    kernel_pca(10, kernel, Subset(m)).fit(np.load(path, mmap_mode="r")[: 4 * m])
    return lambda: kernel_pca(10, kernel, Subset(m)).fit(path)
