"""Methods of kernel PCA side by side: a table, and contours of a plane or times against errors.

    python examples/compare_methods.py                      normal points of the plane
    python examples/compare_methods.py moons --basis 20 -o moons.png
    python examples/compare_methods.py digits --axes 10 --basis 200 --rules uniform kmeans
    python examples/compare_methods.py rows.csv --kernel "rbf(0.1) + 2*poly(2)"
    python examples/compare_methods.py concrete housing tic --basis 0.02 0.05 0.1 0.2

Errors are of the rows in feature space, as multiples of exact kernel PCA's; D²/r is how far the
operators are apart; the gap is how far below the best the variance along the axes can be. Of a
plane, and bases of one size, the contours of ‖PΦ(x)‖ are drawn for every method on every basis;
else D²/r against seconds. After Fig. 2 and Fig. 5 of Y. Washizawa, Subset basis approximation of
kernel principal component analysis (2012); concrete, housing and tic are its tables, from files
in the folder that MERCER_DATA names.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from compare_pictures import Result, contours, percent, runtimes
from rich.console import Console
from rich.table import Table
from sklearn import datasets

from mercer import KernelPCA
from mercer.data.files import read_table
from mercer.kernels import RBF, Kernel, parse
from mercer.landmarks import RULES
from mercer.methods import (
    Cholesky,
    Exact,
    Hebbian,
    Improved,
    Method,
    Nystrom,
    RandomFeatures,
    Reduced,
    Sketch,
    Sparse,
    SparseL1,
    Subset,
)
from mercer.metrics import empirical_error, kernel_axes, operator_distance
from mercer.sketches import Gaussian

ON_BASIS = {"Subset": Subset, "Reduced": Reduced, "Nyström": Nystrom, "Improved": Improved}
# Methods that choose their points themselves, or need none, and what their size counts.
OTHERS: dict[str, tuple[str, Callable[[int], Method]]] = {
    "Cholesky": ("its pivots", lambda m: Cholesky(m, on="rows")),
    "Sparse": ("its choice", Sparse),
    "Sketch": ("columns", lambda m: Sketch(Gaussian(m, identity=True))),
    "Features": ("waves", RandomFeatures),
}
NAMES = [*ON_BASIS, *OTHERS, "SparseL1", "Hebbian"]
# Passes of the Hebbian algorithm, of those that take no more operations than this.
PASSES, MOST = (1, 2, 8, 32, 128), 3e11
MIB = 2**20
# A fit that took longer is not done again to measure its memory.
PATIENCE = 20.0


@dataclass(frozen=True)
class Data:
    """Rows, and a kernel and a number of axes that suit them."""

    rows: Callable[[], np.ndarray]
    kernel: Callable[[np.ndarray], Kernel]
    axes: int = 5


def tabled(name: str) -> np.ndarray:
    """Return a table of MERCER_DATA, with what is to be predicted, or all rows there are."""
    folder = Path(os.environ.get("MERCER_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / name).is_file():
        raise ValueError(f"there is no {name} in the folder that MERCER_DATA names.")
    with np.load(folder / name) as file:
        if "X_test" in file:
            return np.concatenate([file["X"], file["X_test"]]).astype(np.float64)
        return np.column_stack([file["X"], file["y"]]).astype(np.float64)


def clusters(n: int) -> np.ndarray:
    """Return points of three clusters, of deviation 1, around a circle of radius 4."""
    rng = np.random.default_rng(0)
    angle = np.pi / 2 + 2 * np.pi / 3 * (np.arange(n) % 3)
    return 4 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(0, 1, (n, 2))


def by_variance(X: np.ndarray) -> Kernel:
    """Return the kernel of the source's tables: as wide as the deviation of all entries."""
    return RBF(1 / (2 * X.var()))


DATA = {
    "normal": Data(lambda: np.random.default_rng(0).normal(0, 2.2, (1000, 2)), lambda X: RBF(0.1)),
    "circles": Data(
        lambda: datasets.make_circles(1000, noise=0.06, factor=0.4, random_state=0)[0],
        lambda X: RBF(2),
    ),
    "moons": Data(
        lambda: datasets.make_moons(1000, noise=0.1, random_state=0)[0], lambda X: RBF(2)
    ),
    "clusters": Data(lambda: clusters(1000), lambda X: RBF(0.1)),
    "digits": Data(lambda: datasets.load_digits().data, lambda X: RBF(0.001)),
    "concrete": Data(lambda: tabled("concrete.npz"), by_variance, 9),
    "housing": Data(lambda: tabled("boston_housing.npz"), by_variance, 14),
    "tic": Data(lambda: tabled("tic.npz"), by_variance, 85),
}


def main(arguments: list[str] | None = None) -> None:
    """Read what is wanted; print a table of every data set, and draw one picture."""
    options = read(arguments)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 116)
    try:
        tasks = tasks_of(options)  # all are checked before the first begins
        warm_up(options)
        found = {task.title: compare(task, options, console) for task in tasks}
        plane = tasks[0].rows if len(tasks) == 1 and tasks[0].plane else None
        draw(found, plane, options.output)
    except (ImportError, OSError, ValueError, MemoryError) as error:
        sys.exit(f"compare_methods: {error}")
    drawn = "Contours of ‖PΦ(x)‖" if plane is not None else "D²/r against seconds"
    console.print(f"{drawn}: {options.output}", markup=False, soft_wrap=True)


@dataclass(frozen=True)
class Task:
    """Rows, and what is to be found of them."""

    name: str
    rows: np.ndarray
    kernel: Kernel
    axes: int
    sizes: list[int]

    @property
    def title(self) -> str:
        n, d = self.rows.shape
        return f"{self.name}: {n} rows of {d} columns, {self.kernel!r}, {self.axes} axes"

    @property
    def plane(self) -> bool:
        """Whether contours can be drawn: of two columns, and one basis of every rule."""
        return self.rows.shape[1] == 2 and len(self.sizes) == 1


def tasks_of(options: argparse.Namespace) -> list[Task]:
    """Return what is to be done; refuse what cannot."""
    if not options.output.parent.is_dir():
        raise ValueError(f"there is no folder {options.output.parent} for the picture.")
    tasks = []
    for name in options.data:
        X = rows_of(name)
        data = DATA.get(name, Data(lambda X=X: X, RBF.from_median))
        axes = options.axes or data.axes
        kernel = data.kernel(X) if options.kernel is None else parse(options.kernel)
        tasks.append(Task(name, X, kernel, axes, sizes_of(options.basis, axes, len(X))))
    return tasks


def draw(found: dict[str, list[Result]], plane: np.ndarray | None, path: Path) -> None:
    """Write the picture."""
    if plane is None:
        figure = runtimes(found)
    else:
        ((title, results),) = found.items()
        figure = contours(results, plane, title)
    figure.savefig(path, dpi=150)


def read(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Compare methods of kernel PCA, and rules that choose a basis."
    )
    names, rules = ", ".join(DATA), ", ".join(sorted(RULES))
    add = parser.add_argument
    add("data", nargs="*", default=["normal"], help=f"{names}; or .npy or .csv files of rows")
    add("--kernel", help='such as "rbf(0.1)"; one that suits the data, or the median width')
    add("--axes", type=int, metavar="R", help="axes (as suit the data, or 5)")
    add(
        "--basis",
        nargs="+",
        type=float,
        default=[50],
        metavar="M",
        help="points, or a share of the rows (50)",
    )
    add(
        "--rules",
        nargs="+",
        default=["uniform", "kmeans", "forward"],
        choices=sorted(RULES),
        metavar="RULE",
        help=f"how points are chosen, of {rules}",
    )
    add(
        "--methods",
        nargs="+",
        default=NAMES,
        choices=NAMES,
        metavar="METHOD",
        help=f"of {', '.join(NAMES)} (all)",
    )
    add("--center", action="store_true", help="subtract the mean of the features")
    add("-o", "--output", type=Path, default=Path("compare_methods.png"), help="picture to write")
    return parser.parse_args(arguments)


def rows_of(name: str) -> np.ndarray:
    """Return the rows of a data set by its name, or of a file."""
    if name in DATA:
        return DATA[name].rows()
    path = Path(name)
    if path.suffix not in (".npy", ".csv"):
        raise ValueError(f"{name!r} is none of {', '.join(DATA)}, and no .npy or .csv file.")
    if not path.is_file():
        raise ValueError(f"there is no file {name}.")
    if path.suffix == ".npy":
        X = np.asarray(np.load(path), np.float64)
    else:
        X = np.asarray(read_table(path).source.collect(), np.float64)
    if X.ndim != 2:
        raise ValueError(f"{name} has shape {X.shape}: rows and columns are needed.")
    return X


def sizes_of(asked: list[float], axes: int, n: int) -> list[int]:
    """Return sizes of bases as numbers of points; refuse what no method can do."""
    sizes = sorted({max(axes, round(m * n)) if m < 1 else int(m) for m in asked})
    if not 1 <= axes <= sizes[0] or sizes[-1] > n:
        raise ValueError(
            f"{axes} axes, bases of {', '.join(map(str, sizes))} points and {n} rows must be in "
            f"this order: axes in the span of a basis, a basis of rows."
        )
    return sizes


def compare(task: Task, options: argparse.Namespace, console: Console) -> list[Result]:
    """Fit every method, on the basis of every rule and size; exact kernel PCA first."""
    console.print(f"{task.title}\n", style="bold", markup=False, soft_wrap=True)
    X, axes, results = task.rows, task.axes, list[Result]()
    with Console(stderr=True).status("") as status:
        for name, rule, size, method in made(task, options):
            status.update(f"{task.name}: {name}, {rule}, {size}")
            model = KernelPCA(
                axes, kernel=task.kernel, method=method, center=options.center, random_state=0
            )
            seconds, memory = cost(model, X)
            error, exact = empirical_error(model, X), results[0].model if results else model
            there = kernel_axes(model, X) if isinstance(method, RandomFeatures) else model
            distance = operator_distance(there, exact) ** 2 / axes
            results.append(Result(name, rule, size, model, error, distance, seconds, memory))
    console.print(table(results))
    console.print()
    return results


def warm_up(options: argparse.Namespace) -> None:
    """Fit every method to a few rows: no timing shall pay for what is compiled or imported."""
    few = Task("", np.random.default_rng(0).normal(size=(40, 2)), RBF(0.5), 2, [10])
    for *_, method in made(few, options):
        cost(KernelPCA(few.axes, kernel=few.kernel, method=method, random_state=0), few.rows)


def made(task: Task, options: argparse.Namespace) -> Iterator[tuple[str, str, int, Method]]:
    """Yield methods with their names, rules and sizes."""
    n, axes, sizes = len(task.rows), task.axes, task.sizes
    yield "exact", "all rows", n, Exact()
    for m in sizes:
        for rule in options.rules:
            for name in ON_BASIS:
                if name in options.methods:
                    yield name, rule, m, ON_BASIS[name](m, select=rule)
        for name, (what, of_size) in OTHERS.items():
            if name in options.methods:
                yield name, what, m, of_size(m)
    if "SparseL1" in options.methods:
        yield "SparseL1", "its choice", axes, SparseL1()
    for passes in PASSES if "Hebbian" in options.methods else ():
        if passes == 1 or 30.0 * passes * n * n * axes <= MOST:
            yield "Hebbian", "passes", passes, Hebbian(max_passes=passes)


def cost(model: KernelPCA, X: np.ndarray) -> tuple[float, int | None]:
    """Fit a model; return its seconds and, of another fit, the most that it held at a time.

    Of nine fits the quickest, where they are quick.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they tell is in the table
        taken: list[float] = []
        while len(taken) < 9 and sum(taken) < 1.0:
            start = time.perf_counter()
            model.fit(X)
            taken.append(time.perf_counter() - start)
        seconds = min(taken)
        if seconds > PATIENCE:
            return seconds, None
        tracemalloc.start()
        model.fit(X)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return seconds, memory


def table(results: list[Result]) -> Table:
    """Return the results as a table, the best error of each basis in bold."""
    drawn = Table(box=None, pad_edge=False)
    for name in ("method", "basis"):
        drawn.add_column(name)
    for name in ("size", "E / exact's", "D²/r", "gap, bound", "likely", "seconds", "memory"):
        drawn.add_column(name, justify="right")
    exact = results[0]
    for before, result in zip([exact, *results], results, strict=False):
        if result.basis != before.basis:
            drawn.add_section()
        peers = [one.error for one in results if one.basis == result.basis]
        style = "bold" if len(peers) > 1 and result.error == min(peers) else ""
        certificate = result.model.certificate_
        drawn.add_row(
            result.method,
            result.rule,
            str(result.size),
            f"{result.error / exact.error:.4f}",
            percent(result.distance),
            percent(certificate.gap),
            percent(certificate.gap_estimate),
            f"{result.seconds:.3f}",
            "–" if result.memory is None else f"{result.memory / MIB:.1f} MiB",
            style=style,
        )
    return drawn


if __name__ == "__main__":
    main()
