"""Certified gaps by the size of the blocks and of the basis, beside the true distances."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mercer import KernelPCA
from mercer.certificate.partition import refine
from mercer.data import ArraySource
from mercer.kernels import RBF
from mercer.methods import Subset
from mercer.problem import KernelProblem
from mercer.rules import Count

_K, _BASES, _BLOCKS = 10, {250: "#d55e00", 1000: "#0072b2"}, (256, 500, 1000, 2000, 4000)
_SETS = {"MNIST": "mnist.npz", "USPS": "usps.npz", "satellite": "satellite.npz"} | {
    "letter": "letter.npz"
}
_ROWS = 8000


def certificates(folder: Path) -> Figure:
    """Draw four data sets: what is certified, and what is true."""
    figure = Figure((7.6, 2.5), layout="constrained")
    axes = figure.subplots(1, len(_SETS), sharey=True)
    for ax, (name, file) in zip(axes, _SETS.items(), strict=True):
        X = _rows(folder / file)
        kernel = RBF.from_median(X)
        best = KernelPCA(_K, kernel=kernel, method="exact").fit(X).explained_variance_.sum()
        for m, color in _BASES.items():
            sizes = [s for s in _BLOCKS if s < len(X)]
            gaps, explained = _gaps(X, kernel, m, sizes)
            ax.loglog(sizes, 100 * gaps, "o-", ms=3, color=color, label=f"certified, {m} points")
            true = 100 * (1 - explained / best)
            ax.axhline(true, ls="--", lw=1, color=color, label=f"true, {m} points")
        ax.set_title(f"{name}, {len(X)} × {X.shape[1]}")
        ax.set_xlabel("rows of a block")
        ax.set_xticks(sizes, [str(s) for s in sizes])
        ax.minorticks_off()
    axes[0].set_ylabel("distance from the optimum, %")
    axes[0].set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _rows(path: Path) -> np.ndarray:
    with np.load(path) as archive:
        X = archive["X"].reshape(len(archive["X"]), -1).astype(np.float64)
    chosen = np.random.default_rng(0).permutation(len(X))[:_ROWS]
    return X[chosen] / 255 if path.stem == "mnist" else X[chosen]


def _gaps(X: np.ndarray, kernel: RBF, m: int, sizes: list[int]) -> tuple[np.ndarray, float]:
    gaps = []
    for s in sizes:
        rng = np.random.default_rng(0)
        problem = KernelProblem(ArraySource(X), Count(_K), kernel=kernel, rng=rng)
        evidence = refine(problem, Subset(m).fit(problem), s).evidence
        gaps.append(float(evidence.gap))
    return np.array(gaps), float(evidence.explained)
