"""Latent semantic analysis of 20 newsgroups: sparse rows, centred, and never made dense.

    python examples/lsa.py                          tf-idf of the key words, 100 axes
    python examples/lsa.py --weights frequencies    shares of the key words, as in the source
    python examples/lsa.py --fetch -o lsa.png       documents that scikit-learn downloads

Every document is a row of weights of key words. Along its principal axes, words that come
together count as one: prints how well documents of one newsgroup are found by another of it, and
by k-means, before (all key words) and after (scores on the axes), with the words of every axis,
and draws it. After J. Worrell, Principal Component Analysis (2017), §4.2. The counts come from
20news_counts_csr.npz in the folder that MERCER_DATA names.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

import numpy as np
from lsa_pictures import ends, picture
from lsa_quality import Documents, Quality, compared
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix
from sklearn.datasets import fetch_20newsgroups
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer, TfidfTransformer
from sklearn.preprocessing import normalize

from mercer import PCA

FILE = "20news_counts_csr.npz"
WEIGHTS = {"tfidf": "tf-idf of key words", "frequencies": "shares of key words"}
MIB = 2**20
TITLE = "\nOwn newsgroup among the nearest documents, and clusters of k-means against newsgroups"
HEADS = ("variance", "10 nearest", "100 nearest", "all, average", "Rand index", "information")


def main(arguments: list[str] | None = None) -> None:
    """Read what is wanted; print the tables, and draw the picture."""
    options = read(arguments)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 116)
    try:
        check(options)
        documents = key_words(fetched() if options.fetch else kept(), options.documents)
        rows = weighted(documents, options.weights)
        pca, scores = analysed(rows, options.axes, console)
        console.print(words(pca, documents.terms))
        found = compared(documents, rows, scores, pca, WEIGHTS[options.weights], options.queries)
        console.print(table(found))
        picture(documents, pca, scores, found).savefig(options.output, dpi=150)
    except (ImportError, OSError, ValueError) as error:
        sys.exit(f"lsa: {error}")
    console.print(f"\nDocuments on the axes, and what is found: {options.output}", soft_wrap=True)


def read(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Latent semantic analysis of 20 newsgroups.")
    add = parser.add_argument
    add("--weights", choices=WEIGHTS, default="tfidf", help="of the key words (tfidf)")
    add("--axes", type=int, default=100, metavar="K", help="axes (100)")
    add("--documents", type=int, metavar="N", help="as many documents (all)")
    add("--queries", type=int, default=1000, metavar="N", help="documents to look for (1000)")
    add("--fetch", action="store_true", help="let scikit-learn download the documents")
    add("-o", "--output", type=Path, default=Path("lsa.png"), help="picture to write")
    return parser.parse_args(arguments)


def check(options: argparse.Namespace) -> None:
    """Refuse what cannot be, before anything is read."""
    if not options.output.parent.is_dir():
        raise ValueError(f"there is no folder {options.output.parent} for the picture.")
    for name, least in (("axes", 2), ("documents", 100), ("queries", 1)):
        given = getattr(options, name)
        if given is not None and given < least:
            raise ValueError(f"--{name} {given}: at least {least} are needed.")


def kept() -> Documents:
    """Return the counts in MERCER_DATA."""
    folder = Path(os.environ.get("MERCER_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / FILE).is_file():
        raise ValueError(
            f"there is no {FILE} in the folder that MERCER_DATA names; --fetch lets "
            f"scikit-learn download the documents."
        )
    with np.load(folder / FILE) as file:
        parts = file["data"].astype(np.float64), file["indices"].astype(np.int32), file["indptr"]
        terms = file["vocab"].tobytes().decode().split("\n")
        counts = csr_matrix(parts, shape=tuple(file["shape"]))
        return Documents(counts, file["y"].astype(int), list(file["classes"]), np.array(terms))


def fetched() -> Documents:
    """Return the counts of the documents that scikit-learn downloads, and keeps."""
    news = fetch_20newsgroups(subset="all")
    count = CountVectorizer(min_df=5, dtype=np.float64)
    counts = csr_matrix(count.fit_transform(news.data))
    return Documents(counts, news.target, list(news.target_names), count.get_feature_names_out())


def key_words(all_terms: Documents, most: int | None) -> Documents:
    """Keep words of three letters or more, no stop words, in less than a tenth of the documents.

    The documents are shuffled, so that none is ahead of another that is as near to a query.
    """
    order = np.random.default_rng(0).permutation(len(all_terms.groups))[:most]
    counts = all_terms.counts[order]
    held = np.bincount(counts.indices, minlength=counts.shape[1])
    word = [
        re.fullmatch("[a-z]{3,}", term) is not None and term not in ENGLISH_STOP_WORDS
        for term in all_terms.terms
    ]
    key = np.flatnonzero(np.array(word) & (held > 0) & (held < 0.1 * len(order)))
    groups, terms = all_terms.groups[order], all_terms.terms[key]
    return Documents(counts[:, key], groups, all_terms.names, terms)


def weighted(documents: Documents, weights: str) -> csr_matrix:
    """Return the rows: term frequencies, or tf-idf with logarithms of the counts."""
    if weights == "frequencies":
        return normalize(documents.counts, norm="l1")
    return TfidfTransformer(sublinear_tf=True).fit_transform(documents.counts)


def analysed(rows: csr_matrix, axes: int, console: Console) -> tuple[PCA, np.ndarray]:
    """Find the axes, tell how good they are and what they took; return them and the scores."""
    n, d = rows.shape
    dense, sparse = (f"{size / MIB:.0f} MiB" for size in (8 * n * d, 12 * rows.nnz + 4 * n))
    console.print(f"{n} documents, {d} key words: {sparse} sparse, {dense} if it were dense\n")
    before = peak()
    pca = PCA(axes, random_state=0)
    scores = pca.fit_transform(rows)
    console.print(f"[bold]{pca!r}[/]\n{pca.certificate_.sentence}")
    if before is not None:
        console.print(f"Peak of the process: {before:.0f} MiB before the fit, {peak():.0f} after\n")
    return pca, scores


def peak() -> float | None:
    """Return the most MiB that the process held so far; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (MIB if sys.platform == "darwin" else 1024)


def words(pca: PCA, terms: np.ndarray, axes: int = 10) -> Table:
    """Return the words of the first axes as a table."""
    drawn = Table(box=None, pad_edge=False)
    for name in ("axis", "share"):
        drawn.add_column(name, justify="right")
    drawn.add_column("words at one end", style="cyan")
    drawn.add_column("and at the other", style="yellow")
    shares = pca.explained_variance_ratio_
    for j, axis in enumerate(pca.components_[:axes]):
        up, down = (" ".join(side) for side in ends(axis, terms, 6))
        drawn.add_row(str(j + 1), f"{100 * shares[j]:.2f} %", up, down)
    return drawn


def table(found: list[Quality]) -> Table:
    """Return the figures as a table, the best of each in bold."""
    drawn = Table(box=None, pad_edge=False, title=TITLE, title_style="bold")
    drawn.add_column("by the cosine of")
    for name in HEADS:
        drawn.add_column(name, justify="right")
    at = [min(place, len(found[0].precision)) - 1 for place in (10, 100)]
    figures = [
        [*one.precision[at], one.average, one.rand.mean(), one.information.mean()] for one in found
    ]
    best = np.max(figures, axis=0)
    for one, line in zip(found, figures, strict=True):
        spreads = ["", "", "", f" ± {one.rand.std():.3f}", f" ± {one.information.std():.3f}"]
        cells = [
            f"[bold]{x:.3f}[/]{spread}" if x == most else f"{x:.3f}{spread}"
            for x, most, spread in zip(line, best, spreads, strict=True)
        ]
        drawn.add_row(one.what, f"{100 * one.variance:.2f} %", *cells)
    return drawn


if __name__ == "__main__":
    main()
