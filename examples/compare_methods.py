"""Methods of kernel PCA on a basis, side by side: a table, and contours of a plane.

    python examples/compare_methods.py                      normal points of the plane
    python examples/compare_methods.py moons --basis 20 -o moons.png
    python examples/compare_methods.py digits --axes 10 --basis 200 --rules uniform kmeans
    python examples/compare_methods.py rows.csv --kernel "rbf(0.1) + 2*poly(2)"

Every method but exact kernel PCA works on a basis of a few points. Errors are of the rows in
feature space, as multiples of exact kernel PCA's; D²/r is how far the operators are apart; the
gap is how far below the best the variance along the axes can be. With two columns the contours of
‖PΦ(x)‖ are drawn for every method and rule, after Fig. 2 of Y. Washizawa, Subset basis
approximation of kernel principal component analysis (2012).
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn import cluster, datasets  # noqa: F401 (no timing shall pay for this import)

from mercer import KernelPCA
from mercer.kernels import RBF, Kernel, parse
from mercer.landmarks import RULES
from mercer.methods import Cholesky, Exact, Improved, Method, Nystrom, Reduced, Subset
from mercer.metrics import empirical_error, operator_distance
from mercer.plotting import projection_norms

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = {"Subset": Subset, "Reduced": Reduced, "Nyström": Nystrom, "Improved": Improved}
MIB = 2**20


@dataclass(frozen=True)
class Data:
    """Rows that come with scikit-learn or from a generator, and a kernel that suits them."""

    rows: Callable[[], np.ndarray]
    kernel: str


DATA = {
    "normal": Data(lambda: np.random.default_rng(0).normal(0, 2.2, (1000, 2)), "rbf(0.1)"),
    "circles": Data(
        lambda: datasets.make_circles(1000, noise=0.06, factor=0.4, random_state=0)[0], "rbf(2)"
    ),
    "moons": Data(lambda: datasets.make_moons(1000, noise=0.1, random_state=0)[0], "rbf(2)"),
    "clusters": Data(lambda: clusters(1000), "rbf(0.1)"),
    "digits": Data(lambda: datasets.load_digits().data, "rbf(0.001)"),
}


@dataclass(frozen=True)
class Result:
    """What one method did on one basis."""

    method: str
    rule: str
    model: KernelPCA
    error: float
    distance: float
    seconds: float
    memory: int


def main(arguments: list[str] | None = None) -> None:
    """Read what is wanted, print the table, draw the picture."""
    options = read(arguments)
    try:
        X = rows_of(options.data)
        check(X, options)
        kernel = kernel_of(options) or RBF.from_median(X)
        results = compare(X, kernel, options)
    except (OSError, ValueError, MemoryError) as error:
        sys.exit(f"compare_methods: {error}")
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
    n, d = X.shape
    title = f"{options.data}: {n} rows of {d} columns, {kernel!r}, {options.axes} axes, "
    title += f"bases of {options.basis} points"
    console.print(f"{title}\n", style="bold", markup=False, soft_wrap=True)
    console.print(table(results))
    if d != 2:
        console.print(f"\nNo picture: contours need rows of two columns, and these have {d}.")
        return
    try:
        picture(results, X, title).savefig(options.output, dpi=150)
    except (ImportError, OSError, ValueError) as error:
        sys.exit(f"compare_methods: no picture, {error}")
    console.print(f"\nContours of ‖PΦ(x)‖: {options.output}", markup=False, soft_wrap=True)


def read(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Compare methods of kernel PCA on a basis, and rules that choose it."
    )
    names = ", ".join(DATA)
    parser.add_argument(
        "data", nargs="?", default="normal", help=f"{names}; or a .npy or .csv file of rows"
    )
    parser.add_argument(
        "--kernel", help='such as "rbf(0.1)"; one that suits the data, or the median width'
    )
    parser.add_argument("--axes", type=int, default=5, metavar="R", help="axes (5)")
    parser.add_argument("--basis", type=int, default=50, metavar="M", help="points (50)")
    parser.add_argument(
        "--rules",
        nargs="+",
        default=["uniform", "kmeans", "forward"],
        choices=sorted(RULES),
        metavar="RULE",
        help=f"how points are chosen, of {', '.join(sorted(RULES))}",
    )
    parser.add_argument("--center", action="store_true", help="subtract the mean of the features")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("compare_methods.png"), help="picture to write"
    )
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
        return np.asarray(np.load(path), np.float64)
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    try:
        return np.loadtxt(path, delimiter=",", ndmin=2, skiprows=int(named(first)))
    except ValueError as error:
        raise ValueError(f"{name} should hold numbers between commas: {error}") from None


def named(line: str) -> bool:
    """Tell whether a line holds the names of columns."""
    try:
        [float(cell) for cell in line.split(",")]
    except ValueError:
        return True
    return False


def kernel_of(options: argparse.Namespace) -> Kernel | None:
    """Return the kernel asked for, or that of the data set; None for other rows."""
    text = options.kernel
    if text is None and options.data in DATA:
        text = DATA[options.data].kernel
    return None if text is None else parse(text)


def check(X: np.ndarray, options: argparse.Namespace) -> None:
    """Refuse what no method can do."""
    if X.ndim != 2:
        raise ValueError(f"{options.data} has shape {X.shape}: rows and columns are needed.")
    if not 1 <= options.axes <= options.basis <= len(X):
        raise ValueError(
            f"--axes {options.axes}, --basis {options.basis} and {len(X)} rows must be in this "
            f"order: axes in the span of a basis, a basis of rows."
        )
    if X.shape[1] == 2 and not options.output.parent.is_dir():
        raise ValueError(f"there is no folder {options.output.parent} to write the picture to.")


def clusters(n: int) -> np.ndarray:
    """Return points of three clusters, of deviation 1, around a circle of radius 4."""
    rng = np.random.default_rng(0)
    angle = np.pi / 2 + 2 * np.pi / 3 * (np.arange(n) % 3)
    return 4 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(0, 1, (n, 2))


def compare(X: np.ndarray, kernel: Kernel, options: argparse.Namespace) -> list[Result]:
    """Fit every method on the basis of every rule; exact kernel PCA first."""
    m = options.basis
    made: list[tuple[str, str, Method]] = [("exact", "all rows", Exact())]
    made += [
        (name, rule, method(m, select=rule))
        for rule in options.rules
        for name, method in METHODS.items()
    ]
    made.append(("Cholesky", "its pivots", Cholesky(m, on="rows")))
    results: list[Result] = []
    with Console(stderr=True).status("") as status:
        for name, rule, method in made:
            status.update(f"{name}, {rule}")
            model = KernelPCA(
                options.axes, kernel=kernel, method=method, center=options.center, random_state=0
            )
            seconds, memory = cost(model, X)
            error, exact = empirical_error(model, X), results[0].model if results else model
            distance = operator_distance(model, exact) ** 2 / options.axes
            results.append(Result(name, rule, model, error, distance, seconds, memory))
    return results


def cost(model: KernelPCA, X: np.ndarray) -> tuple[float, int]:
    """Fit a model; return its seconds and, of another fit, the most that it held at a time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they tell is in the table
        start = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - start
        tracemalloc.start()
        model.fit(X)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return seconds, memory


def table(results: list[Result]) -> Table:
    """Return the results as a table, the best error and distance of each rule in bold."""
    made = Table(box=None, pad_edge=False)
    for name in ("method", "basis"):
        made.add_column(name)
    for name in ("E / exact's", "D²/r", "gap, bound", "likely", "seconds", "memory"):
        made.add_column(name, justify="right")
    exact = results[0]
    for before, result in zip([exact, *results], results, strict=False):
        if result.rule != before.rule:
            made.add_section()
        peers = [one.error for one in results if one.rule == result.rule]
        style = "bold" if result.error == min(peers) else ""
        certificate = result.model.certificate_
        made.add_row(
            result.method,
            result.rule,
            f"{result.error / exact.error:.4f}",
            percent(result.distance),
            percent(certificate.gap),
            percent(certificate.gap_estimate),
            f"{result.seconds:.3f}",
            f"{result.memory / MIB:.1f} MiB",
            style=style,
        )
    return made


def percent(share: float) -> str:
    """Write a share with two digits; NaN is what is not known."""
    if np.isnan(share):
        return "–"
    if share < 1e-8:
        return "< 1e-6 %"
    return f"{100 * share:.2g} %" if share < 1 else f"{100 * share:.0f} %"


def picture(results: list[Result], X: np.ndarray, title: str) -> Figure:
    """Draw a row of panels for each rule: exact with the basis, then every method on it."""
    from matplotlib.figure import Figure

    exact, rules = results[0], list(dict.fromkeys(result.rule for result in results))[1:-1]
    across, width, height = 1 + len(METHODS), *np.ptp(X, axis=0)
    tall = float(np.clip(2.2 * height / width, 1.0, 4.0))
    size = (2.2 * across + 0.9, len(rules) * (tall + 0.4) + 0.4)
    figure = Figure(size, layout="constrained")
    figure.suptitle(title, fontsize=10, fontweight="bold")
    panels = figure.subplots(len(rules), across, squeeze=False)
    for axes, rule in zip(panels, rules, strict=True):
        here = [result for result in results if result.rule == rule]
        models = {f"exact; basis by {rule}": exact.model}
        models |= {caption(result, exact): result.model for result in here}
        for ax in projection_norms(models, X, basis=here[0].model.X_fit_, ax=axes):
            ax.set(xlabel="", ylabel="", xticks=[], yticks=[], aspect="equal")
            ax.title.set_fontsize(8)
            ax.spines[:].set(color="#8c8c8c", linewidth=0.7)
    filled = panels[0, 0].collections[0]
    bar = figure.colorbar(filled, ax=panels, label="‖PΦ(x)‖", aspect=30 * len(rules), pad=0.01)
    bar.outline.set(color="#8c8c8c", linewidth=0.7)
    bar.ax.tick_params(labelsize=8)
    return figure


def caption(result: Result, exact: Result) -> str:
    """Return a method's name and figures."""
    return f"{result.method}: E {result.error / exact.error:.3f}, D²/r {percent(result.distance)}"


if __name__ == "__main__":
    main()
