"""Groups of features."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import as_source, config_context
from mercer.sketches import FeatureGrouping


def correlated(seed, n=60, d=24):
    """Features that share a few causes, at several scales and signs."""
    rng = np.random.default_rng(seed)
    causes = rng.standard_normal((n, 5))
    mixed = causes[:, rng.integers(5, size=d)] + rng.random(d) * rng.standard_normal((n, d))
    return mixed * rng.choice([1.0, -1.0, 1.1, 3.0], size=d) + 5.0 * rng.random(d)


def scatter_values(X, center=True):
    return np.linalg.svd(X - center * X.mean(axis=0), compute_uv=False) ** 2


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("center", [True, False])
def test_the_bound_holds(seed, center):
    X = correlated(seed)
    for q in (1, 3, 8, 16, 23, 24):
        grouping = FeatureGrouping(q, center=center).fit(X)
        exact, found = scatter_values(X, center), np.zeros(24)
        values = scatter_values(grouping.transform(X), center)
        found[: len(values)] = values
        assert np.abs(exact - found).max() <= grouping.bound_ * (1 + 1e-12) + 1e-9
        assert len(grouping.groups_) == q == grouping.transform(X).shape[1]
        assert sorted(np.concatenate(grouping.groups_)) == list(range(24))


def test_the_bound_is_the_sum_of_norms():
    X = correlated(0)
    grouping = FeatureGrouping(10).fit(X)
    centred = X - X.mean(axis=0)
    norms = 0.0
    for group in grouping.groups_:
        b = centred[:, group[0]]
        for a in centred[:, group].T:
            norms += np.linalg.norm(np.outer(a, a) - np.outer(b, b), 2)
    # A feature against itself is the root of a rounding error.
    assert grouping.bound_ == pytest.approx(norms, rel=1e-6)


def test_high_correlation_is_not_enough():
    x, y = np.random.default_rng(0).standard_normal((2, 50))
    X = np.stack([x, 10 * x, y, -y], axis=1)
    found = {frozenset(group.tolist()) for group in FeatureGrouping(3).fit(X).groups_}
    assert found == {frozenset({0}), frozenset({1}), frozenset({2, 3})}


def test_a_share_of_the_trace_stops_it():
    X = correlated(1)
    trace = scatter_values(X).sum()
    sizes = []
    for share in (1e-6, 0.05, 0.2, 1.0, 100.0):
        grouping = FeatureGrouping(bound=share).fit(X)
        assert grouping.bound_ <= share * trace
        sizes.append(len(grouping.groups_))
    assert sizes[0] == 24
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    assert len(FeatureGrouping(20, bound=100.0).fit(X).groups_) == 20


def test_copies_are_merged_at_no_cost():
    X = np.repeat(correlated(2), 3, axis=1)
    grouping = FeatureGrouping(24).fit(X)
    assert grouping.bound_ <= 1e-6 * scatter_values(X).sum()
    np.testing.assert_allclose(
        scatter_values(grouping.transform(X))[:24], scatter_values(X)[:24], rtol=1e-10
    )


def test_rows_scatter_and_sources_agree():
    X = correlated(3)
    grouping = FeatureGrouping(9).fit(X)
    C = np.cov(X.T)
    from_scatter = FeatureGrouping(9).fit_scatter(C)
    sparse = FeatureGrouping(9).fit(sp.csr_array(X))
    for other in (from_scatter, sparse):
        assert list(map(list, other.groups_)) == list(map(list, grouping.groups_))
        np.testing.assert_allclose(other.transform(X), grouping.transform(X))
    assert from_scatter.bound_ == pytest.approx(grouping.bound_ / 59)
    unfitted = FeatureGrouping(9)
    matrix = unfitted.matrix_from(as_source(X))
    assert not hasattr(unfitted, "groups_")
    assert matrix.bound == grouping.bound_
    assert np.array_equal(matrix.apply(X), grouping.transform(X))


@pytest.mark.parametrize("scale", [1e-150, 1e-60, 1e60, 1e120])
def test_any_unit(scale):
    X = correlated(4)
    expected, found = (FeatureGrouping(9).fit(rows) for rows in (X, scale * X))
    assert [set(group) for group in found.groups_] == [set(group) for group in expected.groups_]
    assert found.bound_ / scale / scale == pytest.approx(expected.bound_)


def test_what_is_no_scatter():
    for bad, said in [
        ([[1.0, np.nan], [np.nan, 1.0]], "nan in row 0, column 1"),
        ([[1e-12, 5e-13], [0.0, 1e-12]], "not symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "not positive semi-definite: the entry 2 in row 0, column 1"),
        ([[-1.0, 0.0], [0.0, 1.0]], "not positive semi-definite"),
    ]:
        with pytest.raises(ValueError, match=said):
            FeatureGrouping(1).fit_scatter(bad)


def test_what_it_refuses():
    X = correlated(0)
    with pytest.raises(ValueError, match="q=None must be the number of groups"):
        FeatureGrouping().fit(X)
    with pytest.raises(ValueError, match="call fit"):
        FeatureGrouping(3).matrix_for(24)
    with pytest.raises(ValueError, match="fitted to 24 columns"):
        FeatureGrouping(3).fit(X).matrix_for(7)
    with pytest.raises(ValueError, match="q=25 is more than n_features=24"):
        FeatureGrouping(25).fit(X)
    with pytest.raises(ValueError, match="square and symmetric"):
        FeatureGrouping(2).fit_scatter(X)
    with pytest.raises(ValueError, match="bound=-1"):
        FeatureGrouping(bound=-1).fit(X)
    with config_context(memory="10kB"), pytest.raises(MemoryError, match="Hashing"):
        FeatureGrouping(3).fit(X)
