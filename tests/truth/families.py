"""Kernel families, each with its formula in longdouble, written from the definition.

`tests/laws/test_rounding.py` tests `roundings` of the kernels drawn here, and of no others.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.special

from mercer import kernels
from tests.kernel_catalogue import Bell, hinge, strings, subsequences, substrings

LD = np.longdouble


class Kernel(NamedTuple):
    """A kernel as an estimator takes it, and what it should be.

    `settings` are keywords of `KernelPCA`. `formula(X, Y)` gives k(x, y) of all pairs in
    longdouble, with an error below `roundings` longdouble roundings of √(k(x, x) k(y, y)) or of
    the sum of absolute values behind it. `shifts` says that the formula depends on x − y alone,
    `bilinear` that a shift of all rows does not change the centred matrix either; `dense` that
    sparse rows are refused.
    """

    name: str
    settings: dict[str, Any]
    formula: Callable[[Any, Any], np.ndarray]
    roundings: float = 64.0
    shifts: bool = False
    bilinear: bool = False
    fourier: bool = False
    dense: bool = False


def by_columns(X, Y, term):
    """Σ_l term(x_l, y_l) of all pairs, a column at a time."""
    out = np.zeros((len(X), len(Y)), LD)
    for column in range(X.shape[1]):
        out += term(X[:, column][:, None], Y[:, column][None, :])
    return out


def dot(X, Y):
    return X @ Y.T


def sqdist(X, Y):
    return by_columns(X, Y, lambda x, y: (x - y) ** 2)


def block(X, Y):
    return by_columns(X, Y, lambda x, y: np.abs(x - y))


def chi(X, Y):
    def term(x, y):
        both = x + y
        return (x - y) ** 2 / np.where(both > 0, both, 1)

    return by_columns(X, Y, term)


def cosine(X, Y):
    def unit(Z):
        largest = np.abs(Z).max(axis=1, keepdims=True, initial=0)
        Z = Z / np.where(largest > 0, largest, 1)
        length = np.sqrt((Z * Z).sum(axis=1, keepdims=True))
        return Z / np.where(length > 0, length, 1)

    return unit(X) @ unit(Y).T


def shannon(X, Y):
    def share(x, both):
        return x * np.log(np.where(x > 0, x, 1) / np.where(both > 0, both, 1))

    return -by_columns(X, Y, lambda x, y: share(x, x + y) + share(y, x + y)) / np.log(LD(2))


def matern(X, Y, nu, length):
    z = np.sqrt(LD(2 * nu) * sqdist(X, Y)) / LD(length)
    if nu == 0.5:
        return np.exp(-z)
    if nu == 1.5:
        return (1 + z) * np.exp(-z)
    if nu == 2.5:
        return (1 + z + z * z / 3) * np.exp(-z)
    z = z.astype(np.float64)
    with np.errstate(all="ignore"):
        k = 2 ** (1 - nu) / scipy.special.gamma(nu) * z**nu * scipy.special.kv(nu, z)
    return np.where(z > 0, np.where(np.isfinite(k), k, 0.0), 1.0).astype(LD)


def width(rng, rows):
    """A length among the distances between rows, of near pairs as well as of far ones.

    Sometimes much larger, for a kernel that is nearly constant, or smaller, for one that is
    nearly the identity.
    """
    rows = np.asarray(rows, LD)
    some = rows[rng.integers(0, len(rows), 6)]
    apart = np.sqrt(((rows[None, :, :] - some[:, None, :]) ** 2).sum(axis=2))
    apart = np.sort(apart[rng.integers(6)].astype(np.float64))
    apart = apart[(apart > 0) & np.isfinite(apart)]
    if not len(apart):
        return 1.0
    length = float(apart[int(len(apart) ** rng.random()) - 1])
    far = rng.choice([0.0, 1.0, -1.0], p=[0.75, 0.17, 0.08])
    return length * 10.0 ** (rng.normal(0, 0.5) + far * rng.uniform(1, 5))


def gamma_of(rng, rows, power):
    """γ for distances to this power: by the data mostly, or one that a user might type."""
    if rng.random() < 0.25:
        return float(rng.choice([1e-9, 1e-4, 0.01, 0.1, 1.0, 100.0, 1e4]))
    gamma = width(rng, rows) ** -power
    return float(np.clip(gamma, 1e-290, 1e290))


def rbf(rng, rows):
    gamma = gamma_of(rng, rows, 2.0)
    by_name = {"kernel": "rbf", "gamma": gamma}
    settings = by_name if rng.random() < 0.3 else {"kernel": kernels.RBF(gamma)}
    return Kernel(
        "rbf", settings, lambda X, Y: np.exp(-LD(gamma) * sqdist(X, Y)), shifts=True, fourier=True
    )


def laplacian(rng, rows):
    gamma, norm = gamma_of(rng, rows, 1.0), str(rng.choice(["l1", "l2"]))

    def formula(X, Y):
        return np.exp(-LD(gamma) * (block(X, Y) if norm == "l1" else np.sqrt(sqdist(X, Y))))

    kernel = kernels.Laplacian(gamma, norm=norm)
    return Kernel(
        f"laplacian {norm}",
        {"kernel": kernel},
        formula,
        shifts=True,
        fourier=True,
        dense=norm == "l1",
    )


def matern_family(rng, rows):
    nu = float(rng.choice([0.5, 1.5, 2.5, 1.8]))
    length = float(np.clip(width(rng, rows), 1e-290, 1e290))
    slack = 64.0 if nu in (0.5, 1.5, 2.5) else 64.0 * 2**14  # SciPy's Bessel functions: float64
    return Kernel(
        "matern",
        {"kernel": kernels.Matern(length, nu)},
        lambda X, Y: matern(X, Y, nu, length),
        slack,
        shifts=True,
        fourier=True,
    )


def rational(rng, rows):
    length = float(np.clip(width(rng, rows), 1e-140, 1e140))
    alpha = float(rng.choice([0.5, 0.7, 2.0]))

    def formula(X, Y):
        return (1 + sqdist(X, Y) / (2 * LD(alpha) * LD(length) ** 2)) ** -LD(alpha)

    kernel = kernels.RationalQuadratic(length, alpha)
    return Kernel("rational", {"kernel": kernel}, formula, shifts=True, fourier=True)


def linear(rng, rows):
    kernel = "linear" if rng.random() < 0.5 else kernels.Linear()
    return Kernel("linear", {"kernel": kernel}, dot, bilinear=True)


def largest(rows):
    return float(np.max(np.abs(np.asarray(rows, np.float64)), initial=0.0)) or 1.0


def polynomial(rng, rows):
    degree = int(rng.integers(1, 5))
    gamma = float(rng.choice([1.0, 0.3])) / (largest(rows) ** 2 if rng.random() < 0.7 else 1.0)
    gamma = float(np.clip(gamma, 1e-290, 1e290))
    coef0 = float(rng.choice([0.0, 0.5, 1.0]))

    def formula(X, Y):
        return (LD(gamma) * dot(X, Y) + LD(coef0)) ** degree

    named = {"kernel": "poly", "degree": degree, "gamma": gamma, "coef0": coef0}
    settings = {"kernel": kernels.Polynomial(degree, coef0, gamma)}
    return Kernel("polynomial", named if rng.random() < 0.3 else settings, formula, 512.0)


def cosine_family(rng, rows):
    kernel = "cosine" if rng.random() < 0.5 else kernels.Cosine()
    return Kernel("cosine", {"kernel": kernel}, cosine)


def tanh(rng, rows):
    gamma = 10.0 ** rng.uniform(-2, 0) / largest(rows) ** 2
    gamma, coef0 = float(np.clip(gamma, 1e-290, 1e290)), float(rng.choice([0.0, 0.1, 1.0]))
    named = {"kernel": "sigmoid", "gamma": gamma, "coef0": coef0}
    settings = {"kernel": kernels.Tanh(gamma, coef0)}
    return Kernel(
        "tanh",
        named if rng.random() < 0.3 else settings,
        lambda X, Y: np.tanh(LD(gamma) * dot(X, Y) + LD(coef0)),
    )


def intersection(rng, rows):
    if rng.random() < 0.5:
        kernel, power = kernels.HistogramIntersection(), LD(1)
    else:
        kernel, power = kernels.GeneralizedHistogramIntersection(1.5), LD(1.5)

    def formula(X, Y):
        return by_columns(X, Y, lambda x, y: np.minimum(np.abs(x), np.abs(y)) ** power)

    return Kernel("intersection", {"kernel": kernel}, formula, dense=True)


def chi_square(rng, rows):
    gamma = float(np.clip(gamma_of(rng, rows, 1.0), 1e-290, 1e290))

    def product(x, y):
        both = x + y
        return x * (y / np.where(both > 0, both, 1))

    choices = [
        ("chi-square", kernels.ChiSquare(), lambda X, Y: by_columns(X, Y, product)),
        ("additive chi2", kernels.AdditiveChi2(), lambda X, Y: -chi(X, Y)),
        (
            "exponential chi2",
            kernels.ExponentialChiSquare(gamma),
            lambda X, Y: np.exp(-LD(gamma) * chi(X, Y)),
        ),
    ]
    name, kernel, formula = choices[rng.integers(3)]
    return Kernel(name, {"kernel": kernel}, formula, dense=True)


def root_family(rng, rows):
    if rng.random() < 0.5:
        return Kernel(
            "hellinger",
            {"kernel": kernels.Hellinger()},
            lambda X, Y: np.sqrt(X) @ np.sqrt(Y).T,
        )
    return Kernel("jensen-shannon", {"kernel": kernels.JensenShannon()}, shannon, dense=True)


def exact_sums(rows):
    """Sums of rows, correctly rounded: a function that cancels would be another kernel."""
    return np.array([math.fsum(row) for row in np.asarray(rows, np.float64)])


def function(rng, rows):
    choices = [
        ("fisher", kernels.Fisher(Bell()), dot),
        (
            "separable",
            kernels.Separable(exact_sums),
            lambda X, Y: np.outer(X.sum(axis=1), Y.sum(axis=1)),
        ),
        ("function", kernels.FromFunction(hinge, pairwise=True), lambda X, Y: dot(X, Y) + 1),
    ]
    name, kernel, formula = choices[rng.integers(3)]
    return Kernel(name, {"kernel": kernel}, formula, 512.0, dense=True)


def sum_or_product(rng, rows):
    """Two kernels added, multiplied or scaled; a power; columns; a normalised one."""
    first, second = (
        (rbf, laplacian, rational)[rng.integers(3)](rng, rows),
        (linear, polynomial, rbf)[rng.integers(3)](rng, rows),
    )
    a, b = (_object(each) for each in (first, second))
    f, g = first.formula, second.formula
    waves = second.fourier
    choices = [
        ("sum", a + b, lambda X, Y: f(X, Y) + g(X, Y), waves),
        ("sum with a constant", a + 2.0, lambda X, Y: f(X, Y) + 2, True),
        ("product", a * b, lambda X, Y: f(X, Y) * g(X, Y), waves),
        ("scaled", 3.0 * a, lambda X, Y: 3 * f(X, Y), True),
        (
            "nested sum",
            2.0 * (a + 1.0) + kernels.Linear(),
            lambda X, Y: 2 * (f(X, Y) + 1) + dot(X, Y),
            False,
        ),
        ("power", a**2, lambda X, Y: f(X, Y) ** 2, True),
        ("columns", a.on_columns([0]), lambda X, Y: f(X[:, :1], Y[:, :1]), True),
        ("normalised", b.normalized(), lambda X, Y: _normalised(g, X, Y), False),
        _in_space(rows),
    ]
    name, kernel, formula, fourier = choices[rng.integers(len(choices))]
    return Kernel(name, {"kernel": kernel}, formula, 4096.0, fourier=fourier, dense=True)


def _object(kernel):
    given = dict(kernel.settings)
    made = given.pop("kernel")
    if not isinstance(made, str):
        return made
    if made == "linear":
        return kernels.Linear()
    if made == "rbf":
        return kernels.RBF(given["gamma"])
    return kernels.Polynomial(given["degree"], given["coef0"], given["gamma"])


def _diagonal(f, X):
    return np.array([f(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(len(X))], LD)


def _normalised(g, X, Y):
    x, y = _diagonal(g, X), _diagonal(g, Y)
    size = np.sqrt(np.outer(x, y))
    return g(X, Y) / np.where(size > 0, size, 1)


def _in_space(rows):
    gamma = float(np.clip(largest(rows) ** -2.0, 1e-290, 1e290))

    def g(X, Y):
        return (LD(gamma) * dot(X, Y) + 1) ** 2

    def formula(X, Y):
        apart = _diagonal(g, X)[:, None] + _diagonal(g, Y)[None, :] - 2 * g(X, Y)
        return np.exp(-LD(0.1) * apart)

    return "in space", kernels.Polynomial(2, 1.0, gamma).rbf(0.1), formula, False


FAMILIES = {
    "rbf": rbf,
    "laplacian": laplacian,
    "matern": matern_family,
    "rational": rational,
    "linear": linear,
    "polynomial": polynomial,
    "cosine": cosine_family,
    "tanh": tanh,
    "algebra": sum_or_product,
    "function": function,
}
HISTOGRAMS = {"intersection": intersection, "chi-square": chi_square, "roots": root_family}
# How often each of them is drawn, in the same order; they sum to 1.
_SHARES = [0.3, 0.08, 0.08, 0.06, 0.16, 0.1, 0.06, 0.05, 0.08, 0.03]
assert len(_SHARES) == len(FAMILIES), "Give every family of FAMILIES a share in _SHARES."


def draw(rng, rows, fourier=False):
    """Return a kernel for rows: those of histograms only where no entry is negative."""
    if fourier:
        names = ["rbf", "laplacian", "matern", "rational"]
        return FAMILIES[str(rng.choice(names))](rng, rows)
    if rng.random() < 0.2 and np.min(rows) >= 0:
        return HISTOGRAMS[str(rng.choice(list(HISTOGRAMS)))](rng, rows)
    return FAMILIES[str(rng.choice(list(FAMILIES), p=_SHARES))](rng, rows)


def draw_strings(rng):
    """Return a kernel of strings, and strings."""
    texts = strings(rng, int(rng.integers(3, 25)), 6)
    p, decay = int(rng.integers(1, 4)), 0.7
    kernel, formula = (
        (kernels.Substring(p, decay), substrings),
        (kernels.Subsequence(p, decay), subsequences),
    )[rng.integers(2)]

    def values(X, Y):
        return np.array([[formula(s, t, p, decay) for t in Y] for s in X], LD)

    return Kernel("strings", {"kernel": kernel}, values, 64.0 * 2**13), texts
