"""Metrics of approximations."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import as_source, config_context
from mercer.metrics import dot_product_error, eigenvalue_difference, similarity
from mercer.sketches import FeatureGrouping, Gaussian, Hashing


def brute(sketch, X):
    Y = sketch.drawn(X.shape[1]).apply(X)
    upper = np.triu_indices(len(X), 1)
    exact, found = (X @ X.T)[upper], (Y @ Y.T)[upper]
    some = exact != 0
    return np.mean(np.abs(found - exact)[some] / np.abs(exact[some])), int((~some).sum())


def test_all_pairs(rng):
    X = rng.random((60, 500))
    found = dot_product_error(Gaussian(50), X)
    assert (found.pairs, found.zeros) == (60 * 59 // 2, 0)
    assert float(found) == pytest.approx(brute(Gaussian(50), X)[0])


def test_zeros_are_left_out_and_counted(rng):
    X = rng.random((30, 100)) * (rng.random((30, 100)) < 0.1)
    mean, zeros = brute(Hashing(20), X)
    found = dot_product_error(Hashing(20), sp.csr_array(X))
    assert zeros > 0
    assert (found.zeros, found.pairs) == (zeros, 435 - zeros)
    assert found.mean == pytest.approx(mean)
    assert np.isnan(dot_product_error(Gaussian(2), np.eye(3)).mean)


def test_a_sample_is_near_all(rng, tmp_path):
    X = rng.random((400, 300))
    np.save(tmp_path / "rows.npy", X)
    sketch = Gaussian(100).fit(X)
    everything = dot_product_error(sketch, X, pairs=10**6)
    assert everything.pairs == 400 * 399 // 2
    sample = dot_product_error(sketch, tmp_path / "rows.npy", pairs=20000)
    assert sample.pairs == 20000
    assert sample.mean == pytest.approx(everything.mean, rel=0.15)
    assert sample == dot_product_error(sketch.drawn_, X, pairs=20000)
    assert sample != dot_product_error(sketch, X, pairs=20000, random_state=1)
    with config_context(memory="200kB"):
        few = dot_product_error(sketch, as_source(X), pairs=5000)
    assert few.pairs == 5000
    assert few.mean == pytest.approx(everything.mean, rel=0.3)


def test_centred_rows_make_it_meaningless(rng):
    X = rng.random((50, 400))
    assert dot_product_error(Gaussian(200), X).mean < 0.15
    assert dot_product_error(Gaussian(200), X - X.mean(axis=0)).mean > 0.5


def test_a_map_that_learns_learns_from_the_rows(rng):
    X = np.repeat(rng.standard_normal((20, 4)), 3, axis=1)
    assert dot_product_error(FeatureGrouping(4, center=False), X).mean < 1e-12


def test_float32_and_torch(rng):
    torch = pytest.importorskip("torch")
    X = rng.random((20, 100)).astype(np.float32)
    found = dot_product_error(Gaussian(30), torch.asarray(X))
    assert found.mean == pytest.approx(dot_product_error(Gaussian(30), X).mean, rel=1e-4)


def test_what_it_refuses(rng):
    X = rng.random((10, 20))
    with pytest.raises(ValueError, match="pairs=0"):
        dot_product_error(Gaussian(3), X, pairs=0)
    with pytest.raises(ValueError, match="a pair needs two"):
        dot_product_error(Gaussian(3), X[:1])
    X[4, 2] = np.inf
    with pytest.raises(ValueError, match="row 4, column 2"):
        dot_product_error(Gaussian(3), X)


def test_similarity(rng):
    V = rng.standard_normal((5, 8))
    np.testing.assert_allclose(similarity(V, -3e-200 * V), 1.0)
    assert similarity([1.0, 0.0], [0.0, 2.0]) == 0.0
    assert isinstance(similarity([1.0, 0.0], [1.0, 2.0]), float)
    with pytest.raises(ValueError, match="zero"):
        similarity([0.0, 0.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="as many axes"):
        similarity(V, V[:3])


def test_eigenvalue_difference():
    assert eigenvalue_difference(2.0, 1.0) == 0.5
    assert eigenvalue_difference([0.0, 0.0], [0.0, 1.0]).tolist() == [0.0, np.inf]
    with pytest.raises(ValueError, match="as many"):
        eigenvalue_difference([1.0], [1.0, 2.0])
