"""scikit-learn's own checks of an estimator, for every public one and every solver."""

import inspect
import os
import subprocess
import sys
import warnings
from types import ModuleType

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
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
    Adaptive,
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
)
from mercer.sketches import (
    FeatureGrouping,
    Gaussian,
    Hadamard,
    Hashing,
    PixelGrouping,
    Resize,
    SparseSign,
)

ROWS = []
"""Every estimator that is checked in this file."""


def checked(estimators, expected_failures=None):
    """Run every check on every estimator, and note that it has a row."""
    ROWS.extend(estimators)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*does not inherit from")  # sketches do not
        return parametrize_with_checks(estimators, expected_failed_checks=expected_failures)


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
@checked(
    [PCA()]
    + [PCA(2, svd_solver=solver, random_state=0) for solver in SOLVERS]
    + [PCA(2, svd_solver=method, random_state=0) for method in (Iterative(), FrequentDirections())],
    expected_failures,
)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*above rounding error")
@checked(
    [KernelPCA(), KernelPCA(2, kernel="precomputed"), KernelPCA(2, preimage="gradient")]
    + [KernelPCA(2, kernel="rbf", eigen_solver=solver, random_state=0) for solver in KERNEL_SOLVERS]
    + [KernelPCA(2, kernel="rbf", method=Exact(store=store)) for store in ("float32", "none")]
    + [
        KernelPCA(1, kernel="rbf", method=method, random_state=0)
        for method in (Sparse(3), Sparse(sigma2=0.01), SparseL1())
    ],
    lambda estimator: (
        {"check_estimators_nan_inf": NOT_SQUARE} if estimator.kernel == "precomputed" else {}
    ),
)
def test_kernel_estimator(estimator, check):
    check(estimator)


ANOTHER_ORDER = "rows that stand there twice are learnt from in another order"


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*above rounding error")
@checked(
    [
        KernelPCA(1, kernel="rbf", method=method, random_state=0)
        for method in (
            Hebbian(max_passes=60),
            Hebbian("et", 3, max_passes=60),
            Hebbian("kha", max_passes=60),
        )
    ],
    lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": ANOTHER_ORDER,
        "check_sample_weight_equivalence_on_sparse_data": ANOTHER_ORDER,
    },
)
def test_kernel_estimator_that_learns(estimator, check):
    check(estimator)


ANOTHER_BASIS = "of rows in another order, or that stand there twice, another basis is chosen"


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*above rounding error")
@checked(
    [
        KernelPCA(1, kernel="rbf", method=method, random_state=0)
        for method in (Subset(3), Nystrom(3), Cholesky(3), Adaptive(3))
    ],
    lambda estimator: (
        {}
        if isinstance(estimator.method, Adaptive)  # products with all rows end the search
        else {
            "check_sample_weight_equivalence_on_dense_data": ANOTHER_BASIS,
            "check_sample_weight_equivalence_on_sparse_data": ANOTHER_BASIS,
        }
    ),
)
def test_kernel_estimator_on_a_basis(estimator, check):
    check(estimator)


ANOTHER_MAP = "rows in another order, or that stand there twice, are sketched by other columns"


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*above rounding error")
@checked(
    [
        KernelPCA(2, kernel="rbf", method=method, random_state=0)
        for method in ("sketch", Sketch(Gaussian(5, identity=True), polish=False))
    ],
    lambda estimator: (
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


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*above rounding error")
@checked(
    [
        KernelPCA(2, kernel="rbf", method=method, random_state=0)
        for method in ("features", RandomFeatures(8, orthogonal=True, linear=Iterative()))
    ]
)
def test_kernel_estimator_of_features(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*keep every row whole")
@checked(
    [
        NoveltyDetector(),
        NoveltyDetector(PCA(1)),
        NoveltyDetector(KernelPCA(2, kernel="rbf"), contamination=0.5),
        NoveltyDetector(KernelPCA(1, kernel="rbf", method="features", random_state=0)),
    ]
)
def test_novelty(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*above rounding error")
@checked(
    [
        NearestProjection(),
        NearestProjection(PCA(0.99), 3),
        NearestProjection(KernelPCA(2, kernel="rbf", gamma="median"), weights="distance"),
        NearestProjection(KernelPCA(2, kernel="rbf", method=Subset(4), random_state=0)),
    ]
)
def test_nearest(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:.*above rounding error")
@checked(
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


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*above rounding error")
@checked(
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


class ImagesOfAnyWidth:
    """The checks make rows of several widths; an image map takes those of one shape only."""

    def drawn(self, d, rng=None):
        return type(self).map_of(d).matrix_for(d, rng)


class AnyPixelGrouping(ImagesOfAnyWidth, PixelGrouping):
    @staticmethod
    def map_of(d):
        return PixelGrouping((1, d))


class AnyResize(ImagesOfAnyWidth, Resize):
    @staticmethod
    def map_of(d):
        return Resize((1, d), (1, (d + 1) // 2))


@checked(
    [
        *(sketch(2) for sketch in (Gaussian, Hashing, Hadamard, FeatureGrouping)),
        *(sketch(2, identity=True) for sketch in (Gaussian, Hashing, Hadamard)),
        *(SparseSign(2, nonzeros=1, identity=identity) for identity in (False, True)),
        FeatureGrouping(1),
        FeatureGrouping(bound=0.1),
        AnyPixelGrouping((1, 2)),
        AnyResize((1, 2), (1, 1)),
    ]
)
def test_sketch(estimator, check):
    check(estimator)


def public_estimators():
    """Return the classes that mercer, or a module that it exports, offers as estimators."""
    exports = [getattr(mercer, name) for name in mercer.__all__]
    for module in [each for each in exports if isinstance(each, ModuleType)]:
        names = getattr(module, "__all__", dir(module))
        exports += [getattr(module, name) for name in names]
    classes = {each for each in exports if inspect.isclass(each) and not inspect.isabstract(each)}
    return {each for each in classes if hasattr(each, "__sklearn_tags__")}


def test_every_public_estimator_has_a_row():
    public = public_estimators()
    assert {PCA, KernelPCA, SubspaceClassifier, Gaussian, Resize} <= public  # it looks everywhere
    missing = [each for each in public if not any(isinstance(row, each) for row in ROWS)]
    assert not missing


def test_arrays_of_other_libraries():
    """SciPy reads its switch when it is imported, hence another process."""
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        [*command, "-n", "0", "-k", "check_array_api_input"],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
        pytest.skip("scikit-learn 1.8 has no such check")
    assert done.returncode == 0, done.stdout
    assert f"{len(ROWS)} passed" in done.stdout
