"""What Mercer does, in half a minute: plans, fits, a spectrum, certificates, noise removed.

Run with ``make demo``. The data ship with scikit-learn.
"""

from __future__ import annotations

import numpy as np
import sklearn.decomposition
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

import mercer
from mercer.kernels import RBF

console = Console(highlight=False)


def main() -> None:
    """Show the main job, and the digits that go wrong elsewhere."""
    X = load_digits().data
    console.rule("[bold]1797 handwritten digits, 8 × 8 pixels")
    pca = mercer.PCA(0.9)
    console.print("\n[bold]pca = mercer.PCA(0.9); pca.plan(X)[/]   what it is going to do\n")
    console.print(str(pca.plan(X)))
    console.print("\n[bold]pca.fit(X)[/]   with config_context(progress=True)\n")
    with mercer.config_context(progress=True):
        pca.fit(X)
    console.print(f"\n[bold]pca.explained_variance_ratio_[/]   {pca.n_components_} axes\n")
    spectrum(pca)
    console.print("\n[bold]pca.certificate_[/]   how far from the best it can be\n")
    console.print(str(pca.certificate_))
    console.print()
    wrong_digits(X)
    console.print()
    noise_removed(X / 16)


def spectrum(pca: mercer.PCA) -> None:
    """Draw the share of every axis as a bar."""
    shares = pca.explained_variance_ratio_
    table = Table(box=None, pad_edge=False)
    for name in ("axis", "share", "together"):
        table.add_column(name, justify="right")
    table.add_column("")
    for i, (share, sum_) in enumerate(zip(shares, np.cumsum(shares), strict=True), start=1):
        bar = "█" * round(300 * share)
        table.add_row(str(i), f"{100 * share:.2f} %", f"{100 * sum_:.1f} %", f"[cyan]{bar}")
    console.print(table)


def wrong_digits(X: np.ndarray) -> None:
    """Shift float32 data by a constant, which moves no axis, and compare the eigenvalues."""
    console.rule("[bold]The same digits as float32, plus a constant")
    console.print("\nA constant moves no axis. Largest relative error of 10 eigenvalues:\n")
    truth = mercer.PCA(10).fit(X).explained_variance_
    table = Table(box=None, pad_edge=False)
    table.add_column("constant", justify="right")
    table.add_column("scikit-learn", justify="right")
    table.add_column("Mercer", justify="right")
    for constant in (0.0, 1e3, 1e4):
        shifted = (X + constant).astype(np.float32)
        errors = [
            np.abs(PCA(10).fit(shifted).explained_variance_ / truth - 1).max()
            for PCA in (sklearn.decomposition.PCA, mercer.PCA)
        ]
        peer = f"[red]{100 * errors[0]:.2g} %" if errors[0] > 1e-3 else f"{100 * errors[0]:.2g} %"
        table.add_row(f"{constant:g}", peer, f"{100 * errors[1]:.2g} %")
    console.print(table)


def noise_removed(X: np.ndarray) -> None:
    """Fit kernel PCA to clean digits, and take noisy ones to their pre-images."""
    console.rule("[bold]Kernel PCA of 1500 digits, and noise removed from others")
    clean = X[1500:1504]
    noisy = clean + 0.3 * np.random.default_rng(0).standard_normal(clean.shape)
    kpca = mercer.KernelPCA(60, kernel=RBF(0.05), preimage="distances", random_state=0)
    console.print(f"\n[bold]kpca = {kpca!r}[/]\n")
    console.print(str(kpca.plan(X[:1500])))
    kpca.fit(X[:1500])
    console.print(f"\n{kpca.certificate_.sentence}")
    console.print("\n[bold]kpca.reconstruct(noisy)[/]   the digits, with noise, and without\n")
    found = kpca.reconstruct(noisy)
    for rows in (clean, noisy, found):
        pictures(rows)
    before, after = (((rows - clean) ** 2).mean() for rows in (noisy, found))
    console.print(f"mean squared error {before:.3f} with noise, {after:.3f} without")


def pictures(rows: np.ndarray) -> None:
    """Draw 8 × 8 images side by side in shades, two characters to a pixel."""
    shades = np.array(list(" ░▒▓█"))
    images = shades[(np.clip(rows, 0.0, 0.999) * 5).astype(int)].reshape(-1, 8, 8)
    for line in range(8):
        console.print("   ".join("".join(np.repeat(image[line], 2)) for image in images))
    console.print()


if __name__ == "__main__":
    main()
