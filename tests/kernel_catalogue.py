"""One row per kernel: the kernel, its formula for two rows in plain Python, and rows to try.

The laws of `tests/laws` run over `KERNELS`. `roundings` is tested with the kernels of
`tests/truth/families.py`.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gamma, kv

from mercer import kernels
from mercer.kernels import (
    RBF,
    AdditiveChi2,
    ChiSquare,
    Cosine,
    ExponentialChiSquare,
    Fisher,
    FromFunction,
    GeneralizedHistogramIntersection,
    Hellinger,
    HistogramIntersection,
    JensenShannon,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Separable,
    Subsequence,
    Substring,
    Tanh,
)


class Row(NamedTuple):
    name: str
    """Part of the names of its tests: ``pytest tests -k WORD`` with a word of it runs them."""
    kernel: Any
    formula: Callable[[Any, Any], float]
    """k(x, y) of two rows, without Mercer."""
    rows: str = "vectors"
    """The rows to try: a key of `ROWS`."""
    parses: bool = True
    """Whether `parse` reads its repr."""
    smooth: bool = True
    """Whether it has slopes."""
    fourier: bool = False
    """Whether it has Fourier features."""


def vectors(rng, n, d=6):
    return rng.standard_normal((n, d))


def histograms(rng, n, d=6):
    X = rng.dirichlet(np.ones(d), n)
    X[rng.uniform(size=X.shape) < 0.2] = 0.0
    return X


def strings(rng, n, d=6):
    return ["".join(rng.choice(list("abcß"), rng.integers(0, d + 2))) for _ in range(n)]


ROWS = {"vectors": vectors, "histograms": histograms, "strings": strings}


def dot(x, y):
    return math.fsum(a * b for a, b in zip(x, y, strict=True))


def apart(x, y):
    return math.fsum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def block(x, y):
    return math.fsum(abs(a - b) for a, b in zip(x, y, strict=True))


def chi(x, y):
    return math.fsum((a - b) ** 2 / (a + b) for a, b in zip(x, y, strict=True) if a + b > 0)


def shannon(x, y):
    def term(a, both):
        return a * math.log(a / both) if a > 0 else 0.0

    pairs = zip(x, y, strict=True)
    return -math.fsum(term(a, a + b) + term(b, a + b) for a, b in pairs) / math.log(2)


def matern(x, y, nu, length=2.0):
    z = math.sqrt(2 * nu * apart(x, y)) / length
    return 2 ** (1 - nu) / gamma(nu) * z**nu * kv(nu, z) if z > 0 else 1.0


def quadratic(x, y, alpha, length):
    return (1 + apart(x, y) / (2 * alpha * length**2)) ** -alpha


def angle(x, y):
    size = math.sqrt(dot(x, x) * dot(y, y))
    return dot(x, y) / size if size > 0 else 0.0


def substrings(s, t, p, decay):
    def parts(text):
        return [text[i : i + p] for i in range(len(text) - p + 1)]

    return decay ** (2 * p) * sum(parts(t).count(u) for u in parts(s))


def subsequences(s, t, p, decay):
    total = 0.0
    for i in itertools.combinations(range(len(s)), p):
        for j in itertools.combinations(range(len(t)), p):
            if all(s[a] == t[b] for a, b in zip(i, j, strict=True)):
                total += decay ** (i[-1] - i[0] + 1 + j[-1] - j[0] + 1)
    return total


class Bell:
    """A normal distribution of unknown mean: its score is x."""

    def score_vectors(self, X):
        return np.asarray(X)


def total(rows):
    return rows.sum(axis=1)


def hinge(x, y):
    return dot(x, y) + 1.0


VECTORS = [
    Row("linear", Linear(), dot),
    Row("polynomial", Polynomial(3, 0.5, 0.3), lambda x, y: (0.3 * dot(x, y) + 0.5) ** 3),
    Row("polynomial of degree 1", Polynomial(1), lambda x, y: dot(x, y) + 1),
    Row("rbf", RBF(0.2), lambda x, y: math.exp(-0.2 * apart(x, y)), fourier=True),
    Row(
        "laplacian",
        Laplacian(0.4),
        lambda x, y: math.exp(-0.4 * math.sqrt(apart(x, y))),
        fourier=True,
    ),
    Row(
        "laplacian, city block",
        Laplacian(0.2, norm="l1"),
        lambda x, y: math.exp(-0.2 * block(x, y)),
        smooth=False,
        fourier=True,
    ),
    Row("tanh", Tanh(0.2, 0.1), lambda x, y: math.tanh(0.2 * dot(x, y) + 0.1)),
    Row("cosine", Cosine(), angle),
    *(
        Row(
            f"matern {nu}", Matern(2.0, nu), lambda x, y, nu=nu: matern(x, y, nu, 2.0), fourier=True
        )
        for nu in (0.5, 1.5, 2.5, 1.8)
    ),
    Row(
        "rational quadratic",
        RationalQuadratic(2.0, 0.7),
        lambda x, y: quadratic(x, y, 0.7, 2.0),
        fourier=True,
    ),
    Row(
        "generalised intersection",
        GeneralizedHistogramIntersection(1.5),
        lambda x, y: math.fsum(min(abs(a), abs(b)) ** 1.5 for a, b in zip(x, y, strict=True)),
        smooth=False,
    ),
    Row("fisher", Fisher(Bell()), dot, parses=False, smooth=False),
    Row("separable", Separable(total), lambda x, y: sum(x) * sum(y), parses=False, smooth=False),
    Row("function", FromFunction(hinge, pairwise=True), hinge, parses=False, smooth=False),
]
HISTOGRAMS = [
    Row(
        "intersection",
        HistogramIntersection(),
        lambda x, y: math.fsum(min(a, b) for a, b in zip(x, y, strict=True)),
        "histograms",
        smooth=False,
    ),
    Row(
        "chi-square",
        ChiSquare(),
        lambda x, y: math.fsum(a * b / (a + b) for a, b in zip(x, y, strict=True) if a + b > 0),
        "histograms",
        smooth=False,
    ),
    Row("additive chi2", AdditiveChi2(), lambda x, y: -chi(x, y), "histograms", smooth=False),
    Row(
        "exponential chi-square",
        ExponentialChiSquare(0.7),
        lambda x, y: math.exp(-0.7 * chi(x, y)),
        "histograms",
        smooth=False,
    ),
    Row(
        "hellinger",
        Hellinger(),
        lambda x, y: math.fsum(math.sqrt(a * b) for a, b in zip(x, y, strict=True)),
        "histograms",
        smooth=False,
    ),
    Row("jensen-shannon", JensenShannon(), shannon, "histograms", smooth=False),
]
STRINGS = [
    Row(
        "substring",
        Substring(2, 0.8),
        lambda s, t: substrings(s, t, 2, 0.8),
        "strings",
        smooth=False,
    ),
    Row(
        "subsequence",
        Subsequence(3, 0.7),
        lambda s, t: subsequences(s, t, 3, 0.7),
        "strings",
        smooth=False,
    ),
]


def _rbf(x, y):
    return math.exp(-0.2 * apart(x, y))


def _cubic(x, y):
    return (dot(x, y) + 1) ** 3


ALGEBRA = [
    Row(
        "sum",
        RBF(0.2) + 0.5 * Polynomial(3) + Tanh(0.1),
        lambda x, y: _rbf(x, y) + 0.5 * _cubic(x, y) + math.tanh(0.1 * dot(x, y)),
    ),
    Row(
        "sum of sums",
        RBF(0.2) + (Laplacian(0.3) + 2),
        lambda x, y: _rbf(x, y) + math.exp(-0.3 * math.sqrt(apart(x, y))) + 2,
        fourier=True,
    ),
    Row(
        "product",
        RBF(0.2) * Matern(3.0) * 2,
        lambda x, y: 2 * _rbf(x, y) * matern(x, y, 1.5, 3.0),
        fourier=True,
    ),
    Row(
        "product of sums",
        (RBF(0.2) + 1) * (Linear() + 1),
        lambda x, y: (_rbf(x, y) + 1) * (dot(x, y) + 1),
    ),
    Row("power", (RBF(0.2) + 1) ** 2, lambda x, y: (_rbf(x, y) + 1) ** 2, fourier=True),
    Row(
        "normalised",
        Polynomial(3).normalized(),
        lambda x, y: _cubic(x, y) / math.sqrt(_cubic(x, x) * _cubic(y, y)),
    ),
    Row("normalised twice", Linear().normalized().normalized(), angle),
    Row(
        "rbf in a space",
        Polynomial(2).rbf(0.01),
        lambda x, y: math.exp(
            -0.01 * ((dot(x, x) + 1) ** 2 + (dot(y, y) + 1) ** 2 - 2 * (dot(x, y) + 1) ** 2)
        ),
    ),
    Row("rbf in the linear space", Linear().rbf(0.2), _rbf),
    Row(
        "columns",
        RBF(0.2).on_columns([0, 2]) + 3 * Linear().on_columns([1]) + Cosine().on_columns([5, 3, 4]),
        lambda x, y: (
            _rbf(x[[0, 2]], y[[0, 2]]) + 3 * x[1] * y[1] + angle(x[[5, 3, 4]], y[[5, 3, 4]])
        ),
    ),
    Row(
        "columns of columns",
        RBF(0.2).on_columns([1]).on_columns([0, 3]),
        lambda x, y: _rbf(x[[3]], y[[3]]),
        fourier=True,
    ),
    Row(
        "normalised strings",
        Subsequence(2, 0.5).normalized() + 1,
        lambda s, t: (
            1
            + (
                subsequences(s, t, 2, 0.5)
                / math.sqrt(subsequences(s, s, 2, 0.5) * subsequences(t, t, 2, 0.5))
                if min(subsequences(s, s, 2, 0.5), subsequences(t, t, 2, 0.5)) > 0
                else 0.0
            )
        ),
        "strings",
        smooth=False,
    ),
]
KERNELS = [*VECTORS, *HISTOGRAMS, *STRINGS, *ALGEBRA]

_named = {name for name in kernels.__all__ if hasattr(getattr(kernels, name), "name")}
_without = _named - {type(row.kernel).__name__ for row in KERNELS} - {"Constant"}
assert not _without, f"Kernels without a row in tests/kernel_catalogue.py: {sorted(_without)}."
