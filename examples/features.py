"""Kernel principal components as features of a linear classifier, chosen by cross-validation.

    python examples/features.py                 handwritten digits, which scikit-learn brings
    python examples/features.py -o features.png

A pipeline of kernel PCA, standardised scores and a linear support vector machine; the number of
axes, the width of the kernel, and the size of a basis that stands for all rows, are chosen by
scikit-learn's grid search on the training rows. Prints what was chosen and its test error, and
draws the error against the number of axes. After A. Aguilera & A. Antoñanzas, On kernel PCA
(2019), §IX; `python -m papers segmentation` makes their table again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer import PCA, KernelPCA
from mercer.kernels import RBF, Laplacian, Linear, Polynomial
from mercer.methods import Subset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curves = dict[str, list[tuple[int, float]]]
# Kernels of the picture, and colours that every kind of colour vision tells apart.
KERNELS = {
    "linear": (Linear(), "#8c8c8c"),
    "polynomial, degree 3": (Polynomial(3), "#e69f00"),
    "RBF, γ = 0.05": (RBF(0.05), "#0072b2"),
    "Laplace, γ = 0.2": (Laplacian(0.2), "#009e73"),
}
AXES = (2, 3, 5, 7, 10, 15, 20, 30, 40, 60, 90, 130, 200, 300, 450, 700, 1000)


def features(extractor: PCA | KernelPCA) -> Pipeline:
    """Return the recipe: axes, scores of equal variance, a linear classifier."""
    return make_pipeline(extractor, StandardScaler(), SVC(kernel="linear"))


def searches(n: int) -> dict[str, GridSearchCV]:
    """Return the ways to a classifier, each with what is to be chosen for n training rows."""
    axes = [k for k in (10, 20, 40, 100, 200, 400) if k <= n // 2]
    gammas = [0.02, 0.05, 0.1]
    sizes = [n // 5, n // 3]
    linear = make_pipeline(StandardScaler(), SVC(kernel="linear"))
    kernel, basis = KernelPCA(kernel="rbf"), KernelPCA(kernel="rbf", method=Subset(1))
    grids: dict[str, tuple[Pipeline, dict[str, list[Any]]]] = {
        "pixels": (linear, {"svc__C": [0.01, 0.1, 1.0]}),
        "PCA": (features(PCA()), {"pca__n_components": [k for k in axes if k <= 40]}),
        "kernel PCA": (
            features(kernel),
            {"kernelpca__n_components": axes, "kernelpca__gamma": gammas},
        ),
        "kernel PCA on a basis": (
            features(basis.set_params(random_state=0)),
            {
                "kernelpca__n_components": [k for k in axes if k <= n // 5],
                "kernelpca__gamma": gammas,
                "kernelpca__method__n_basis": sizes,
            },
        ),
    }
    return {name: GridSearchCV(model, grid, cv=3) for name, (model, grid) in grids.items()}


def main(arguments: list[str] | None = None) -> None:
    """Choose on the training rows, test once, and draw."""
    parser = argparse.ArgumentParser(description="Kernel PCA as features of a linear classifier.")
    parser.add_argument("--rows", type=int, default=1797, help="digits to use (1797, all)")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("features.png"), help="picture to write"
    )
    options = parser.parse_args(arguments)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 116)
    try:
        if not options.output.parent.is_dir():
            raise ValueError(f"there is no folder {options.output.parent} for the picture.")
        if not 200 <= options.rows <= 1797:
            raise ValueError(f"--rows {options.rows}: from 200 to 1797 there are.")
        X, y = load_digits(return_X_y=True)
        X, y = X[: options.rows] / 16, y[: options.rows]
        split = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
        found = {
            name: search.fit(split[0], split[2]) for name, search in searches(len(X) // 2).items()
        }
        console.print(table(found, *split))
        raw = 1 - found["pixels"].score(split[1], split[3])
        picture(curves(*split), raw).savefig(options.output, dpi=150)
    except (ImportError, OSError, ValueError) as error:
        sys.exit(f"features: {error}")
    console.print(f"\nTest error against the number of axes: {options.output}", soft_wrap=True)


def table(
    found: dict[str, GridSearchCV],
    X: np.ndarray,
    X_test: np.ndarray,
    y: np.ndarray,
    y_test: np.ndarray,
) -> Table:
    """Return what was chosen, and the errors on rows left out and on the test rows."""
    title = f"A linear SVM of {len(X)} digits, tested with {len(X_test)}"
    drawn = Table(box=None, pad_edge=False, title=title, title_style="bold")
    for name in ("features", "chosen by cross-validation"):
        drawn.add_column(name)
    for name in ("error there", "test error"):
        drawn.add_column(name, justify="right")
    for name, search in found.items():
        chosen = {key.split("__")[-1]: value for key, value in search.best_params_.items()}
        words = ", ".join(f"{key}={value}" for key, value in chosen.items())
        errors = 1 - search.best_score_, 1 - search.score(X_test, y_test)
        drawn.add_row(name, words, *(f"{100 * error:.2f} %" for error in errors))
    return drawn


def curves(X: np.ndarray, X_test: np.ndarray, y: np.ndarray, y_test: np.ndarray) -> Curves:
    """Return test errors on the first axes of every kernel: one fit gives the scores on all."""
    found = Curves()
    for name, (kernel, _) in KERNELS.items():
        extractor = KernelPCA(kernel=kernel)
        scores = extractor.fit_transform(X)
        scores_test = extractor.transform(X_test)
        sizes = sorted({min(k, scores.shape[1]) for k in AXES})
        found[name] = []
        for k in sizes:
            classify = make_pipeline(StandardScaler(), SVC(kernel="linear")).fit(scores[:, :k], y)
            found[name].append((k, 1 - classify.score(scores_test[:, :k], y_test)))
    return found


def picture(found: Curves, raw: float) -> Figure:
    """Draw errors against numbers of axes, and the error without any."""
    from matplotlib.figure import Figure

    figure = Figure((7.2, 4.4), layout="constrained")
    ax = figure.subplots()
    for name, points in found.items():
        k, errors = np.array(points).T
        ax.plot(k, 100 * errors, "o-", color=KERNELS[name][1], markersize=3.5, label=name)
    ax.axhline(100 * raw, color="#404040", linestyle=":", linewidth=1.2, label="pixels, no axes")
    ax.set(xscale="log", yscale="log", xlabel="axes", ylabel="test error, percent")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set(color="#8c8c8c", linewidth=0.7)
    ax.set_title("Handwritten digits: kernel PCA, then a linear SVM", fontsize=10, loc="left")
    ax.legend(frameon=False, fontsize=8.5)
    return figure


if __name__ == "__main__":
    main()
