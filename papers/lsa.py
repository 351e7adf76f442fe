"""Latent semantic analysis of 20 newsgroups (worrell §4.2): figures of examples/lsa.py."""

from __future__ import annotations

import sys

from rich.console import Console

from benchmarks.data import find
from papers.results import HERE, Line, Result

sys.path.append(str(HERE.parent / "examples"))  # what an example imports lies beside it

import lsa
from lsa_pictures import picture
from lsa_quality import Quality, compared

TITLE = (
    "Latent semantic analysis of 20 newsgroups, documents before and after 100 axes. "
    "J. Worrell, Principal Component Analysis (2017), §4.2; the source prints no figures."
)
TEXT = """Words of three letters or more, no stop words, in less than a tenth of the documents;
weights are their relative frequencies, as in the source, or tf-idf with logarithms of the counts.
The rows stay sparse and are centred implicitly. 1000 documents look for the others of their
newsgroup by the cosine, and k-means makes 20 clusters: adjusted Rand index and normalised mutual
information, mean and deviation of three starts. The newsgroups serve to judge, for nothing else.
What must be is the source's hope, that scores tell better than words which documents are alike,
for the ranking as a whole. Among the ten nearest the words themselves tell better; of relative
frequencies, among the hundred nearest too. TruncatedSVD does not subtract the mean: our axes hold
more variance and rank better as a whole, a little worse among the ten nearest, and of tf-idf among
the hundred nearest; its clusters have the better Rand index."""


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
        figure = figure or picture(documents, pca, scores, found)
    return Result(TITLE, lines, figure, TEXT)


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
