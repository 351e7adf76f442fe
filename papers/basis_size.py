"""Tables, and bases of ever more of their rows (washizawa §6.3): Fig. 3 and 4."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

from benchmarks.basis_quality import fitted
from benchmarks.harness import Meanwhile
from mercer import KernelPCA
from mercer.kernels import RBF
from mercer.landmarks import Forward, KMeans, Landmarks, Uniform
from mercer.methods import Exact, Nystrom, OnBasis, Reduced, Subset
from mercer.metrics import empirical_error, operator_distance, validation_error
from papers.data import Array, table
from papers.results import Line, Result

TITLE = (
    "Concrete and housing: distance from full kernel PCA, errors and times against the size of the "
    "basis (washizawa §6.3, Fig. 3 and 4)"
)
TEXT = """Raw columns with what is to be predicted, RBF with σ² the variance of all elements, as
many axes as columns, not centred; {splits} random splits into nine tenths to learn from
and a tenth for E_val, mean and deviation. K-means: the rows nearest to the centroids;
forward: the best five rows at a time, up to a fifth of the rows. E is a multiple of full
kernel PCA's, E_val is not; full kernel PCA's is {validation}.

The source prints curves, and in words that SubKp has D²/r below 1 % on a tenth of the rows, without
saying how they are chosen. So it is by k-means and forward search, but of random rows on concrete
only. On housing nothing could have it: an operator whose range is in the span of the basis is at
least as far off as "the least" says, D²/r = tr P(I − S)/r with P the exact projector and S that
onto the span, and a projector of rank r twice as far, to which SubKp comes near. Random rows span
too little of some axes there: they miss {lost}.

Times are of a fit to nine tenths of the rows with its certificate, one thread, the least of
{repeats}, each way in turn; other processes took {others} of the machine meanwhile. "dsyevx,
dsygvx" are the source's routines with nothing else but the kernel matrices (K_y + 10⁻¹⁰ I, as rows
repeat): {crossings}; the source, whose library is MKL on four cores, says 80 %. Our own full kernel
PCA does not decompose the matrix but finds the first axes by Krylov's way, and our SubKp decomposes
K_y first, so that a singular one does no harm, and certifies what it found: on tables as small as
these our full kernel PCA is soon the quicker."""
METHODS: dict[str, type[OnBasis]] = {"SubKp": Subset, "RKp": Reduced, "Nyström": Nystrom}
RULES: dict[str, Landmarks] = {"random": Uniform(), "k-means": KMeans(), "forward": Forward(5)}
COLOURS = {"SubKp": "#0072b2", "RKp": "#d55e00", "Nyström": "#009e73"}
STYLES = {"random": ":", "k-means": "--", "forward": "-"}
MEASURES = ("D²/r", "E / full's", "E_val")
SHARES, TENTH, FORWARD = (0.05, 0.1, 0.2, 0.3, 0.5), 0.1, 0.2
LEAST = "the least"
TIMED = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
Found = dict[tuple[str, str, float], tuple[float, ...]]
Times = dict[str, list[tuple[int, float]]]


def run(quick: bool) -> Result:
    """Measure both tables on many splits, then time fits to one of each."""
    splits, repeats = (2, 1) if quick else (50, 9)
    data = {name: table(name)[: 200 if quick else None] for name in ("concrete", "housing")}
    shares = (TENTH, FORWARD) if quick else SHARES
    found, full, lines = {}, {}, list[Line]()
    with parallel_config("loky", n_jobs=1 if quick else 2, inner_max_num_threads=1):
        for name, X in data.items():
            parts = Parallel()(delayed(measured)(X, seed, shares) for seed in range(splits))
            found[name] = {key: np.array([part[0][key] for part in parts]) for key in parts[0][0]}
            full[name] = float(np.mean([part[1] for part in parts]))
            lines += figures(name, found[name])
    meanwhile = Meanwhile()
    timed = {name: times(X, (TENTH, 1.0) if quick else TIMED, repeats) for name, X in data.items()}
    text = TEXT.format(
        splits=splits,
        repeats=repeats,
        validation=" and ".join(f"{error:.4f} ({name})" for name, error in full.items()),
        lost=lost(found["housing"][LEAST, "random", TENTH].mean(axis=0)),
        others=f"{meanwhile.others:.0%}",
        crossings="; ".join(crossing(name, part) for name, part in timed.items()),
    )
    lines += time_lines(timed)
    seeds = f"splits and bases 0 to {splits - 1}, the basis of the times 0"
    return Result(TITLE, lines, figure(found, timed), text, seeds=seeds)


def measured(X: Array, seed: int, shares: tuple[float, ...]) -> tuple[Found, float]:
    """Return D²/r, E and E_val of every method, rule and size, and E_val of all rows."""
    order, r, kernel = np.random.default_rng(seed).permutation(len(X)), *given(X)
    new, rows = np.split(X[order], [len(X) // 10])
    found: Found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows repeat, and a gap that is wide says so
        exact = fitted(rows, r, kernel, Exact())
        least = empirical_error(exact, rows)
        for rule, words in zip(RULES.values(), RULES, strict=True):
            here = [share for share in shares if words != "forward" or share <= FORWARD]
            bases = chosen(rule, rows, r, kernel, here, seed)
            for share, basis in zip(here, bases, strict=True):
                for name, method in METHODS.items():
                    model = fitted(rows, r, kernel, method(select=basis))
                    found[name, words, share] = (
                        operator_distance(model, exact) ** 2 / r,
                        empirical_error(model, rows) / least,
                        validation_error(model, new),
                    )
                if share == TENTH:
                    found[LEAST, words, share] = tuple(outside(kernel, basis, exact))
    return found, validation_error(exact, new)


def outside(kernel: RBF, basis: Array, exact: KernelPCA) -> Array:
    """Return how much of each axis, 1 being all of it, lies outside the span of a basis."""
    values, vectors = eigh(kernel(basis, basis))
    kept = values > 1e-10 * values[-1]  # rows repeat
    inside = (vectors[:, kept] / np.sqrt(values[kept])).T @ exact.transform(basis)
    return np.asarray(1 - np.sum(inside**2, axis=0))


def lost(shares: Array) -> str:
    """Name the four axes of which most lies outside."""
    worst = np.sort(np.argsort(-shares)[:4])
    return ", ".join(f"{shares[axis]:.0%} of axis {axis + 1}" for axis in worst)


def given(X: Array) -> tuple[int, RBF]:
    """Return the number of axes and the kernel of a table."""
    return X.shape[1], RBF.from_sigma(float(X.std()))


def chosen(
    rule: Landmarks, rows: Array, r: int, kernel: RBF, shares: list[float], seed: int
) -> list[Array]:
    """Return a basis of each size; those of a forward search begin the largest one."""

    def basis(share: float) -> Array:
        m = max(r, round(share * len(rows)))
        return fitted(rows, r, kernel, Subset(m, select=rule), seed).X_fit_

    if not isinstance(rule, Forward):
        return [basis(share) for share in shares]
    largest = basis(max(shares))
    return [largest[: max(r, round(share * len(rows)))] for share in shares]


def figures(name: str, found: dict[Any, Array]) -> list[Line]:
    """Return the lines of a basis of a tenth of the rows."""
    made = []
    for place, what in enumerate(MEASURES):
        for rule in RULES:
            for method in METHODS if place else (LEAST, *METHODS):
                trials, ours = found[method, rule, TENTH], method == "SubKp"
                trial = trials.mean(axis=1) if method == LEAST else trials[:, place]
                made.append(
                    Line(
                        f"{name}, a tenth, {rule}: {method}, {what}",
                        float(trial.mean()),
                        "< 0.01" if ours and not place else "–",
                        most=0.01 if ours and not place else None,
                        spread=std(trial),
                        form=".4f" if trial.mean() < 100 else ".3g",
                        departs=(name, rule) == ("housing", "random"),
                    )
                )
    return made


def times(X: Array, shares: tuple[float, ...], repeats: int) -> Times:
    """Return the seconds of fits to nine tenths of the rows, by the percent in the basis."""
    rows, (r, kernel) = X[: len(X) * 9 // 10], given(X)
    n, order = len(rows), np.random.default_rng(0).permutation(len(rows))

    def full() -> None:
        eigh(kernel(rows, rows), subset_by_index=(n - r, n - 1), driver="evx")

    def subset(Y: Array) -> None:
        K, own = kernel(rows, Y), kernel(Y, Y) + 1e-10 * np.eye(len(Y))
        eigh(K.T @ K, own, subset_by_index=(len(Y) - r, len(Y) - 1), driver="gvx")

    ways: dict[tuple[str, int], Callable[[], Any]] = {
        ("full", 100): lambda: fitted(rows, r, kernel, Exact()),
        ("full, dsyevx", 100): full,
    }
    for share in shares:
        Y, percent = rows[order[: max(r, round(share * n))]], round(100 * share)
        for name in ("SubKp", "RKp"):
            of = METHODS[name]
            ways[name, percent] = lambda Y=Y, of=of: fitted(rows, r, kernel, of(select=Y))
        ways["SubKp, dsygvx", percent] = lambda Y=Y: subset(Y)
    taken = dict.fromkeys(ways, np.inf)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for _ in range(repeats):
            for key, way in ways.items():
                start = time.perf_counter()
                way()
                taken[key] = min(taken[key], time.perf_counter() - start)
    found: Times = {}
    for (name, percent), seconds in taken.items():
        found.setdefault(name, []).append((percent, seconds))
    return found


def crossing(name: str, timed: Times) -> str:
    """Say up to which size the source's routine for SubKp is quicker than that for all rows."""
    limit = timed["full, dsyevx"][0][1]
    for (low, before), (high, after) in pairwise(timed["SubKp, dsygvx"]):
        if before < limit <= after:
            percent = low + (limit - before) / (after - before) * (high - low)
            return f"on {name} SubKp is the quicker up to {percent:.0f} %"
    return f"on {name} the times do not cross"


def time_lines(timed: dict[str, Times]) -> list[Line]:
    """Return the times on a tenth of the rows, and on all."""
    made = []
    for name, parts in timed.items():
        for method, points in parts.items():
            for percent, seconds in points:
                if percent in (10, 100):
                    what = method if method.startswith("full") else f"{method}, {percent} %"
                    made.append(Line(f"{name}, milliseconds: {what}", 1000 * seconds, form=".0f"))
    return made


def std(figures: Array) -> float:
    """Return the deviation over splits."""
    return float(figures.std(ddof=1))


def figure(found: Any, timed: Any) -> Any:
    """Draw a column a table: D²/r, E, E_val with their deviations over splits, and times."""
    from matplotlib.figure import Figure

    drawn = Figure((9.0, 10.5), layout="constrained")
    panels = drawn.subplots(4, len(found))
    for column, (name, curves) in zip(panels.T, found.items(), strict=True):
        column[0].set_title(name, fontsize=11)
        for place, (ax, what) in enumerate(zip(column, MEASURES, strict=False)):
            for method, colour in COLOURS.items():
                for rule, style in STYLES.items():
                    if place and method == "Nyström":
                        continue  # far outside, as in the source
                    here = [share for share in SHARES if (method, rule, share) in curves]
                    parts = [curves[method, rule, share][:, place] for share in here]
                    means, spreads = (np.array([f(part) for part in parts]) for f in (np.mean, std))
                    # On a logarithmic scale nothing reaches below zero.
                    bars = [np.minimum(spreads, 0.9 * means), spreads]
                    marks = {"color": colour, "marker": "o", "ms": 3.5, "lw": 1.4, "ls": style}
                    marks |= {"elinewidth": 0.7, "capsize": 2, "label": f"{method}, {rule}"}
                    ax.errorbar([100 * share for share in here], means, bars, **marks)
            ax.set(ylabel=what, yscale="linear" if place else "log")
        bound = "1 %: SubKp at 10 %, says the source"
        column[0].axhline(0.01, color="0.6", lw=0.8, label=bound)
        _times(column[3], timed[name])
    for ax in panels.ravel():
        ax.set_xlim(0, None)
        ax.xaxis.set_major_formatter("{x:.0f}")
        ax.spines[["top", "right"]].set_visible(False)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    drawn.legend(handles, labels, frameon=False, fontsize=8, ncols=4, loc="outside upper center")
    return drawn


def _times(ax: Any, timed: Times) -> None:
    greys = {"full": ("0.15", "-"), "full, dsyevx": ("0.55", "--")}
    for method, points in timed.items():
        if method in greys:
            colour, style = greys[method]
            ax.axhline(1000 * points[0][1], color=colour, ls=style, lw=1.2, label=method)
            continue
        style = "--" if "gvx" in method else "-"
        percents, seconds = zip(*points, strict=True)
        colour = COLOURS[method.split(",")[0]]
        ax.plot(percents, [1000 * s for s in seconds], style, color=colour, marker="o", ms=3.5)
        ax.lines[-1].set_label(method)
    ax.set(xlabel="basis, % of the rows", ylabel="milliseconds", yscale="log")
    ax.legend(frameon=False, fontsize=8)
