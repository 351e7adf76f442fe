"""Errors of dot products under random maps: marukatat §4.5, Fig. 6."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.metrics import dot_product_error
from mercer.sketches import Gaussian, Hashing, SketchMatrix
from papers.data import Array, load
from papers.results import Line, Result

SIZES, REPEATS, PAIRS, HASHES = (500, 1000, 2000, 3000, 5000), 20, 10_000, 10
SAMPLE = 128
"""Images whose pairs the prediction is of."""
GAUSSIAN, SAME = "Gaussian", "hashing, q columns"
WIDE, PRINTED = "hashing, 10 q columns", "hashing, 10 q columns, as printed"
COLOURS = {GAUSSIAN: "#0072b2", SAME: "#009e73", WIDE: "#56b4e9", PRINTED: "#d55e00"}
TEXT = """{n} photographs of cats and dogs, {d} pixels each, as they are (0 to 255, not centred),
stand in for the features that four deep networks make of 25 000 of them, which are not at hand; the
figure's values are therefore no measure for ours, and its text has no numbers. {pairs} pairs of
images, {repeats} draws of every map (seeds 0 to {last}): mean and standard deviation of the mean
absolute proportion error in per cent. The source has five draws; the errors of one draw go
together, since all images have much in common, so that the deviation over draws is half of the mean
and five are too few to see a slope: an error that rises from one q to the next, as Gaussian
projection's from 500 to 1000, does so within that deviation. "Predicted" is √(2/π) times the root
of the variance (‖x‖²‖y‖² + (xᵀy)²)/q over xᵀy, mean over the pairs of {sample} images. Errors fall
as 1/√q: the slope is of their logarithms.

The authors' code has ten hashes of q buckets each, ten times
the columns of Gaussian projection, which (46) divides by l = 10 where √10 is right: every dot
product is then ten times too small, and the error is 90 % for any q. In the right scaling, and with
as many columns, hashing and Gaussian projection are as good as each other, as their variances say;
with 10 q columns hashing is √10 times better. That Gaussian projection is better "in several cases"
is so of the printed scaling only. Hashing to q columns with q = 5000 and to 10 q with q = 500 are
the same maps, drawn by the same seeds, and have the same figures."""


def run(quick: bool = False) -> Result:
    """Return the errors for every map and size, and the picture."""
    X = load("cats_dogs_64")["X"][:: 8 if quick else 1].astype(np.float32)
    sizes, repeats = ((100, 200, 400), 2) if quick else (SIZES, REPEATS)
    pairs = 1000 if quick else PAIRS
    found = {name: np.zeros((len(sizes), repeats)) for name in COLOURS}
    for i, q in enumerate(sizes):
        for seed in range(repeats):
            for name, drawn in maps(q, X.shape[1], seed).items():
                error = dot_product_error(drawn, X, pairs=pairs, random_state=seed)
                found[name][i, seed] = 100 * error.mean
    expected = predicted(X, sizes)
    lines = [
        Line(f"{name}, q = {q}", *stats(errors[i]), note=note(name, expected[i]))
        for name, errors in found.items()
        for i, q in enumerate(sizes)
    ]
    lines += verdicts(sizes, found, expected)
    facts = {"n": len(X), "d": X.shape[1], "pairs": pairs, "repeats": repeats, "last": repeats - 1}
    title = "Mean absolute proportion error of dot products in per cent (marukatat Fig. 6)"
    text = TEXT.format(**facts, sample=min(len(X), SAMPLE))
    seeds = f"maps and pairs 0 to {repeats - 1}, the images of the prediction 0"
    return Result(title, lines, picture(sizes, found, expected), text, seeds=seeds)


def maps(q: int, d: int, seed: int) -> dict[str, SketchMatrix]:
    """Return the maps of one draw; those of 10 q columns may be wider than the rows."""
    wide = HASHES * q
    return {
        GAUSSIAN: Gaussian(q).draw(d, seed),
        SAME: Hashing(q, HASHES).draw(d, seed),
        WIDE: Hashing(wide, HASHES).draw(d, seed),
        PRINTED: Hashing(wide, HASHES, scaling="paper").draw(d, seed),
    }


def stats(errors: Array) -> tuple[Any, ...]:
    """Return the mean, what is printed, the bounds, and the deviation."""
    return float(errors.mean()), "–", None, None, float(errors.std())


def note(name: str, expected: float) -> str:
    """Return what theory says of maps with q columns."""
    return f"predicted {expected:.2f}" if name in (GAUSSIAN, SAME) else ""


def predicted(X: Array, sizes: tuple[int, ...]) -> Array:
    """Return the mean error that a normal distribution of the variance has, in per cent."""
    rows = X[np.random.default_rng(0).choice(len(X), min(len(X), SAMPLE), replace=False)]
    dots = rows.astype(np.float64) @ rows.T
    own = np.diag(dots)
    places = np.triu_indices(len(rows), 1)
    share = np.sqrt(np.outer(own, own)[places] / dots[places] ** 2 + 1)
    return np.array([100 * np.sqrt(2 / np.pi / q) * share.mean() for q in sizes])


def verdicts(sizes: tuple[int, ...], found: dict[str, Array], expected: Array) -> list[Line]:
    """Return the slopes, and what must hold of them and of the errors."""
    lines = []
    for name in (GAUSSIAN, SAME, WIDE):
        slope = float(np.polyfit(np.log(sizes), np.log(found[name].mean(axis=1)), 1)[0])
        printed = "falls with q"
        lines.append(Line(f"{name}: slope", slope, printed, most=-0.3, least=-0.7))
    ratio = float(np.mean(found[GAUSSIAN].mean(axis=1) / expected))
    lines.append(Line("Gaussian: error over predicted", ratio, most=1.25, least=0.75))
    # Of means: draws of two maps have nothing to do with each other.
    ratio = float(np.mean(found[SAME].mean(axis=1) / found[GAUSSIAN].mean(axis=1)))
    lines.append(Line("hashing over Gaussian, q columns each", ratio, most=1.25, least=0.75))
    fixed = float(found[PRINTED].mean())
    lines.append(Line("hashing as printed, all q", fixed, most=91.0, least=89.0))
    return lines


def picture(sizes: tuple[int, ...], found: dict[str, Array], expected: Array) -> Any:
    """Draw the errors against q."""
    from matplotlib.figure import Figure

    figure = Figure((6.8, 4.3), layout="constrained")
    ax = figure.subplots()
    for name, errors in found.items():
        style: dict[str, Any] = {"linestyle": "--"} if name == SAME else {}
        ax.errorbar(
            sizes,
            errors.mean(axis=1),
            errors.std(axis=1),
            color=COLOURS[name],
            marker="o",
            markersize=4,
            capsize=3,
            label=name,
            **style,
        )
    ax.plot(sizes, expected, ":", color="black", linewidth=1, label="predicted, q columns")
    ax.set(xscale="log", yscale="log", xlabel="q", ylabel="error of dot products, %")
    ax.set_xticks(sizes, [str(q) for q in sizes])
    ticks = [0.5, 1, 2, 5, 10, 20, 50, 90]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_title("Cats and dogs, dot products of pixels", fontsize=10, fontweight="bold")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8.5, loc="center right", bbox_to_anchor=(1.0, 0.68))
    return figure
