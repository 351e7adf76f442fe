"""Images denoised by kernel PCA on a basis: washizawa §6.5, Tables 7 and 8, Fig. 7."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from scipy.ndimage import median_filter
from scipy.signal import wiener

from mercer import PCA, KernelPCA, SaltAndPepper
from mercer.estimators.noise import add_noise, reconstruction
from mercer.kernels import RBF
from mercer.landmarks import KMeans
from mercer.methods import Reduced, Subset
from mercer.preimage import FixedPoint
from papers.data import Array, load
from papers.results import Line, Result

MAIN = (0, 4)
"""The places of the noises that must be shown, among those below."""
GAUSSIAN, PEPPER = (50, 20, 80, 100), (0.2, 0.05, 0.1, 0.4)
# From the source's choice, which is linear PCA, to the end of its grid.
LOG_C = (-5.1, -3.4, -3.0, -2.8, -2.6, -2.4, -2.2, -2.0)
# Beyond that end, of the noise with this place.
NARROWER, LAST = (-1.6, -1.3), 7
AXES = (20, 40, 70, 100, 120, 145, 170, 200, 300, 400, 500, 700, 850, 1000)
# Beyond the first c, as many axes at least as this share of the points.
MOST = 0.4
SHOWN = 100
LIMITS = {
    ("SubKp", 500, "centroids", "σ = 50"): 1.03 * 3.64,
    ("SubKp", 500, "nearest", "σ = 50"): 1.03 * 3.64,
    ("SubKp", 1000, "centroids", "σ = 50"): 1.03 * 3.20,
}
# A line a way: σ = 50, 20, 80, 100 of Table 7, then p = 0.2, 0.05, 0.1, 0.4 of Table 8.
PRINTED = {
    ("SubKp", 100): "4.64 ± 1.49, 3.38 ± 1.37, 6.73 ± 1.70, 8.33 ± 2.17, "
    "10.07 ± 2.16, 4.73 ± 1.51, 6.45 ± 1.73, 18.11 ± 3.06",
    ("RKp", 100): "4.71 ± 1.51, 3.48 ± 1.42, 6.80 ± 1.74, 8.55 ± 2.11, "
    "10.51 ± 2.30, 4.79 ± 1.54, 6.52 ± 1.72, 18.80 ± 3.30",
    ("SubKp", 500): "3.64 ± 0.82, 0.99 ± 0.24, 6.22 ± 1.43, 7.95 ± 1.91, "
    "9.66 ± 2.02, 3.61 ± 1.00, 5.73 ± 1.34, 17.87 ± 2.95",
    ("RKp", 500): "3.73 ± 0.81, 1.01 ± 0.27, 6.39 ± 1.51, 8.14 ± 2.01, "
    "10.04 ± 2.13, 3.72 ± 1.00, 6.00 ± 1.39, 18.31 ± 3.05",
    ("SubKp", 1000): "3.20 ± 0.83, 0.93 ± 0.22, 5.11 ± 1.67, 6.18 ± 2.02, "
    "7.93 ± 2.22, 3.22 ± 0.98, 4.99 ± 1.46, 13.58 ± 4.72",
    ("RKp", 1000): "3.27 ± 0.87, 0.94 ± 0.20, 5.49 ± 1.60, 7.18 ± 1.88, "
    "8.78 ± 2.22, 3.25 ± 1.00, 5.15 ± 1.53, 18.21 ± 2.96",
    ("Wiener", 0): "3.14 ± 0.81, 0.88 ± 0.24, 5.49 ± 1.43, 7.01 ± 1.84, "
    "8.93 ± 1.72, 3.15 ± 0.87, 5.15 ± 1.17, 17.07 ± 2.61",
    ("median", 0): "–, –, –, –, 7.36 ± 2.45, 3.26 ± 1.44, 4.34 ± 1.70, 21.78 ± 5.62",
}
TEXT = """Pixels from 0 to 1, RBF exp(−c‖x−y‖²), centred; noise is added and not cut off; pre-images
by Mika's fixed point from the nearest point of the basis until they stand still; then
pixels are cut off at 0 and 1. Errors are E_MSE (49) over {test} test images, pixels from
0 to 255, in units of 10⁵, ± their standard deviation over the images. The axes are learnt
from {train} training images; c and r (and windows) are those of least error on {held}
others (the best four on an eighth of them, then on all), with c among 10^({grid}), r from
20 to m, and of at least 0.4 m beyond the first c; the source tries more. FoE and BM3D are
not run again.

"Wiener" is μ + C(C + s²I)⁻¹(x − μ) with the mean and covariance of the training images and the
variance s² of the noise: it has the source's figures, where SciPy's local filter has not.

The source's basis must be the centroids: on the images nearest to them no c and r comes near its
3.20 (what is best there is linear PCA, which c = 10^−5.1 is). Its SubKp (500) has nearly the
figures of our linear PCA in every column but σ = 20: it seems not to have tried c near 10^−2.6 with
all axes there, which is better. Its 13.58 ± 4.72 for p = 0.4 is out of reach within its own grid of
c, which ends at 10^−2; beyond it the error goes on falling: a line has larger c. On 100 points ours
are worse where there is little noise and better where there is much; no c and r of the grid gives
the printed ones.

The median filter has the source's figures at p = 0.05 and 0.1, and lower ones at 0.2 and 0.4:
pixels beyond the border are 0 here; reflected borders, other windows, or flips to white and black
one after the other do not give all four."""


Way = Callable[[Array], Array]


@dataclass
class Noise:
    """A kind of noise, with the validation and test images that have it."""

    name: str
    place: int
    held: Array
    test: Array


@dataclass
class Denoised:
    """Test images by the best candidate, named, with their errors; the first images are kept."""

    images: Array
    errors: Array
    chosen: str

    @property
    def mean(self) -> float:
        """E_MSE, in the source's units."""
        return float(self.errors.mean())


@dataclass
class Bench:
    """Clean images: to learn from, to choose by, to test with; and their noises."""

    train: Array
    held: Array
    test: Array

    def noises(self, quick: bool) -> list[Noise]:
        """Return the kinds of noise, in the order of what is printed."""
        kinds: list[tuple[str, Any]] = [(f"σ = {s}", s / 255.0) for s in GAUSSIAN]
        kinds += [(f"p = {p}", SaltAndPepper(p)) for p in PEPPER]
        made = []
        for place, (name, amount) in enumerate(kinds):
            if place in MAIN or not quick:
                rng = np.random.default_rng(place)
                noisy = (add_noise(amount, clean, rng) for clean in (self.held, self.test))
                made.append(Noise(name, place, *noisy))
        return made

    def best(self, ways: dict[str, Way], noise: Noise) -> Denoised:
        """Choose by an eighth of the validation images, and among the best four by all."""

        def error(name: str, count: int) -> float:
            return float(errors(ways[name](noise.held[:count]), self.held[:count]).mean())

        few, all_ = max(1, len(self.held) // 8), len(self.held)
        near = sorted(ways, key=lambda name: error(name, few))[:4]
        name = min(near, key=lambda name: error(name, all_)) if len(near) > 1 else near[0]
        made = np.clip(ways[name](noise.test), 0.0, 1.0)
        return Denoised(made[:SHOWN], errors(made, self.test), name)


Found = dict[tuple[str, int, str, str], Denoised]


def run(quick: bool) -> Result:
    """Return the tables; of bases of nearest images only the two noises that must be shown."""
    bench, noises = images(quick), kinds(quick)
    sizes, jobs = ((60,), 1) if quick else ((1000, 500, 100), 2)
    found: Found = {}
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=None if quick else 1):
        pairs = [(m, basis) for m in sizes for basis in ("centroids", "nearest")]
        bases = Parallel()(delayed(points)(m, basis, quick) for m, basis in pairs)
        tasks = (
            delayed(by_kernel)(name, Y, basis, quick)
            for (_, basis), Y in zip(pairs, bases, strict=True)
            for name in ("SubKp", "RKp")
        )
        for part in Parallel()(tasks):
            found |= part
    found |= by_others(quick)
    counts = {"test": len(bench.test), "train": len(bench.train), "held": len(bench.held)}
    return Result(
        "Denoising of MNIST (washizawa §6.5, Tables 7 and 8, Fig. 7): mean squared errors / 10⁵",
        lines(found, noises),
        gallery(bench, noises, found),
        TEXT.format(**counts, grid=", ".join(f"{x:g}" for x in LOG_C)),
        seeds="validation images 0, bases 0, noises 0 to 7 by their column",
    )


@functools.cache
def images(quick: bool) -> Bench:
    """Return pixels from 0 to 1; the validation images are drawn from the training set."""
    data = load("mnist")
    learnt, held, test = (1500, 60, 100) if quick else (59_500, 500, 10_000)
    order = np.random.default_rng(0).permutation(len(data["X"]))[: learnt + held]
    X = data["X"][order] / 255.0
    return Bench(X[held:], X[:held], data["X_test"][:test] / 255.0)


@functools.cache
def kinds(quick: bool) -> list[Noise]:
    """Return the noises of those images."""
    return images(quick).noises(quick)


def errors(made: Array, clean: Array) -> Array:
    """Return the squared error of every image, pixels cut off."""
    apart = np.clip(made, 0.0, 1.0) - clean
    return np.einsum("ij,ij->i", apart, apart) * 255.0**2 / 1e5


def points(m: int, basis: str, quick: bool) -> Array:
    """Return a basis; it does not depend on the kernel, so that any c gives it."""
    select = KMeans(nearest=basis == "nearest")
    model = KernelPCA(1, kernel=RBF(0.01), method=Subset(m, select=select), random_state=0)
    made: Array = model.fit(images(quick).train.astype(np.float32)).X_fit_.astype(np.float64)
    return made


def by_kernel(name: str, Y: Array, basis: str, quick: bool) -> Found:
    """Return SubKp or RKp on a basis."""
    bench, m, found = images(quick), len(Y), Found()
    ways = candidates(name, Y, (-5.1, -2.6) if quick else LOG_C, quick)
    for noise in kinds(quick):
        if basis == "centroids" or noise.place in MAIN:
            found[name, m, basis, noise.name] = result = bench.best(ways, noise)
            told = f"{result.mean:.3f}, {result.chosen}"
            print(f"  {name} ({m}) {basis}, {noise.name}: {told}", flush=True)
        if (noise.place, name, m, basis) == (LAST, "SubKp", 1000, "centroids"):
            further = candidates(name, Y, NARROWER, quick)
            found[f"{name}, c > 10^-2", m, basis, noise.name] = bench.best(further, noise)
    return found


def candidates(name: str, Y: Array, grid: tuple[float, ...], quick: bool) -> dict[str, Way]:
    """Return a method on a basis with every c and r; a fit for every c serves all r and noises."""
    m, ways = len(Y), dict[str, Way]()
    method, rows = (Subset, images(quick).train) if name == "SubKp" else (Reduced, Y)
    for log_c in grid:
        model = KernelPCA(
            m, kernel=RBF(10.0**log_c), method=method(select=Y), preimage=FixedPoint(tol=1e-3)
        )
        with warnings.catch_warnings():  # fewer axes than points have a variance
            warnings.simplefilter("ignore", UserWarning)
            model.fit(rows)
        least = MOST * m if log_c > LOG_C[0] else 0
        for r in sorted({min(r, model.n_components_) for r in (*AXES, m) if least <= r <= m}):
            ways[f"c = 10^{log_c:g}, r = {r}"] = reconstruction(model, r)
    return ways


def by_others(quick: bool) -> Found:
    """Return linear PCA, the linear Wiener filter, and the local filters."""
    bench = images(quick)
    pca = PCA(100 if quick else 400).fit(bench.train)
    mean, C = bench.train.mean(axis=0), np.cov(bench.train.T)
    axes = {f"r = {r}": reconstruction(pca, r) for r in AXES if r <= pca.n_components_}
    found: Found = {}
    for noise in kinds(quick):
        s2 = float(np.mean((noise.held - bench.held) ** 2))
        W = np.linalg.solve(C + s2 * np.eye(len(C)), C)
        families: dict[str, dict[str, Way]] = {
            "linear PCA": axes,
            "Wiener": {"": lambda rows, W=W: mean + (rows - mean) @ W},
            "local Wiener": {
                f"{w}×{w}{', s² known' if power else ''}": filtered(
                    lambda image, w=w, power=power: wiener(image, w, power)
                )
                for w in (3, 5)
                for power in (None, s2)
            },
            "median": {
                f"{w}×{w}": filtered(lambda image, w=w: median_filter(image, w, mode="constant"))
                for w in (3, 5)
            },
        }
        for name, ways in families.items():
            found[name, 0, "", noise.name] = bench.best(ways, noise)
    return found


def filtered(local: Callable[[Array], Array]) -> Way:
    """Return a filter of one image as a map of rows."""

    def way(rows: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            made = [local(image) for image in rows.reshape(-1, 28, 28)]
        # SciPy's Wiener filter divides by the variance, which is 0 where all is black.
        return np.nan_to_num(np.stack(made)).reshape(rows.shape)

    return way


def lines(found: Found, noises: list[Noise]) -> list[Line]:
    """Return a line for every figure, noise by noise, and what must hold of them."""
    made = []
    for noise in noises:
        for (name, m, basis, of), result in found.items():
            if of == noise.name:
                printed = PRINTED.get((name, m), 8 * "–, ").split(", ")[noise.place]
                what = f"{noise.name}: {name}" + (f" ({m}), {basis}" if m else "")
                bound = LIMITS.get((name, m, basis, of))
                spread = float(result.errors.std())
                made.append(
                    Line(what, result.mean, printed, bound, spread=spread, note=result.chosen)
                )
        for m in (500, 1000):
            for basis in ("nearest", "centroids"):
                pair = [found.get((name, m, basis, noise.name)) for name in ("SubKp", "RKp")]
                if pair[0] is not None and pair[1] is not None and noise.place in MAIN:
                    cells = (PRINTED[name, m].split(", ")[noise.place] for name in ("SubKp", "RKp"))
                    a, b = (float(cell.split()[0]) for cell in cells)
                    most = 1.0 if basis == "nearest" else None
                    ratio = pair[0].mean / pair[1].mean
                    what = f"{noise.name}: SubKp / RKp ({m}), {basis}"
                    made.append(Line(what, ratio, f"{a:.2f} / {b:.2f}", most, form=".3f"))
    return made


def gallery(bench: Bench, noises: list[Noise], found: Found) -> Any:
    """Draw Fig. 7, the first digits with Gaussian noise; and a few with salt and pepper."""
    from matplotlib.figure import Figure

    figure = Figure((11.0, 6.3), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.2, 1.0))
    m = max(key[1] for key in found)
    gauss, pepper = (noise for noise in noises if noise.place in MAIN)
    ways = [(name, m, "centroids") for name in ("SubKp", "RKp")]
    pictures = {"original": bench.test, f"noisy, {gauss.name}": gauss.test}
    for way in ways:
        result = found[*way, gauss.name]
        pictures[f"{way[0]} ({m}): {result.mean:.2f}"] = result.images
    for ax, (title, rows) in zip(left.subplots(2, 2).ravel(), pictures.items(), strict=True):
        _show(ax, rows[:SHOWN].reshape(-1, 10, 28, 28).transpose(0, 2, 1, 3).reshape(-1, 280))
        ax.set_title(title, fontsize=9)
    lines = {"original": bench.test, f"noisy,\n{pepper.name}": pepper.test}
    for way in [*ways, ("linear PCA", 0, ""), ("Wiener", 0, ""), ("median", 0, "")]:
        result = found[*way, pepper.name]
        lines[f"{way[0]}{f' ({m})' if way[1] else ''}\n{result.mean:.2f}"] = result.images
    for ax, (title, rows) in zip(right.subplots(len(lines), 1), lines.items(), strict=True):
        _show(ax, rows[:8].reshape(8, 28, 28).transpose(1, 0, 2).reshape(28, -1))
        ax.set_ylabel(title, rotation=0, ha="right", va="center", fontsize=8.5)
    return figure


def _show(ax: Any, image: Array) -> None:
    # Sixteen greys: noise in all shades makes the picture thrice as large.
    ax.imshow(np.round(15 * np.clip(image, 0, 1)), cmap="gray_r", vmin=0, vmax=15, aspect="equal")
    ax.images[0].set_interpolation("nearest")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(color="#cccccc", linewidth=0.5)
