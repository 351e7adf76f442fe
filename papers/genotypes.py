"""Genotypes: the first axes tell of groups that no column names (worrell Example 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from mercer import PCA
from papers.data import Array, load
from papers.drawing import BLUE, GREY, open_frames, points
from papers.results import Line, Result

TITLE = "Genotypes of mice, groups that lie behind them (worrell Example 1)"
TEXT = """The source shows 1400 Europeans, some 200 000 positions of their genomes and two axes, on
which natural clusters follow the map. Those genomes are not public: 1814 mice of a heterogeneous
stock stand in, {columns} positions with the values 0, 1 and 2, centred, not scaled.

They have no map to follow, so what the example claims is tested otherwise: that the axes show
"latent variables" of the animals and not of some place in the genome. The odd-numbered chromosomes
and the even-numbered ones are analysed apart, without chromosome X; four groups, which is what the
picture shows, are found in each half by k-means on three axes, and agree by the adjusted Rand index
(0 by chance, 1 at best).

Canonical correlations are between the scores of the halves on three axes, the smallest of three,
and on two, where the third axis is missed, whose variance is near to the second's. Chance is the
same with the mice of one half in random order. The variance is compared with that of the first axis
where every column is in a random order of its own."""
GROUPS, AXES = 4, 3


def run(quick: bool = False) -> Result:
    """Return how far the two halves of the genome agree, and the picture."""
    data = load("mice_genotypes")
    every, step = (2, 5) if quick else (1, 1)
    X, chromosome = data["X"][::every, ::step].astype(np.float32), data["chr"][::step]
    halves = [X[:, np.isin(chromosome, numbers)] for numbers in (named(1), named(2))]
    odd, even = (PCA(AXES, svd_solver="dot").fit_transform(half) for half in halves)
    whole = PCA(10, svd_solver="dot").fit(X)
    rng = np.random.default_rng(0)
    noise = PCA(10, svd_solver="dot").fit(rng.permuted(X, axis=0))
    mixed = even[rng.permutation(len(even))]
    groups = [grouped(scores) for scores in (odd, even, mixed)]
    shares = 100 * whole.explained_variance_ratio_
    lines = [
        Line("four groups by odd and by even chromosomes: Rand", rand(*groups[:2]), least=0.8),
        Line("the same by chance", rand(groups[0], groups[2]), most=0.05),
        Line("canonical correlation, three axes, least", correlation(odd, even, 3), least=0.8),
        Line("the same by chance", correlation(odd, mixed, 3)),
        Line("canonical correlation, two axes, first", correlation(odd, even, 2, 0), least=0.8),
        Line("canonical correlation, two axes, second", correlation(odd, even, 2)),
        Line("variance of the first axis, %", float(shares[0]), form=".2f"),
        Line("variance of two axes, %", float(shares[:2].sum()), form=".2f"),
        Line(
            "first axis / that of shuffled columns",
            float(whole.explained_variance_[0] / noise.explained_variance_[0]),
            least=5.0,
            form=".1f",
        ),
    ]
    for line in lines[:6]:
        line.form = ".3f"
    figure = picture(whole.transform(X), even, groups[0], [whole, noise])
    text = TEXT.format(columns=X.shape[1])
    return Result(TITLE, lines, figure, text, seeds="k-means 0, permutations 0")


def named(first: int) -> list[str]:
    """Return every second chromosome's name; X is neither odd nor even."""
    return [str(number) for number in range(first, 20, 2)]


def grouped(scores: Array) -> Array:
    with threadpool_limits(1, "openmp"):  # so small a task only waits for more threads
        return KMeans(GROUPS, n_init=10, random_state=0).fit_predict(scores)


def rand(one: Array, other: Array) -> float:
    return float(adjusted_rand_score(one, other))


def correlation(one: Array, other: Array, axes: int, which: int = -1) -> float:
    """Return a canonical correlation of scores; scores have no mean."""
    bases = [np.linalg.qr(scores[:, :axes])[0] for scores in (one, other)]
    return float(np.linalg.svd(bases[0].T @ bases[1], compute_uv=False)[which])


def picture(Z: Array, even: Array, group: Array, models: list[PCA]) -> Any:
    """Draw scores coloured by the groups of one half of the genome, and the variances."""
    from matplotlib.figure import Figure

    figure = Figure((11.4, 4.0), layout="constrained")
    panels = figure.subplots(1, 3, width_ratios=(1.15, 1.15, 0.8))
    # The largest group first, so that a colour does not depend on the labels of k-means.
    order = np.argsort(np.argsort(-np.bincount(group)))
    names = np.array([f"group {rank + 1}" for rank in range(GROUPS)])[order[group]]
    points(panels[0], Z[:, :2], names, "All chromosomes, groups of the odd ones")
    points(panels[1], even[:, :2], names, "Even chromosomes, groups of the odd ones")
    for ax in panels[:2]:
        ax.set_aspect("equal", adjustable="datalim")
        for drawn in ax.collections:
            drawn.set_sizes([9])
    for model, colour, name in zip(models, (BLUE, GREY), ("mice", "columns shuffled"), strict=True):
        shares = 100 * model.explained_variance_ratio_
        panels[2].plot(range(1, 11), shares, "o-", color=colour, markersize=4, label=name)
    panels[2].set(xlabel="axis", ylabel="variance, %", ylim=(0, None), xticks=range(1, 11, 3))
    panels[2].legend(frameon=False)
    panels[2].set_title("Variance of the axes", fontsize=9)
    open_frames(panels)
    return figure
