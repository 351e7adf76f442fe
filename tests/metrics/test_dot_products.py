"""Metrics of approximations."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from mercer import as_source, config_context
from mercer.metrics import (
    dot_product_error,
    eigenvalue_difference,
    measured_size,
    similarity,
)
from mercer.sketches import FeatureGrouping, Gaussian, Hadamard, Hashing, Resize, SparseSign


def brute(sketch, X):
    Y = sketch.matrix_for(X.shape[1]).apply(X)
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
    assert sample == dot_product_error(sketch.matrix_, X, pairs=20000)
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


@pytest.mark.parametrize(
    "sketch", [Gaussian(10), Gaussian(700), Hashing(10, hashes=5), SparseSign(10), Hadamard(1)]
)
@pytest.mark.parametrize("error", [0.3, 0.06])
def test_the_measured_size_suffices(rng, sketch, error):
    X = rng.random((80, 1000))
    q = measured_size(sketch, X, error)
    assert 1 < q < 1000
    assert dot_product_error(clone(sketch).set_params(q=q), X).mean <= error
    if q > 20:  # and it is near to one that does not
        tried = [clone(sketch).set_params(q=p) for p in range(int(0.9 * q), q)]
        assert any(dot_product_error(smaller, X).mean > error for smaller in tried)
    assert q == measured_size(sketch, sp.csr_array(X), error)


def test_measured_sizes_at_the_ends(rng):
    X = rng.random((30, 200))
    assert measured_size(Gaussian(10), X, 1e-6) == 200
    assert measured_size(Gaussian(10), X, 100) == 1
    assert measured_size(Hashing(10, hashes=5), X, 100) == 5
    assert measured_size(SparseSign(8), X[:, :3], 0.1) == 3
    for bad, said in [
        ((Resize((10, 20), (5, 5)), X, 0.1), "must be a map of any size"),
        ((Gaussian(-1), X, 0.1), "q=-1"),
        ((Gaussian(5), X, 0), "error=0 must be a positive number"),
        ((Gaussian(5), np.eye(5), 0.1), "All dot products of X are zero"),
    ]:
        with pytest.raises(ValueError, match=said):
            measured_size(*bad)


def test_what_it_refuses(rng):
    X = rng.random((10, 20))
    for sketch in ("gaussian", Gaussian):
        with pytest.raises(ValueError, match="must be a map such as"):
            dot_product_error(sketch, X)
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
    with pytest.raises(ValueError, match=r"V has shape .*, but W has shape .* equal shapes"):
        similarity(V, V[:3])


def test_eigenvalue_difference():
    assert eigenvalue_difference(2.0, 1.0) == 0.5
    assert eigenvalue_difference([0.0, 0.0], [0.0, 1.0]).tolist() == [0.0, np.inf]
    with pytest.raises(ValueError, match=r"Eigenvalues have shapes .* equal numbers"):
        eigenvalue_difference([1.0], [1.0, 2.0])
