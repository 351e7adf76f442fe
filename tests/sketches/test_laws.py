"""What holds for every map."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from mercer import as_source, config_context, threads
from mercer.sketches import Hashing, SparseSign, suggested_size
from tests.catalogue import cycled
from tests.sketches.catalogue import MAPS, UNBIASED, D, rows

each = pytest.mark.parametrize("name", MAPS)
unbiased = pytest.mark.parametrize("name", UNBIASED)
random = pytest.mark.parametrize("name", [*UNBIASED, "unsigned", "as printed"])


@pytest.fixture(scope="module")
def X():  # noqa: N802
    return rows()


@pytest.fixture(scope="module")
def fitted(X):
    """Every map, fitted to the rows."""
    return {name: clone(sketch).fit(X) for name, sketch in MAPS.items()}


def close(a, b, dtype=np.float64):
    scale = np.abs(b).max()
    np.testing.assert_allclose(a, b, rtol=0, atol=100 * np.finfo(dtype).eps * scale)


@each
def test_it_is_its_matrix(name, fitted, X):
    matrix = fitted[name].matrix_
    W = matrix.apply(np.eye(D))
    assert W.shape == (D, matrix.q)
    close(matrix.apply(X), X @ W)
    step = matrix.step
    close(np.concatenate([matrix.block(i, min(i + step, D)) for i in range(0, D, step)]), W)


@each
def test_dense_is_sparse(name, fitted, X):
    matrix = fitted[name].matrix_
    expected = matrix.apply(X)
    for made in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix):
        out = matrix.apply(made(X))
        assert type(out) is np.ndarray
        close(out, expected)
    shuffled = sp.csr_array(X)
    for i in range(len(X)):
        part = slice(shuffled.indptr[i], shuffled.indptr[i + 1])
        shuffled.indices[part] = shuffled.indices[part][::-1].copy()
        shuffled.data[part] = shuffled.data[part][::-1].copy()
    shuffled.has_sorted_indices = False
    close(matrix.apply(shuffled), expected)


@pytest.mark.parametrize("name", ["hashing", "three hashes", "sparse signs", "resize", "groups"])
def test_scattered_rows_are_the_same_bits(name, fitted, X):
    matrix = fitted[name].matrix_
    expected = matrix.apply(X)
    assert np.array_equal(matrix.apply(sp.csr_array(X)), expected)
    assert np.array_equal(matrix.apply(np.asfortranarray(X)), expected)
    assert np.array_equal(np.vstack([matrix.apply(row[None]) for row in X]), expected)


@each
@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_other_libraries(name, library, fitted, X):
    xp = pytest.importorskip(library)
    matrix = fitted[name].matrix_
    for dtype in (np.float64, np.float32):
        there = xp.asarray(X.astype(dtype))
        out = matrix.apply(there)
        assert type(out) is type(there)
        assert out.dtype == there.dtype
        close(np.asarray(out), matrix.apply(X), dtype)


@each
def test_float32_stays(name, fitted, X):
    matrix = fitted[name].matrix_
    for made in (np.asarray, sp.csr_array):
        out = matrix.apply(made(X.astype(np.float32)))
        assert out.dtype == np.float32
        close(out, matrix.apply(X), np.float32)
    assert matrix.apply(np.ones((2, D), np.int8)).dtype == np.float64


@each
def test_any_block_size_source_and_number_of_threads(name, fitted, X, tmp_path, monkeypatch):
    sketch = fitted[name]
    expected = sketch.matrix_.apply(X)
    np.save(tmp_path / "rows.npy", X)
    for block_rows in (1, 7, 100):
        with config_context(block_rows=block_rows):
            close(sketch.transform(X), expected)
            close(sketch.transform(tmp_path / "rows.npy").collect(), expected)
            close(sketch.matrix_.on(as_source(sp.csr_array(X))).collect(), expected)
    with config_context(block_rows=5):
        found = []
        for workers in (1, 4):
            monkeypatch.setattr(threads, "workers", lambda workers=workers: workers)
            found.append(sketch.transform(X))
    assert np.array_equal(*found)


@random
def test_same_seed_same_bits(name, X):
    make = MAPS[name]
    first, second = (clone(make).matrix_for(D) for _ in range(2))
    assert np.array_equal(first.apply(X), second.apply(X))
    other = clone(make).set_params(random_state=1).matrix_for(D)
    assert not np.allclose(first.apply(X), other.apply(X))
    a, b = (make.matrix_for(D, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(a.apply(X), b.apply(X))
    assert not np.allclose(a.apply(X), first.apply(X))


@random
def test_a_small_budget_gives_the_same_bits(name, X):
    whole, parts = (MAPS[name].matrix_for(D) for _ in range(2))
    S = sp.csr_array(X)
    expected = whole.apply(X), whole.apply(S)
    with config_context(memory="40kB"):
        found = parts.apply(X), parts.apply(S)
        in_memory = sum(len(pickle.dumps(value)) for value in vars(parts).values())
        assert in_memory < 120 * D  # signs and places; d × q would be 400 bytes for each column
    for a, b in zip(expected, found, strict=True):
        assert np.array_equal(a, b)


@cycled(name=UNBIASED, workers=[1, 2])
def test_a_file_stays_inside_the_budget(name, tmp_path, workers, monkeypatch):
    monkeypatch.setattr("mercer.threads.workers", lambda: workers)
    d, q, budget = 4000, 400, 32 * 2**20
    X = np.random.default_rng(0).standard_normal((1500, d))
    np.save(tmp_path / "rows.npy", X)
    sketch = UNBIASED[name](q)
    expected = sketch.fit_transform(X)
    with config_context(memory=budget):
        sketch.fit(tmp_path / "rows.npy")
        assert d * q * 8 > budget // 4
        tracemalloc.start()
        found = sketch.transform(tmp_path / "rows.npy").collect()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < budget
    close(found, expected)


@unbiased
def test_dot_products_are_unbiased(name):
    d, q, seeds = 60, 12, 300
    rng = np.random.default_rng(3)
    X = rng.random((6, d)) ** 3
    X[0], X[0, 4] = 0.0, 1.0  # one feature alone
    exact = X @ X.T
    found = []
    for seed in range(seeds):
        Y = UNBIASED[name](q, random_state=seed).matrix_for(d).apply(X)
        found.append(Y @ Y.T)
    mean, deviation = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
    assert np.all(np.abs(mean - exact) <= 4 * deviation / seeds**0.5 + 1e-12)


@unbiased
def test_the_error_falls_as_one_over_the_root_of_q(name):
    rng = np.random.default_rng(4)
    X = rng.random((20, 2048))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    exact = X @ X.T
    errors = []
    for q in (16, 64, 256):
        squares = []
        for seed in range(30):
            Y = UNBIASED[name](q, random_state=seed).matrix_for(2048).apply(X)
            squares.append(np.mean((Y @ Y.T - exact) ** 2))
        errors.append(np.sqrt(np.mean(squares)))
    ratios = np.array(errors[:-1]) / errors[1:]
    assert np.all((ratios > 1.5) & (ratios < 2.7))


def test_unsigned_hashes_are_biased_as_documented():
    X = np.random.default_rng(0).random((2, 400))
    found = [Hashing(50, signed=False, random_state=s).matrix_for(400).apply(X) for s in range(100)]
    excess = np.mean([a @ b for a, b in found]) - X[0] @ X[1]
    assert excess == pytest.approx(X[0].sum() * X[1].sum() / 50, rel=0.05)


@pytest.mark.parametrize("hashes", [1, 2, 5, 7])
def test_the_printed_factor_of_hashing(hashes, X):
    right = Hashing(100, hashes=hashes).matrix_for(D).apply(X)
    printed = Hashing(100, hashes=hashes, scaling="paper").matrix_for(D).apply(X)
    close(printed @ printed.T * hashes, right @ right.T)


def test_hashes_share_what_cannot_be_divided():
    W = Hashing(10, hashes=3).matrix_for(500).apply(np.eye(500))
    for part in (W[:, :4], W[:, 4:7], W[:, 7:]):
        assert np.all(np.count_nonzero(part, axis=1) == 1)
        assert np.all(np.any(part != 0, axis=0))


def test_sparse_signs_have_distinct_places():
    W = SparseSign(9, nonzeros=8).matrix_for(2000).apply(np.eye(2000))
    assert np.all(np.count_nonzero(W, axis=1) == 8)
    np.testing.assert_allclose(np.abs(W[W != 0]), 8**-0.5)
    assert np.abs(np.count_nonzero(W, axis=0) / 2000 - 8 / 9).max() < 0.04


def test_all_coordinates_of_hadamard_are_an_isometry():
    X = rows(5)[:, :1024]
    Y = UNBIASED["hadamard"](1024).matrix_for(1024).apply(X)
    close(Y @ Y.T, X @ X.T)


@pytest.mark.parametrize("d", [1, 2, 3, 16, 17, 33])
def test_few_columns(d):
    X = np.random.default_rng(0).standard_normal((4, d))
    for name, make in UNBIASED.items():
        sketch = make(d, nonzeros=1) if name == "sparse signs" else make(d)
        if name == "three hashes" and d < 3:
            continue
        matrix = sketch.matrix_for(d)
        close(matrix.apply(sp.csr_array(X)), matrix.apply(X))
        assert matrix.apply(X[:0]).shape == (0, d)


@unbiased
def test_the_suggested_size_suffices(name):
    n, error = 40, 0.3
    q = suggested_size(n, error)
    X = np.random.default_rng(1).random((n, 3000))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Y = UNBIASED[name](q).matrix_for(3000).apply(X)
    assert np.abs(Y @ Y.T - X @ X.T).max() <= error


def test_the_suggested_size_is_the_formula():
    q, delta, e = suggested_size(100, 0.2, confidence=0.9), 0.1, 0.2
    assert 2 * 100**2 * np.exp(-q * (e**2 / 4 - e**3 / 6)) <= delta
    assert 2 * 100**2 * np.exp(-(q - 1) * (e**2 / 4 - e**3 / 6)) > delta


@each
def test_pickled(name, fitted, X):
    again = pickle.loads(pickle.dumps(fitted[name]))
    assert again == fitted[name]
    assert np.array_equal(again.transform(X), fitted[name].transform(X))
