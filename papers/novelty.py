"""Novel cells: Wisconsin breast cancer by the distance to the axes of benign rows."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import KFold
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from mercer import PCA, KernelPCA, NoveltyDetector
from papers.data import Array, load
from papers.results import Line, Result

TRAIN, SPLITS = 200, 20
# Widths as multiples of the median rule's γ, and numbers of axes, to choose from.
WIDTHS, AXES = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0), (1, 5, 20, 40, 80)
CHOSEN, USUAL, LINEAR = "kernel PCA, γ and k chosen", "kernel PCA, default", "linear PCA, k chosen"
BEST, MEAN = "linear PCA, best k of 1 to 8 on the test rows", "distance from the mean (no axes)"
SOURCE = "kernel PCA, unit variance and noise, σ = 2, k = 190"
PEERS = {
    "OneClassSVM, ν = 0.1": lambda seed: OneClassSVM(nu=0.1),
    "IsolationForest": lambda seed: IsolationForest(random_state=seed),
    "LocalOutlierFactor": lambda seed: LocalOutlierFactor(novelty=True),
}
TEXT = """683 complete rows of the Wisconsin breast cancer data (original), nine grades from 1 to 10
as they are. Each of 20 random splits trains on 200 benign rows and tests on the other 244 and all
239 malignant ones, the sizes of H. Hoffmann, Kernel PCA for novelty detection, Pattern Recognition
40 (2007), as SAS' published example after it has them; the area under the ROC curve is of the test
rows, mean and standard deviation over the splits.

No malignant row is seen before the test: γ (RBF) and k are those that best tell held-out benign
rows, in five folds, from rows drawn uniformly from the box of the training rows (D. Tax & R. Duin,
Uniform object generation for optimizing one-class classifiers, JMLR 2, 2001); k of linear PCA
likewise. The default is `NoveltyDetector()`: γ by the median rule, axes for 95 % of the variance.

Last, every column of unit variance (of the training rows) and uniform noise from −0.05 to 0.05
added, with σ = 2 and 190 axes, as that example has it.

The distance from the mean alone does a little better here: malignant grades are high in all
columns, and no axis is needed to see it."""


def run(quick: bool = False) -> Result:
    """Return the areas under the ROC curves, and the picture."""
    X, y = rows()
    splits = [split(X, y, seed) for seed in range(2 if quick else SPLITS)]
    areas: dict[str, list[float]] = {}
    curves: dict[str, list[Array]] = {}
    with warnings.catch_warnings():  # rows repeat: there are not always as many axes as asked for
        warnings.filterwarnings("ignore", message=".*axes were asked for|.*keep every row whole")
        for seed, (train, test, novel) in enumerate(splits):
            for name, distances in scores(train, test, novel, seed, quick).items():
                areas.setdefault(name, []).append(float(roc_auc_score(novel, distances)))
                curves.setdefault(name, []).append(curve(novel, distances))
    least = max(0.98, *(float(np.mean(areas[name])) for name in (LINEAR, BEST)))
    lines = [
        Line(
            name,
            float(np.mean(found)),
            least=least if name in (CHOSEN, USUAL) else None,
            spread=float(np.std(found)),
            form=".4f",
            note="0.98, and linear PCA's" if name in (CHOSEN, USUAL) else "",
        )
        for name, found in areas.items()
    ]
    title = "Novelty: area under the ROC curve, malignant against benign (Hoffmann 2007)"
    seeds = f"splits, folds, forests and noise 0 to {len(splits) - 1}"
    return Result(title, lines, picture(curves, areas, splits[0]), TEXT, seeds=seeds)


def rows() -> tuple[Array, Array]:
    """Return the complete rows, and which are malignant."""
    data = load("breast_cancer_wisconsin_original")
    whole = ~np.isnan(data["X"]).any(axis=1)
    return data["X"][whole].astype(np.float64), data["y"][whole] == 1


def split(X: Array, malignant: Array, seed: int) -> tuple[Array, Array, Array]:
    """Return benign training rows, test rows, and which of those are malignant."""
    benign = np.random.default_rng(seed).permutation(np.flatnonzero(~malignant))
    test = np.concatenate([benign[TRAIN:], np.flatnonzero(malignant)])
    return X[benign[:TRAIN]], X[test], malignant[test]


def scores(train: Array, test: Array, novel: Array, seed: int, quick: bool) -> dict[str, Array]:
    """Return the novelty of the test rows by every method."""
    median = KernelPCA(1, kernel="rbf", gamma="median").fit(train).gamma_
    widths, axes = (WIDTHS[::2], AXES[::2]) if quick else (WIDTHS, AXES)
    kernel = [
        KernelPCA(k, kernel="rbf", gamma=width * median)
        for width, k in itertools.product(widths, axes)
    ]
    linear = [PCA(k) for k in range(1, 9)]

    def by(model: Any, treat: Callable[[Array], Array] = lambda rows: rows) -> Array:
        return -NoveltyDetector(model).fit(treat(train)).score_samples(treat(test))

    found = {
        CHOSEN: by(chosen(kernel, train, seed)),
        USUAL: by(None),
        LINEAR: by(chosen(linear, train, seed)),
        BEST: max(map(by, linear), key=lambda distances: float(roc_auc_score(novel, distances))),
        MEAN: by(PCA(0)),
    }
    for name, make in PEERS.items():
        found[name] = -make(seed).fit(train).decision_function(test)
    rng, deviation = np.random.default_rng(seed), train.std(axis=0)
    hoffmann = KernelPCA(190, kernel="rbf", gamma=1 / 8)
    found[SOURCE] = by(hoffmann, lambda x: x / deviation + rng.uniform(-0.05, 0.05, x.shape))
    return found


def chosen(models: list[Any], train: Array, seed: int) -> Any:
    """Return the model that best tells held-out rows from rows drawn from the box of all."""
    rng = np.random.default_rng(seed)
    drawn = rng.uniform(train.min(axis=0), train.max(axis=0), (1000, train.shape[1]))
    folds = list(KFold(5, shuffle=True, random_state=seed).split(train))

    def separation(model: Any) -> float:
        areas = []
        for some, held in folds:
            detector = NoveltyDetector(model).fit(train[some])
            beside = np.concatenate([train[held], drawn])
            uniform = np.arange(len(beside)) >= len(held)
            areas.append(roc_auc_score(uniform, -detector.score_samples(beside)))
        return float(np.mean(areas))

    return max(models, key=separation)


def curve(novel: Array, distances: Array) -> Array:
    """Return the share of malignant rows found at every share of false alarms."""
    alarms, hits, _ = roc_curve(novel, distances)
    return np.interp(np.linspace(0, 1, 501), alarms, hits)


def picture(curves: dict[str, list[Array]], areas: dict[str, list[float]], first: Any) -> Any:
    """Draw mean ROC curves, and the distances of the first split with two thresholds."""
    from matplotlib.figure import Figure

    figure = Figure((10.4, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours = ("#0072b2", "#56b4e9", "#d55e00", None, "#8c8c8c", "#009e73", "#cc79a7", "#e69f00")
    for (name, found), colour in zip(curves.items(), colours, strict=False):
        if colour is not None:
            mean = 100 * np.mean(found, axis=0)
            label = f"{name}: {np.mean(areas[name]):.4f}"
            style = {"linewidth": 2.0 if name == CHOSEN else 1.3}
            left.plot(np.linspace(0, 100, 501), mean, color=colour, label=label, **style)
    left.set(xlim=(0, 20), ylim=(70, 100.5), xlabel="benign rows called novel, %")
    left.set(ylabel="malignant rows found, %", title=f"ROC curves, mean of {len(found)} splits")
    left.legend(fontsize=8, frameon=False, title="area", title_fontsize=8, loc="lower right")
    _histogram(right, *first)
    for ax in (left, right):
        ax.title.set(fontsize=10, fontweight="bold")
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def _histogram(ax: Any, train: Array, test: Array, novel: Array) -> None:
    own, held = (NoveltyDetector(contamination=0.05, cv=cv).fit(train) for cv in (None, 5))
    parts = {
        "training rows (benign)": (train, "#0072b2"),
        "benign test rows": (test[~novel], "#56b4e9"),
        "malignant test rows": (test[novel], "#d55e00"),
    }
    bins = np.linspace(0, 1.2, 49)
    for name, (rows, colour) in parts.items():
        distances = -own.score_samples(rows)
        shares = np.full(len(rows), 100 / len(rows))
        drawn = {"color": colour, "alpha": 0.25, "histtype": "stepfilled"}
        ax.hist(distances, bins, weights=shares, label=name, **drawn)
        ax.hist(distances, bins, weights=shares, color=colour, histtype="step", linewidth=1.2)
    for detector, style, name in ((own, ":", "training rows"), (held, "--", "held-out rows")):
        label = f"threshold by {name}, 5 %"
        line = {"color": "black", "linewidth": 1, "linestyle": style}
        ax.axvline(-detector.offset_, ymax=0.78, label=label, **line)
    ax.set(xlabel="squared distance to the axes", ylabel="share of rows, %", yscale="log")
    ax.set(title="Distances by NoveltyDetector() of one split", ylim=(0.3, 1500))
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    ax.legend(fontsize=8, frameon=False, ncols=2, loc="upper center")
