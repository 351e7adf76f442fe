"""A share of a kernel's variance: the same answer, whether all of the spectrum is found or not."""

import numpy as np
import pytest

from mercer import KernelPCA
from mercer.methods import Exact
from mercer.planning import kernel as plans
from mercer.rules import Fraction, Kaiser, RelativeError
from tests.catalogue import pairwise


def rows(kind, n=320):
    rng = np.random.default_rng(3)
    if kind == "decaying":
        return rng.normal(size=(n, 6)) * 0.5 ** np.arange(6)
    if kind == "flat":
        return rng.normal(size=(n, 40))
    X = rng.normal(size=(n, 3))
    return np.repeat(X[: n // 4], 4, axis=0)  # equal rows


@pairwise(
    kind=["decaying", "flat", "equal"],
    asked=[0.3, 0.6, 0.95, 0.999, Kaiser(), RelativeError(0.2)],
    weighed=[False, True],
)
def test_part_of_the_spectrum_gives_the_answer_of_all(kind, asked, weighed, monkeypatch):
    monkeypatch.setattr(plans, "_DENSE", 50)
    X = rows(kind)
    weights = np.random.default_rng(0).integers(1, 4, len(X)) if weighed else None
    model = KernelPCA(asked, kernel="rbf", gamma="median", random_state=0)
    found = model.fit(X, sample_weight=weights)
    truth = KernelPCA(asked, kernel="rbf", gamma="median", eigen_solver="dense")
    truth.fit(X, sample_weight=weights)
    assert found.plan_.method == Exact("krylov")
    assert found.n_components_ == truth.n_components_
    assert np.allclose(found.eigenvalues_, truth.eigenvalues_, rtol=1e-9)
    assert found.certificate_.captured <= truth.certificate_.optimum_upper


def test_many_rows_find_no_more_of_the_spectrum_than_they_need(monkeypatch):
    def whole(*_, **__):
        raise AssertionError("the whole spectrum was computed")

    monkeypatch.setattr("mercer.methods.base.dense", whole)
    X = rows("decaying", 1200)
    assert KernelPCA(0.9, kernel="rbf", gamma="median").fit(X).n_components_ < 40


def test_a_share_with_a_limit():
    X = rows("flat")
    free = KernelPCA(0.95, kernel="rbf", gamma="median").fit(X)
    assert free.n_components_ > 60
    for most in (1, 60, 1000):
        found = KernelPCA(Fraction(0.95, most=most), kernel="rbf", gamma="median").fit(X)
        assert found.n_components_ == min(most, free.n_components_)
    with pytest.raises(ValueError, match="most"):
        KernelPCA(Fraction(0.95, most=0)).fit(X)
