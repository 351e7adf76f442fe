"""Images denoised by kernel PCA on a basis: washizawa §6.5, Tables 7 and 8, Fig. 7."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import median_filter
from scipy.signal import wiener

from mercer import PCA, KernelPCA, SaltAndPepper
from mercer.estimators.noises import noisy_rows
from mercer.estimators.variants import first_axes
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
AXES = (20, 40, 70, 100, 120, 145, 170, 200, 300, 400, 500, 700, 850, 1000)
LIMITS = {
    ("SubKp", 500, "centroids", "σ = 50"): 1.03 * 3.64,
    ("SubKp", 500, "nearest", "σ = 50"): 1.03 * 3.64,
    ("SubKp", 1000, "centroids", "σ = 50"): 1.03 * 3.20,
}
PRINTED = {
    ("SubKp", 100): "4.64 3.38 6.73 8.33 10.07 4.73 6.45 18.11",
    ("RKp", 100): "4.71 3.48 6.80 8.55 10.51 4.79 6.52 18.80",
    ("SubKp", 500): "3.64 0.99 6.22 7.95 9.66 3.61 5.73 17.87",
    ("RKp", 500): "3.73 1.01 6.39 8.14 10.04 3.72 6.00 18.31",
    ("SubKp", 1000): "3.20 0.93 5.11 6.18 7.93 3.22 4.99 13.58",
    ("RKp", 1000): "3.27 0.94 5.49 7.18 8.78 3.25 5.15 18.21",
    ("Wiener", 0): "3.14 0.88 5.49 7.01 8.93 3.15 5.15 17.07",
    ("median", 0): "– – – – 7.36 3.26 4.34 21.78",
}
TEXT = """Pixels from 0 to 1, RBF exp(−c‖x−y‖²), centred; noise is added and not cut off;
pre-images by Mika's fixed point from the nearest point of the basis until they stand still; then
pixels are cut off at 0 and 1. Errors are E_MSE (49) over {test} test images, pixels from 0 to 255,
in units of 10⁵, ± their standard deviation over the images. The axes are learnt from {train}
training images; c and r (and windows) are those of least error on {held} others, with c among
10^({grid}), r from 20 to m. "Wiener" is μ + C(C + s²I)⁻¹(x − μ) with the mean and covariance of the
training images and the variance s² of the noise: it has the source's figures, where SciPy's local
filter has not. The source's basis must be the centroids: on the images nearest to them no c and r
comes near its 3.20 (what is best there is linear PCA, which c = 10^−5.1 is)."""


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
    """Test images by the best candidate, named, with their errors."""

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
                noisy = (noisy_rows(amount, clean, rng) for clean in (self.held, self.test))
                made.append(Noise(name, place, *noisy))
        return made

    def best(self, ways: dict[str, Way], noise: Noise) -> Denoised:
        """Choose by a fifth of the validation images, and among the best six by all."""

        def error(name: str, count: int) -> float:
            return float(errors(ways[name](noise.held[:count]), self.held[:count]).mean())

        few, all_ = max(1, len(self.held) // 5), len(self.held)
        near = sorted(ways, key=lambda name: error(name, few))[:6]
        name = min(near, key=lambda name: error(name, all_)) if len(near) > 1 else near[0]
        made = np.clip(ways[name](noise.test), 0.0, 1.0)
        return Denoised(made, errors(made, self.test), name)


Found = dict[tuple[str, int, str, str], Denoised]


def run(quick: bool) -> Result:
    """Return the tables; of bases of nearest images only the two noises that must be shown."""
    bench = images(quick)
    noises = bench.noises(quick)
    found: Found = {}
    for m in (60,) if quick else (1000, 500, 100):
        for basis in ("centroids", "nearest"):
            on = [noise for noise in noises if basis == "centroids" or noise.place in MAIN]
            found |= by_kernel(bench, on, m, basis, (-5.1, -2.6) if quick else LOG_C)
    for noise in noises:
        found |= by_others(bench, noise, quick)
    sizes = {"test": len(bench.test), "train": len(bench.train), "held": len(bench.held)}
    return Result(
        "Denoising of MNIST (washizawa §6.5, Tables 7 and 8): mean squared errors / 10⁵",
        lines(found, noises),
        gallery(bench, [noise for noise in noises if noise.place in MAIN], found),
        TEXT.format(**sizes, grid=", ".join(f"{x:g}" for x in LOG_C)),
    )


def images(quick: bool) -> Bench:
    """Return pixels from 0 to 1; the validation images are drawn from the training set."""
    data = load("mnist")
    learnt, held, test = (1500, 60, 100) if quick else (59_500, 500, 10_000)
    order = np.random.default_rng(0).permutation(len(data["X"]))[: learnt + held]
    X = data["X"][order] / 255.0
    return Bench(X[held:], X[:held], data["X_test"][:test] / 255.0)


def errors(made: Array, clean: Array) -> Array:
    """Return the squared error of every image, pixels cut off."""
    apart = np.clip(made, 0.0, 1.0) - clean
    return np.einsum("ij,ij->i", apart, apart) * 255.0**2 / 1e5


def by_kernel(bench: Bench, noises: list[Noise], m: int, basis: str, grid: Any) -> Found:
    """Return SubKp and RKp on one basis; a fit for every c serves all r and noises."""
    rule = KMeans(nearest=basis == "nearest")
    # The basis does not depend on the kernel: any c gives it.
    first = KernelPCA(1, kernel=RBF(0.01), method=Subset(m, select=rule), random_state=0)
    Y = first.fit(bench.train.astype(np.float32)).X_fit_.astype(np.float64)
    found: Found = {}
    for name, method, rows in (("SubKp", Subset, bench.train), ("RKp", Reduced, Y)):
        ways: dict[str, Way] = {}
        for log_c in grid:
            model = KernelPCA(
                m, kernel=RBF(10.0**log_c), method=method(select=Y), preimage=FixedPoint(tol=1e-4)
            )
            with warnings.catch_warnings():  # fewer axes than points have a variance
                warnings.simplefilter("ignore", UserWarning)
                model.fit(rows)
            for r in sorted({min(r, model.n_components_) for r in (*AXES, m) if r <= m}):
                ways[f"c = 10^{log_c:g}, r = {r}"] = first_axes(model, r).reconstruct
        for noise in noises:
            found[name, m, basis, noise.name] = result = bench.best(ways, noise)
            print(f"{name} ({m}) {basis}, {noise.name}: {result.mean:.3f}, {result.chosen}")
    return found


def by_others(bench: Bench, noise: Noise, quick: bool) -> Found:
    """Return linear PCA, the linear Wiener filter, and the local filters."""
    pca = PCA(100 if quick else 300).fit(bench.train)
    s2 = float(np.mean((noise.held - bench.held) ** 2))
    mean, C = bench.train.mean(axis=0), np.cov(bench.train.T)
    W = np.linalg.solve(C + s2 * np.eye(len(C)), C)
    local: dict[str, Way] = {}
    for window in (3, 5):
        local[f"{window}×{window}"] = filtered(lambda image, w=window: wiener(image, w))
        local[f"{window}×{window}, s² known"] = filtered(
            lambda image, w=window: wiener(image, w, s2)
        )
    families: dict[str, dict[str, Way]] = {
        "linear PCA": {
            f"r = {r}": first_axes(pca, r).reconstruct for r in AXES if r <= pca.n_components_
        },
        "Wiener": {"": lambda rows: mean + (rows - mean) @ W},
        "local Wiener": local,
        "median": {
            f"{w}×{w}": filtered(lambda image, w=w: median_filter(image, w, mode="constant"))
            for w in (3, 5)
        },
    }
    return {(name, 0, "", noise.name): bench.best(ways, noise) for name, ways in families.items()}


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
                printed = PRINTED.get((name, m), "– – – – – – – –").split()[noise.place]
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
                    a, b = (
                        float(PRINTED[name, m].split()[noise.place]) for name in ("SubKp", "RKp")
                    )
                    most = 1.0 if basis == "nearest" else None
                    ratio = pair[0].mean / pair[1].mean
                    what = f"{noise.name}: SubKp / RKp ({m}), {basis}"
                    made.append(Line(what, ratio, f"{a / b:.3f}", most, form=".3f"))
    return made


def gallery(bench: Bench, noises: list[Noise], found: Found) -> Any:
    """Draw digits as in Fig. 7: a column a digit, a row a way, a panel a noise."""
    from matplotlib.figure import Figure

    figure = Figure((11.0, 0.78 * 6 + 0.9), layout="constrained")
    m = max(key[1] for key in found)
    for panel, noise in zip(figure.subfigures(1, len(noises)), noises, strict=True):
        rows = {"original": bench.test, "noisy": np.clip(noise.test, 0, 1)}
        for name, size, basis in (
            ("SubKp", m, "centroids"),
            ("RKp", m, "centroids"),
            ("linear PCA", 0, ""),
            ("median", 0, ""),
        ):
            result = found[name, size, basis, noise.name]
            rows[f"{name}{f' ({size})' if size else ''}\n{result.mean:.2f}"] = result.images
        kind = "Gaussian" if noise.name.startswith("σ") else "salt and pepper"
        panel.suptitle(f"{kind}, {noise.name}", fontsize=11)
        axes = panel.subplots(len(rows), 8)
        for line, (name, pictures) in zip(axes, rows.items(), strict=True):
            for ax, picture in zip(line, pictures, strict=False):
                ax.imshow(picture.reshape(28, 28), cmap="gray_r", vmin=0, vmax=1)
                ax.set(xticks=[], yticks=[])
                ax.spines[:].set(color="#cccccc", linewidth=0.5)
            line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8.5)
    return figure
