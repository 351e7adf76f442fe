"""How well documents of a newsgroup find each other: what lsa.py measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import normalize

from mercer import PCA

# A document is looked for among all others, as many at a time; so many of them are told.
CHUNK = 250
DEPTH = 1000


@dataclass(frozen=True)
class Documents:
    """Counts of terms in documents, and the newsgroups that they come from."""

    counts: csr_matrix
    groups: np.ndarray
    names: list[str]
    terms: np.ndarray


@dataclass(frozen=True)
class Quality:
    """How well documents of a newsgroup find each other.

    `precision[i]` is the share of a query's own group among the i + 1 nearest, `average` its
    mean over the places where one is met; `alike[a, b]` the mean cosine of documents of groups
    a and b. `rand` and `information` compare clusters with groups: one figure for each start of
    k-means.
    """

    what: str
    variance: float
    precision: np.ndarray
    average: float
    alike: np.ndarray
    rand: np.ndarray
    information: np.ndarray

    @property
    def cosines(self) -> tuple[float, float]:
        """Mean over the groups within one, and over pairs of groups across two."""
        within, many = np.trace(self.alike), len(self.alike)
        return within / many, (self.alike.sum() - within) / (many * many - many)


def compared(
    documents: Documents,
    rows: csr_matrix,
    scores: np.ndarray,
    pca: PCA,
    before: str,
    queries: int = 1000,
    starts: int = 3,
) -> list[Quality]:
    """Judge all key words, the scores, and what scikit-learn's users do: an SVD, not centred."""
    axes = scores.shape[1]
    svd = TruncatedSVD(axes, random_state=0)
    others = svd.fit_transform(rows)
    ways = [
        (before, 1.0, rows),
        (f"{axes} axes, mercer.PCA", float(pca.explained_variance_ratio_.sum()), scores),
        (f"{axes} axes, TruncatedSVD", float(svd.explained_variance_ratio_.sum()), others),
    ]
    return [judged(*way, documents, queries, starts) for way in ways]


def judged(
    what: str, variance: float, rows: Any, documents: Documents, queries: int, starts: int
) -> Quality:
    """Look for documents by the cosine of their rows, and cluster them."""
    unit = normalize(rows)
    rand, information = clustered(unit, documents, starts)
    precision, average = searched(unit, documents.groups, queries)
    alike = cosines(unit, documents)
    return Quality(what, variance, precision, average, alike, rand, information)


def searched(
    unit: Any, groups: np.ndarray, queries: int, among: Any = None
) -> tuple[np.ndarray, float]:
    """Rank all other documents for each of the first; return the precision, and its average.

    Rows are compared by dot products, with rows of `among` where they are others.
    """
    among = unit if among is None else among
    n = len(groups)
    queries, depth = min(queries, n), min(DEPTH, n - 1)
    precision, average = np.zeros(depth), 0.0
    for start in range(0, queries, CHUNK):
        here = np.arange(start, min(start + CHUNK, queries))
        found = unit[here] @ among.T
        found = found.toarray() if issparse(found) else found
        found[np.arange(len(here)), here] = -np.inf  # a document does not find itself
        order = np.argsort(-found, axis=1, kind="stable")[:, :-1]
        hits = groups[order] == groups[here][:, None]
        shares = np.cumsum(hits, axis=1) / np.arange(1, n)
        precision += shares[:, :depth].sum(axis=0)
        average += float(((shares * hits).sum(axis=1) / np.maximum(hits.sum(axis=1), 1)).sum())
    return precision / queries, average / queries


def cosines(unit: Any, documents: Documents) -> np.ndarray:
    """Return the mean cosine of two documents, for every two groups."""
    member = np.eye(len(documents.names))[documents.groups]
    sums, sizes = np.asarray(unit.T @ member), member.sum(axis=0)
    lengths = np.asarray(unit.multiply(unit).sum(axis=1) if issparse(unit) else (unit**2).sum(1))
    own = np.diag(member.T @ lengths.ravel())  # no document is paired with itself
    return (sums.T @ sums - own) / np.maximum(np.outer(sizes, sizes) - np.diag(sizes), 1.0)


def clustered(unit: Any, documents: Documents, starts: int) -> tuple[np.ndarray, np.ndarray]:
    """Cluster by k-means; return the adjusted Rand index and the information of every start."""
    groups, figures = documents.groups, []
    for seed in range(starts):
        found = KMeans(len(documents.names), n_init=1, random_state=seed).fit(unit).labels_
        figures.append(
            (adjusted_rand_score(groups, found), normalized_mutual_info_score(groups, found))
        )
    rand, information = np.array(figures).T
    return rand, information
