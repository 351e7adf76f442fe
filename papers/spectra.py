"""Axes for 90, 95 and 99 % of the variance, and scatters: marukatat §2.6, Table 2 and Fig. 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from papers.data import Array, load
from papers.panels import SHARES, Case, rows_of_panels
from papers.results import NONE, Line, Result

PRINTED = {
    "Diabetes": (7, 8, 8),
    "Breast cancer": (7, 10, 17),
    "Iris": (2, 2, 3),
    "MNIST": (236, 331, 543),
    "CIFAR": (103, 221, 662),
}
OUTLIER = 29_049
"""The row of Fig. 2, by the authors' code."""
WHOLE, PART = "cifar10", "cifar10_airplane_automobile_bird"
TEXT = """Every column is a z-score. All eigenvalues are from the smaller of covariance and dot
matrix; nothing is drawn at random. Where the data are the source's, our counts must be its own.
Scatters show all rows, coloured by class (Diabetes: by its target). {cifar} Iris has 4 columns,
where the source prints 50.

"Last" is the last axis of any variance, {last} of MNIST: {constant} of its 784 pixels are the same
in all images and {tied} combinations of others are, so the source's last axis, the 784th, is one
of {null} without variance. Which of them comes last is a matter of rounding, and so is where an
image lies along it. {single} Our last axis of any variance singles out row {far}, at {distance:.1f}
from the mean."""
SINGLE = """In single precision row {row}, that of Fig. 2, is the furthest image on {many} of them;
on {zero} all images are at zero, and on the {rest} others the furthest is one of {rows}. All these
images have a pixel whose z-score is {z} or more."""
SOME = """Of CIFAR only the first 1000 images of each of the classes airplane, automobile and bird
are at hand, not 50 000 of ten: fewer images, less varied, need fewer axes (of every third image, of
two in three, and of all: {growth} axes for 90, 95 and 99 %). `cifar10.npz` in MERCER_DATA with an
array X of 50000 × 3072 pixels, and y, takes their place."""


def run(quick: bool = False) -> Result:
    """Return how many axes hold how much, and Fig. 1."""
    cases = [Case(name, *rows) for name, rows in tables().items()]
    mnist = load("mnist")
    n = 3000 if quick else None
    cases.append(Case("MNIST", mnist["X"][:n].astype(np.float32), mnist["y"][:n]))
    pixels, labels, whole = cifar(quick)
    step = 10 if quick else 1
    kind = np.float32 if whole else np.float64
    cases.append(Case("CIFAR", pixels[::step].astype(kind), labels[::step]))
    lines = []
    for case in cases:
        same = not (quick and case.name == "MNIST") and (case.name != "CIFAR" or whole)
        lines += counts(case, same)
    lines += last_axis(cases[3], not quick)
    single = ""
    if not quick:
        axes, rows = rounded(cases[3])
        lines.append(apart(cases[3], axes[rows == OUTLIER]))
        single = told(cases[3], rows)
    constant = int((np.ptp(cases[3].X, axis=0) == 0).sum())
    return Result(
        "Axes needed for a share of the variance (marukatat Fig. 1, Table 2)",
        lines,
        rows_of_panels(cases),
        TEXT.format(
            cifar="" if whole else SOME.format(growth=grown(cases[4])),
            last=f"the {cases[3].rank}th",
            constant=constant,
            tied=784 - constant - cases[3].rank,
            null=784 - cases[3].rank,
            single=single,
            far=furthest(cases[3])[0],
            distance=along(cases[3], cases[3].rank - 1).max(),
        ),
        seeds=NONE,
    )


def tables() -> dict[str, tuple[Array, Array]]:
    """Return the tables that come with scikit-learn."""
    loaders = {"Diabetes": load_diabetes, "Breast cancer": load_breast_cancer, "Iris": load_iris}
    return {name: make(return_X_y=True) for name, make in loaders.items()}


def cifar(quick: bool = False) -> tuple[Array, Array, bool]:
    """Return images and classes, and whether they are all 50 000, which a quick run never has."""
    try:
        data = load(PART if quick else WHOLE)
    except FileNotFoundError:
        data = load(PART)
    X = data["X"].reshape(len(data["X"]), -1)
    return X, data["y"].ravel(), len(X) == 50_000


def counts(case: Case, same: bool) -> list[Line]:
    """Return the three counts of a data set, which must be the printed ones of the same data."""
    made = []
    for share, printed in zip(SHARES, PRINTED[case.name], strict=True):
        must: dict[str, Any] = {"most": printed, "least": printed} if same else {}
        n, d = case.X.shape
        what = f"{case.name}: axes for {100 * share:.0f} %"
        note = f"of {d}; {n} rows"
        made.append(Line(what, case.axes_for(share), str(printed), form=".0f", note=note, **must))
    return made


def last_axis(mnist: Case, whole: bool) -> list[Line]:
    """Return the rank of MNIST's z-scores, and how far an image is off on the last axis of them."""
    row, distance = furthest(mnist)
    must: dict[str, Any] = {"least": 50.0} if whole else {}
    what = "MNIST: furthest image on the last of them, in standard deviations"
    return [
        Line("MNIST: axes of any variance", mnist.rank, form=".0f", note="of 784"),
        Line(what, distance, "an outlier", form=".0f", note=f"row {row}", **must),
    ]


def rounded(case: Case) -> tuple[Array, Array]:
    """Return the axes without variance, from 1, and the row that rounding puts furthest on each.

    Axes on which every row is at zero are left out: no row is the furthest there.
    """
    scores = along(case, slice(case.rank, None))
    moved = np.flatnonzero(scores.max(axis=0))
    return case.rank + 1 + moved, scores[:, moved].argmax(axis=0)


def apart(case: Case, axes: Array) -> Line:
    """Return on how many of the axes without variance the source's row is the furthest."""
    what = f"MNIST: axes of no variance on which row {OUTLIER} is the furthest, single precision"
    note = f"of {case.X.shape[1] - case.rank}: {', '.join(map(str, axes))}"
    return Line(what, len(axes), "the outlier", least=1, form=".0f", note=note)


def told(case: Case, rows: Array) -> str:
    """Say which rows are the furthest on how many of the axes without variance."""
    ours, null = int((rows == OUTLIER).sum()), case.X.shape[1] - case.rank
    each = np.unique(rows)
    others = [str(row) for row in each if row != OUTLIER]
    return SINGLE.format(
        row=OUTLIER,
        many=ours,
        zero=null - len(rows),
        rest=len(rows) - ours,
        rows=", ".join(others),
        z=math.floor(np.abs(scored(case, each)).max(axis=1).min()),
    )


def scored(case: Case, rows: Any) -> Array:
    """Return the z-scores of some rows, in their precision."""
    return (case.X[rows] - case.model.mean_) / case.model.scale_


def along(case: Case, axes: int | slice) -> Array:
    """Return how far every row is along some axes, in the precision of the rows."""
    return np.abs(scored(case, slice(None)) @ case.model.components_[axes].T)


def furthest(case: Case) -> tuple[int, float]:
    """Return the row that is furthest along the last axis of any variance, and how far."""
    scores = along(case, case.rank - 1)
    return int(scores.argmax()), float(scores.max() / np.sqrt(case.values[case.rank - 1]))


def grown(case: Case) -> str:
    """Return the counts of a third, two thirds and all of the images."""
    place = np.arange(len(case.X)) % 3
    parts = [Case("", case.X[place < k], case.labels[place < k]) for k in (1, 2)]
    return ", ".join(
        "/".join(str(part.axes_for(share)) for share in SHARES) for part in (*parts, case)
    )
