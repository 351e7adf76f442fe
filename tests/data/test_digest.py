"""The number that tells all rows apart."""

import importlib

import numpy as np
import pytest
import scipy.sparse

from mercer import PCA, config_context
from mercer.checkpoint import CheckpointError, describe
from mercer.checkpoint.identity import Digest
from mercer.data import as_source


def digest(X, **settings):
    source = as_source(X)
    with config_context(**settings):
        return int(source.fold(Digest(source)).result[0])


@pytest.fixture
def X():  # noqa: N802 (rows)
    X = np.random.default_rng(0).normal(size=(3000, 5))
    X[X < -1] = 0.0
    return X


def test_the_same_for_the_same_rows(X):
    for settings in ({}, {"block_rows": 7}):
        assert digest(X, **settings) == digest(np.asfortranarray(X), **settings)
        rows = scipy.sparse.csr_array(X)
        assert digest(rows, **settings) == digest(rows.copy(), **settings)
        rows.data[-1] += 1.0
        assert digest(rows, **settings) != digest(scipy.sparse.csr_array(X), **settings)


def test_any_change_is_seen(X):
    known = digest(X)
    changed = [X[::-1], X[:, ::-1], X[:-1], X.astype(np.float32)]
    for row, column in ((5, 0), (1234, 3), (2999, 4)):
        other = X.copy()
        other[row, column] = np.nextafter(other[row, column], 9.0)
        changed.append(other)
    numbers = [digest(other) for other in changed]
    assert len({known, *numbers}) == 1 + len(numbers)


def test_strings():
    assert digest(["a", "b"]) != digest(["b", "a"])
    assert digest(["a", "b"]) == digest(["a", "b"])


class KilledError(Exception):
    pass


def test_a_run_does_not_go_on_with_a_row_that_was_mended(X, tmp_path, monkeypatch):
    X[5] = 1e3
    other = X.copy()
    other[5] = 0.0
    model = PCA(2, svd_solver="krylov", random_state=0)

    def killed(*arguments, **options):
        raise KilledError

    with config_context(checkpoint=tmp_path / "kept", checkpoint_seconds=1e-6):
        with monkeypatch.context() as patch:
            patch.setattr(
                importlib.import_module("mercer.linalg.solvers.krylov").KrylovBasis, "grow", killed
            )
            with pytest.raises(KilledError):
                model.fit(X)
        with pytest.raises(CheckpointError, match="rows"):
            model.fit(other)
        model.fit(X)


def test_functions_are_told_apart_by_what_they_hold():
    def times(a, g=1.0):
        return lambda x, y: a * g * (x @ y.T)

    class Call:
        def __init__(self, g):
            self.g = g

        def __call__(self, x, y):
            return self.g * (x @ y.T)

    def inner(c):
        def outer(x, y):
            return [c for _ in x]

        return outer

    pairs = [
        (times(np.ones(2)), times(np.zeros(2))),
        (lambda x, y, g=0.1: g, lambda x, y, g=0.5: g),
        (Call(0.1), Call(0.5)),
        (inner(1), inner(2)),
        (lambda x, y: (lambda: 1)(), lambda x, y: (lambda: 2)()),
    ]
    for one, other in pairs:
        assert describe(one) != describe(other)
        assert describe(one) == describe(one)
    loop = Call(0.1)
    loop.g = loop
    assert describe(loop)
