"""scikit-learn's own checks of an estimator, for every solver."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import PCA
from mercer.estimators.pca import SOLVERS
from mercer.methods import Covariance, Dot, FrequentDirections, Iterative

ALL_AXES = "with all axes those of the null space are arbitrary, and weights change its size"


def expected_failures(estimator):
    if estimator.n_components is None:
        return {
            "check_sample_weight_equivalence_on_dense_data": ALL_AXES,
            "check_sample_weight_equivalence_on_sparse_data": ALL_AXES,
        }
    return {}


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning")
@parametrize_with_checks(
    [PCA()]
    + [PCA(2, svd_solver=solver, random_state=0) for solver in SOLVERS]
    + [
        PCA(2, svd_solver=method, random_state=0)
        for method in (Covariance(), Dot(), Iterative(), FrequentDirections())
    ],
    expected_failed_checks=expected_failures,
)
def test_estimator(estimator, check):
    check(estimator)
