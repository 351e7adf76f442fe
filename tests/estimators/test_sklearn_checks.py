"""scikit-learn's own checks of an estimator, for every solver."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import (
    PCA,
    Denoiser,
    KernelPCA,
    NearestProjection,
    NoveltyDetector,
    SubspaceClassifier,
    rules,
)
from mercer.estimators.kernel_pca import SOLVERS as KERNEL_SOLVERS
from mercer.estimators.pca import SOLVERS
from mercer.methods import (
    Cholesky,
    Exact,
    FrequentDirections,
    Hebbian,
    Iterative,
    Nystrom,
    RandomFeatures,
    Sketch,
    Sparse,
    SparseL1,
    Subset,
    Within,
)
from mercer.sketches import Gaussian

NOT_SQUARE = "the rows it transforms have too few columns, which is said first"
ALL_AXES = "with all axes those of the null space are arbitrary, and weights change its size"


def expected_failures(estimator):
    if estimator.n_components is None and isinstance(estimator, PCA):
        return {
            "check_sample_weight_equivalence_on_dense_data": ALL_AXES,
            "check_sample_weight_equivalence_on_sparse_data": ALL_AXES,
        }
    return {}


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning")
@parametrize_with_checks(
    [PCA()]
    + [PCA(2, svd_solver=solver, random_state=0) for solver in SOLVERS]
    + [PCA(2, svd_solver=method, random_state=0) for method in (Iterative(), FrequentDirections())],
    expected_failed_checks=expected_failures,
)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*axes were asked for")
@parametrize_with_checks(
    [KernelPCA(), KernelPCA(2, kernel="precomputed"), KernelPCA(2, preimage="gradient")]
    + [KernelPCA(2, kernel="rbf", eigen_solver=solver, random_state=0) for solver in KERNEL_SOLVERS]
    + [KernelPCA(2, kernel="rbf", method=Exact(store=store)) for store in ("float32", "none")]
    + [
        KernelPCA(1, kernel="rbf", method=method, random_state=0)
        for method in (Sparse(3), Sparse(sigma2=0.01), SparseL1())
    ],
    expected_failed_checks=lambda estimator: (
        {"check_estimators_nan_inf": NOT_SQUARE} if estimator.kernel == "precomputed" else {}
    ),
)
def test_kernel_estimator(estimator, check):
    check(estimator)


ANOTHER_ORDER = "rows that stand there twice are learnt from in another order"


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*axes were asked for")
@parametrize_with_checks(
    [
        KernelPCA(1, kernel="rbf", method=method, random_state=0)
        for method in (
            Hebbian(max_passes=60),
            Hebbian("et", 3, max_passes=60),
            Hebbian("kha", max_passes=60),
        )
    ],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": ANOTHER_ORDER,
        "check_sample_weight_equivalence_on_sparse_data": ANOTHER_ORDER,
    },
)
def test_kernel_estimator_that_learns(estimator, check):
    check(estimator)


ANOTHER_BASIS = "of rows in another order, or that stand there twice, another basis is chosen"


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*axes were asked for")
@parametrize_with_checks(
    [
        KernelPCA(1, kernel="rbf", method=method, random_state=0)
        for method in (Subset(3), Nystrom(3), Cholesky(3), Within(3))
    ],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": ANOTHER_BASIS,
        "check_sample_weight_equivalence_on_sparse_data": ANOTHER_BASIS,
    },
)
def test_kernel_estimator_on_a_basis(estimator, check):
    check(estimator)


ANOTHER_MAP = "rows in another order, or that stand there twice, are sketched by other columns"


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*axes were asked for")
@parametrize_with_checks(
    [
        KernelPCA(2, kernel="rbf", method=method, random_state=0)
        for method in ("sketch", Sketch(Gaussian(5, identity=True), polish=False))
    ],
    expected_failed_checks=lambda estimator: (
        {
            "check_sample_weight_equivalence_on_dense_data": ANOTHER_MAP,
            "check_sample_weight_equivalence_on_sparse_data": ANOTHER_MAP,
        }
        if estimator.method != "sketch"
        else {}
    ),
)
def test_kernel_estimator_of_a_sketch(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*axes were asked for")
@parametrize_with_checks(
    [
        KernelPCA(2, kernel="rbf", method=method, random_state=0)
        for method in ("features", RandomFeatures(8, orthogonal=True, linear=Iterative()))
    ]
)
def test_kernel_estimator_of_features(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*keep every row whole")
@parametrize_with_checks(
    [
        NoveltyDetector(),
        NoveltyDetector(PCA(1)),
        NoveltyDetector(KernelPCA(2, kernel="rbf"), contamination=0.5),
        NoveltyDetector(KernelPCA(1, kernel="rbf", method="features", random_state=0)),
    ]
)
def test_novelty(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*axes were asked for")
@parametrize_with_checks(
    [
        NearestProjection(),
        NearestProjection(PCA(0.99), 3),
        NearestProjection(KernelPCA(2, kernel="rbf", gamma="median"), weights="distance"),
        NearestProjection(KernelPCA(2, kernel="rbf", method=Subset(4), random_state=0)),
    ]
)
def test_nearest(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:.*axes were asked for")
@parametrize_with_checks(
    [
        SubspaceClassifier(),
        SubspaceClassifier(PCA(rules.BrokenStick())),
        SubspaceClassifier(KernelPCA(3, kernel="rbf", center=False)),
        SubspaceClassifier(KernelPCA(0.8, kernel="rbf", gamma="median", eigen_solver="krylov")),
        SubspaceClassifier(KernelPCA(2, kernel="rbf", method="features", random_state=0)),
        SubspaceClassifier(KernelPCA(0.9, kernel="rbf", method=Exact(store="none"))),
    ]
)
def test_subspace_classifier(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*axes were asked for")
@parametrize_with_checks(
    [
        Denoiser(),
        Denoiser(PCA(1), limits=(-1, 1)),
        Denoiser(gamma=0.1, n_components=2),
        Denoiser(KernelPCA(2, kernel="poly"), noise=0.1),
        Denoiser(KernelPCA(1, kernel="rbf", method=Exact(), preimage="ridge")),
    ]
)
def test_denoiser(estimator, check):
    check(estimator)
