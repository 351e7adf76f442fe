"""What reviews of KernelPCA found."""

import numpy as np
import pytest

from mercer import PCA, ConvergenceWarning, KernelPCA, config_context
from mercer.kernels import RBF, FromFunction, Linear, Matern, Polynomial, Subsequence, Tanh
from mercer.methods import Exact
from mercer.preimage import Ridge
from mercer.rules import BrokenStick, Kaiser

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((60, 4)), RNG.standard_normal((20, 4))


def test_a_kernel_that_changes_after_the_fit_changes_nothing():
    kpca = KernelPCA(2, kernel=RBF(0.1), preimage=Ridge()).fit(X)
    scores, rows = kpca.transform(Y), kpca.reconstruct(Y)
    kpca.set_params(kernel__gamma=5.0, preimage__alpha=9.0)
    assert np.array_equal(kpca.transform(Y), scores)
    assert np.array_equal(kpca.reconstruct(Y), rows)


@pytest.mark.parametrize(
    "back", [{"preimage": "ridge"}, {"preimage": "gradient"}, {"fit_inverse_transform": True}]
)
def test_weights_count_on_the_way_back(back):
    settings = {"kernel": RBF(0.1), "random_state": 0, **back}
    weights = RNG.integers(1, 4, 60)
    weighed = KernelPCA(3, **settings).fit(X, sample_weight=weights)
    twice = KernelPCA(3, **settings).fit(np.repeat(X, weights, axis=0))
    assert np.abs(weighed.reconstruct(Y) - twice.reconstruct(Y)).max() <= 1e-5
    others = np.vstack([X, X[:20] + 100])
    none = np.r_[np.ones(60), np.zeros(20)]
    without = KernelPCA(3, **settings).fit(others, sample_weight=none)
    assert (
        np.abs(without.reconstruct(Y) - KernelPCA(3, **settings).fit(X).reconstruct(Y)).max()
        <= 1e-5
    )
    assert without.X_fit_.shape == (60, 4)
    assert without.fit_transform(others, sample_weight=none).shape == (80, 3)


def test_the_power_method_is_not_for_kernels_with_negative_eigenvalues():
    with pytest.raises(ValueError, match=r"Tanh\(0.5, coef0=-1\) may have negative ones"):
        KernelPCA(2, kernel=Tanh(0.5, -1), eigen_solver="power").fit(X)


def test_a_tolerance_is_met_however_the_matrix_is_kept():
    rows = RNG.standard_normal((400, 6))
    for store in ("float32", "none"):
        kpca = KernelPCA(3, kernel=RBF(0.05), method=Exact(store=store), tol=1e-9).fit(rows)
        certificate = kpca.certificate_
        assert certificate.converged
        assert (certificate.residuals <= 2e-9 * certificate.eigenvalues).all()


@pytest.mark.parametrize("solver", ["dense", "jacobi", "krylov"])
@pytest.mark.parametrize("kernel", [Matern(), RBF(0.3), Linear()])
def test_bounds_hold_where_float32_is_kept(solver, kernel):
    rows = np.random.default_rng(3).standard_normal((200, 8))
    K = kernel(rows)
    values = np.linalg.eigvalsh(K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean())[::-1]
    best = values[:3].sum() / values.sum()
    found = KernelPCA(3, kernel=kernel, method=Exact(solver, "float32"), random_state=0).fit(rows)
    assert float(found.certificate_.captured) <= best * (1 + 1e-13)
    assert float(found.certificate_.optimum_upper) >= best * (1 - 1e-13)


@pytest.mark.parametrize("scale", [1e-150, 1e-80, 1e80, 1e140])
def test_very_large_and_very_small_rows(scale):
    with np.errstate(over="ignore"):
        kpca = KernelPCA(2).fit(X * scale)
    assert (
        np.abs(kpca.explained_variance_ / scale**2 - PCA(2).fit(X).explained_variance_).max()
        <= 1e-12
    )
    scores = kpca.transform(X * scale) / scale
    assert np.abs(np.abs(scores) - np.abs(PCA(2).fit_transform(X))).max() <= 1e-12


@pytest.mark.parametrize("scale", [1e-25, 1e18])
def test_scores_of_float32_rows_whose_eigenvalues_are_beyond_it(scale):
    rows = (X * scale).astype(np.float32)
    with np.errstate(over="ignore"):
        scores = KernelPCA(2).fit_transform(rows) / np.float32(scale)
    assert np.abs(np.abs(scores) - np.abs(PCA(2).fit_transform(X))).max() <= 1e-5


@pytest.mark.parametrize("rule", [BrokenStick(), Kaiser()])
def test_rules_count_weights(rule):
    settings = {"kernel": RBF(0.3), "eigen_solver": "dense"}
    weighed = KernelPCA(rule, **settings).fit(X, sample_weight=np.full(60, 2))
    twice = KernelPCA(rule, **settings).fit(np.repeat(X, 2, axis=0))
    assert weighed.n_components_ == twice.n_components_


def test_memory_that_is_not_there():
    rows = RNG.standard_normal((1500, 5))
    with config_context(memory="2MiB"):
        with pytest.raises(MemoryError, match=r"exact .* needs"):
            KernelPCA(2, kernel="rbf", eigen_solver="dense").fit(rows)
        with pytest.raises(MemoryError, match=r"exact .* needs"):
            KernelPCA(2, kernel="rbf", method=Exact()).fit(rows)
    many = np.zeros((20_000, 50), np.float32)
    with config_context(memory="1MiB"):
        with pytest.raises(MemoryError, match=r"a sample of \d+ rows fits") as error:
            KernelPCA(3, kernel="rbf").plan(many)
        fits = int(str(error.value).split("a sample of ")[1].split()[0])
        KernelPCA(3, kernel="rbf").plan(many[:fits])
    with (
        config_context(memory="16MiB"),
        pytest.raises(MemoryError, match="fit_inverse_transform needs"),
    ):
        KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(rows)


def test_rows_of_another_library_than_the_fits():
    torch = pytest.importorskip("torch")
    kpca, other = (
        KernelPCA(2, kernel="rbf").fit(X),
        KernelPCA(2, kernel="rbf").fit(torch.asarray(X)),
    )
    expected = kpca.transform(Y)
    assert np.abs(kpca.transform(torch.asarray(Y)).numpy() - expected).max() <= 1e-13
    assert np.abs(other.transform(Y) - expected).max() <= 1e-13


def test_kernels_that_are_not_finite():
    bad = FromFunction(
        lambda A, B: np.where((A[:, :1] > 1) | (B[:, :1].T > 1), np.nan, 1.0 + A @ B.T)
    )
    rows = np.vstack([np.zeros((5, 2)), np.full((2, 2), 2.0)])
    with pytest.raises(ValueError, match="NaN or infinity between rows: 7 rows"):
        KernelPCA(1, kernel=bad).fit(rows)
    kpca = KernelPCA(2, kernel=Polynomial(9)).fit(X)
    with pytest.raises(ValueError, match=r"Polynomial\(9\) gives NaN .* the first of them row 1"):
        kpca.transform(np.vstack([Y[:1], Y[1:2] * 1e150]))


def test_strings_and_numbers_do_not_mix():
    words = KernelPCA(1, kernel=Subsequence(2)).fit(["banana", "ananas", "nab"])
    with pytest.raises(ValueError, match="X holds numbers, and KernelPCA was fitted to strings"):
        words.transform(X)
    with pytest.raises(ValueError, match="X holds strings, and KernelPCA was fitted to numbers"):
        KernelPCA(1, kernel="rbf").fit(X).transform(["a", "b"])
    with pytest.raises(ValueError, match="at least 2 strings"):
        KernelPCA(1, kernel=Subsequence(2)).fit(["abc"])
    with pytest.raises(ValueError, match="strings cannot be computed from scores"):
        KernelPCA(1, kernel=Subsequence(2), fit_inverse_transform=True).fit(["ab", "abc"])
    both = KernelPCA(1, kernel=FromFunction(lambda a, b: 1.0 + len(a) * len(b), pairwise=True))
    assert not hasattr(both.fit(X).fit(["a", "bcd", "ef"]), "n_features_in_")


def test_what_changes_after_the_fit_needs_a_fit():
    kpca = KernelPCA(2, kernel="rbf").fit(X)
    kpca.set_params(preimage="gradient")
    with pytest.raises(ValueError, match="fit again"):
        kpca.preimages(kpca.transform(Y))
    kpca.set_params(fit_inverse_transform=True)
    with pytest.raises(ValueError, match="not available"):
        kpca.inverse_transform(kpca.transform(Y))
    kpca.set_params(preimage=None).fit(X).set_params(fit_inverse_transform=False).fit(X)
    assert not hasattr(kpca, "dual_coef_")


def test_a_table_and_a_file_at_once(tmp_path):
    kpca = KernelPCA(2, kernel="rbf").set_output(transform="pandas").fit(X)
    with pytest.raises(ValueError, match="use one of them"):
        kpca.transform(Y, out=tmp_path / "scores.npy")


def test_no_axes_still_have_a_mean():
    with pytest.warns(UserWarning, match="no component has"):
        kpca = KernelPCA(1, kernel=RBF(), preimage="gradient").fit(np.ones((6, 3)))
    assert np.allclose(kpca.reconstruct(np.ones((2, 3))), 1.0)


def test_ridge_of_linear_kernel_pca_is_pca():
    rows = X + 5
    found = KernelPCA(2, preimage=Ridge(1e-7)).fit(rows).reconstruct(Y)
    assert np.abs(found - PCA(2).fit(rows).reconstruct(Y)).max() <= 1e-5


def test_a_gap_that_is_missed_warns():
    rows = RNG.standard_normal((300, 30))
    with pytest.warns(ConvergenceWarning, match="gap=1e-06 was asked for"):
        KernelPCA(3, kernel=RBF(0.05), eigen_solver="randomized", iterated_power=1, gap=1e-6).fit(
            rows
        )


def test_strings_that_are_refused_leave_the_model_as_it_was():
    model = KernelPCA(2, kernel="rbf").fit(np.random.default_rng(0).normal(size=(20, 3)))
    with pytest.raises(ValueError, match="fitted to numbers"):
        model.transform(["a", "b"])
    assert model.n_features_in_ == 3
