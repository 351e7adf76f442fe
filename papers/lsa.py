"""Latent semantic analysis of 20 newsgroups (worrell §4.2): figures of examples/lsa.py."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.data import find
from papers.data import Array
from papers.results import HERE, Line, Result

sys.path.append(str(HERE.parent / "examples"))  # what an example imports lies beside it

import lsa
from lsa_pictures import picture
from lsa_quality import Documents, Quality, compared, searched

TITLE = "Latent semantic analysis of 20 newsgroups, before and after 100 axes (worrell §4.2)"
TEXT = """The source prints no figures. Words of three letters or more, no stop words, in less than
a tenth of the documents; weights are their relative frequencies ("shares"), as in the source, or
tf-idf with logarithms of the counts. The rows stay sparse and are centred implicitly. 1000
documents look for the others of their newsgroup by the cosine, and k-means makes 20 clusters:
adjusted Rand index and normalised mutual information, mean and deviation of three starts. The
newsgroups serve to judge, for nothing else.

What must be is the source's hope, that scores tell better than words which
documents are alike, for the ranking as a whole. Among the ten nearest the words themselves tell
better; of relative frequencies, among the hundred nearest too, and there the mutual information of
k-means falls. TruncatedSVD does not subtract the
mean: our axes hold more variance and rank better as a whole, a little worse among the ten nearest,
and of tf-idf among the hundred nearest; its clusters have the better Rand index. The source
compares documents by inner products of centred rows, not by the cosine: the last lines, for its
weights. The curves are of both weights, the scatter and the mean cosines of tf-idf."""


def run(quick: bool) -> Result:
    """Judge key words, their principal axes and singular vectors, for both weights."""
    find(lsa.FILE)
    documents = lsa.key_words(lsa.kept(), 1000 if quick else None)
    lines, figure = list[Line](), None
    for weights, what in lsa.WEIGHTS.items():
        rows = lsa.weighted(documents, weights)
        pca, scores = lsa.analysed(rows, 20 if quick else 100, Console(quiet=True))
        found = compared(documents, rows, scores, pca, what, 100 if quick else 1000)
        lines += figures(what, found)
        if weights == "frequencies":
            lines += inner_products(what, documents, rows, scores, 100 if quick else 1000)
        if figure is None:
            figure = picture(documents, pca, scores, found)
        else:
            add_curves(figure, found)
    return Result(TITLE, lines, figure, TEXT, seeds="documents' order 0, axes 0, k-means 0 to 2")


def add_curves(figure: Any, found: list[Quality]) -> None:
    """Draw what relative frequencies find, dashed, beside the curves of tf-idf."""
    ax = figure.subfigs[0].axes[1]
    lines = list(ax.lines)
    names = ["key words", *(one.what for one in found[1:])]
    for line, one, name in zip(lines, found, names, strict=True):
        line.set(linestyle="-", label=name)
        ax.plot(line.get_xdata(), one.precision, color=line.get_color(), linestyle="--", lw=1.6)
    for style, name in (("-", "tf-idf"), ("--", "relative frequencies")):
        ax.plot([], [], color="black", linestyle=style, lw=1.6, label=name)
    ax.legend(loc="upper right", fontsize=8, frameon=False)
    ax.set_title("Own newsgroup among the nearest documents", fontsize=10, loc="left")
    ax.set_xlabel("how many of the nearest documents", fontsize=8.5)
    ax.set_ylabel("share of them that are of the query's newsgroup", fontsize=8.5)


def inner_products(
    what: str, documents: Documents, rows: Any, scores: Array, queries: int
) -> list[Line]:
    """Return how well inner products rank: of centred words, and of scores, which are centred."""
    # (x − μ)ᵀ(y − μ) and (x − μ)ᵀy differ by what does not depend on y, which may stay sparse.
    centred = rows[:queries].toarray() - np.asarray(rows.mean(axis=0))
    _, before = searched(centred, documents.groups, queries, among=rows)
    _, after = searched(scores, documents.groups, queries)
    name = f"{what}, inner products: average precision"
    return [
        Line(name, before, form=".3f"),
        Line(f"{name}, {scores.shape[1]} axes", after, least=before, form=".3f"),
    ]


def figures(what: str, found: list[Quality]) -> list[Line]:
    """Return the figures of all ways to one kind of weights."""
    before, ours, svd = found
    lines = [
        Line(
            f"{what}: variance, percent",
            100 * ours.variance,
            least=100 * svd.variance,
            form=".3f",
            note=f"TruncatedSVD {100 * svd.variance:.3f}",
        )
    ]
    for one in found:
        name = what if one is before else f"{what}, {one.what}"
        within, across = one.cosines
        cosines = f"mean cosine {within:.3f} within a newsgroup, {across:.3f} across"
        least = before.average if one is ours else None
        lines += [
            Line(f"{name}: average precision", one.average, least=least, form=".3f", note=cosines),
            Line(f"{name}: own among the 10 nearest", float(one.precision[9]), form=".3f"),
            Line(f"{name}: own among the 100 nearest", float(one.precision[99]), form=".3f"),
        ]
        for measure, values in (("Rand index", one.rand), ("information", one.information)):
            mean, spread = float(values.mean()), float(values.std())
            lines.append(Line(f"{name}: k-means, {measure}", mean, spread=spread, form=".3f"))
    return lines
