"""Fewer images than pixels, by the dot matrix: marukatat §3.4, Fig. 3."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from mercer.metrics import eigenvalue_difference, similarity
from papers.data import Array, load
from papers.panels import Case, rows_of_panels
from papers.results import NONE, Line, Result

FIRST = 10
CLASSES = {"airplane": 0, "automobile": 1, "bird": 2}
TEXT = """400 faces of 92 × 112 pixels, and the first 1000 training images of CIFAR-10's classes 0,
1 and 2 (the source does not say which 1000), every pixel a z-score. Eigenvectors of the dot matrix
are made into axes (Algorithm 2).

The figure has no numbers. What is said of it, measured: the variance is largest along the first
axis, and most of it is due to the first few axes (here: the share of the first ten). Beside it what
must be: the same axes as by scikit-learn's SVD of the z-scores.

Rows that were centred have n − 1 axes of variance; the last drawn is that one, where the n-th of
the source is rounding. The authors' code divides the dot matrix by d and not by n, which shifts its
eigenvalues by n/d and changes nothing else. Colours of ORL are people."""


def run(quick: bool = False) -> Result:
    """Return shares and agreement with an SVD, and Fig. 3."""
    cases = [Case(name, X, labels) for name, (X, labels) in images(quick).items()]
    lines = []
    for case in cases:
        n, d = case.X.shape
        Z = StandardScaler().fit_transform(case.X) * np.sqrt((n - 1) / n)  # deviations with n − 1
        exact = PCA(FIRST, svd_solver="full").fit(Z)
        share = 100 * case.values[:FIRST].sum() / case.values.sum()
        off = eigenvalue_difference(exact.explained_variance_, case.values[:FIRST]).max()
        near = similarity(exact.components_, case.model.components_[:FIRST]).min()
        lines += [
            Line(
                f"{case.name}: variance on the first {FIRST} axes, %",
                share,
                "most",
                least=50.0,
                form=".1f",
                note=f"{n} × {d}; 90 % on {case.axes_for(0.9)} axes",
            ),
            Line(f"{case.name}: axes of any variance", case.rank, form=".0f", note="n − 1 at most"),
            Line(f"{case.name}: largest Diff from an SVD", off, most=1e-9, form=".0e"),
            Line(f"{case.name}: 1 − least Sim with an SVD", 1 - near, most=1e-9, form=".0e"),
        ]
    title = f"PCA of few images by the dot matrix, first {FIRST} axes (marukatat Fig. 3)"
    return Result(title, lines, rows_of_panels(cases), TEXT, seeds=NONE)


def images(quick: bool) -> dict[str, tuple[Array, Array]]:
    """Return faces and the three classes, pixels as they are."""
    faces, cifar = load("orl_faces"), load("cifar10_airplane_automobile_bird")
    X = faces["X"].astype(np.float64)
    if quick:
        X = X.reshape(-1, 112, 92)[:, ::3, ::3].reshape(len(X), -1)
    found = {"ORL": (X, faces["y"])}
    for name, label in CLASSES.items():
        mine = np.flatnonzero(cifar["y"] == label)[: 150 if quick else None]
        found[f"CIFAR {name}"] = (
            cifar["X"][mine].reshape(len(mine), -1).astype(np.float64),
            cifar["y"][mine],
        )
    return found
