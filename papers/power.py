"""Power iteration against its bound (worrell §5, Prop. 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import PCA
from papers.data import Array, load
from papers.drawing import BLUE, GREY, INK, open_frames
from papers.results import Line, Result

TITLE = "Power iteration against its bound (worrell §5, Prop. 6)"
TEXT = """With probability 9/10 over a random unit x₀, |y_kᵀv₁| ≥ 1 − 20n(λ₂/λ₁)^k for all k.
Three matrices AᵀA of size 400: the dot products of the centred ORL faces, from {few} starts; and
two with λ₁ = 1 and all the others equal to ρ, which is what the proof assumes at worst, their
eigenvectors in random directions, from {starts} starts. Every step is a product Aᵀ(A y). v₁ and the
eigenvalues are of a dense decomposition of AᵀA. A start keeps the bound where it does at every
one of the steps shown. The bound is far from tight: the lines count the steps after which nine
tenths of the starts have 1 − |y_kᵀv₁| ≤ 0.01, and after which it promises so. Besides, the error
falls faster than the bound: with the square of λ₂/λ₁ a step, not with its first power, since by
(6) 1 − |y_kᵀv₁| tends to a multiple of (λ₂/λ₁)^2k; the factor a step is measured.

Of the proof: P(|b₁| > 1/(20√n)) ≥ 9/10 holds, but the expected value of |b₁|
is not 1/√n as printed; it is √(2/π)/√n, and 1/√n is the root of its mean square. Last, the axes of
`PCA(svd_solver="power")`, by power iteration with deflation as in the text, against a dense
decomposition."""
FACES = "ORL faces"


@dataclass(frozen=True)
class Runs:
    """Eigenvalues of a matrix, |x₀ᵀv₁| of the starts, and 1 − |y_kᵀv₁| by step."""

    values: Array
    first: Array
    errors: Array

    @property
    def ratio(self) -> float:
        return float(self.values[1] / self.values[0])

    @property
    def bound(self) -> Array:
        """What Prop. 6 allows after each step."""
        return 20 * len(self.values) * self.ratio ** np.arange(1, len(self.errors) + 1)


def run(quick: bool = False) -> Result:
    """Return how the starts fare on every matrix, and what the library's power iteration finds."""
    starts, few = (200, 200) if quick else (2000, 500)
    faces = load("orl_faces")["X"].astype(np.float64)
    faces = faces[:, ::8] if quick else faces
    found = {
        FACES: iterated((faces - faces.mean(axis=0)).T, few),
        "ρ = 0.9": iterated(worst(0.9, len(faces)), starts),
        "ρ = 0.5": iterated(worst(0.5, len(faces)), starts),
    }
    lines = [line for name, runs in found.items() for line in judged(name, runs)]
    lines += [*proof(found["ρ = 0.9"]), *deflated(faces)]
    text = TEXT.format(starts=starts, few=few)
    seeds = "starts 0; random directions 1; the solver's 0"
    return Result(TITLE, lines, picture(found), text, seeds=seeds)


def worst(ratio: float, n: int) -> Array:
    """Return A where AᵀA has the eigenvalue 1 once and `ratio` otherwise, in random directions."""
    directions, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((n, n)))
    return np.sqrt(np.r_[1.0, np.full(n - 1, ratio)])[:, None] * directions.T


def iterated(A: Array, starts: int) -> Runs:
    """Iterate with products Aᵀ(A y) from random unit vectors, all at once."""
    values, vectors = np.linalg.eigh(A.T @ A)
    x = np.random.default_rng(0).standard_normal((len(values), starts))
    y = x / np.linalg.norm(x, axis=0)
    v = vectors[:, -1]
    first, errors = np.abs(v @ y), list[Array]()
    while not errors or (np.quantile(errors[-1], 0.9) > 1e-9 and len(errors) < 400):
        y = A.T @ (A @ y)
        y /= np.linalg.norm(y, axis=0)
        errors.append(away(y, v))
    return Runs(values[::-1].clip(0), first, np.array(errors))


def away(y: Array, v: Array) -> Array:
    """Return 1 − |yᵀv| of unit columns without cancellation: the squared sine over 1 + |cosine|."""
    cosines = v @ y
    return np.sum((y - np.outer(v, cosines)) ** 2, axis=0) / (1 + np.abs(cosines))


def judged(name: str, runs: Runs) -> list[Line]:
    """Return how many starts keep the bound, and how many steps it and they take."""
    kept = float(np.mean((runs.errors <= runs.bound[:, None]).all(axis=0)))
    most = np.quantile(runs.errors, 0.9, axis=1)
    steps = int(np.argmax(most <= 0.01)) + 1
    promised = int(np.ceil(np.log(0.01 / (20 * len(runs.values))) / np.log(runs.ratio)))
    rate = float(np.median(runs.errors[-1] / runs.errors[-2]))
    square, note = runs.ratio**2, f"λ₂/λ₁ = {runs.ratio:.3f}"
    return [
        Line(f"{name}: starts that keep the bound", kept, "≥ 0.9", least=0.9, form=".4f"),
        Line(f"{name}: steps to 0.01", steps, f"≤ {promised}", promised, form=".0f", note=note),
        Line(
            f"{name}: factor of the error a step",
            rate,
            most=1.01 * square,
            least=0.99 * square,
            form=".4f",
            note="(λ₂/λ₁)²",
        ),
    ]


def proof(runs: Runs) -> list[Line]:
    """Return what the proof says of |b₁|."""
    scaled = runs.first * np.sqrt(len(runs.values))
    about = np.sqrt(2 / np.pi)
    # Three standard errors, of the mean of |z| and of the root of the mean of z², z normal.
    off, off_root = 3 * np.sqrt(np.array([1 - about**2, 0.5]) / len(scaled))
    share = float(np.mean(scaled > 1 / 20))
    mean, root = float(scaled.mean()), float(np.sqrt((scaled**2).mean()))
    note = f"√(2/π) = {about:.3f}, ± 3 standard errors"
    return [
        Line("starts with |b₁| > 1/(20√n)", share, "≥ 0.9", least=0.9, form=".3f"),
        Line("mean of √n |b₁|", mean, "1", about + off, about - off, form=".3f", note=note),
        Line("root mean square of √n |b₁|", root, "–", 1 + off_root, 1 - off_root, form=".3f"),
    ]


def deflated(faces: Array) -> list[Line]:
    """Return how far five axes by power iteration are from those of a dense decomposition."""
    power = PCA(5, svd_solver="power", random_state=0).fit(faces)
    dense = PCA(5, svd_solver="full").fit(faces)
    cosines = np.abs(np.sum(power.components_ * dense.components_, axis=1))
    error = np.abs(power.explained_variance_ / dense.explained_variance_ - 1).max()
    return [
        Line(
            "PCA, power: 1 − |cosine|, worst of five axes", 1 - cosines.min(), most=1e-9, form=".0e"
        ),
        Line("PCA, power: error of the variances, worst", error, most=1e-9, form=".0e"),
    ]


def picture(found: dict[str, Runs]) -> Any:
    """Draw the errors of the starts by step, and the bound."""
    from matplotlib.figure import Figure

    figure = Figure((10.8, 3.7), layout="constrained")
    for ax, (name, runs) in zip(figure.subplots(1, 3, sharey=True), found.items(), strict=True):
        steps = np.arange(1, len(runs.errors) + 1)
        low, middle, high = np.quantile(runs.errors, (0.1, 0.5, 0.9), axis=1)
        ax.fill_between(steps, low, high, color=BLUE, alpha=0.2, linewidth=0, label="8 in 10")
        ax.plot(steps, middle, color=BLUE, label="median start")
        ax.plot(steps, runs.errors.max(axis=1), color=GREY, linewidth=1, label="worst start")
        ax.plot(steps, runs.bound, "--", color=INK, label="20n(λ₂/λ₁)ᵏ")
        ax.set(yscale="log", ylim=(1e-9, 1e4), xlabel="step k", xlim=(1, None))
        ax.set_title(f"{name}: λ₂/λ₁ = {runs.ratio:.2f}", fontsize=10)
        open_frames([ax])
    figure.axes[0].set_ylabel("1 − |y_kᵀv₁|")
    figure.axes[-1].legend(frameon=False, fontsize=8.5)
    return figure
