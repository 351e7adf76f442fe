"""Tell handwritten digits apart by a subspace for each: linear, with a kernel, on a basis.

``python examples/subspace_classes.py [-o picture.png]``. The data ship with scikit-learn. The
settings of every classifier are chosen on the training rows alone, by cross-validation.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, KernelPCA, SubspaceClassifier
from mercer.landmarks import KMeans
from mercer.methods import Subset

Array = np.ndarray[Any, Any]
BLUE, BROWN = "#33658a", "#b5651d"


def main(arguments: list[str] | None = None) -> None:
    """Print a table of errors and times, and draw what every class makes of some digits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", default="subspace_classes.png", help="where to draw")
    parser.add_argument("--rows", type=int, help="so many digits only")
    options = parser.parse_args(arguments)
    if not Path(options.output).resolve().parent.is_dir():
        raise SystemExit(f"there is no folder {Path(options.output).parent}")
    X, y = load_digits(return_X_y=True)
    X, y = X[: options.rows] / 16, y[: options.rows]
    train, test, label, truth = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    print(f"{len(train)} digits to learn from, {len(test)} to tell apart\n")
    print(f"{'':36}{'errors':>8}{'predict':>12}   chosen by cross-validation")
    found = {}
    for name, (model, grid) in classifiers().items():
        search = GridSearchCV(model, grid, cv=3).fit(train, label)
        start = time.perf_counter()
        wrong = search.predict(test) != truth
        seconds = time.perf_counter() - start
        chosen = ", ".join(f"{key.split('__')[-1]}={value}" for key, value in sorted_choice(search))
        print(
            f"{name:36}{100 * wrong.mean():6.2f} %{1000 * seconds:9.0f} ms   {chosen}", flush=True
        )
        found[name] = search.best_estimator_
    draw(found["a subspace for each class"], test, truth).savefig(options.output, dpi=110)
    print(f"\nWhat every class makes of some digits: {options.output}")


def sorted_choice(search: GridSearchCV) -> list[tuple[str, Any]]:
    """Return the settings that were chosen."""
    return sorted(search.best_params_.items())


def classifiers() -> dict[str, tuple[Any, dict[str, list[Any]]]]:
    """Return classifiers, each with the settings to choose from."""
    few = Subset(0.2, select=KMeans(nearest=False))
    kernel = {"estimator__gamma": [0.03, 0.1, 0.3], "estimator__n_components": [10, 20, 40]}
    on_few = {"estimator__gamma": [0.03, 0.1, 0.3], "estimator__n_components": [6, 12]}
    rbf = KernelPCA(kernel="rbf", random_state=0)
    small = KernelPCA(kernel="rbf", method=few, random_state=0)
    scaled = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return {
        "a subspace for each class": (
            SubspaceClassifier(PCA()),
            {"estimator__n_components": [2, 5, 10, 15, 20]},
        ),
        "the same, with a kernel": (SubspaceClassifier(rbf), kernel),
        "the same, on a fifth of the rows": (SubspaceClassifier(small), on_few),
        "linear discriminants": (LinearDiscriminantAnalysis(), {"tol": [1e-4]}),
        "logistic regression": (scaled, {"logisticregression__C": [0.01, 0.1, 1.0]}),
        "nearest neighbours": (KNeighborsClassifier(), {"n_neighbors": [1, 3, 5]}),
    }


def draw(model: SubspaceClassifier, X: Array, y: Array, count: int = 5) -> Any:
    """Draw digits beside the nearest picture that every class has for them.

    The first is a digit that is far from all classes but its own; the others are those that
    were hardest to tell.
    """
    from matplotlib.figure import Figure

    left = model.reconstruction_error(X)
    ranked = np.sort(left, axis=1)
    sure = (ranked[:, 1] - ranked[:, 0]) / ranked[:, 1]
    at = [int(sure.argmax()), *np.argsort(sure, kind="stable")[: count - 1]]
    classes = len(model.classes_)
    figure = Figure(figsize=(0.86 * (classes + 1) + 0.3, 1.12 * count + 0.7), layout="constrained")
    panels = figure.subplots(count, classes + 1)
    for panel in panels.ravel():
        panel.set(xticks=[], yticks=[])
        panel.spines[:].set(color="0.85")
    for row, i in zip(panels, at, strict=True):
        nearest = int(left[i].argmin())
        row[0].imshow(X[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        row[0].set_xlabel(f"a {y[i]}", fontsize=9)
        for j, (panel, own) in enumerate(zip(row[1:], model.estimators_, strict=True)):
            panel.imshow(own.reconstruct(X[i : i + 1]).reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            panel.set_xlabel(f"{left[i, j]:.2f}", fontsize=9, color="0.45")
            right = model.classes_[j] == y[i]
            if right or j == nearest:
                mark(panel, BLUE if right else BROWN)
    panels[0, 0].set_title("digit", fontsize=9)
    for panel, name in zip(panels[0, 1:], model.classes_, strict=True):
        panel.set_title(f"as a {name}", fontsize=9)
    figure.suptitle(
        "Digits, what the subspace of every class keeps of them, and the squared distance.\n"
        "Blue: the right class; brown: a wrong one that is nearer.",
        fontsize=10,
    )
    return figure


def mark(panel: Any, colour: str) -> None:
    """Put a frame around a picture, and write its distance in the same colour."""
    for spine in panel.spines.values():
        spine.set(color=colour, linewidth=2.5)
    panel.xaxis.label.set_color(colour)
    panel.xaxis.label.set_fontweight("bold")


if __name__ == "__main__":
    main()
