"""The picture that lsa.py draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from lsa_quality import Documents, Quality

from mercer import PCA

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY, DARK = "#8c8c8c", "#404040"
# Colours that every kind of colour vision tells apart (Okabe & Ito).
COLOURS = ("#0072b2", "#e69f00", "#56b4e9", "#d55e00", "#cc79a7", "#009e73", "#5c5c5c")
# Newsgroups by how their names begin, the longer beginnings first.
FAMILIES = {
    "comp.": "computers",
    "misc.forsale": "for sale",
    "rec.sport": "sport",
    "rec.": "vehicles",
    "sci.": "science",
    "talk.politics": "politics",
    "alt.atheism": "religion",
    "soc.religion": "religion",
    "talk.religion": "religion",
}


def picture(documents: Documents, pca: PCA, scores: np.ndarray, found: list[Quality]) -> Figure:
    """Draw documents on two axes, precision against depth, and cosines before and after."""
    from matplotlib.figure import Figure

    figure = Figure((11, 10), layout="constrained")
    figure.get_layout_engine().set(wspace=0.06, hspace=0.06)
    above, below = figure.subfigures(2, 1, height_ratios=(1.0, 1.25))
    plane, depth = above.subplots(1, 2, width_ratios=(1.35, 1))
    _plane(plane, documents, pca, scores)
    _depth(depth, found)
    _cosines(below, documents.names, found[:2])
    return figure


def ends(axis: np.ndarray, terms: np.ndarray, count: int) -> tuple[list[str], list[str]]:
    """Return the words at the two ends of an axis, those of the larger weights first."""
    order = np.argsort(axis)
    return list(terms[order[::-1][:count]]), list(terms[order[:count]])


def family(name: str) -> str:
    """Return the family of a newsgroup."""
    return next((word for start, word in FAMILIES.items() if name.startswith(start)), name)


def _plane(ax: Axes, documents: Documents, pca: PCA, scores: np.ndarray) -> None:
    families = [family(name) for name in documents.names]
    kinds = list(dict.fromkeys(families))
    kind = np.array([kinds.index(one) for one in families])[documents.groups]
    colours = np.array([COLOURS[j % len(COLOURS)] for j in range(len(kinds))])
    ax.scatter(*scores[:, :2].T, c=colours[kind], s=3, alpha=0.45, linewidths=0, rasterized=True)
    for j, name in enumerate(kinds):
        ax.scatter([], [], color=colours[j], s=22, label=name)
    ax.legend(loc="best", fontsize=8, frameon=False, handletextpad=0.1)
    for axis, j in ((ax.xaxis, 0), (ax.yaxis, 1)):
        up, down = (" ".join(side) for side in ends(pca.components_[j], documents.terms, 3))
        axis.set_label_text(f"← {down}     axis {j + 1}     {up} →", fontsize=8.5)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(color=GREY, linewidth=0.7)
    ax.set_title("Documents on the first two axes", fontsize=10, loc="left")


def _depth(ax: Axes, found: list[Quality]) -> None:
    for one, colour in zip(found, (GREY, COLOURS[0], COLOURS[3]), strict=True):
        places = np.arange(1, len(one.precision) + 1)
        style = "--" if one is found[-1] else "-"
        ax.plot(places, one.precision, color=colour, linestyle=style, linewidth=1.6, label=one.what)
    ax.set(xscale="log", ylim=(0, 1), xlim=(1, len(found[0].precision)))
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.set_xlabel("nearest documents", fontsize=8.5)
    ax.set_ylabel("share of the query's own newsgroup", fontsize=8.5)
    ax.tick_params(labelsize=8, color=GREY)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set(color=GREY, linewidth=0.7)
    ax.legend(loc="lower left", fontsize=8, frameon=False)
    ax.set_title("Found by another document of the newsgroup", fontsize=10, loc="left")


def _cosines(figure: Figure, names: list[str], found: list[Quality]) -> None:
    kinds = list(dict.fromkeys(family(name) for name in names))
    order = sorted(range(len(names)), key=lambda j: kinds.index(family(names[j])))
    sorted_names = [names[j] for j in order]
    most = max(np.abs(one.alike).max() for one in found)
    panels = figure.subplots(1, len(found), sharey=True)
    for ax, one in zip(panels, found, strict=True):
        image = ax.imshow(one.alike[np.ix_(order, order)], cmap="RdBu_r", vmin=-most, vmax=most)
        ax.set_xticks(range(len(names)), sorted_names, rotation=90, fontsize=7)
        ax.set_yticks(range(len(names)), sorted_names, fontsize=7)
        ax.tick_params(length=0)
        ax.spines[:].set(color=GREY, linewidth=0.7)
        for j in range(1, len(names)):
            if family(sorted_names[j]) != family(sorted_names[j - 1]):
                ax.axhline(j - 0.5, color=GREY, linewidth=0.4)
                ax.axvline(j - 0.5, color=GREY, linewidth=0.4)
        within, across = one.cosines
        ax.set_title(
            f"Mean cosine of documents, {one.what}:\n{within:.3f} within a newsgroup, "
            f"{_signed(across)} across",
            fontsize=10,
            loc="left",
        )
    bar = figure.colorbar(image, ax=panels, aspect=30, pad=0.01)
    bar.outline.set(color=GREY, linewidth=0.7)
    bar.ax.tick_params(labelsize=8, color=GREY)


def _signed(x: float) -> str:
    return f"{x:.3f}".replace("-", "−")
