"""Folds: parts merge into the whole, states go on from where they were saved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.data import ArraySource, Block
from mercer.linalg import (
    Centering,
    CovarianceProduct,
    DirectionsSketch,
    Moments,
    TriangularFactor,
)
from tests.catalogue import graded, pairwise, rows, separated
from tests.laws import truth

D, N = 6, 60
HERE = np.empty(0)
MEAN = np.linspace(-1, 1, D)
V = np.random.default_rng(41).standard_normal((D, 3))


class Row:
    """A fold, what is read off it, and what that must be by definition."""

    def __init__(self, name, make, read, expected):
        self.name, self.make, self.read, self.expected = name, make, read, expected


def _scatter(X, w, center=True):
    A = truth.centred(X, w) if center else np.asarray(X, np.longdouble)
    return (A.T * w) @ A


def _mean(X, w):
    return (w @ X) / w.sum()


def _square(B):
    return B.T @ B


FOLDS = [
    Row(
        "Moments",
        lambda: Moments(D, HERE, np.float64),
        lambda f: (f.weight, f.mean, f.scatter),
        lambda X, w: (w.sum(), _mean(X, w), _scatter(X, w)),
    ),
    Row(
        "Moments, diagonal",
        lambda: Moments(D, HERE, np.float64, diagonal=True),
        lambda f: (f.weight, f.mean, f.scatter),
        lambda X, w: (w.sum(), _mean(X, w), np.diag(_scatter(X, w))),
    ),
    Row(
        "Moments, not centred",
        lambda: Moments(D, HERE, np.float64, center=False),
        lambda f: (f.weight, f.scatter),
        lambda X, w: (w.sum(), _scatter(X, w, center=False)),
    ),
    Row(
        "Triangle",
        lambda: TriangularFactor(D, HERE),
        lambda f: (f.weight, f.mean, _square(f.factor)),
        lambda X, w: (w.sum(), _mean(X, w), _scatter(X, w)),
    ),
    Row(
        "Triangle, not centred",
        lambda: TriangularFactor(D, HERE, center=False),
        lambda f: (f.weight, _square(f.factor)),
        lambda X, w: (w.sum(), _scatter(X, w, center=False)),
    ),
    Row(
        "Directions that lose nothing",
        lambda: DirectionsSketch(D, D, HERE),
        lambda f: (f.weight, f.mean, _square(f.sketch), f.trace),
        lambda X, w: (w.sum(), _mean(X, w), _scatter(X, w), np.trace(_scatter(X, w))),
    ),
    Row(
        "CovarianceProduct",
        lambda: CovarianceProduct(Centering(MEAN, np.float64, HERE), V, (D, 3)),
        lambda f: (f.result,),
        lambda X, w: ((((X - MEAN).T * w) @ (X - MEAN)) @ V,),
    ),
]


def table(seed=43):
    rng = np.random.default_rng(seed)
    return separated(rng, N, D) + 5.0, rng.integers(0, 4, N).astype(float)


def blocks(X, w, cuts):
    return [
        Block(int(part[0]), X[part], w[part])
        for part in np.split(np.arange(len(X)), cuts)
        if len(part)
    ]


def assert_equal(fold, found, expected, tol=1e-12):
    for x, y in zip(fold.read(found), expected, strict=True):
        y = np.asarray(y, np.float64)
        assert np.abs(np.asarray(x) - y).max() <= tol * np.abs(y).max()


def cuts_of(n):
    return st.lists(st.integers(0, n), max_size=8).map(sorted)


@pytest.mark.parametrize("fold", rows(FOLDS))
@settings(max_examples=40)
@given(cuts=cuts_of(N), seed=st.integers(0, 100))
def test_blocks_add_up_to_the_whole(fold, cuts, seed):
    X, w = table(seed)
    found = fold.make()
    for block in blocks(X, w, cuts):
        found.add(block)
    assert_equal(fold, found, fold.expected(X, w))


@pytest.mark.parametrize("fold", rows(FOLDS))
@settings(max_examples=40)
@given(cuts=cuts_of(N), shares=st.integers(1, 5), seed=st.integers(0, 100))
def test_parts_merge_into_the_whole(fold, cuts, shares, seed):
    X, w = table(seed)
    parts = [fold.make() for _ in range(shares)]
    for i, block in enumerate(blocks(X, w, cuts)):
        parts[i % shares].add(block)
    found = parts[0]
    for part in parts[1:]:
        found.merge(part)
    assert_equal(fold, found, fold.expected(X, w))


@pytest.mark.parametrize("fold", rows(FOLDS))
def test_an_empty_part_changes_nothing(fold):
    X, w = table()
    found, empty = fold.make(), fold.make()
    for block in blocks(X, w, [20]):
        found.add(block)
    found.merge(found.spawn())
    empty.merge(found)
    assert_equal(fold, empty, fold.expected(X, w))


@pytest.mark.parametrize("fold", rows(FOLDS))
@pytest.mark.parametrize("cut", [0, 1, 17, N])
def test_restored_goes_on_identically(fold, cut):
    X, w = table()
    whole = fold.make()
    for block in blocks(X[:cut], w[:cut], []):
        whole.add(block)
    saved = {name: np.array(value) for name, value in whole.arrays().items()}
    other = whole.spawn()
    other.restore(saved)
    for found in (whole, other):
        if cut < N:
            found.add(Block(cut, X[cut:], w[cut:]))
    for x, y in zip(fold.read(whole), fold.read(other), strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize("fold", rows(FOLDS))
def test_a_saved_state_stays_as_it_was(fold):
    """Whoever goes on from it, by adding or merging, does not change it for another."""
    X, w = table()
    first, second, third = blocks(X, w, [20, 40])
    found = fold.make()
    found.add(first)
    found.add(second)
    state = found.arrays()
    before = {name: np.array(value) for name, value in state.items()}
    one, two = found.spawn(), found.spawn()
    one.restore(state)
    one.add(third)
    part = found.spawn()
    part.add(third)
    two.restore(state)
    two.merge(part)
    for name, value in before.items():
        assert np.array_equal(state[name], value), name
    found.add(third)
    for each in (one, two, found):
        assert_equal(fold, each, fold.expected(X, w))


@pytest.mark.parametrize("fold", rows(FOLDS))
def test_the_loop_over_blocks_gives_the_same(fold):
    X, w = table()
    found = ArraySource(X).weighted(w).fold(fold.make())
    assert_equal(fold, found, fold.expected(X, w))


@pytest.mark.parametrize(
    "make",
    [lambda: Moments(D, HERE, np.float64), lambda: TriangularFactor(D, HERE)],
    ids=["Moments", "Triangle"],
)
def test_a_large_common_offset_costs_no_digits(make):
    """Offset 2^26: the sum is exact, so what is lost is lost by the fold."""
    X, w = table()
    X = np.round(X * 2**20) / 2**20
    found, plain = make(), make()
    for block in blocks(X + 2.0**26, w, [7, 20, 33, 51]):
        found.add(block)
    for block in blocks(X, w, [7, 20, 33, 51]):
        plain.add(block)
    read = FOLDS[0].read if isinstance(found, Moments) else FOLDS[3].read
    assert np.abs(read(found)[2] - read(plain)[2]).max() <= 1e-12 * np.abs(read(plain)[2]).max()


# Frequent directions.

STREAMS = {
    "flat": lambda rng: rng.standard_normal((400, 20)),
    "drifting": lambda rng: rng.standard_normal((400, 20)) + np.linspace(0, 50, 400)[:, None],
    "graded": lambda rng: graded(rng, 400, 20, 8),
    "one direction after the other": lambda rng: (
        np.repeat(np.eye(20), 20, axis=0) * rng.uniform(1, 2, (400, 1))
    ),
    "growing": lambda rng: rng.standard_normal((400, 20)) * np.logspace(-6, 6, 400)[:, None],
    "shrinking": lambda rng: rng.standard_normal((400, 20)) * np.logspace(6, -6, 400)[:, None],
    "equal": lambda rng: np.ones((400, 20)),
    "blocks of one axis": lambda rng: np.eye(20)[np.sort(rng.integers(0, 20, 400))] * 3.0,
}


def directions(X, size, shares, center, weights=None):
    parts = [DirectionsSketch(X.shape[1], size, HERE, center=center) for _ in range(shares)]
    for i, part in enumerate(np.array_split(np.arange(len(X)), min(7, len(X)))):
        w = None if weights is None else weights[part]
        parts[i % shares].add(Block(int(part[0]), X[part], w))
    for other in parts[1:]:
        parts[0].merge(other)
    return parts[0]


@pairwise(stream=STREAMS, size=[1, 4, 12], shares=[1, 3], center=[True, False])
def test_directions_lose_no_more_than_they_say(stream, size, shares, center):
    """0 ⪯ AᵀA − BᵀB ⪯ loss · I, and the trace is that of AᵀA."""
    X = STREAMS[stream](np.random.default_rng(44))
    fold = directions(X, size, shares, center)
    B = fold.sketch
    A = truth.centred(X) if center else np.asarray(X, np.longdouble)
    S = A.T @ A
    lost = np.linalg.eigvalsh((S - B.T @ B).astype(np.float64))
    total = float(np.trace(S))
    assert len(B) <= size
    assert lost[0] >= -1e-13 * total
    assert lost[-1] <= fold.loss + 1e-13 * total
    assert fold.loss * size <= total * (1 + 1e-12)  # what is lost comes size times over
    assert abs(fold.trace - total) <= 1e-12 * total


def test_directions_with_weights():
    rng = np.random.default_rng(45)
    X, w = separated(rng, 200, 10, 0.9), rng.integers(0, 4, 200).astype(float)
    one = directions(X, 4, 2, True, w)
    S = _scatter(X, w)
    lost = np.linalg.eigvalsh((S - _square(one.sketch)).astype(np.float64))
    assert lost[0] >= -1e-12
    assert lost[-1] <= one.loss * (1 + 1e-12)
    assert abs(one.trace - float(np.trace(S))) <= 1e-12 * one.trace


@settings(max_examples=60)
@given(
    st.integers(1, 40), st.integers(1, 12), st.integers(1, 8), st.integers(0, 100), st.booleans()
)
def test_directions_of_any_shape(n, d, size, seed, center):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.choice([0.0, 1.0, 1e-5, 1e5], (1, d))
    fold = directions(X, size, 1 + seed % 2, center)
    B = fold.sketch
    A = truth.centred(X) if center else np.asarray(X, np.longdouble)
    S = (A.T @ A).astype(np.float64)
    lost = np.linalg.eigvalsh(S - B.T @ B)
    assert lost[0] >= -1e-13 * np.trace(S)
    assert lost[-1] <= fold.loss + 1e-13 * np.trace(S)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mean", [0.0, 0.3, 0.9, 1.1, 5.0, 40.0])
def test_rows_near_zero_keep_their_digits(mean, dtype):
    """Means of about a deviation are where a block may stay as it is: on both sides of it."""
    rng = np.random.default_rng(57)
    X = (rng.standard_normal((4000, D)) + mean * np.array([1, -1, 1, 0, 1, 6])).astype(dtype)
    X[2000:2500] += 3  # not all blocks decide alike
    fold = ArraySource(X).fold(Moments(D, HERE, X.dtype))
    expected = _scatter(X, np.ones(len(X)))
    error = np.abs(fold.scatter - expected).max() / np.trace(expected)
    assert error <= {"float32": 5e-7, "float64": 1e-15}[dtype]
    # And what the fold says of it is true.
    assert np.linalg.norm((fold.scatter - expected).astype(float)) <= (
        fold.rounding[0] * float(np.trace(expected))
    )


def test_a_column_far_from_zero_is_centred_among_others_that_are_not():
    """Its own digits would be lost beside columns of large variance."""
    rng = np.random.default_rng(58)
    X = rng.standard_normal((3000, D)).astype(np.float32)
    X[:, 2] = 50 + 0.01 * X[:, 2]
    fold = ArraySource(X).fold(Moments(D, HERE, np.float32))
    expected = np.diag(_scatter(X, np.ones(len(X))))
    assert np.abs(np.diag(fold.scatter) / expected - 1).max() <= 1e-5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_mislead_about_their_mean(weighted, dtype):
    """Every 64th row, which a block is first judged by, is near zero; the others are far."""
    rng = np.random.default_rng(59)
    X = (rng.standard_normal((5000, D)) + {"float32": 1e3, "float64": 1e6}[dtype]).astype(dtype)
    X[::64] -= X[::64].mean(axis=0)
    w = np.ones(len(X))
    if weighted:
        w[::64] = 0.0
    fold = ArraySource(X).weighted(w).fold(Moments(D, HERE, X.dtype))
    expected = _scatter(X, w)
    error = np.abs(fold.scatter - expected).max() / np.trace(expected)
    assert error <= {"float32": 5e-7, "float64": 1e-14}[dtype]
