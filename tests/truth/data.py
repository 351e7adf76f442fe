"""Random data that certificates may get wrong: each generator makes rows from n, d and a dtype."""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse


class Data(NamedTuple):
    """Rows to fit.

    `X` is what the estimator is given, `rows` the same values as a dense array (the exact input),
    `weights` the sample weights or None.
    """

    name: str
    X: Any
    rows: np.ndarray
    weights: np.ndarray | None

    @property
    def shape(self):
        return self.rows.shape


def normal(rng, n, d, dtype):
    return rng.standard_normal((n, d)) * rng.choice([0.3, 1.0, 10.0])


def low_rank(rng, n, d, dtype):
    """Few columns, or many columns of low rank: a centred Gram matrix of low rank."""
    r = int(rng.integers(1, 4))
    X = rng.standard_normal((n, r))
    return X if rng.random() < 0.6 else X @ rng.standard_normal((r, max(d, r)))


def few_distinct(rng, n, d, dtype):
    """Few distinct rows, each many times; the copies are exact or almost exact."""
    distinct = rng.standard_normal((int(rng.integers(1, 6)), d)) * 10.0 ** rng.integers(-2, 3)
    X = distinct[rng.integers(0, len(distinct), n)]
    return X if rng.random() < 0.7 else X * (1 + 1e-12 * rng.standard_normal((n, d)))


def mixed_scales(rng, n, d, dtype):
    """Columns with an offset, a spread, a tight cluster and outliers, each of its own scale."""
    single = dtype == np.float32
    X = np.empty((n, d))
    for j in range(d):
        offset = rng.choice([0.0, 1.0]) * 10.0 ** rng.uniform(0, 5 if single else 9.3)
        spread = 10.0 ** rng.uniform(-1, 3 if single else 5)
        X[:, j] = offset + spread * rng.standard_normal(n)
    cluster = rng.random(n) < rng.choice([0.03, 0.1, 0.3])
    where = X[rng.integers(n)] if rng.random() < 0.5 else np.zeros(d)
    width = 10.0 ** rng.uniform(-3, 0.5)
    X[cluster] = where + width * rng.uniform(0, 1, (int(cluster.sum()), d))
    if rng.random() < 0.6:
        far = rng.choice(n, min(n, int(rng.integers(1, 4))), replace=False)
        X[far] = rng.choice([-1.0, 1.0], (len(far), d)) * 10.0 ** rng.uniform(4, 7)
    return X


def mixed_rows(rng, n, d, dtype):
    """Groups of rows whose lengths are decades apart."""
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 2)
    X[: int(rng.integers(1, n))] *= 10.0 ** -rng.uniform(1, 6)
    return X if rng.random() < 0.5 else rng.permutation(X)


def huge_constant(rng, n, d, dtype):
    """Constant columns, huge beside features in [0, 1]."""
    X = rng.random((n, d + 1)) if rng.random() < 0.5 else rng.standard_normal((n, d + 1))
    largest = 7 if dtype == np.float32 else 17
    columns = rng.choice(d + 1, int(rng.integers(1, d + 1)), replace=False)
    X[:, columns] = rng.choice([-1, 1]) * 10.0 ** rng.uniform(2, largest)
    return X


def sorted_clusters(rng, n, d, dtype):
    """Clusters far apart, in order: the first rows say nothing of the last."""
    centres = rng.standard_normal((int(rng.integers(2, 7)), d)) * 10.0 ** rng.uniform(0, 3)
    widths = 10.0 ** rng.uniform(-4, 0, len(centres))
    at = np.sort(rng.integers(0, len(centres), n))
    return centres[at] + widths[at][:, None] * rng.standard_normal((n, d))


def hidden_rows(rng, n, d, dtype):
    """Plain rows, and a few that no sample of rows is likely to see."""
    X = rng.standard_normal((n, d))
    few = rng.choice(n, min(n, int(rng.integers(1, 4))), replace=False)
    top = 8 if dtype == np.float64 else 4
    if rng.random() < 0.15:  # their squares overflow, or all others vanish beside them
        top = 140 if dtype == np.float64 else 17
    X[few] = X[few] * 10.0 ** rng.uniform(1, top)
    return X


def heavy_tails(rng, n, d, dtype):
    return rng.standard_t(rng.choice([0.6, 1.0, 2.0]), (n, d))


def graded(rng, n, d, dtype):
    """Singular values over up to 14 decades."""
    m = min(n, d)
    U = scipy.linalg.qr(rng.standard_normal((n, m)), mode="economic")[0]
    V = scipy.linalg.qr(rng.standard_normal((d, m)), mode="economic")[0]
    decades = rng.uniform(4, 14 if dtype == np.float64 else 7)
    return (U * 10.0 ** -np.linspace(0, decades, m)) @ V.T


def units(rng, n, d, dtype):
    """Columns in units that are decades apart."""
    top = 10 if dtype == np.float64 else 5
    return rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-top, top, d)


def ties(rng, n, d, dtype):
    """Equal eigenvalues: multiples of orthonormal columns, or plus and minus unit vectors."""
    if rng.random() < 0.5:
        return np.vstack([np.eye(d), -np.eye(d)])[np.arange(max(n, 2)) % (2 * d)]
    m = max(1, min(n - 1, d))
    U = rng.standard_normal((n, m))
    return scipy.linalg.qr(U - U.mean(axis=0), mode="economic")[0] * rng.choice([1.0, 3.0, 3.0], m)


def extreme(rng, n, d, dtype):
    """Scales at which squares overflow, or vanish."""
    powers = [-25, -20, -13, 13, 20] if dtype == np.float32 else [-150, -100, -32, 32, 100, 150]
    return rng.standard_normal((n, d)) * 10.0 ** float(rng.choice(powers))


def large_mean(rng, n, d, dtype):
    if rng.random() < 0.3:
        n, d = min(n, 30), int(rng.integers(30, 120))
    mean = 10.0 ** rng.uniform(2, 4 if dtype == np.float32 else 8)
    return mean * rng.choice([-1, 1], d) + rng.standard_normal((n, d)) * 0.7 ** np.arange(d)


def rank_one(rng, n, d, dtype):
    return np.outer(rng.standard_normal(n), rng.standard_normal(d)) + rng.choice([0.0, 5.0])


def equal_rows(rng, n, d, dtype):
    row = rng.choice([np.zeros(d), np.full(d, 0.1), rng.standard_normal(d)])
    return np.tile(row, (n, 1))


def nearly_equal_rows(rng, n, d, dtype):
    """Rows that differ in their last digits."""
    X = equal_rows(rng, n, d, dtype) + rng.choice([0.0, 1.0])
    ulps = np.finfo(dtype).eps * rng.integers(-2, 3, X.shape)
    return X * (1 + ulps * rng.choice([1, 100]))


def one_column(rng, n, d, dtype):
    return rng.standard_normal((n, 1)) * rng.choice([1.0, 50.0]) + rng.choice([0.0, 5.0])


def two_rows(rng, n, d, dtype):
    X = rng.standard_normal((2, d))
    return X if rng.random() < 0.6 else np.repeat(X[:1], 2, axis=0)


def wide(rng, n, d, dtype):
    """Fewer rows than columns."""
    n, d = min(n, 40), int(rng.integers(60, 300))
    offset = rng.choice([0.0, 1.0, 1e3 if dtype == np.float32 else 1e8])
    return rng.standard_normal((n, d)) * 0.97 ** np.arange(d) + offset


def integers(rng, n, d, dtype):
    return rng.integers(0, int(rng.choice([2, 5, 1000])), (n, d)).astype(float)


def one_hot(rng, n, d, dtype):
    return np.eye(d)[rng.integers(0, d, n)]


def sparse_counts(rng, n, d, dtype):
    """Counts, with empty rows and columns."""
    X = rng.poisson(rng.choice([0.05, 0.3, 1.0]), (n, d)).astype(float)
    X[rng.random(n) < 0.1] = 0.0
    X[:, rng.random(d) < 0.2] = 0.0
    return X * rng.choice([1.0, 1.0, 1e3])


def histograms(rng, n, d, dtype):
    X = rng.dirichlet(np.full(d, rng.choice([0.1, 1.0])), n)
    X[rng.random(X.shape) < 0.1] = 0.0
    return X


def far_apart(rng, n, d, dtype):
    """Rows so far apart, beside one cluster, that a kernel matrix is nearly the identity."""
    X = 1e3 * rng.standard_normal((n, d))
    X[: int(rng.integers(1, n))] *= rng.choice([1.0, 1e-3])
    return X


def two_scales(rng, n, d, dtype):
    """A strong direction and weak ones that are far below it, but not below rounding."""
    X = rng.standard_normal((n, d))
    X[:, 0] *= 10.0 ** rng.uniform(2, 7 if dtype == np.float64 else 3)
    return X @ scipy.linalg.qr(rng.standard_normal((d, d)))[0]


GENERATORS = {
    make.__name__: make
    for make in (
        normal,
        low_rank,
        few_distinct,
        mixed_scales,
        mixed_rows,
        huge_constant,
        sorted_clusters,
        hidden_rows,
        heavy_tails,
        graded,
        units,
        ties,
        extreme,
        large_mean,
        rank_one,
        equal_rows,
        nearly_equal_rows,
        one_column,
        two_rows,
        wide,
        integers,
        one_hot,
        sparse_counts,
        histograms,
        far_apart,
        two_scales,
    )
}


def sizes(rng, largest):
    """Rows and columns: mostly few, sometimes so many that other code runs."""
    if largest >= 700 and rng.random() < 0.001:
        return int(rng.integers(700, 2200)), int(rng.integers(1, 4))
    ranges = [(2, 12), (12, 80), (80, 160), (160, 400), (400, largest)]
    n = int(rng.integers(*ranges[rng.choice(5, p=[0.2, 0.62, 0.15, 0.025, 0.005])]))
    columns = [(1, 5), (5, 20), (20, 61)]
    d = int(rng.integers(*columns[rng.choice(3, p=[0.55, 0.35, 0.1])]))
    return n, d if n <= 400 else min(d, 6)


def small_sizes(rng, largest):
    """Rows and columns for methods that take long."""
    n, d = sizes(rng, 401)
    return min(n, largest), d


def draw_weights(rng, n):
    """None mostly; counts with zeros, weights decades apart, or ones."""
    if rng.random() < 0.75:
        return None
    kind = rng.integers(4)
    if kind == 0:
        weights = rng.integers(0, 4, n).astype(float)
    elif kind == 1:
        weights = 10.0 ** rng.uniform(-6, 6, n)
    elif kind == 2:
        weights = np.where(rng.random(n) < 0.5, 0.0, rng.random(n))
    else:
        weights = np.ones(n)
    total = weights.sum()
    if total == 0:
        return np.ones(n)
    return weights if total > 2.5 else weights * 2.5 / total


def draw(rng, name, largest=700):
    """Return data of a generator: rows of some dtype, dense or sparse, perhaps weighted."""
    dtype = np.dtype(rng.choice([np.float32, np.float64], p=[0.35, 0.65]))
    n, d = sizes(rng, largest) if largest > 400 else small_sizes(rng, largest)
    with np.errstate(over="ignore", under="ignore"):
        rows = np.asarray(GENERATORS[name](rng, n, d, dtype)).astype(dtype)
    if dtype == np.float64 and name == "integers" and rng.random() < 0.5:
        rows = rows.astype(np.int64)
    return dressed(rng, name, rows)


def dressed(rng, name, rows):
    """Return rows with weights, in a sparse matrix where they are one often enough."""
    empty = np.mean(rows == 0)
    sparse = rng.random() < (0.5 if empty > 0.3 else 0.15)
    X = scipy.sparse.csr_array(rows) if sparse else rows
    return Data(name, X, rows, draw_weights(rng, len(rows)))
