"""scikit-learn's own checks of an estimator: one configuration of each, the others if slow."""

import inspect
import os
import subprocess
import sys
import warnings
from types import ModuleType

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

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


class ImagesOfAnyWidth:
    """The checks make rows of several widths; an image map takes those of one shape only."""

    def matrix_for(self, d, rng=None):
        return type(self).map_of(d).matrix_for(d, rng)


class AnyPixelGrouping(ImagesOfAnyWidth, PixelGrouping):
    @staticmethod
    def map_of(d):
        return PixelGrouping((1, d))


class AnyResize(ImagesOfAnyWidth, Resize):
    @staticmethod
    def map_of(d):
        return Resize((1, d), (1, (d + 1) // 2))


DEFAULTS = [
    PCA(2),
    KernelPCA(2, kernel="rbf"),
    NoveltyDetector(),
    NearestProjection(),
    SubspaceClassifier(),
    Denoiser(),
    *(sketch(2) for sketch in (Gaussian, Hashing, Hadamard, FeatureGrouping)),
    SparseSign(2, nonzeros=1),
    AnyPixelGrouping((1, 2)),
    AnyResize((1, 2), (1, 1)),
]


def kernel_pca(k, method):
    return KernelPCA(k, kernel="rbf", method=method, random_state=0)


VARIANTS = [
    PCA(),
    *(PCA(2, svd_solver=solver, random_state=0) for solver in SOLVERS),
    *(PCA(2, svd_solver=method, random_state=0) for method in (Iterative(), FrequentDirections())),
    KernelPCA(),
    KernelPCA(2, kernel="precomputed"),
    KernelPCA(2, preimage="gradient"),
    *(KernelPCA(2, kernel="rbf", eigen_solver=each, random_state=0) for each in KERNEL_SOLVERS),
    *(KernelPCA(2, kernel="rbf", method=Exact(store=store)) for store in ("float32", "none")),
    *(kernel_pca(1, method) for method in (Sparse(3), Sparse(sigma2=0.01), SparseL1())),
    kernel_pca(1, Hebbian(max_passes=60)),
    kernel_pca(1, Hebbian("et", 3, max_passes=60)),
    kernel_pca(1, Hebbian("kha", max_passes=60)),
    *(kernel_pca(1, method) for method in (Subset(3), Nystrom(3), Cholesky(3), Adaptive(3))),
    kernel_pca(2, "sketch"),
    kernel_pca(2, Sketch(Gaussian(5, identity=True), polish=False)),
    kernel_pca(2, "features"),
    kernel_pca(2, RandomFeatures(8, orthogonal=True, linear=Iterative())),
    NoveltyDetector(PCA(1)),
    NoveltyDetector(KernelPCA(2, kernel="rbf"), contamination=0.5),
    NoveltyDetector(KernelPCA(1, kernel="rbf", method="features", random_state=0)),
    NearestProjection(PCA(0.99), 3),
    NearestProjection(KernelPCA(2, kernel="rbf", gamma="median"), weights="distance"),
    NearestProjection(KernelPCA(2, kernel="rbf", method=Subset(4), random_state=0)),
    SubspaceClassifier(PCA(rules.BrokenStick())),
    SubspaceClassifier(KernelPCA(3, kernel="rbf", center=False)),
    SubspaceClassifier(KernelPCA(0.8, kernel="rbf", gamma="median", eigen_solver="krylov")),
    SubspaceClassifier(KernelPCA(2, kernel="rbf", method="features", random_state=0)),
    SubspaceClassifier(KernelPCA(0.9, kernel="rbf", method=Exact(store="none"))),
    Denoiser(PCA(1), limits=(-1, 1)),
    Denoiser(gamma=0.1, n_components=2),
    Denoiser(KernelPCA(2, kernel="poly"), noise=0.1),
    Denoiser(KernelPCA(1, kernel="rbf", method=Exact(), preimage="ridge")),
    *(sketch(2, identity=True) for sketch in (Gaussian, Hashing, Hadamard)),
    SparseSign(2, nonzeros=1, identity=True),
    FeatureGrouping(1),
    FeatureGrouping(bound=0.1),
]


def expected_failures(estimator):
    """Return the checks that an estimator cannot pass, with the reason."""
    if getattr(estimator, "kernel", None) == "precomputed":
        return {"check_estimators_nan_inf": "too few columns at transform, which is said first"}
    method, reason = getattr(estimator, "method", None), None
    if isinstance(estimator, PCA) and estimator.n_components is None:
        reason = "components of the null space are arbitrary, and weights change its size"
    elif isinstance(method, Hebbian):
        reason = "repeated rows are learned from in another order"
    elif isinstance(method, (Subset, Nystrom, Cholesky)) and not isinstance(method, Adaptive):
        reason = "with rows repeated or in another order, another basis is chosen"
    elif isinstance(method, Sketch):
        reason = "rows repeated or in another order are sketched by other columns"
    names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    return dict.fromkeys(names, reason) if reason else {}


def with_checks(estimators):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*does not inherit from")  # sketches do not
        return parametrize_with_checks(estimators, expected_failed_checks=expected_failures)


pytestmark = pytest.mark.filterwarnings(
    "ignore::mercer.ConvergenceWarning",
    "ignore:.*above rounding error",
    "ignore:.*reconstruct every row exactly",
)


@with_checks(DEFAULTS)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@with_checks(VARIANTS)
def test_variant(estimator, check):
    check(estimator)


def public_estimators():
    """Return the classes that mercer, or a module that it exports, offers as estimators."""
    exports = [getattr(mercer, name) for name in mercer.__all__]
    for module in [each for each in exports if isinstance(each, ModuleType)]:
        names = getattr(module, "__all__", dir(module))
        exports += [getattr(module, name) for name in names]
    classes = {each for each in exports if inspect.isclass(each) and not inspect.isabstract(each)}
    return {each for each in classes if hasattr(each, "__sklearn_tags__")}


def test_every_public_estimator_is_checked():
    public = public_estimators()
    assert {PCA, KernelPCA, SubspaceClassifier, Gaussian, Resize} <= public  # it looks everywhere
    missing = [each for each in public if not any(isinstance(row, each) for row in DEFAULTS)]
    assert not missing


def check_arrays_of_other_libraries(estimators):
    """Run the one check that the tests above skip where SciPy's switch is off."""
    passed = 0
    for estimator in estimators:
        for each, check in estimator_checks_generator(estimator):
            if "check_array_api_input" in str(check):
                check(each)
                passed += 1
    print(passed, "passed")


@pytest.mark.slow
@pytest.mark.parametrize("estimators", ["DEFAULTS", "VARIANTS"])
def test_arrays_of_other_libraries(estimators):
    """SciPy reads its switch when it is imported, hence another process."""
    code = f"from {__name__} import *; check_arrays_of_other_libraries({estimators})"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    if done.stdout == "0 passed\n":
        pytest.skip("scikit-learn 1.8 has no such check")
    assert done.stdout == f"{len(globals()[estimators])} passed\n"
