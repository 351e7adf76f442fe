"""Ways to fit: every method, solver and landmark rule, with parameters drawn at random."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mercer import PCA, KernelPCA, landmarks, methods, rules, sketches
from tests.landmarks.catalogue import ROWS as LANDMARKS


class Size(NamedTuple):
    """What parameters must fit: rows, columns and components."""

    n: int
    d: int
    k: int


class Way(NamedTuple):
    """A way to fit: `make(rng, size)` returns keywords of the estimator.

    `exact` ways find every component to working precision; `batches` are fitted by partial_fit.
    """

    name: str
    make: Callable[[np.random.Generator, Size], dict[str, Any]]
    kernel: bool = False
    exact: bool = False
    batches: bool = False
    fourier: bool = False
    largest: int = 700
    """Rows at most."""


def fixed(**settings):
    return lambda rng, size: dict(settings)


def some_sketch(rng, width, k):
    """A map to between k and `width` columns."""
    q = int(rng.integers(k, max(k, width) + 1))
    seed = int(rng.integers(1000))
    kinds = [
        sketches.Gaussian(q, random_state=seed),
        sketches.Hashing(q, random_state=seed),
        sketches.SparseSign(q, min(8, q), random_state=seed),
        sketches.Hadamard(q, random_state=seed),
    ]
    return kinds[rng.integers(len(kinds))]


def _sketched(parameter, of):
    def make(rng, size):
        sketch = some_sketch(rng, getattr(size, of), size.k) if rng.random() < 0.8 else None
        return {parameter: methods.Sketch(sketch, polish=bool(rng.random() < 0.5))}

    return make


def _covariance(rng, size):
    solver = rng.choice(["dense", "jacobi", "power", "krylov", "arpack", "randomized"])
    return {"svd_solver": methods.Covariance(str(solver))}


def _dot(rng, size):
    return {"svd_solver": methods.Dot(str(rng.choice(["dense", "jacobi", "power", "krylov"])))}


def _iterative(rng, size):
    solver = rng.choice(["krylov", "arpack", "power", "randomized"])
    return {"svd_solver": methods.Iterative(str(solver))}


def _frequent(rng, size):
    rows = int(rng.integers(max(1, size.k), max(size.k + 1, min(size.n, size.d) + 3)))
    return {"svd_solver": methods.FrequentDirections(rows), "scale": False}


def _grouped(rng, size):
    q = int(rng.integers(size.k, max(size.k, size.d) + 1))
    return {"svd_solver": methods.Sketch(sketches.FeatureGrouping(q), polish=True)}


def _stream(rng, size):
    solvers = [methods.SVD(), methods.Covariance(), "auto"]
    return {"svd_solver": solvers[rng.integers(3)]}


_LINEAR = [
    *(
        Way(name, fixed(svd_solver=name), exact=name not in ("randomized", "sketch"))
        for name in (
            "auto",
            "full",
            "covariance_eigh",
            "dot",
            "krylov",
            "jacobi",
            "arpack",
            "power",
            "randomized",
            "sketch",
        )
    ),
    Way("Covariance", _covariance),
    Way("Dot", _dot, exact=True),
    Way("Iterative", _iterative),
    Way("FrequentDirections", _frequent),
    Way("Sketch", _sketched("svd_solver", "d")),
    Way("Sketch(FeatureGrouping)", _grouped),
    Way("SVD", fixed(svd_solver=methods.SVD()), exact=True),
    Way("batches", _stream, exact=True, batches=True),
    Way("batches of FrequentDirections", _frequent, batches=True),
]


def points(rng, size):
    """How many points a basis has: few, some, or all rows; or a share of the rows."""
    choice = rng.random()
    if choice < 0.1:
        return size.n
    if choice < 0.2 and size.n >= 4 * size.k:
        return 0.5
    return int(rng.integers(size.k, min(size.n, max(size.k + 2, 3 * size.n // 4)) + 1))


def select(rng, size):
    """A landmark rule, or rows given by their number."""
    if rng.random() < 0.08:
        at = rng.choice(size.n, min(size.n, size.k + 3), replace=False)
        return landmarks.Given(at)
    return LANDMARKS[rng.integers(len(LANDMARKS))].rule


def _basis(method, **choices):
    """A method on a basis, with some of its parameters drawn from choices."""

    def make(rng, size):
        settings = {name: values[rng.integers(len(values))] for name, values in choices.items()}
        rule = select(rng, size)
        given = isinstance(rule, landmarks.Given)
        m = None if given else points(rng, size)
        return {"method": method(m, select=rule, **settings)}

    return make


def _pivots(method, **choices):
    def make(rng, size):
        settings = {name: values[rng.integers(len(values))] for name, values in choices.items()}
        return {"method": method(points(rng, size), **settings)}

    return make


def _exact(solver):
    def make(rng, size):
        stores = ["float64", "float32", "none"] if solver == "krylov" else ["float64", "none"]
        return {"method": methods.Exact(solver, str(rng.choice(stores)))}

    return make


def _rank(rng, size):
    m = min(size.n, size.k + int(rng.integers(0, 10)))
    rank = int(rng.integers(size.k, m + 1))
    return {"method": methods.Subset(m, rank=rank)}


def _within(rng, size):
    store = rng.choice(["float32", "float64", "none", "off"])
    m = min(size.n, size.k + int(rng.integers(0, 40)))
    return {
        "method": methods.Adaptive(m, None if store == "off" else str(store)),
        "gap": float(rng.choice([0.3, 0.05, 0.01, 1e-4])),
    }


def _hebbian(rng, size):
    on_basis = rng.random() < 0.5
    m = min(size.n, size.k + int(rng.integers(0, 20))) if on_basis else None
    gain = str(rng.choice(["kha", "et", "smd"]))
    passes = int(rng.choice([2, 10, 60]))
    polish = bool(rng.random() < 0.7)
    return {"method": methods.Hebbian(gain, m, max_passes=passes, polish=polish)}


def _features(rng, size):
    linears = [None, methods.Covariance(), methods.SVD(), methods.Iterative()]
    q = int(rng.integers(-(-size.k // 2), 60 + size.k))
    orthogonal = bool(rng.random() < 0.2)
    return {"method": methods.RandomFeatures(q, orthogonal, linears[rng.integers(4)])}


def _sparse(rng, size):
    m = min(size.n, size.k + int(rng.integers(0, 10)))
    if rng.random() < 0.3:
        return {"method": methods.Sparse(sigma2=float(10.0 ** rng.uniform(-4, 0)), max_iter=50)}
    return {"method": methods.Sparse(m, max_iter=50)}


def _sparse_l1(rng, size):
    candidates = [None, 5][rng.integers(2)]
    return {"method": methods.SparseL1(candidates, str(rng.choice(["l1", "none", "length"])))}


def _kernel_stream(rng, size):
    first = max(2, size.k, size.n // 4)  # rows of the first batch, at least
    return {"method": methods.Subset(int(rng.integers(size.k, min(size.k + 12, first) + 1)))}


_SOLVERS = ("dense", "arpack", "randomized", "krylov", "power", "jacobi")
_NAMED = (
    "subset",
    "reduced",
    "improved",
    "nystrom",
    "cholesky",
    "greedy",
    "adaptive",
    "sketch",
    "hebbian",
    "sparse",
    "sparse_l1",
)
_ITERATED = ("randomized",)
_SLOW = {"jacobi": 40, "power": 16}
_KERNEL = [
    Way("kernel auto", fixed(), True, exact=True),
    Way("kernel exact", fixed(method="exact"), True, exact=True),
    *(
        Way(
            f"kernel {name}",
            fixed(eigen_solver=name),
            True,
            exact=name not in _ITERATED,
            largest=_SLOW.get(name, 700),
        )
        for name in _SOLVERS
    ),
    *(
        Way(
            f"Exact({name})",
            _exact(name),
            True,
            exact=name not in _ITERATED,
            largest=_SLOW.get(name, 700),
        )
        for name in _SOLVERS
    ),
    *(
        Way(f"method {name}", fixed(method=name), True, largest=120 if "sparse" in name else 700)
        for name in _NAMED
        if name != "hebbian"
    ),
    Way("Subset", _basis(methods.Subset, centroid=["span", "span", "rows", "basis"]), True),
    Way("Subset(landmarks)", _basis(methods.Subset), True),
    Way("Subset(rank)", _rank, True),
    Way("Reduced", _basis(methods.Reduced), True),
    Way("Improved", _basis(methods.Improved), True),
    Way("Nystrom", _basis(methods.Nystrom, on=["rows", "basis"], weigh=[True, False]), True),
    Way("Nystrom(rows)", _basis(methods.Nystrom, on=["rows"]), True),
    Way("Cholesky", _pivots(methods.Cholesky, tol=[0.0, 0.01], on=["basis", "rows"]), True),
    Way("Greedy", _pivots(methods.Greedy, tol=[0.0, 0.1]), True),
    Way("Adaptive", _within, True),
    Way("Adaptive, first", _within, True),
    Way("kernel Sketch", _sketched("method", "n"), True),
    Way("Hebbian", _hebbian, True, largest=120),
    Way("RandomFeatures", _features, True, fourier=True),
    Way("features", fixed(method="features"), True, fourier=True),
    Way("Sparse", _sparse, True, largest=120),
    Way("SparseL1", _sparse_l1, True, largest=120),
    Way("kernel batches", _kernel_stream, True, batches=True),
]
WAYS = {way.name: way for way in [*_LINEAR, *_KERNEL]}
assert len(WAYS) == len(_LINEAR) + len(_KERNEL)


@dataclass
class Model:
    """An estimator that is not fitted, and how to fit it."""

    way: Way
    estimator: Any
    settings: dict[str, Any]
    config: dict[str, Any] = field(default_factory=dict)
    batch: int = 0
    again: int = 0
    """Rows of a block of a second fit; 0 where there is none."""
    bound: int = 0
    """Rows of the blocks that bound the optimum; 0 for as many as the plan chooses."""


def rule(rng, size, *, kernel):
    """How many components: a number mostly."""
    if rng.random() < 0.85:
        return size.k
    choices = [
        None,
        float(rng.choice([0.5, 0.9, 0.999])),
        rules.RelativeError(0.1),
        rules.Threshold(1e-3),
        rules.Kaiser(),
        rules.BrokenStick(),
    ]
    if not kernel:
        choices += [0, "mle", rules.GavishDonoho(), rules.ParallelAnalysis(trials=5)]
    return choices[rng.integers(len(choices))]


def column_weights(rng, data):
    """Weights of columns: alike, areas, of other magnitudes, and zero."""
    d = data.shape[1]
    w = [
        rng.uniform(0.1, 2.0, d),
        np.cos(np.linspace(-1.5, 1.5, d)),
        10.0 ** rng.uniform(-8, 8, d),
        rng.integers(1, 4, d).astype(float),
    ][rng.integers(4)]
    if rng.random() < 0.4:
        w[rng.random(d) < 0.4] = 0.0
        w[rng.integers(d)] = 1.0
    # Scores of extreme rows, or float32 ones, are numbers of their precision only by a little.
    far = 60 if data.rows.dtype == np.float64 and data.name != "extreme" else 4
    return w * 10.0 ** rng.choice([0, 0, -far, far])


def block(rng, n):
    """Rows of a block: few only where there are few rows, as a block costs the most."""
    return int(rng.choice([1, 2, 7, n // 2, n] if n <= 40 else [n // 6, n // 3, n])) or 1


def draw(rng, way, data, kernel_settings):
    """Return a model of some way for some data."""
    n, d = data.shape
    weighing = n if data.weights is None else int((data.weights > 0).sum())
    most = max(1, min(weighing, 12) if way.kernel else min(n, d, 12))
    k = int(rng.integers(1, most + 1)) if rng.random() < 0.6 else int(rng.integers(1, 4))
    size = Size(weighing if way.kernel else n, d, min(k, most))
    settings: dict[str, Any] = {"n_components": size.k, "random_state": int(rng.integers(1000))}
    settings["center"] = bool(rng.random() < 0.8)
    if rng.random() < 0.4:
        settings["gap"] = float(rng.choice([0.3, 0.1, 0.05, 0.01, 1e-4]))
    settings["n_components"] = rule(rng, size, kernel=way.kernel)
    if rng.random() < 0.1:
        settings["tol"] = float(rng.choice([1e-3, 1e-8]))
    if way.kernel:
        settings |= kernel_settings
    else:
        settings["scale"] = bool(rng.random() < 0.25)
        settings["whiten"] = bool(rng.random() < 0.15)
    settings |= way.make(rng, size)
    if "power" in repr(settings) and size.k > 2:  # 20 000 steps each
        settings["n_components"] = 2
    config = {}
    if rng.random() < 0.4:
        config["block_rows"] = block(rng, n)
    if not way.kernel and rng.random() < 0.06:  # a basis takes 64 MiB in any case
        config["memory"] = str(rng.choice(["200KiB", "2MiB"]))
    batch = int(rng.integers(max(2, size.k, n // 4), n + 1)) if way.batches and n > 2 else 0
    estimator = (KernelPCA if way.kernel else PCA)(**settings)
    again = block(rng, n) if rng.random() < 0.15 else 0
    bound = int(rng.integers(1, n + 1)) if rng.random() < 0.6 else 0
    if rng.random() < 0.3:
        settings["certificate"] = (False, "tight")[int(rng.integers(2))]
        estimator.set_params(certificate=settings["certificate"])
    if not way.kernel and rng.random() < 0.4:
        settings["feature_weight"] = column_weights(rng, data)
        estimator.set_params(feature_weight=settings["feature_weight"])
    return Model(way, estimator, settings, config, batch, again, bound)
