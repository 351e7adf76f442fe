"""Subspace classifiers of handwritten digits (washizawa §6.4, Tables 3 to 6)."""

from __future__ import annotations

import hashlib
import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config

from mercer import PCA, KernelPCA, SubspaceClassifier
from mercer.kernels import RBF, Linear
from mercer.landmarks import KMeans, Landmarks, Uniform
from mercer.methods import Reduced, Subset
from papers.data import Array, load
from papers.results import Line, Result

TITLE = "Handwritten digits, USPS: errors of subspace classifiers in % (washizawa §6.4, Tables 3–6)"
EXPONENTS = tuple(np.round(np.arange(-4.0, 0.01, 0.2), 1))
# Those that are tried first.
COARSE = (-3.6, -3.2, -2.8, -2.4, -2.0, -1.6)
AXES = tuple(range(10, 201, 10))
# Splits to choose on, splits in all, and seeds of bases: of a full run, and of a quick one.
COUNTS = ((3, 25, 5), (1, 2, 1))
CENTRES, NEAREST, RANDOM = KMeans(nearest=False), KMeans(), Uniform()
RULES = [(CENTRES, "k-means centres"), (NEAREST, "rows nearest to them"), (RANDOM, "random")]
_CHOSEN: dict[Any, Any] = {}


class Once(Landmarks):
    """A rule whose points are kept: those of the same rows are the same for any kernel."""

    name, takes = "once", "vectors"

    def __init__(self, rule: Landmarks) -> None:
        self.rule = rule

    def select(self, problem: Any, m: int) -> Any:
        rows = hashlib.sha1(np.ascontiguousarray(problem.source.load()).tobytes()).digest()
        key = (repr(self.rule), m, str(problem.rng.bit_generator.state), rows)
        if key not in _CHOSEN:
            _CHOSEN[key] = self.rule.select(problem, m)
        return _CHOSEN[key]


@dataclass(frozen=True)
class Way:
    """A classifier: its subspaces, and the points that they are found from."""

    center: bool
    method: type | None = None
    select: Landmarks | None = None
    share: float = 1.0
    linear: bool = False

    @property
    def short(self) -> str:
        """What the source's tables call it."""
        name = "CLAFIC" if self.linear else "SubKp" if self.method is Subset else "RKp"
        return f"{name} ({'c' if self.center else 'nc'})"

    @property
    def name(self) -> str:
        """What ours call it."""
        if self.method is None:
            kernel = "" if self.linear else "kernel "
            return f"{kernel}CLAFIC ({'c' if self.center else 'nc'}), all rows"
        how = next(words for rule, words in RULES if rule == self.select)
        return f"{self.short}, {self.share:.0%}, {how}"

    def printed(self, test: bool) -> tuple[str, str]:
        """Return the tables of the source that have it, and what they print."""
        tables = (5, 6) if test else (3, 4)
        on = {RANDOM: tables[:1], CENTRES: tables[1:], NEAREST: ()}
        at, here = SHARES.index(self.share), tables if self.select is None else on[self.select]
        cells = {table: PRINTED.get((table, self.short), "").split(", ") for table in here}
        told = {table: part[at] for table, part in cells.items() if part[at:] and part[at] != "–"}
        words = " / ".join(dict.fromkeys(told.values())) or "–"
        one = f" (Table {min(told)})" if self.linear and len(told) == 1 < len(here) else ""
        return ", ".join(map(str, here)), words + one

    def classifier(self, exponent: float, axes: int, seed: int = 0) -> SubspaceClassifier:
        """Return it with this kernel and so many axes."""
        if self.linear and self.method is None:
            return SubspaceClassifier(PCA(axes, center=self.center))
        kernel = Linear() if self.linear else RBF(10.0**exponent)
        model = KernelPCA(axes, kernel=kernel, center=self.center, random_state=seed)
        if self.method is None:
            return SubspaceClassifier(model.set_params(eigen_solver="dense"))
        return SubspaceClassifier(
            model.set_params(method=self.method(self.share, select=Once(self.select)))
        )


SHARES = (0.1, 0.3, 0.5, 1.0)
# Table and row, and what is printed for each share. "–" where the copy at hand has lost it.
PRINTED = {
    (3, "SubKp (nc)"): "3.89 ± 0.82, –, –, –",
    (3, "SubKp (c)"): "3.93 ± 0.82, 2.83 ± 0.70, 2.55 ± 0.64, 2.02 ± 0.56",
    (3, "RKp (nc)"): "4.92 ± 0.95, 3.17 ± 0.71, 2.65 ± 0.60, 2.03 ± 0.56",
    (3, "RKp (c)"): "4.91 ± 0.92, 3.16 ± 0.70, 2.65 ± 0.62, 2.02 ± 0.56",
    (3, "CLAFIC (nc)"): "5.24 ± 0.92, 3.64 ± 0.79, 3.25 ± 0.70, 2.95 ± 0.73",
    (3, "CLAFIC (c)"): "5.24 ± 0.89, 3.71 ± 0.76, 3.38 ± 0.68, 3.06 ± 0.74",
    (4, "SubKp (nc)"): "2.69 ± 0.58, 2.30 ± 0.61, 2.18 ± 0.58, 2.03 ± 0.56",
    (4, "RKp (nc)"): "2.75 ± 0.61, 2.35 ± 0.60, 2.22 ± 0.57, 2.03 ± 0.56",
    (4, "RKp (c)"): "2.91 ± 0.63, 2.40 ± 0.59, 2.24 ± 0.58, 2.02 ± 0.56",
    (4, "CLAFIC (nc)"): "3.60 ± 0.66, 3.38 ± 0.60, 3.21 ± 0.56, 3.03 ± 0.60",
    (5, "SubKp (nc)"): "6.50 ± 0.36, 5.69 ± 0.15, 5.20 ± 0.14, 4.78 ± 0.00",
    (5, "RKp (nc)"): "–, –, –, 4.78 ± 0.00",
    (5, "RKp (c)"): "7.50 ± 0.43, 5.76 ± 0.31, 5.28 ± 0.20, 4.83 ± 0.00",
    (6, "SubKp (c)"): "5.14 ± 0.18, 4.99 ± 0.14, 4.87 ± 0.14, 4.83 ± 0.00",
    (6, "RKp (nc)"): "5.18 ± 0.21, 5.01 ± 0.16, 4.89 ± 0.15, 4.78 ± 0.00",
    (6, "RKp (c)"): "5.36 ± 0.24, 5.07 ± 0.17, 4.93 ± 0.15, 4.83 ± 0.00",
}
ALL = [Way(center, linear=linear) for linear in (False, True) for center in (False, True)]
ON_BASES = [
    Way(center, method, rule, share, linear)
    for rule in (RANDOM, CENTRES)
    for share in SHARES[:-1]
    for method, linear in ((Subset, False), (Reduced, False), (Reduced, True))
    for center in (False, True)
]
OTHERS = [Way(center, of, NEAREST, 0.1) for of in (Subset, Reduced) for center in (False, True)]
WAYS = [*ALL, *ON_BASES, *OTHERS]
# What the test error may be at most.
MUST = {ALL[0].name: 4.9, ALL[1].name: 4.9, "SubKp (c), 10%, k-means centres": 5.2}


@dataclass(frozen=True)
class Digits:
    """Training and test images with their labels."""

    X: Array
    y: Array
    T: Array
    t: Array


def run(quick: bool) -> Result:
    """Choose c and r on validation rows, and count errors on the test rows."""
    digits, (few, splits, seeds) = _digits(quick), COUNTS[quick]
    ways = [way for way in WAYS if not quick or way.name in SHOWN]
    # Together what shares its bases; one after the other where starting processes takes longer.
    groups: dict[Any, list[Way]] = {}
    for way in ways:
        key = way.name if way.method is None else (repr(way.select), way.share)
        groups.setdefault(key, []).append(way)
    with parallel_config("loky", n_jobs=1 if quick else 2, inner_max_num_threads=1):
        longest_first = sorted(groups.values(), key=lambda group: -group[0].share)
        tasks = (delayed(examined)(group, quick) for group in longest_first)
        found = {way.name: rest for part in Parallel()(tasks) for way, *rest in part}
    lines = [line(way, *found[way.name], test) for test in (False, True) for way in ways]
    choices = {way: found[way.name][0] for way in ways}
    figure = draw(choices, digits)
    drawn = f"rows held out 0 to {splits - 1}; bases 0 for those, 0 to {seeds - 1} for the test"
    text = (
        f"Trained on {len(digits.y)} images, tested on {len(digits.t)} (2007 in all; the source "
        f"says 2001), pixels from −1 to 1. RBF kernel exp(−c‖x−y‖²), c of 10^−4.0, 10^−3.8, …, "
        f"10^0: first 10^−3.6, 10^−3.2, …, 10^−1.6; then 0.4 below and above the best so far, and "
        f"0.2 below and above it, one after the other. c and r of 10, 20, …, 200 have the least "
        f"mean error on {few} random tenths held out of the training rows, of equals the smallest "
        f"c and the fewest axes; a class whose basis has fewer points takes them all. Validation "
        f"errors are the mean and deviation over {splits} such tenths, those {few} and others (the "
        f"source: 100, to choose on and to report). Then all training rows, and of bases the mean "
        f"and deviation over {seeds} seeds. nc: not centred, c: centred; a share of the rows of "
        f"each class; CLAFIC on a share is linear PCA of those points alone. All rows are one "
        f"column for SubKp and RKp, which are the same there, and for both choices of a "
        f"basis.\n\nWhether the source takes k-means centres or the rows nearest to them is not "
        f"said: its figures of kernels are those of centres. Cells without a printed figure are "
        f"lost in the copy at hand, or not in the source (CLAFIC in Tables 5 and 6). (48) is "
        f"printed as argmax of the residual; it is argmin.\n\n{compared(choices, few)}"
    )
    return Result(TITLE, lines, figure, text, seeds=drawn)


def line(way: Way, choice: Choice, errors: list[float], test: bool) -> Line:
    """Return what was found of a way, on validation or test rows."""
    tables, printed = way.printed(test)
    found = errors if test else list(choice.errors)
    kernel = "" if way.linear else f"c = 10^{choice.exponent:.1f}, "
    return Line(
        f"{f'Table {tables}: ' if tables else ''}{'test' if test else 'validation'}, {way.name}",
        float(np.mean(found)),
        printed,
        MUST.get(way.name) if test else None,
        spread=float(np.std(found, ddof=1)) if len(found) > 1 else None,
        note=f"{kernel}r = {choice.axes}",
    )


def compared(choices: dict[Way, Choice], few: int) -> str:
    """Say how the validation errors differ from those printed, and what the choice does to it."""
    ours = {way: choice.errors for way, choice in choices.items()}
    best = {way: choice.curves[:, choice.curve.argmin()] for way, choice in choices.items()}
    gaps = differences(ours)
    far = [name for _, close, name in differences(best) if not close]
    most, _, name = max(gaps, key=lambda gap: abs(gap[0]))
    first = np.mean([errors.mean() - errors[:few].mean() for errors in ours.values()])
    lower = [ours[way].mean() - best[way].mean() for way in choices]
    return (
        f"{sum(close for _, close, _ in gaps)} of the {len(gaps)} printed validation errors are "
        f"within two standard errors of ours (those of a difference of means, of our tenths and of "
        f"the source's 100; by chance alone about {0.05 * len(gaps):.0f} would not be), and "
        f"{sum(gap > 0 for gap, *_ in gaps)} are below ours; the largest difference is "
        f"{abs(most):.2f} ({name}). On the {few} tenths that c and r were chosen on, ours are "
        f"lower by {first:.2f} on average than on all. With the same c, the r that is best on all "
        f"makes ours lower by {np.mean(lower):.2f} on average and by {max(lower):.2f} at most; "
        f"then {len(gaps) - len(far)} of the printed ones are as near, and those that are not are: "
        f"{'; '.join(far) or 'none'}. The source does not print its c and r."
    )


def differences(errors: dict[Way, Array]) -> list[tuple[float, bool, str]]:
    """Return ours less each printed validation error, and whether two standard errors cover it."""
    found = []
    for way, ours in errors.items():
        for mean, spread in re.findall(r"(\S+) ± (\S+)", way.printed(test=False)[1]):
            gap = ours.mean() - float(mean)
            variance = ours.var(ddof=1) / len(ours) + float(spread) ** 2 / 100
            found.append((float(gap), bool(abs(gap) <= 2 * np.sqrt(variance)), way.name))
    return found


def examined(ways: list[Way], quick: bool) -> list[tuple[Way, Choice, list[float]]]:
    """Choose c and r for each way, and count its errors on the test rows."""
    digits, found = _digits(quick), []
    _CHOSEN.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer points than axes: they take all
        for way in ways:
            choice = chosen(way, digits, quick)
            errors = tested(way, choice, digits, 1 if way.method is None else COUNTS[quick][2])
            found.append((way, choice, errors))
            print(f"  {way.name}: {np.mean(errors):.2f} %", flush=True)
    return found


def _digits(quick: bool) -> Digits:
    table = load("usps")
    n, m = (800, 300) if quick else (None, None)
    scale = float(table["scale"])
    X, T = table["X"][:n] / scale, table["X_test"][:m] / scale
    return Digits(X, table["y"][:n], T, table["y_test"][:m])


@dataclass(frozen=True)
class Choice:
    """The kernel and the number of axes, and errors: a curve over r for every split."""

    exponent: float
    axes: int
    curves: Array

    @property
    def curve(self) -> Array:
        """The mean over the splits."""
        mean: Array = self.curves.mean(axis=0)
        return mean

    @property
    def errors(self) -> Array:
        """What was chosen makes of each split."""
        errors: Array = self.curves[:, AXES.index(self.axes)]
        return errors


def chosen(way: Way, digits: Digits, quick: bool) -> Choice:
    """Choose c and r on a few splits of the training rows, and see what they make of others."""
    few, splits, _ = COUNTS[quick]
    curves: dict[float, Array] = {}

    def error(exponent: float) -> tuple[float, float]:
        if exponent not in EXPONENTS:
            return np.inf, exponent
        if exponent not in curves:
            parts = [held_out(way, exponent, digits, split) for split in range(few)]
            curves[exponent] = np.array(parts)
        return float(curves[exponent].mean(axis=0).min()), exponent

    if quick or way.linear:
        best = min(map(error, (-2.4,) if way.linear else (-2.4, -1.8)))
    else:
        best = min(map(error, COARSE))
        for step in (0.4, 0.2):  # beyond the ends of the coarse ones, and between them
            for apart in (-step, step):
                best = min(best, error(round(best[1] + apart, 1)))
    found = curves[best[1]]
    more = [held_out(way, best[1], digits, split) for split in range(few, splits)]
    return Choice(best[1], AXES[int(found.mean(axis=0).argmin())], np.vstack([found, *more]))


def held_out(way: Way, exponent: float, digits: Digits, split: int) -> Array:
    """Return the error on a tenth of the training rows, in %, for every number of axes."""
    order = np.random.default_rng(split).permutation(len(digits.y))
    new, rest = np.split(order, [len(order) // 10])
    fitted = way.classifier(exponent, AXES[-1]).fit(digits.X[rest], digits.y[rest])
    left = all_residuals(fitted, digits.X[new])
    wrong = fitted.classes_[left.argmin(axis=1)] != digits.y[new][:, None]
    return 100 * wrong.mean(axis=0)


def all_residuals(fitted: SubspaceClassifier, X: Array) -> Array:
    """Return squared distances (rows, classes, numbers of axes) from one fit with the most axes.

    With fewer axes a distance is larger by the squares of the scores along those left out.
    """
    left = np.repeat(fitted.reconstruction_error(X)[:, :, None], len(AXES), axis=2)
    for i, model in enumerate(fitted.estimators_):
        squares = model.transform(X) ** 2
        for j, r in enumerate(AXES):
            left[:, i, j] += squares[:, r:].sum(axis=1)
    return left


def tested(way: Way, choice: Choice, digits: Digits, seeds: int) -> list[float]:
    """Return errors on the test rows in %, one a seed."""
    made = (way.classifier(choice.exponent, choice.axes, seed) for seed in range(seeds))
    fits = (classifier.fit(digits.X, digits.y) for classifier in made)
    return [100 * (1 - fitted.score(digits.T, digits.t)) for fitted in fits]


SHOWN = {
    "kernel CLAFIC (c), all rows": ("all rows", "0.15"),
    "SubKp (c), 10%, k-means centres": ("SubKp, 10 % k-means centres", "#33658a"),
    "RKp (c), 10%, k-means centres": ("RKp, 10 % k-means centres", "#86bbd8"),
    "SubKp (c), 10%, random": ("SubKp, 10 % at random", "#b5651d"),
    "RKp (c), 10%, random": ("RKp, 10 % at random", "#e0a96d"),
    "CLAFIC (c), all rows": ("linear, all rows", "0.65"),
}


def draw(choices: dict[Way, Choice], digits: Digits) -> Any:
    """Draw errors against the number of axes, and digits that are taken for others."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.15, 1.0))
    axes = left.subplots()
    named = {way.name: (way, choice) for way, choice in choices.items()}
    for name, (label, colour) in SHOWN.items():
        curve, at = named[name][1].curve, AXES.index(named[name][1].axes)
        axes.plot(AXES, curve, color=colour, label=label, lw=1.6)
        axes.plot(AXES[at], curve[at], "o", color=colour, ms=5)
    axes.set(xlabel="axes of every class, r", ylabel="validation error, %", ylim=(0, 12))
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    way, choice = named["SubKp (c), 10%, k-means centres"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = way.classifier(choice.exponent, choice.axes).fit(digits.X, digits.y)
    _mistakes(right, fitted, digits)
    return figure


def _mistakes(figure: Any, fitted: SubspaceClassifier, digits: Digits) -> None:
    """Draw digits of the test set that are taken for others, with their distances."""
    left = fitted.reconstruction_error(digits.T)
    found = left.argmin(axis=1)
    wrong = np.flatnonzero(found != digits.t)
    rows = wrong[np.linspace(0, len(wrong) - 1, min(5, len(wrong))).astype(int)]
    figure.suptitle("taken for another digit: squared distance from each class", fontsize=9)
    for pair, i in zip(figure.subplots(len(rows), 2, width_ratios=(1, 4)), rows, strict=True):
        pair[0].imshow(digits.T[i].reshape(16, 16), cmap="gray_r")
        pair[0].set_axis_off()
        colours = ["0.8"] * 10
        colours[found[i]], colours[int(digits.t[i])] = "#b5651d", "#33658a"
        pair[1].bar(range(10), left[i], color=colours)
        pair[1].set(yticks=[], xticks=range(10) if i == rows[-1] else [])
        pair[1].spines[["top", "right", "left"]].set_visible(False)
    figure.supxlabel("blue: what it is; brown: what it is taken for", fontsize=8)
