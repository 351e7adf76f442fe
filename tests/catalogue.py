"""One row per solver, method, source and difficult matrix: the laws run over all of them."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from allpairspy import AllPairs

from mercer import methods
from mercer.estimators import pca
from mercer.linalg import solvers


def rows(table, *names):
    """The rows of a table, or those named, as parameters of a test."""
    return [pytest.param(row, id=row.name) for row in table if not names or row.name in names]


def pairwise(**factors):
    """Parametrize a test so that every pair of values of two factors occurs, not every product."""
    names = sorted(factors, key=lambda name: -len(list(factors[name])))
    cases = AllPairs([list(factors[name]) for name in names])
    params = [pytest.param(*case, id="-".join(map(label, case))) for case in cases]
    return pytest.mark.parametrize(names, params)


def label(value):
    """Label of a factor's value in the name of a test."""
    if isinstance(value, tuple) and hasattr(value, "name"):
        return value.name  # a row of a catalogue
    return getattr(value, "__name__", str(value))  # of a function str holds its address


def cycled(**factors):
    """Parametrize a test so that every value of every factor occurs; the other products are slow.

    The longest factor is gone through once, the others in turn beside it.
    """
    names = list(factors)
    values = [list(factors[name]) for name in names]
    longest = max(map(len, values))
    chosen = {tuple(i % len(each) for each in values) for i in range(longest)}
    params = []
    for at in itertools.product(*(range(len(each)) for each in values)):
        case = [each[i] for each, i in zip(values, at, strict=True)]
        marks = () if at in chosen else pytest.mark.slow
        params.append(pytest.param(*case, id="-".join(map(label, case)), marks=marks))
    return pytest.mark.parametrize(names, params)


def others_slow(values, *default):
    """Values as parameters of a test: those named by default, the others where slow tests run."""
    values = list(values)
    assert set(default) <= set(values)
    return [
        pytest.param(value, id=str(value), marks=() if value in default else pytest.mark.slow)
        for value in values
    ]


# Eigensolvers of mercer.linalg.solvers.


class Solver(NamedTuple):
    name: str
    ratio: float | None
    """Bound on ‖AV−VΛ‖/(‖A‖ N ε) and |λ−λ*|/(‖A‖ N ε); None where it iterates a fixed number."""

    def __call__(self, operator, k, *, tol=0.0, seed=0, **how):
        rng = np.random.default_rng(seed)
        return solvers.SOLVERS[self.name](operator, k, tol=tol, rng=rng, **how)


SOLVERS = [
    Solver("dense", 10),
    Solver("jacobi", 10),
    Solver("krylov", 30),
    Solver("arpack", 10),
    Solver("power", None),
    Solver("randomized", None),
]
_differ = {row.name for row in SOLVERS} ^ set(solvers.SOLVERS)
assert not _differ, f"Only in one of tests/catalogue.py and linalg.solvers: {sorted(_differ)}."


# Ways to fit a PCA.


class Way(NamedTuple):
    name: str
    solver: Any
    exact: bool = True
    """Whether it finds every axis to working precision."""
    streaming: bool = False
    """Whether rows may come in batches."""


WAYS = [
    Way("auto", "auto"),
    Way("full", "full"),
    Way("covariance_eigh", "covariance_eigh"),
    Way("dot", "dot"),
    Way("krylov", "krylov"),
    Way("jacobi", "jacobi"),
    Way("arpack", "arpack"),
    Way("power", "power"),
    Way("randomized", "randomized", exact=False),
    Way("sketch", "sketch", exact=False),
    Way("SVD()", methods.SVD(), streaming=True),
    Way("Covariance()", methods.Covariance(), streaming=True),
    Way("Covariance(krylov)", methods.Covariance("krylov"), streaming=True),
    Way("Dot()", methods.Dot()),
    Way("Iterative()", methods.Iterative()),
    Way("FrequentDirections(12)", methods.FrequentDirections(12), exact=False, streaming=True),
]
assert {row.solver for row in WAYS if isinstance(row.solver, str)} == set(pca.SOLVERS)
EXACT = [row for row in WAYS if row.exact]
STRINGS = [row for row in EXACT if isinstance(row.solver, str)]
STREAMS = [row for row in WAYS if row.streaming]


# What rows may come as: each takes an ndarray and a folder for files.


class Kind(NamedTuple):
    name: str
    make: Callable[[np.ndarray, Any], Any]


def _strided(X, _):
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan, X.dtype)
    wide[::2, 1::3] = X
    return wide[::2, 1::3]


def _backwards(X, _):
    return X[::-1, ::-1].copy()[::-1, ::-1]


def _readonly(X, _):
    X = X.copy()
    X.flags.writeable = False
    return X


def _npy(X, folder):
    np.save(folder / "rows.npy", np.ascontiguousarray(X))
    return folder / "rows.npy"


def _npy_fortran(X, folder):
    np.save(folder / "fortran.npy", np.asfortranarray(X))
    return str(folder / "fortran.npy")


def _memmap(X, folder):
    return np.load(_npy(X, folder), mmap_mode="r")


def _source(X, _):
    from mercer import as_source

    return as_source(X)


def _pandas(X, _):
    return pytest.importorskip("pandas").DataFrame(X)


def _polars(X, _):
    names = [f"x{j}" for j in range(X.shape[1])]
    return pytest.importorskip("polars").DataFrame(np.ascontiguousarray(X), schema=names)


def _torch(X, _):
    return pytest.importorskip("torch").asarray(X.copy())


def _strict(X, _):
    return pytest.importorskip("array_api_strict").asarray(X.copy())


SOURCES = [
    Kind("C order", lambda X, _: np.ascontiguousarray(X)),
    Kind("F order", lambda X, _: np.asfortranarray(X)),
    Kind("strided view", _strided),
    Kind("negative strides", _backwards),
    Kind("read-only", _readonly),
    Kind("Source", _source),
    Kind("CSR", lambda X, _: scipy.sparse.csr_array(X)),
    Kind("CSC", lambda X, _: scipy.sparse.csc_array(X)),
    Kind("COO matrix", lambda X, _: scipy.sparse.coo_matrix(X)),
    Kind("pandas", _pandas),
    Kind("polars", _polars),
    Kind("npy C order", _npy),
    Kind("npy Fortran order", _npy_fortran),
    Kind("memmap", _memmap),
    Kind("lists", lambda X, _: X.tolist()),
    Kind("torch", _torch),
    Kind("array_api_strict", _strict),
]


# Symmetric positive semi-definite matrices that solvers get wrong.


class Nasty(NamedTuple):
    name: str
    make: Callable[[np.random.Generator], np.ndarray]


def with_spectrum(rng, values):
    """A symmetric matrix with these eigenvalues in a random position."""
    Q = scipy.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    A = (Q * np.asarray(values, dtype=float)) @ Q.T
    return (A + A.T) / 2


def _scatter(X):
    X = X - X.mean(axis=0)
    return X.T @ X / max(1, len(X) - 1)


def _duplicates(rng):
    X = rng.standard_normal((40, 12))
    return _scatter(np.hstack([X, X]))


def _constant_columns(rng):
    X = rng.standard_normal((40, 24))
    X[:, ::3] = 7.0
    return _scatter(X)


def _scaled_columns(rng):
    """Well-conditioned but for the columns' units, ten decades apart."""
    units = 10.0 ** -np.linspace(0, 10, 24)
    return _scatter(rng.standard_normal((60, 24)) * units)


OPERATORS = [
    Nasty("1×1", lambda rng: np.array([[3.0]])),
    Nasty("1×1 zero", lambda rng: np.zeros((1, 1))),
    Nasty("2×2 equal", lambda rng: 5.0 * np.eye(2)),
    Nasty("zero", lambda rng: np.zeros((24, 24))),
    Nasty("identity", lambda rng: np.eye(24)),
    Nasty("diagonal", lambda rng: np.diag(np.arange(24.0))),
    Nasty("flat", lambda rng: _scatter(rng.standard_normal((200, 24)))),
    Nasty("graded", lambda rng: with_spectrum(rng, 10.0 ** -np.linspace(0, 14, 24))),
    Nasty("columns in other units", _scaled_columns),
    Nasty("hilbert", lambda rng: scipy.linalg.hilbert(24)),
    Nasty("clusters", lambda rng: with_spectrum(rng, np.repeat([4.0, 2.0, 1.0], 8))),
    Nasty("near clusters", lambda rng: with_spectrum(rng, 1 + 1e-9 * np.arange(24))),
    Nasty("more equal than a block", lambda rng: with_spectrum(rng, [1.0] * 30 + [0.5] * 30)),
    Nasty("rank one", lambda rng: with_spectrum(rng, [1.0] + [0.0] * 23)),
    Nasty("duplicates", _duplicates),
    Nasty("constant columns", _constant_columns),
    Nasty("1e150", lambda rng: 1e150 * _scatter(rng.standard_normal((60, 24)))),
    Nasty("1e-150", lambda rng: 1e-150 * _scatter(rng.standard_normal((60, 24)))),
]


# Data that PCA gets wrong: each takes a generator and a dtype.


class Data(NamedTuple):
    name: str
    make: Callable[[np.random.Generator, Any], np.ndarray]

    def __call__(self, dtype, seed=0):
        return self.make(np.random.default_rng(seed), np.dtype(dtype))


def separated(rng, n, d, ratio=0.7):
    """Normal rows whose standard deviations fall by a constant ratio."""
    return rng.standard_normal((n, d)) * ratio ** np.arange(d)


def graded(rng, n, d, decades):
    """Rows whose singular values, centred, span so many decades."""
    m = min(n - 1, d)
    U = rng.standard_normal((n, m))
    U = scipy.linalg.qr(U - U.mean(axis=0), mode="economic")[0]
    V = scipy.linalg.qr(rng.standard_normal((d, m)), mode="economic")[0]
    return (U * 10.0 ** -np.linspace(0, decades, m)) @ V.T


def _of(f):
    return lambda rng, dtype: f(rng).astype(dtype)


def _large_mean(rng, dtype):
    return (separated(rng, 200, 12) + (1e4 if dtype == np.float32 else 1e8)).astype(dtype)


def _cluster_rows(rng):
    return np.repeat([3.0, 3.0, 1.0, 1.0, 1.0, 0.1], 3) * rng.standard_normal((300, 18))


def _constant(rng):
    X = separated(rng, 60, 10)
    X[:, 3:7] = 41.7
    return X


def _scaled_rows(single, double):
    """Rows times a power of ten, one for float32 and one for float64."""

    def make(rng, dtype):
        scale = 10.0 ** (single if dtype == np.float32 else double)
        return (scale * separated(rng, 50, 8)).astype(dtype)

    return make


def _outlier(rng):
    X = separated(rng, 300, 6)
    X[137] *= 1e3
    return X


DATA = [
    Data("tall", _of(lambda rng: separated(rng, 300, 15))),
    Data("wide", _of(lambda rng: separated(rng, 300, 15).T)),
    Data("square", _of(lambda rng: rng.standard_normal((40, 40)))),
    Data("flat tall", _of(lambda rng: rng.standard_normal((500, 30)))),
    Data("flat wide", _of(lambda rng: rng.standard_normal((30, 500)))),
    Data("large mean", _large_mean),
    Data("large mean wide", lambda rng, dtype: np.ascontiguousarray(_large_mean(rng, dtype).T)),
    Data("graded tall", _of(lambda rng: graded(rng, 200, 20, 14))),
    Data("graded wide", _of(lambda rng: graded(rng, 20, 200, 14))),
    Data("clusters", _of(_cluster_rows)),
    Data("rank one", _of(lambda rng: np.outer(rng.standard_normal(40), rng.standard_normal(12)))),
    Data("duplicate rows", _of(lambda rng: np.repeat(separated(rng, 20, 10), 5, axis=0))),
    Data("duplicate columns", _of(lambda rng: np.repeat(separated(rng, 80, 6), 3, axis=1))),
    Data("constant columns", _of(_constant)),
    Data("huge", _scaled_rows(15, 150)),
    Data("tiny", _scaled_rows(-15, -150)),
    Data("large", _scaled_rows(11, 85)),
    Data("small", _scaled_rows(-11, -85)),
    Data("one column", _of(lambda rng: rng.standard_normal((50, 1)) + 5)),
    Data("two rows", _of(lambda rng: rng.standard_normal((2, 9)))),
    Data("2×1", _of(lambda rng: rng.standard_normal((2, 1)))),
    Data("zero", _of(lambda rng: np.zeros((20, 6)))),
    Data("constant", _of(lambda rng: np.full((20, 6), 0.1))),
    Data("outlier", _of(_outlier)),
]
