"""The number of axes for a given relative error (worrell §3.4, and the slip of §3.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import PCA
from mercer.rules import RelativeError
from papers.data import Array, load
from papers.drawing import BLUE, GREEN, ORANGE, open_frames
from papers.results import NONE, Line, Result

TITLE = "Choosing k by the relative error (worrell §3.4)"
TEXT = """k is the smallest number of axes with ‖X − X_k‖²/‖X‖² ≤ 0.05, found from the singular
values by (4) (`PCA(RelativeError(0.05))`), X being centred. Measured: the error itself, from the
rows and what k axes keep of them, with k axes and with one less; and how far (4) is from it. The
source names no data: ORL faces, the Frey faces and USPS digits stand for images, of which §4.1 says
that a few hundred components are an accurate representation. The last lines are of ORL and half of
its k: the norm ‖X − X_k‖ divided by √(σ²_{k+1} + …), and by what §3.2 prints, √(σ_{k+1} + …),
without the squares: a slip."""
ERROR = 0.05
COLOURS = {"ORL faces": BLUE, "Frey faces": ORANGE, "USPS digits": GREEN}


def run(quick: bool = False) -> Result:
    """Return the k of every data set with the errors it leaves, and their curves."""
    lines, spectra = list[Line](), dict[str, Array]()
    for name, X in tables(quick).items():
        spectra[name] = PCA().fit(X).singular_values_ ** 2
        lines += judged(name, X, spectra[name])
    lines += slip(tables(quick)["ORL faces"], spectra["ORL faces"])
    return Result(TITLE, lines, picture(spectra), TEXT, seeds=NONE)


def tables(quick: bool) -> dict[str, Array]:
    """Return rows of images; every fourth pixel and some of the rows in a hurry."""
    usps = load("usps")
    found = {
        "ORL faces": load("orl_faces")["X"].astype(np.float64),
        "Frey faces": load("frey_faces")["X"].astype(np.float64),
        "USPS digits": usps["X"] / float(usps["scale"]),
    }
    return {name: X[:600, ::4] if quick else X for name, X in found.items()}


def judged(name: str, X: Array, squares: Array) -> list[Line]:
    """Return k, the errors that k axes and one less leave, and how far (4) is from the former."""
    chosen = PCA(RelativeError(ERROR)).fit(X)
    k = chosen.n_components_
    left, more = (relative_error(PCA(axes).fit(X), X) for axes in (k, k - 1))
    of = f"of {len(squares)}"
    return [
        Line(f"{name}: k", k, form=".0f", note=f"{of} axes; {X.shape[0]} × {X.shape[1]}"),
        Line(f"{name}: error with k axes", left, most=ERROR, form=".5f"),
        Line(f"{name}: error with k − 1", more, least=ERROR, form=".5f"),
        Line(
            f"{name}: (4) − measured",
            abs(float(squares[k:].sum() / squares.sum()) - left),
            most=1e-9,
            form=".0e",
        ),
    ]


def relative_error(pca: PCA, X: Array) -> float:
    """Return ‖X − X_k‖²/‖X‖² of the centred rows, without any singular value."""
    return squared(X - pca.reconstruct(X)) / squared(X - X.mean(axis=0))


def squared(X: Array) -> float:
    """Return the squared Frobenius norm."""
    return float(np.sum(X * X))


def slip(X: Array, squares: Array) -> list[Line]:
    """Return the measured norm over the one by squares, and over the one that is printed."""
    k = PCA(RelativeError(ERROR)).fit(X).n_components_ // 2
    norm = np.sqrt(squared(X - PCA(k).fit(X).reconstruct(X)))
    right, printed = np.sqrt(squares[k:].sum()), np.sqrt(np.sqrt(squares[k:]).sum())
    what = f"ORL faces, {k} axes: norm / root of the "
    return [
        Line(what + "squares' sum", norm / right, "–", 1 + 1e-9, 1 - 1e-9, form=".6f"),
        Line(what + "values' sum", norm / printed, "1", form=".1f", note="as printed: a slip"),
    ]


def picture(spectra: dict[str, Array]) -> Any:
    """Draw the relative error against k, and where it comes below the bound."""
    from matplotlib.figure import Figure

    figure = Figure((6.8, 4.2), layout="constrained")
    ax = figure.subplots()
    ax.axhline(ERROR, color="0.6", linestyle="--", linewidth=1)
    ax.text(1.05, ERROR * 1.08, "relative error 0.05", color="0.35", fontsize=9)
    for name, squares in spectra.items():
        left = 1 - np.cumsum(squares) / squares.sum()
        k = int(np.argmax(left <= ERROR)) + 1
        ax.plot(range(1, len(left)), left[:-1], color=COLOURS[name], label=f"{name}: k = {k}")
        ax.plot(k, left[k - 1], "o", color=COLOURS[name])
    ax.set(xscale="log", yscale="log", ylim=(2e-3, 1), xlim=(1, 400), xlabel="axes k")
    ax.set(ylabel="‖X − X_k‖² / ‖X‖²")
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    ax.legend(frameon=False, loc="lower left")
    open_frames([ax])
    return figure
