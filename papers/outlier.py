"""An image with a dot that the first axes leave out: marukatat §2.6, Fig. 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import PCA
from mercer.estimators.noise import reconstruction
from mercer.methods import Covariance
from papers.data import Array, load
from papers.panels import NOTHING
from papers.results import NONE, Line, Result

ROW, AXES = 29_049, (50, 100, 200)
TEXT = """z-scores of 60 000 images, as in Table 2; the row is that of the authors' published code
(the text names none). Its dot is two pixels: {place} (row {down}, column {across}), {value} of 255,
lit in {lit} of the images, so that its z-score is {z:.1f}; and {below} below, lit in {lit_below}.

What the source says of the figure, measured in grey levels: with 50 axes the dot disappears and the
digit is blurred (sharpness: the hundred steepest steps between neighbours, as a share of the
original's); with more axes it is sharper, with some noise. "On the dark" is the root mean square of
the pixels two or more away from every lit one, which are 0 in the image: mostly the halo of the
blur, and less with more axes. "Speckle" is what of it differs from the median of its 3 × 3
neighbours. With 100 axes there is more of it than with 50, as the source has it; with 200 there is
less, and "some noise" is not what they add.

Not said there: with 100 axes the dot is back. Its two pixels go together. Axes {one} and {two},
with eigenvalues of {value_one:.1f} and {value_two:.1f}, hold {held:.0%} of pixel {place};
{null:.0%} of it lies in the null space, where the two cancel. A pixel by itself has variance 1,
which eigenvalues fall below at place {unit}; two that are lit together have 2 and come well before:
the first axes leave such a dot out only while they are fewer than {one}."""


def run(quick: bool = False) -> Result:
    """Return what is left of the dot, sharpness and noise, and the images."""
    X = load("mnist")["X"]
    some = np.r_[ROW, :3000] if quick else np.arange(len(X))
    pca = PCA(scale=True, svd_solver=Covariance()).fit(X[some].astype(np.float32))
    image = X[ROW].reshape(28, 28).astype(np.float64)
    row = image.reshape(1, -1).astype(np.float32)
    made = {k: reconstruction(pca, k)(row).reshape(28, 28) for k in AXES}
    dot, dark = parts(image)
    lines = []
    for k, picture in made.items():
        few = k == AXES[0]
        left = 100 * float(picture[dot] / image[dot])
        printed = "disappears" if few else "–"
        sharp = 100 * steepest(picture) / steepest(image)
        error = float(np.sqrt(np.mean((picture - image) ** 2)))
        lines += [
            Line(f"{k} axes: dot left, %", left, printed, most=5.0 if few else None, form=".1f"),
            Line(f"{k} axes: sharpness, %", sharp, "blurred" if few else "sharper", form=".0f"),
            Line(f"{k} axes: on the dark", size(picture[dark]), form=".1f"),
            Line(f"{k} axes: error, all pixels", error, form=".1f"),
        ]
    sharp = lines[-3].ours / lines[1].ours
    lines.append(Line("sharpness, 200 axes over 50", sharp, "sharper", least=1.0))
    lines += noise(made, dark)
    text = TEXT.format(**facts(X, image, dot), **axes_of(pca, dot))
    title = "MNIST's outlier and its reconstructions (marukatat Fig. 2)"
    return Result(title, lines, gallery(image, made, dot), text, seeds=NONE)


def size(values: Array) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(values**2)))


def noise(made: dict[int, Array], dark: Array) -> list[Line]:
    """Return the speckle on the dark; the first of more axes must add to it."""
    from scipy.ndimage import median_filter

    few, *more = (size((image - median_filter(image, 3))[dark]) for image in made.values())
    words = (f"{k} axes: speckle on the dark" for k in made)
    return [
        Line(next(words), few, form=".1f"),
        Line(next(words), more[0], "some noise", least=few, form=".1f"),
        Line(next(words), more[1], "some noise", form=".1f"),
    ]


def facts(X: Array, image: Array, dot: tuple[Any, ...]) -> dict[str, Any]:
    """Return what the text says of the dot's pixels."""
    down, across = dot
    place, below = (
        int(np.ravel_multi_index((row, across), image.shape)) for row in (down, down + 1)
    )
    return {
        "place": place,
        "below": below,
        "down": down,
        "across": across,
        "value": int(image[dot]),
        "lit": int((X[:, place] > 0).sum()),
        "lit_below": int((X[:, below] > 0).sum()),
        "z": (image[dot] - X[:, place].mean()) / X[:, place].std(),
    }


def axes_of(pca: PCA, dot: tuple[Any, ...]) -> dict[str, Any]:
    """Return the two axes that hold most of the dot's pixel, and what no axis of variance holds."""
    place = int(np.ravel_multi_index(dot, (28, 28)))
    weights = np.asarray(pca.components_[:, place], np.float64) ** 2
    values = np.asarray(pca.explained_variance_, np.float64)
    rank = int((values > NOTHING * values[0]).sum())
    one, two = np.sort(np.argsort(-weights[:rank])[:2])
    return {
        "one": one + 1,
        "two": two + 1,
        "value_one": values[one],
        "value_two": values[two],
        "held": weights[[one, two]].sum(),
        "null": 1 - weights[:rank].sum(),
        "unit": int((values >= 1).sum()) + 1,
    }


def parts(image: Array) -> tuple[tuple[Any, ...], Array]:
    """Return where the dot is, the leftmost lit pixel, and what is far from everything lit."""
    from scipy.ndimage import binary_dilation

    lit = image > 0
    across = int(np.flatnonzero(lit.any(axis=0))[0])
    down = int(np.flatnonzero(lit[:, across])[0])
    return (down, across), ~binary_dilation(lit, iterations=2)


def steepest(image: Array) -> float:
    """Return the mean of the hundred steepest steps between neighbours."""
    steps = np.concatenate([np.abs(np.diff(image, axis=axis)).ravel() for axis in (0, 1)])
    return float(np.sort(steps)[-100:].mean())


def gallery(image: Array, made: dict[int, Array], dot: tuple[Any, ...]) -> Any:
    """Draw the image and its reconstructions, the dot's place in a circle."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    figure = Figure((9.6, 2.8), layout="constrained")
    shown = {"(a) row 29049": image} | {
        f"({letter}) {k} axes": picture
        for letter, (k, picture) in zip("bcd", made.items(), strict=True)
    }
    for ax, (name, picture) in zip(figure.subplots(1, 4), shown.items(), strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=255)
        ax.add_patch(Circle(dot[::-1], 1.6, fill=False, color="#e69f00", clip_on=False))
        ax.set(xticks=[], yticks=[])
        ax.set_title(name, fontsize=10, fontweight="bold")
    return figure
