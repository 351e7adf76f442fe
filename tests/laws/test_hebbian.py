"""The kernel Hebbian algorithm: its published steps, where they lead, and in how many passes."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits, load_iris, load_wine

from mercer import ConvergenceWarning, KernelPCA, config_context
from mercer.kernels import RBF, Linear, Polynomial, Tanh
from mercer.methods import Hebbian, Size, Subset
from mercer.methods.literature.hebbian import HebbianState, principal_components
from mercer.methods.literature.hebbian_updates import update
from tests.kernel_catalogue import KERNELS, ROWS
from tests.laws import plain
from tests.laws.truth import same

GAINS = ["kha", "et", "smd"]
IRIS = load_iris().data
RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((60, 4)) * [2.0, 1.2, 0.7, 0.4], RNG.standard_normal((20, 4))
KERNEL = RBF(0.1)


def fit(k, method, X=X, weights=None, kernel=KERNEL, **settings):
    settings = {"random_state": 0, **settings}
    return KernelPCA(k, kernel=kernel, method=method, **settings).fit(X, sample_weight=weights)


def quiet(*args, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*args, **settings)


def centred(kernel, X, weights=None, center=True):
    """The weighed, centred kernel matrix over Σw − 1."""
    w, K = plain.counts(X, weights), kernel(plain.double(X))
    share = w / w.sum() * center
    K = K - K @ share - (K @ share)[:, None] + share @ K @ share
    return np.sqrt(w)[:, None] * K * np.sqrt(w) / (w.sum() - 1)


def angles(model, kernel, X, weights=None, center=True):
    """Angles, in feature space, between a model's axes over all rows and the exact ones."""
    K, w = centred(kernel, X, weights, center), plain.counts(X, weights)
    values, U = np.linalg.eigh(K)
    A = np.asarray(model.projection_.components) * np.sqrt(w.sum() - 1)
    A = np.divide(A, np.sqrt(w)[:, None], where=w[:, None] > 0, out=np.zeros_like(A))
    k = A.shape[1]
    values, U = values[::-1], U[:, ::-1]
    apart = A - U[:, :k] * np.sign((U[:, :k] * (K @ A)).sum(axis=0)) / np.sqrt(values[:k])
    return np.sqrt(np.maximum(np.einsum("ij,ij->j", apart, K @ apart), 0.0)), values


def told_apart(values, k):
    """Axes whose variance is a tenth away from the others'."""
    gaps = -np.diff(values[: k + 1]) / values[:k]
    return np.minimum(gaps, np.append(1.0, gaps[:-1])) >= 0.1


# The steps, as published: dense products, np.tril.


def published(K, order, A, gain):
    """Kim et al. 2005 and Günter et al. 2007, (20)-(22) and (31)-(37), one step after another."""
    kind, eta, tau, mu, xi = gain
    B, rho = np.zeros_like(A), np.zeros(len(A))
    for t, row in enumerate(order):
        k, e = K[row], np.eye(len(K))[row]
        y = A @ k
        lt = np.tril(np.outer(y, y))
        eta_t = np.full(len(A), eta * tau / (t + tau))
        if kind > 0:
            values = np.linalg.norm(A @ K, axis=1) / np.linalg.norm(A, axis=1)
            eta_t *= np.linalg.norm(values) / values
        gamma = np.outer(y, e) - lt @ A
        if kind > 1:
            rho = rho + mu * np.diag(gamma @ K @ B.T)
            eta_t = eta_t * np.exp(rho)
            z, both = B @ k, A + xi * B
            cross = np.tril(np.outer(z, y) + np.outer(y, z))
            B = xi * B + eta_t[:, None] * (np.outer(both @ k, e) - lt @ both - xi * cross @ A)
        A = A + eta_t[:, None] * gamma
    return A, B, rho


@pytest.mark.parametrize("kind", range(3), ids=GAINS)
def test_steps_are_those_published(kind):
    rng = np.random.default_rng(1)
    K = centred(KERNEL, X) * (len(X) - 1)
    order, start = rng.integers(0, len(X), 90), rng.standard_normal((3, len(X))) / 10
    gain = (kind, 0.05, 40.0, 0.3, 0.95)
    A, V = start.copy(), start @ K
    B, rho, travel = np.zeros_like(A), np.zeros(3), np.zeros(3)
    squares = (V**2).sum(axis=1) / (A**2).sum(axis=1)
    assert update(K[order], order, (A, V, B, rho), travel, squares, gain, 0) == 0
    expected, slope, gains = published(K, order, start, gain)
    assert np.abs(A - start).max() > 0.02
    assert np.abs(A - expected).max() <= 1e-12
    assert np.abs(B - slope * (kind > 1)).max() <= 1e-11
    assert np.abs(rho - gains).max() <= 1e-12
    assert (np.abs(rho).max() > 0.01) == (kind > 1)
    assert np.abs(V - A @ K).max() <= 1e-12 * np.abs(V).max() * len(order)  # kept up step by step


@pytest.mark.parametrize("kind", range(3), ids=GAINS)
def test_coordinates_and_kernels_give_the_same_steps(kind):
    """Features that can be written down: W = AΦ̃."""
    rng = np.random.default_rng(2)
    F = X - X.mean(axis=0)
    order, A = rng.integers(0, len(X), 50), rng.standard_normal((2, len(X))) / 10
    squares = np.array([4.0, 1.0])
    W, B, rho, travel = A @ F, np.zeros((2, 4)), np.zeros(2), np.zeros(2)
    gain = (kind, 0.01, 40.0, 0.1, 0.9)
    update(F[order], order[:0], (W, W, B, rho), travel, squares, gain, 0)
    # The same with the eigenvalues held: gains are η ‖λ‖/λ_i.
    own = np.sqrt(squares.sum() / squares) if kind else np.ones(2)
    C, slope, gains = A @ F, np.zeros((2, 4)), np.zeros(2)
    for t, f in enumerate(F[order]):
        y, z = C @ f, slope @ f
        lt, cross = np.tril(np.outer(y, y)), np.tril(np.outer(z, y) + np.outer(y, z))
        gamma = np.outer(y, f) - lt @ C
        if kind > 1:
            gains = gains + 0.1 * np.diag(gamma @ slope.T)
        eta = (0.01 * 40.0 / (t + 40.0) * own * np.exp(gains))[:, None]
        both = C + 0.9 * slope
        if kind > 1:
            slope = 0.9 * slope + eta * (np.outer(both @ f, f) - lt @ both - 0.9 * cross @ C)
        C = C + eta * gamma
    assert np.abs(W - C).max() <= 1e-11
    assert np.abs(rho - gains).max() <= 1e-12


# Limits of the iterations.


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.name, marks=() if i % 3 == 0 else pytest.mark.slow)
        for i, row in enumerate(row for row in KERNELS if row.kernel.psd)
    ],
)
def test_axes_are_those_of_exact(row):
    gain = GAINS[len(row.name) % 3]  # any of them
    X = ROWS[row.rows](np.random.default_rng(3), 40)
    K = centred(row.kernel, X)
    values = np.linalg.eigvalsh(K)[::-1]
    steps = values[1:5] / np.maximum(values[:4], 1e-300)
    k = 1 if row.name == "separable" else 1 + int(np.argmin(steps))
    assert values[k] <= 0.86 * values[k - 1]
    found = quiet(k, Hebbian(gain), X, kernel=row.kernel)
    turned, values = angles(found, row.kernel, X)
    assert turned[told_apart(values, k)].max(initial=0.0) < 1e-3
    assert np.abs(found.explained_variance_ - values[:k]).max() <= 1e-5 * values[0]


def usps(n):
    folder = os.environ.get("MERCER_DATA", Path(__file__).parents[2].parent / "shared" / "data")
    path = Path(folder) / "usps.npz"
    if not path.exists():
        pytest.skip(f"{path} is not here; MERCER_DATA names its folder")
    with np.load(path) as table:
        return table["X"][:n] / float(table["scale"])


@pytest.mark.parametrize(
    ("name", "gain"), [("iris", "kha"), ("iris", "smd"), ("digits", "et"), ("usps", "smd")]
)
def test_axes_of_real_rows_are_those_of_exact(name, gain):
    X = {"iris": lambda: IRIS, "digits": lambda: load_digits().data[:300]}.get(
        name, lambda: usps(400)
    )()
    kernel, k = {"iris": (RBF(0.1), 4), "digits": (RBF(0.001), 4), "usps": (RBF(1 / 128), 3)}[name]
    if gain == "kha":
        k = 2  # it waits for the smallest variance
    found = quiet(k, Hebbian(gain), X, kernel=kernel)
    turned, values = angles(found, kernel, X)
    there = told_apart(values, k)
    assert there.any()
    assert turned[there].max() < 1e-3
    assert found.certificate_.converged


@pytest.mark.parametrize("gain", ["et", "smd"])
def test_axes_as_they_were_learnt(gain):
    found = quiet(2, Hebbian(gain, polish=False, tol=1e-5), IRIS)
    turned, _ = angles(found, KERNEL, IRIS)
    assert 0.0 < turned.max() < 2e-3
    A = np.asarray(found.projection_.components)
    overlaps = A.T @ KERNEL(IRIS) @ A
    assert np.abs(np.diag(overlaps) - 1).max() <= 1e-9  # unit length, nearly orthogonal
    assert np.abs(found.projection_.overlaps - overlaps).max() <= 1e-9
    y = found.transform(IRIS)
    left = len(IRIS) * np.diag(centred(KERNEL, IRIS)) - np.diag(centred(KERNEL, IRIS))
    left = left - np.einsum("ij,ij->i", y, np.linalg.solve(overlaps, y.T).T)
    assert np.abs(found.reconstruction_error(IRIS) - left).max() <= 1e-9


def test_fewer_passes_than_kha():
    """To the same reconstruction error on USPS, within 0.1 % of the best."""
    X, kernel, k = usps(500), RBF(1 / 128), 8
    values = np.linalg.eigvalsh(centred(kernel, X))[::-1]
    least = values[k:].sum()

    def passes(gain):
        for count in (2, 4, 6, 8, 12, 16, 24):
            found = quiet(k, Hebbian(gain, max_passes=count), X, kernel=kernel)
            held = float(found.certificate_.captured) * values.sum()
            if values.sum() - held <= 1.001 * least:
                return count
        return 99

    kha, et, smd = (passes(gain) for gain in GAINS)
    assert smd < et < kha


# On a basis.


@pytest.mark.parametrize(
    ("gain", "center", "weighted"),
    [("kha", False, True), ("et", True, True), ("smd", True, False), ("et", False, False)],
)
def test_on_a_basis_it_finds_the_axes_of_subset(gain, center, weighted):
    weights = np.random.default_rng(4).integers(0, 3, len(X)).astype(float) if weighted else None
    method = Hebbian(gain, select=np.arange(0, 60, 3), max_passes=4000)
    found = quiet(2, method, weights=weights, center=center)
    subset = fit(2, Subset(select=np.arange(0, 60, 3)), weights=weights, center=center)
    assert same(found.transform(NEW), subset.transform(NEW)) <= 2e-3
    assert np.allclose(found.eigenvalues_, subset.eigenvalues_, rtol=1e-5)
    gap = float(found.certificate_.gap)
    assert gap == pytest.approx(float(subset.certificate_.gap), abs=1e-5)


def test_epochs_of_batches_come_near_subset():
    points = X[:20]
    subset = fit(2, Subset(select=points))
    apart = []
    kpca = KernelPCA(2, kernel=KERNEL, method=Hebbian("et", select=points), random_state=0)
    for epoch in range(60):
        order = np.random.default_rng(epoch).permutation(len(X))
        for batch in np.array_split(order, 3):
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # a stream has not ended: nothing to warn of
                kpca.partial_fit(X[batch])
        apart.append(same(kpca.transform(NEW), subset.transform(NEW)))
    assert apart[-1] < 0.02 < apart[0]
    assert apart[-1] < apart[4] / 2
    n = len(X)  # the divisors are n − 1 and 60 n − 1
    held = float(kpca.certificate_.explained) / float(subset.certificate_.explained)
    held *= (60 * n - 1) / 60 / (n - 1)
    assert 0.9999 < held <= 1.0 + 1e-9
    assert f"{60 * len(X)} rows in order of arrival" in str(kpca.certificate_)


@pytest.mark.parametrize("gain", GAINS)
def test_batches_learn_in_their_order(gain):
    """One batch of all rows, block by block, is the steps in that order; another order differs."""
    method = Hebbian(gain, select=X[:10])

    def stream(rows, weights=None, **how):
        with config_context(**how):
            kpca = KernelPCA(2, kernel=KERNEL, method=method, random_state=0)
            return kpca.partial_fit(rows, sample_weight=weights).transform(NEW)

    expected = stream(X)
    for block_rows in (1, 7, 1000):
        assert np.abs(stream(X, block_rows=block_rows) - expected).max() <= 1e-10
    assert np.abs(stream(X[::-1]) - expected).max() > 1e-6
    assert np.isfinite(stream(X, np.arange(60) % 3)).all()


# The same answer, whatever is done beside it.


@pytest.mark.parametrize("method", [Hebbian(), Hebbian("et", 12), Hebbian("kha")], ids=repr)
def test_the_same_bits_again(method):
    method.max_passes = 20
    found = [quiet(3, method, random_state=7) for _ in range(2)]
    assert np.array_equal(*(each.projection_.components for each in found))
    assert found[0].certificate_.gap == found[1].certificate_.gap
    other = quiet(3, method, random_state=8)
    assert not np.array_equal(other.projection_.components, found[0].projection_.components)


@pytest.mark.slow
def test_compiled_and_cached_updates_give_the_same_bits(tmp_path):
    """Helpers that came from the cache were linked otherwise, and rounded otherwise."""
    code = (
        "import numpy as np; from mercer import KernelPCA; from mercer.methods import Hebbian; "
        "X = np.random.default_rng(0).standard_normal((60, 4)) * [2.0, 1.2, 0.7, 0.4]; "
        "model = KernelPCA(3, kernel='rbf', gamma=0.1, method=Hebbian(max_passes=10), "
        "random_state=0); print(model.fit_transform(X).tobytes().hex())"
    )
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env=settings,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("n_basis", [None, 12])
def test_any_block_and_any_memory(gain, n_basis):
    method = Hebbian(gain, n_basis, max_passes=30)
    weights = np.random.default_rng(5).integers(0, 4, len(X)).astype(float)
    expected = quiet(3, method, weights=weights)
    settings = [{"block_rows": 1}, {"block_rows": 7}]
    if n_basis is None:
        settings.append({"memory": "64KiB"})  # the matrix is not kept
    for how in settings:
        with config_context(**how):
            found = quiet(3, method, weights=weights)
        assert np.abs(found.transform(NEW) - expected.transform(NEW)).max() <= 1e-9
        assert np.allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-9)
    if n_basis is None:
        full, less = Size(60, 4, 3), method.cost(Size(60, 4, 3)).memory
        with config_context(memory="64KiB"):
            assert method.cost(full).memory < less


@pytest.mark.parametrize("method", [Hebbian(), Hebbian("kha"), Hebbian("et", 12)], ids=repr)
@pytest.mark.parametrize("scale", [2.0**-400, 2.0**20, 2.0**400])
def test_any_scale_of_the_kernel(method, scale):
    method.max_passes = 30
    one, other = (quiet(2, method, kernel=kernel) for kernel in (KERNEL, scale * KERNEL))
    assert np.allclose(other.eigenvalues_ / scale, one.eigenvalues_, rtol=1e-10)
    assert same(other.transform(NEW) / np.sqrt(scale), one.transform(NEW)) <= 1e-9


@pytest.mark.parametrize("n_basis", [None, 25])
def test_weights_are_counts(n_basis):
    weights = np.random.default_rng(6).integers(0, 3, len(X))
    select = None if n_basis is None else X[:n_basis]
    method = Hebbian("et", select=select, max_passes=3000)
    found, twice = (
        quiet(2, method, weights=weights),
        quiet(2, method, np.repeat(X, weights, axis=0)),
    )
    assert np.allclose(found.eigenvalues_, twice.eigenvalues_, rtol=1e-5)
    assert same(found.transform(NEW), twice.transform(NEW)) <= 3e-3


@pytest.mark.parametrize("eta", [1e-9, 1e-4, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("gain", GAINS)
def test_any_gain_stays_finite(gain, eta):
    for given, kernel in ((IRIS[::3], KERNEL), (np.vstack([X, 300 * X[:1]]), Polynomial(2))):
        for n_basis in (None, 10):
            method = Hebbian(gain, n_basis, eta=eta, max_passes=20)
            found = quiet(3, method, given, kernel=kernel)
            assert np.isfinite(found.transform(given)).all()
            assert 0.0 < found.certificate_.captured <= found.certificate_.optimum_upper <= 1.0


# What it says of itself.


@pytest.mark.parametrize("passes", [2, 10, 400])
@pytest.mark.parametrize("center", [True, False])
def test_its_certificate_holds(passes, center):
    weights = np.random.default_rng(7).integers(0, 3, len(X)).astype(float)
    found = quiet(3, Hebbian("et", max_passes=passes, polish=False), weights=weights, center=center)
    certificate, K = found.certificate_, centred(KERNEL, X, weights, center)
    values = np.linalg.eigvalsh(K)[::-1]
    held = plain.held(found, KERNEL, X, weights, center) / np.trace(K)
    assert certificate.captured.kind == "bound"
    assert held * (1 - 1e-6) <= float(certificate.captured) <= held * (1 + 1e-12)
    assert certificate.optimum_upper >= values[:3].sum() / np.trace(K)
    # ‖Cw − λw‖ in feature space, by the coefficients of w.
    A = np.asarray(found.projection_.components) * np.sqrt(weights.sum() - 1)
    A = np.divide(A, np.sqrt(weights)[:, None], where=weights[:, None] > 0, out=np.zeros_like(A))
    A = A - np.outer(np.sqrt(weights), np.sqrt(weights) @ A) / weights.sum() * center
    variances = np.einsum("ij,ij->j", K @ A, K @ A)
    assert np.allclose(certificate.eigenvalues, variances, rtol=1e-8)
    d = K @ A - A * variances
    residuals = np.sqrt(np.maximum(np.einsum("ij,ij->j", d, K @ d), 0.0))
    assert np.abs(certificate.residuals - residuals).max() <= 1e-8 * values[0]


@pytest.mark.parametrize("n_basis", [None, 12])
def test_it_says_when_it_stopped_early(n_basis):
    with pytest.warns(ConvergenceWarning, match="stopped before it converged"):
        found = fit(3, Hebbian(n_basis=n_basis, max_passes=4))
    assert not found.certificate_.converged
    assert "4 passes" in str(found.certificate_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit(2, Hebbian("et", n_basis), IRIS)
    assert found.certificate_.converged
    assert "had rotated by" in str(found.certificate_)


# Rows of every kind, few rows, and what is refused.


def test_every_kind_of_rows():
    expected = quiet(2, Hebbian("et"), IRIS)
    for given in (scipy.sparse.csr_array(IRIS), IRIS.astype(np.float32)):
        found = quiet(2, Hebbian("et"), given)
        assert np.allclose(found.explained_variance_, expected.explained_variance_, rtol=1e-5)
    K = KERNEL(IRIS)
    for method in (Hebbian("et"), Hebbian("et", 12, polish=False)):
        given = quiet(2, method, K, kernel="precomputed")
        found = quiet(2, method, IRIS)
        assert np.abs(given.transform(K) - found.transform(IRIS)).max() <= 1e-6
        assert given.certificate_.captured.kind == "estimate"


def test_an_indefinite_kernel():
    kernel = Tanh(0.1, 0.0)
    values = np.linalg.eigvalsh(centred(kernel, X))
    assert values[0] < 0
    found = quiet(1, Hebbian("et"), kernel=kernel)
    assert found.explained_variance_[0] == pytest.approx(values[-1], rel=1e-4)
    assert found.certificate_.captured.kind == "estimate"


def test_few_rows_and_rules():
    assert quiet(9, Hebbian(), X[:5]).n_components_ == 4
    assert quiet(2, Hebbian(), X[:2]).n_components_ == 1
    assert quiet(2, Hebbian(), np.ones((20, 3))).n_components_ == 0
    assert quiet(2, Hebbian(n_basis=4), np.ones((20, 3))).n_components_ == 0
    assert quiet(6, Hebbian(), IRIS, kernel=Linear()).n_components_ == 4
    repeated = np.repeat(IRIS[::15], 5, axis=0)
    exact = fit(2, "exact", repeated)
    assert np.allclose(quiet(2, Hebbian(), repeated).eigenvalues_, exact.eigenvalues_, rtol=1e-5)
    for n_basis in (None, 40):
        assert quiet(0.9, Hebbian("et", n_basis), IRIS).n_components_ == 3
    assert quiet(None, Hebbian("et", max_passes=20), X[:12]).n_components_ == 11


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"gain": "sgd"}, "gain='sgd' must be one of 'kha', 'et', 'smd'"),
        ({"eta": 0.0}, "eta=0.0 must be a positive number"),
        ({"tau": -1}, "tau=-1 must be"),
        ({"mu": np.inf}, "mu=inf must be"),
        ({"xi": 1.5}, "xi=1.5 must be a number from 0 to 1"),
        ({"max_passes": 2.5}, "max_passes=2.5 must be an integer"),
        ({"tol": -1e-3}, "tol=-0.001 must be"),
        ({"n_basis": 61}, "n_basis=61 is more than the 60 rows"),
    ],
)
def test_bad_parameters(how, message):
    with pytest.raises(ValueError, match=message):
        fit(2, Hebbian(**how))


def test_what_it_refuses():
    with pytest.raises(ValueError, match="too many for Hebbian to separate"):
        fit(None, Hebbian(), RNG.standard_normal((300, 2)))
    with pytest.raises(ValueError, match="needs 1000 components or more"):
        fit(None, Hebbian(n_basis=1000), RNG.standard_normal((1200, 20)))
    with pytest.raises(AttributeError, match="partial_fit") as refused:
        KernelPCA(2, kernel=KERNEL, method=Hebbian()).partial_fit(X)
    assert "Hebbian with n_basis" in str(refused.value.__cause__)
    with pytest.raises(ValueError, match="Scale the rows, or change the kernel"):
        fit(2, Hebbian(), 1e100 * X, kernel=Linear())
    with pytest.raises(ValueError, match="row 3"):
        fit(2, Hebbian(), np.where(np.arange(60)[:, None] == 3, np.nan, X))


def test_learnt_gains_of_rows_that_are_not_centred_stay_bounded():
    """∂A/∂ρ grew without end where the first axis, the mean, is much longer than the others."""
    rows = np.random.default_rng(0).normal(0, 2.2, (1000, 2))
    method = Hebbian("smd", max_passes=60)
    with pytest.warns(ConvergenceWarning):
        kpca = KernelPCA(5, kernel=RBF(0.1), method=method, center=False, random_state=0).fit(rows)
    assert kpca.certificate_.gap < 1e-3


@pytest.mark.parametrize(("gain", "n_basis"), [("et", None), ("kha", 3), ("smd", 3)])
def test_axes_much_shorter_than_the_first_are_learnt_too(gain, n_basis):
    """They stayed along the first, the mean, and one axis of three was said to be all there is."""
    rows = np.random.default_rng(0).standard_normal((3, 3))
    method = Hebbian(gain, n_basis, max_passes=4000)
    found = quiet(3, method, rows, kernel=RBF(1e-3), center=False)
    values = np.linalg.eigvalsh(centred(RBF(1e-3), rows, center=False))[::-1]
    assert np.allclose(found.explained_variance_, values, rtol=1e-6)


def test_axes_that_are_yet_to_be_learnt():
    """What stands still is not all there is where axes are in the span of others."""
    covariance = np.diag([1.0, 0.1])
    for W, total in ((np.eye(2)[[0, 0]], 1.1), (np.eye(2), 1.1), (np.eye(2)[[0, 0]], 1.0)):
        state = HebbianState.begin(W)
        state.last, state.travel = np.unique(W, axis=0)[::-1], np.full(2, 2.0)
        values, S = principal_components(W @ W.T, W @ covariance @ W.T, polish=True)
        turn = state.check_turn(values, S, len(values), polish=True, enough=0.999 * total)
        steady = turn is not None and turn <= 1e-6
        assert steady == (total == 1.0 or W[1, 1] == 1.0)
        assert (state.turn <= 1e-6) == steady


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_axes_that_stand_still_are_the_first_or_not_said_to_have_converged(seed):
    """On wine with a narrow kernel the second axis was learnt, and called the first."""
    rows, settings = load_wine().data, {"kernel": RBF(0.1), "center": False, "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        kpca = KernelPCA(1, method=Hebbian("kha", 20, max_passes=300), **settings).fit(rows)
    best = KernelPCA(1, method=Subset(20), **settings).fit(rows).explained_variance_[0]
    found = kpca.explained_variance_[0]
    assert not kpca.certificate_.converged or found >= (1 - 1e-3) * best
    assert not kpca.certificate_.converged or "others explain more" not in str(kpca.certificate_)
