"""Certificates of kernel PCA on a basis, against the truth from the whole kernel matrix."""

import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import scipy.stats

from mercer import KernelPCA, config_context
from mercer.kernels import RBF, Laplacian, Linear, Matern, Polynomial, Tanh
from mercer.methods import (
    Adaptive,
    Cholesky,
    ConvergenceWarning,
    Greedy,
    Improved,
    Nystrom,
    Reduced,
    Subset,
)
from mercer.methods.kernel import products as rows
from mercer.methods.kernel.landmark_fit import (
    mean_bound,
)
from tests.catalogue import others_slow, pairwise
from tests.laws import plain

RNG = np.random.default_rng(0)
DATA = {
    "normal": RNG.standard_normal((100, 5)),
    "few columns": RNG.standard_normal((100, 2)),
    "duplicates": np.repeat(RNG.standard_normal((25, 4)), 4, axis=0),
    "large mean": RNG.standard_normal((90, 4)) + 1e4,
    "clusters": np.repeat([[0.0], [20.0]], 45, axis=0) + 0.01 * RNG.standard_normal((90, 3)),
    "constant columns": np.hstack([RNG.standard_normal((90, 2)), np.full((90, 3), 7.0)]),
    "small": 1e-4 * RNG.standard_normal((80, 4)),
    "outlier": RNG.standard_normal((90, 3)) * np.where(np.arange(90) == 50, 100.0, 1.0)[:, None],
}
KERNELS = [RBF(0.1), RBF(1e-4), RBF(10.0), Linear(), Polynomial(3), Laplacian(0.3), Matern(2.0)]
METHODS = [
    Subset,
    lambda m: Subset(m, "kmeans"),
    lambda m: Subset(m, centroid="basis"),
    lambda m: Subset(m, rank=m - 1),
    Reduced,
    Improved,
    Nystrom,
    lambda m: Nystrom(m, "kmeans"),
    lambda m: Nystrom(m, on="basis"),
    Cholesky,
    lambda m: Cholesky(m, on="rows"),
    Greedy,
]


def fit(k, method, X, weights=None, kernel=RBF(0.1), **settings):  # noqa: B008
    settings = {"random_state": 1, **settings}
    return KernelPCA(k, kernel=kernel, method=method, **settings).fit(X, sample_weight=weights)


def gap(model, kernel, X, weights=None, center=True):
    """The true gap: 1 − captured/optimum."""
    best = plain.variances(kernel, X, weights, center)[: model.n_components_].sum()
    return 1.0 - plain.held(model, kernel, X, weights, center) / best


@pytest.mark.filterwarnings("ignore:.*above rounding error")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", DATA)
def test_captured_and_bound_against_the_truth(name, dtype):
    """The bound is never below the optimum; captured is never more than the axes hold."""
    X = DATA[name].astype(dtype)
    turn = list(DATA).index(name) + (dtype == "float32")
    for i, kernel in enumerate(KERNELS):
        weights = None if i % 2 else np.random.default_rng(i).integers(0, 3, len(X)).astype(float)
        center = i % 3 != 2
        values = plain.variances(kernel, X, weights, center)
        own = np.abs(kernel.diag(X.astype(float))).mean()
        for j, method in enumerate(METHODS):
            if (i + j + turn) % 3:  # every pair of data, kernel and method, not every product
                continue
            found = fit(2, method(3 + 17 * ((i + j) % 2)), X, weights, kernel, center=center)
            certificate, total = found.certificate_, found.projection_.total_variance
            best, inside = values[: found.n_components_].sum(), 0.0
            if found.n_components_:
                inside = plain.held(found, kernel, X, weights, center)
            captured, upper = float(certificate.explained), float(certificate.optimum)
            truth = values.sum()
            share = (best - 1e-14 * own) / (truth + 1e-14 * own) if truth > 0 else 0.0
            assert certificate.optimum_upper >= share * (1 - 1e-9)
            # What rounding leaves of the truth; more where axes are nearly parallel.
            rounding = 1e-14 * own + 1e-6 * best
            told = f"{kernel} {found.method}"
            assert upper >= best - (1e-14 * own + 1e-9 * best), told
            assert captured <= inside + rounding, told
            assert total >= values.sum() * (1 - 1e-9) - 1e-14 * own, told
            if dtype == "float64":
                assert captured >= 0.99 * inside - 1e-10 * own, told
            elif best > 1e-2 * own:  # float32 tells this much of it
                assert captured >= 0.9 * inside, told


@pytest.mark.parametrize("kernel", [RBF(0.1), Laplacian(0.3), Polynomial(2)])
@pytest.mark.parametrize("m", [5, 40, 100])
def test_a_well_conditioned_certificate_is_sharp(kernel, m):
    """Captured is what the axes hold, and all rows leave no gap."""
    X = DATA["normal"]
    for method in METHODS:
        found = fit(3, method(m), X, kernel=kernel)
        inside = plain.held(found, kernel, X)
        captured = float(found.certificate_.captured) * found.projection_.total_variance
        assert captured == pytest.approx(inside, rel=1e-8)
        if m == 100 and "rank" not in repr(found.method):
            assert found.certificate_.gap <= 1e-5


@pytest.mark.parametrize("certificate", [True, False])
def test_the_total_is_bracketed(certificate):
    X, kernel = DATA["normal"], RBF(0.1)
    truth = plain.variances(kernel, X).sum()
    found = fit(2, Subset(20), X, certificate=certificate)
    low, high = found.certificate_.total
    assert low <= truth * (1 + 1e-9)
    assert truth * (1 - 1e-9) <= high == found.projection_.total_variance
    if certificate:
        assert high <= low * (1 + 1e-6)  # all rows are in one block
        return
    h = kernel(X, found.X_fit_)
    h = h - h.mean(axis=0)
    seen = np.trace(h @ np.linalg.solve(kernel(found.X_fit_), h.T)) / 99
    assert low == pytest.approx(seen, rel=1e-6)


# The rounding of float32 values, which is measured.


def test_empirical_bernstein_is_not_violated_more_than_chance_allows():
    rng = np.random.default_rng(2)
    for draw in (
        lambda: (rng.random(300) < 0.01).astype(float),
        lambda: (rng.random(1000) < 0.5).astype(float),
        lambda: rng.beta(0.1, 5.0, 400),
    ):
        mean = np.mean([draw().mean() for _ in range(2000)])
        missed = sum(mean_bound(draw(), 0.95) < mean for _ in range(1000))
        assert missed <= scipy.stats.binom.ppf(0.9999, 1000, 0.05)
    assert mean_bound(np.zeros(1)) == 1.0
    assert mean_bound(np.zeros(10_000)) <= 0.002


# A gap that is asked for.


def asked(model, X, weights=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, sample_weight=weights)
    return [str(w.message) for w in caught if w.category is ConvergenceWarning]


@pairwise(
    wanted=[0.1, 0.01],
    kernel=[RBF(0.02), RBF(0.3), Laplacian(0.2), Polynomial(2)],
    method=[
        Subset(40),
        Greedy(40),
        Adaptive(20),
        Adaptive(20, store="float64"),
        Adaptive(20, store="none"),
        Adaptive(20, store=None),
    ],
)
def test_a_gap_is_met_or_its_absence_told(method, kernel, wanted):
    X = np.random.default_rng(6).standard_normal((250, 5))
    weights = None if wanted == 0.1 else np.random.default_rng(7).integers(1, 4, 250).astype(float)
    for dtype in ("float64", "float32"):
        rows = X.astype(dtype)
        model = KernelPCA(3, kernel=kernel, method=method, gap=wanted, random_state=0)
        told = asked(model, rows, weights)
        certified = model.certificate_.gap
        assert certified.kind == "bound"
        assert certified <= wanted or any("was requested" in text for text in told)
        assert certified > wanted or not told
        assert gap(model, kernel, rows, weights) <= certified + 1e-6
        if isinstance(method, Adaptive) and method.store is not None:
            assert certified <= wanted


@pytest.mark.parametrize("n", [5, 8, 15, 20, 25])
@pytest.mark.parametrize("store", ["float64", "float32", "none"])
def test_products_that_exhaust_few_rows_find_what_is_there(n, store):
    """The last vectors of a Krylov space are no noise: no eigenvalue is above the truth."""
    for seed in range(2):
        X = np.random.default_rng(seed).standard_normal((n, 10))
        for k in (1, 3):
            values = plain.variances(RBF(0.1), X)[:k]
            found = fit(k, Adaptive(3, store=store), X, gap=1e-6 if store != "float32" else 1e-3)
            assert np.abs(found.explained_variance_ - values).max() <= 3e-3 * values[0]
            assert (found.explained_variance_ <= values * (1 + 1e-6)).all()
            assert gap(found, RBF(0.1), X) <= found.certificate_.gap + 1e-9


def test_the_note_says_what_the_gap_needs():
    X = np.random.default_rng(6).standard_normal((250, 5))
    with config_context(memory="72MiB"):
        model = KernelPCA(3, kernel=RBF(0.5), method=Adaptive(20, store=None), gap=1e-4)
        told = asked(model, X)
    met = model.certificate_.gap <= 1e-4
    assert met or "The requested gap needs" in str(model.certificate_)
    assert met != bool(told)


def test_a_basis_that_has_grown_is_that_of_a_subset():
    X = np.random.default_rng(8).standard_normal((20_000, 3))
    grown = fit(2, Adaptive(100, store=None), X, kernel=RBF(0.2), gap=0.01)
    assert len(grown.X_fit_) > 100
    again = fit(2, Subset(select=grown.X_fit_), X, kernel=RBF(0.2))
    assert np.abs(grown.transform(X[:50]) - again.transform(X[:50])).max() <= 1e-9


# Axes over all rows, and kernels that have no bounds.


@pytest.mark.parametrize("method", [Nystrom(15), Nystrom(15, "kmeans"), Cholesky(15, on="rows")])
@pytest.mark.parametrize("center", [True, False])
def test_axes_over_too_many_rows_are_judged_along_the_span(method, center, monkeypatch):
    """A bound if they are centered at the mean of the rows, else an estimate."""
    X, kernel = DATA["normal"], RBF(0.05)
    exactly = fit(2, method, X, kernel=kernel, center=center)
    monkeypatch.setattr(rows, "AFFORDABLE", 0.0)
    nearly = fit(2, method, X, kernel=kernel, center=center)
    assert np.abs(nearly.transform(X) - exactly.transform(X)).max() <= 1e-12
    certain = isinstance(method, Cholesky) or not center
    assert nearly.certificate_.explained.kind == ("bound" if certain else "estimate")
    inside = plain.held(nearly, kernel, X, center=center)
    assert float(nearly.certificate_.explained) == pytest.approx(inside, rel=0.1)
    assert not certain or float(nearly.certificate_.explained) <= inside * (1 + 1e-9)
    best = plain.variances(kernel, X, center=center)[:2].sum()
    assert float(nearly.certificate_.optimum) >= best * (1 - 1e-9)


@pytest.mark.parametrize("method", [m(12) for m in METHODS] + [Adaptive(12)], ids=repr)
def test_a_kernel_that_is_not_positive_semi_definite_has_estimates(method):
    X = np.random.default_rng(9).standard_normal((80, 4))
    model = KernelPCA(2, kernel=Tanh(0.5, -1.0), method=method, gap=0.5, random_state=0)
    told = asked(model, X)
    assert model.certificate_.gap.kind == "estimate"
    assert model.certificate_.captured.kind == model.certificate_.optimum_upper.kind == "estimate"
    assert any("gap=0.5 was requested" in text for text in told)
    assert "(estimated)" in model.certificate_.sentence


# Memory.

CHILD = """
    import sys, warnings
    from pathlib import Path
    import numpy as np
    from mercer import KernelPCA, config_context
    from mercer.kernels import RBF
    from mercer.methods import Subset

    warnings.simplefilter("ignore")

    def peak():
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

    X = np.random.default_rng(0).standard_normal((3000, 20))
    KernelPCA(3, kernel=RBF(0.02), method=Subset(100)).fit(X)
    before = peak()
    with config_context(memory="96MiB"):
        kpca = KernelPCA(3, kernel=RBF(0.02), method=Subset(100, select=sys.argv[2]))
        kpca.fit(sys.argv[1])
        kpca.transform(sys.argv[1]).collect()
    print((peak() - before) / 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("select", others_slow(["uniform", "kmeans"], "kmeans"))
def test_memory_does_not_grow_with_the_rows(tmp_path, select):
    """A file of 31 MiB; its kernel matrix would have 298 GiB."""
    path = tmp_path / "rows.npy"
    np.save(path, np.random.default_rng(1).standard_normal((200_000, 20)))
    child = [sys.executable, "-c", textwrap.dedent(CHILD), str(path), select]
    run = subprocess.run(child, capture_output=True, text=True, timeout=1200)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout.split()[-1]) <= 96 + 28
