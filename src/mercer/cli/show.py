"""The demonstration: a plan, a fit, its spectrum and certificate, digits kept, noise removed."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.decomposition
from rich.console import Console
from rich.rule import Rule
from rich.text import Text
from sklearn.datasets import load_digits

import mercer
from mercer import progress
from mercer.cli import say
from mercer.config import format_bytes
from mercer.kernels import RBF

_ADDED = (0.0, 1e3, 1e4)
# More than an eigenvalue of float32 data may be off for rounding's sake.
_WRONG = 1e-3


def everything(folder: Path, *, quiet: bool = False) -> dict[str, Path | None]:
    """Show the main job, and the digits that go wrong elsewhere; return the files written."""
    start = time.perf_counter()
    out = Console(file=io.StringIO()) if quiet else say.console()
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    pca = _axes(out, digits.data)
    _wrong_digits(out, digits.data)
    _noise_removed(out, digits.data / 16)
    return _files(out, folder, pca, digits, start)


def _axes(out: Console, X: np.ndarray[Any, Any]) -> mercer.PCA:
    """Plan and fit; draw the share of every component."""
    _head(out, f"{len(X)} handwritten digits, 8 × 8 pixels")
    pca = mercer.PCA(0.9)
    _code(out, "pca = mercer.PCA(0.9); pca.plan(X)", "what it is going to do")
    out.print(str(pca.plan(X)))
    _code(out, "pca.fit(X)", "with a bar for every pass over the rows")
    bars = progress.Bars()
    if bars.display.console.is_terminal and not isinstance(out.file, io.StringIO):
        with bars.display, progress.session(bars):
            pca.fit(X)
    else:
        pca.fit(X)
    _code(out, "pca.explained_variance_ratio_", say.count(pca.n_components_, "component"))
    out.print(say.spectrum(pca.explained_variance_ratio_))
    _code(out, "pca.certificate_", "how close to optimal the result is")
    out.print(str(pca.certificate_))
    return pca


def _wrong_digits(out: Console, X: np.ndarray[Any, Any]) -> None:
    """Shift float32 data by a constant, which moves no component, and compare the eigenvalues."""
    _head(out, "The same digits as float32, plus a constant")
    out.print("\nAdding a constant does not change the components.")
    out.print("Largest relative error of 10 eigenvalues:\n")
    truth = mercer.PCA(10).fit(X).explained_variance_
    table = say.columns(("constant", "scikit-learn", "Mercer"))
    for constant in _ADDED:
        shifted = (X + constant).astype(np.float32)
        errors = [
            float(np.abs(PCA(10).fit(shifted).explained_variance_ / truth - 1).max())
            for PCA in (sklearn.decomposition.PCA, mercer.PCA)
        ]
        cells = [Text(_percent(e), "red" if e > _WRONG else "") for e in errors]
        table.add_row(f"{constant:g}", *cells)
    out.print(table)


def _noise_removed(out: Console, X: np.ndarray[Any, Any]) -> None:
    """Fit kernel PCA to clean digits, and take noisy ones to their pre-images."""
    _head(out, "Kernel PCA of 1500 digits, and noise removed from others")
    clean = X[1500:1504]
    noisy = clean + 0.3 * np.random.default_rng(0).standard_normal(clean.shape)
    kpca = mercer.KernelPCA(60, kernel=RBF(0.05), preimage="distances", random_state=0)
    _code(out, f"kpca = {kpca!r}")
    out.print(str(kpca.plan(X[:1500])))
    kpca.fit(X[:1500])
    out.print(f"\n{kpca.certificate_.sentence}")
    _code(out, "kpca.reconstruct(noisy)", "the digits, with noise, and without")
    found = kpca.reconstruct(noisy)
    for rows in (clean, noisy, found):
        _pictures(out, rows)
    before, after = (((rows - clean) ** 2).mean() for rows in (noisy, found))
    out.print(f"mean squared error {before:.3f} with noise, {after:.3f} without")


def _files(
    out: Console, folder: Path, pca: mercer.PCA, digits: Any, start: float
) -> dict[str, Path | None]:
    """Write the model and its report."""
    _head(out, "A model file, and a report to look at")
    model, page = folder / "digits.mercer", folder / "report.html"
    origin = {"command": "mercer demo", "file": "sklearn.datasets.load_digits", "seed": 0}
    _code(out, f'mercer.save(pca, "{model}")', "arrays and a header; no pickle")
    mercer.save(pca, model, origin=origin)
    lines = [("model", f"{model} ({format_bytes(model.stat().st_size)})")]
    found: Path | None = page
    try:
        from mercer.report import write_report

        write_report(
            pca,
            digits.data,
            page,
            labels=digits.target,
            image_shape=(8, 8),
            title="Handwritten digits",
            origin=origin,
        )
        last = ("report", f"{page.resolve()} ({format_bytes(page.stat().st_size)})")
    except ImportError as error:
        found, last = None, ("no report", str(error))
    # The page is what to look at next: its path stands last.
    lines += [("time", say.seconds(time.perf_counter() - start)), last]
    out.print(say.pairs(lines))
    return {"model": model, "report": found}


def _pictures(out: Console, rows: np.ndarray[Any, Any]) -> None:
    """Draw 8 × 8 images side by side in shades, two characters to a pixel."""
    shades = np.array(list(" ░▒▓█"))
    images = shades[(np.clip(rows, 0.0, 0.999) * 5).astype(int)].reshape(-1, 8, 8)
    for line in range(8):
        out.print("   ".join("".join(np.repeat(image[line], 2)) for image in images).rstrip())
    out.print()


def _percent(error: float) -> str:
    return f"{float(f'{100 * error:.2g}'):g} %"


def _head(out: Console, text: str) -> None:
    out.print()
    out.print(Rule(Text(text, "bold"), style="cyan") if out.is_terminal else f"— {text}")


def _code(out: Console, code: str, what: str = "") -> None:
    out.print()
    out.print(Text.assemble((code, "bold"), f"   {what}" if what else ""))
    out.print()
