"""Noise removed by kernel PCA: from images of digits, and from points of a ring.

``python examples/denoise.py [-o picture.png]`` takes the 8×8 digits that ship with scikit-learn;
``--mnist`` the 28×28 digits of mnist.npz in the folder MERCER_DATA.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import median_filter
from sklearn.datasets import load_digits

from mercer import PCA, Denoiser, KernelPCA, SaltAndPepper
from mercer.landmarks import KMeans
from mercer.methods import Subset
from mercer.preimage import FixedPoint

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GREY, BLUE, ORANGE = "#8c8c8c", "#0072b2", "#d55e00"
SHOWN = 7


@dataclass
class Digits:
    """Clean images, pixels from 0 to 1: to learn from, and to test with."""

    train: np.ndarray
    test: np.ndarray
    basis: int

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of an image."""
        return self.train.shape[1:]


@dataclass
class Result:
    """What one way made of noisy images, and what it had chosen."""

    way: str
    images: np.ndarray
    chosen: str
    seconds: float


def main(arguments: list[str] | None = None) -> None:
    """Denoise, print the errors, draw a picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--mnist", action="store_true", help="28×28 digits of mnist.npz")
    parser.add_argument("--rows", type=int, default=None, help="images to learn from")
    parser.add_argument("-o", "--output", type=Path, default=Path("denoise.png"))
    options = parser.parse_args(arguments)
    if not options.output.resolve().parent.is_dir():
        parser.error(f"there is no folder {options.output.parent}")
    try:
        digits = mnist(options.rows) if options.mnist else bundled(options.rows)
    except FileNotFoundError as absent:
        parser.error(str(absent))
    found = {}
    for title, noise in (
        ("Gaussian, σ = 0.25", 0.25),
        ("salt and pepper, p = 0.2", SaltAndPepper(0.2)),
    ):
        noisy = with_noise(digits.test, noise)
        found[title] = [Result("noisy", noisy, "", 0.0), *denoised(digits, noisy, noise)]
        report(title, digits, found[title])
    points = ring()
    picture(digits, found, points).savefig(options.output, dpi=130)
    print(f"\n{options.output} shows some of them.")


def bundled(rows: int | None) -> Digits:
    """Return scikit-learn's digits."""
    images = load_digits().images / 16.0
    images = images[np.random.default_rng(0).permutation(len(images))]
    train = images[: min(rows or 1400, 1400)]
    return Digits(train, images[-300:], min(400, len(train) // 2))


def mnist(rows: int | None) -> Digits:
    """Return digits of MNIST, from the folder MERCER_DATA."""
    path = Path(os.environ.get("MERCER_DATA", ".")) / "mnist.npz"
    if not path.is_file():
        raise FileNotFoundError(
            "there is no mnist.npz with arrays X and X_test in the folder that MERCER_DATA names. "
            "Without --mnist the digits of scikit-learn are taken."
        )
    with np.load(path) as archive:
        train, test = archive["X"][: rows or 8000], archive["X_test"][:300]
    train, test = (part.reshape(-1, 28, 28) / 255.0 for part in (train, test))
    return Digits(train, test, min(500, len(train) // 2))


def with_noise(images: np.ndarray, noise: Any) -> np.ndarray:
    """Return images with noise, the same every time."""
    rng = np.random.default_rng(1)
    if callable(noise):
        return noise(images, rng)
    return images + noise * rng.standard_normal(images.shape)


def denoised(digits: Digits, noisy: np.ndarray, noise: Any) -> list[Result]:
    """Return what kernel PCA, PCA and a median filter make of noisy images."""
    # Centres of clusters are smooth themselves: fewer points than rows, and less noise in them.
    kernel = KernelPCA(
        kernel="rbf",
        method=Subset(digits.basis, select=KMeans(nearest=False)),
        preimage=FixedPoint(tol=1e-4),
        random_state=0,
    )
    scale = digits.basis / 8, np.prod(digits.shape) / 64
    candidates = {
        "kernel PCA": Denoiser(
            kernel,
            n_components=[int(scale[0] * eighths) for eighths in (1, 2, 4, 8)],
            gamma=[gamma / scale[1] for gamma in (0.02, 0.06, 0.15, 0.4, 1.0)],
        ),
        "PCA": Denoiser(PCA(), n_components=list(range(4, min(120, digits.shape[0] ** 2), 4))),
    }
    results = []
    for way, denoiser in candidates.items():
        start = time.perf_counter()
        denoiser.set_params(
            noise=noise, limits=(0, 1), image_shape=digits.shape, random_state=0, validation=0.1
        )
        made = denoiser.fit(digits.train).transform(noisy)
        chosen = f"{denoiser.n_components_} axes"
        chosen += f", γ = {denoiser.gamma_:.2g}" if denoiser.gamma_ else ""
        results.append(Result(way, made, chosen, time.perf_counter() - start))
    start = time.perf_counter()
    made = np.clip(median_filter(noisy, (1, 3, 3), mode="constant"), 0, 1)
    return [*results, Result("median", made, "3 × 3", time.perf_counter() - start)]


def error(made: np.ndarray, clean: np.ndarray) -> float:
    """Return the mean squared error of pixels, in thousandths."""
    return 1e3 * float(np.mean((made - clean) ** 2))


def report(title: str, digits: Digits, results: list[Result]) -> None:
    """Print what every way left of the noise."""
    print(f"\n{title}: {len(digits.test)} digits of {digits.shape[0]}×{digits.shape[1]} pixels\n")
    print(f"{'':12}{'error × 1000':>13}  {'seconds':>7}  chosen on digits held out")
    for result in results:
        line = f"{result.way:12}{error(result.images, digits.test):13.1f}"
        print(line + (f"  {result.seconds:7.1f}  {result.chosen}" if result.chosen else ""))


def ring() -> tuple[np.ndarray, np.ndarray, str]:
    """Return noisy points of a circle, and where they are put; k and γ by the points alone."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 400)
    clean = np.column_stack([np.cos(angle), np.sin(angle)])
    noisy = clean + 0.15 * rng.standard_normal(clean.shape)
    denoiser = Denoiser(
        n_components=[2, 4, 6, 8],
        gamma=[0.2, 0.5, 1.0, 2.0],
        noise=0.15,
        noisy=True,
        validation=0.3,
        random_state=0,
    )
    made = denoiser.fit(noisy).transform(noisy)
    chosen = f"{denoiser.n_components_} axes, γ = {denoiser.gamma_:.2g}"
    far = [float(np.abs(np.linalg.norm(x, axis=1) - 1).mean()) for x in (noisy, made)]
    print(
        f"\nring of 400 points, σ = 0.15: {far[0]:.3f} from the circle on average, "
        f"denoised {far[1]:.3f}\n({chosen}, chosen without a clean point: Stein's estimate)"
    )
    return noisy, made, chosen


def picture(digits: Digits, found: dict[str, list[Result]], points: Any) -> Figure:
    """Draw digits of both noises, a row a way, and the ring beside them."""
    from matplotlib.figure import Figure

    figure = Figure((13.0, 4.9), layout="constrained")
    panels = figure.subfigures(1, 3, width_ratios=[1, 1, 0.72], wspace=0.02)
    for panel, (title, results) in zip(panels, found.items(), strict=False):
        panel.suptitle(title, fontsize=11)
        rows = [Result("original", digits.test, "", 0.0), *results]
        axes = panel.subplots(len(rows), SHOWN)
        for line, result in zip(axes, rows, strict=True):
            for i, ax in enumerate(line):
                ax.imshow(result.images[i], cmap="gray_r", vmin=0, vmax=1)
                ax.set(xticks=[], yticks=[])
                ax.spines[:].set(color="#d0d0d0", linewidth=0.6)
                if result.way != "original":
                    label = f"{error(result.images[i], digits.test[i]):.0f}"
                    ax.set_xlabel(label, fontsize=7, color=GREY, labelpad=1.5)
            mean = f"\n{error(result.images, digits.test):.1f}" if result.way != "original" else ""
            bold = "bold" if result.way == "kernel PCA" else "normal"
            line[0].set_ylabel(
                result.way + mean,
                rotation=0,
                ha="right",
                va="center",
                fontsize=9,
                labelpad=6,
                fontweight=bold,
            )
    draw_ring(panels[2], points)
    figure.supxlabel("mean squared error × 1000, of each image and of all", fontsize=8, color=GREY)
    return figure


def draw_ring(panel: Any, points: Any) -> None:
    """Draw noisy points, where each was put, and the circle they came from."""
    noisy, made, chosen = points
    panel.suptitle("points of a circle, σ = 0.15", fontsize=11)
    ax = panel.subplots()
    turn = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(turn), np.sin(turn), color=ORANGE, linewidth=1.2, label="circle", zorder=1)
    lines = np.stack([noisy, made], axis=1)
    for line in lines:
        ax.plot(*line.T, color="#dddddd", linewidth=0.5, zorder=0)
    ax.scatter(*noisy.T, s=7, color="#b0b0b0", linewidths=0, label="noisy", zorder=2)
    ax.scatter(*made.T, s=9, color=BLUE, linewidths=0, label="denoised", zorder=3)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.set_xlabel(chosen, fontsize=8, color=GREY)
    ax.spines[:].set(color="#d0d0d0", linewidth=0.6)
    ax.legend(fontsize=8, frameon=False, loc="center")


if __name__ == "__main__":
    sys.exit(main())
