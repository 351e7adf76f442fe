"""``mercer demo``: a plan, a fit, its certificate, denoising and a report."""

from __future__ import annotations

import io
import sys
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
from mercer.cli import console
from mercer.cli.console import Reporter, Result
from mercer.cli.options import Options
from mercer.kernels import RBF
from mercer.messages import counted

_CONSTANTS = (0.0, 1e3, 1e4)
# An eigenvalue of float32 data that is off by more than this is wrong, not rounded.
_WRONG = 1e-3


def demo(options: Options, reporter: Reporter) -> Result:
    """Show everything, and write a model and a report."""
    start, folder = time.perf_counter(), options.output
    out = Console(file=io.StringIO()) if options.json else console.open_console()
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    pca = _fit(out, digits.data)
    _compare_accuracy(out, digits.data)
    _denoise(out, digits.data / 16)
    return Result(_write_files(out, folder, pca, digits, start))


def _fit(out: Console, X: np.ndarray[Any, Any]) -> mercer.PCA:
    _title(out, f"{len(X)} handwritten digits, 8 × 8 pixels")
    pca = mercer.PCA(0.9)
    _code(out, "pca = mercer.PCA(0.9); pca.plan(X)", "what it will do")
    out.print(str(pca.plan(X)))
    _code(out, "pca.fit(X)", "with a progress bar for every pass over the data")
    with mercer.config_context(progress=sys.stderr.isatty()):
        pca.fit(X)
    _code(out, "pca.explained_variance_ratio_", counted(pca.n_components_, "component"))
    out.print(console.spectrum_table(pca.explained_variance_ratio_))
    _code(out, "pca.certificate_", "how close to optimal the result is")
    out.print(str(pca.certificate_))
    return pca


def _compare_accuracy(out: Console, X: np.ndarray[Any, Any]) -> None:
    """Add a constant to float32 data, which changes no component, and compare the eigenvalues."""
    _title(out, "The same digits in float32, plus a constant")
    out.print("\nAdding a constant does not change the components.")
    out.print("Largest relative error of 10 eigenvalues:\n")
    exact = mercer.PCA(10).fit(X).explained_variance_
    table = console.empty_table(("constant", "scikit-learn", "Mercer"))
    for constant in _CONSTANTS:
        shifted = (X + constant).astype(np.float32)
        cells = []
        for PCA in (sklearn.decomposition.PCA, mercer.PCA):
            error = float(np.abs(PCA(10).fit(shifted).explained_variance_ / exact - 1).max())
            text = f"{float(f'{100 * error:.2g}'):g} %"
            cells.append(Text(text, "red" if error > _WRONG else ""))
        table.add_row(f"{constant:g}", *cells)
    out.print(table)


def _denoise(out: Console, X: np.ndarray[Any, Any]) -> None:
    _title(out, "Kernel PCA of 1500 digits, and denoising of others")
    clean = X[1500:1504]
    noisy = clean + 0.3 * np.random.default_rng(0).standard_normal(clean.shape)
    kpca = mercer.KernelPCA(60, kernel=RBF(0.05), preimage="distances", random_state=0)
    _code(out, f"kpca = {kpca!r}")
    out.print(str(kpca.plan(X[:1500])))
    kpca.fit(X[:1500])
    out.print(f"\n{kpca.certificate_.sentence}")
    _code(out, "kpca.reconstruct(noisy)", "digits, noisy digits, denoised digits")
    denoised = kpca.reconstruct(noisy)
    # Images side by side in shades, two characters to a pixel.
    shades = np.array(list(" ░▒▓█"))
    for rows in (clean, noisy, denoised):
        images = shades[(np.clip(rows, 0.0, 0.999) * 5).astype(int)].reshape(-1, 8, 8)
        for line in range(8):
            out.print("   ".join("".join(np.repeat(image[line], 2)) for image in images).rstrip())
        out.print()
    before, after = (((rows - clean) ** 2).mean() for rows in (noisy, denoised))
    out.print(f"mean squared error {before:.3f} with noise, {after:.3f} after denoising")


def _write_files(
    out: Console, folder: Path, pca: mercer.PCA, digits: Any, start: float
) -> dict[str, str | None]:
    _title(out, "A model file and a report")
    model, page = folder / "digits.mercer", folder / "report.html"
    origin = {"command": "mercer demo", "file": "sklearn.datasets.load_digits", "seed": 0}
    _code(out, f'mercer.save(pca, "{model}")', "arrays and a header; no pickle")
    mercer.save(pca, model, origin=origin)
    shown = {"labels": digits.target, "image_shape": (8, 8), "title": "Handwritten digits"}
    report: str | None = str(page)
    try:
        from mercer.report import write_report

        write_report(pca, digits.data, page, origin=origin, **shown)
        last = ("report", console.format_file(page.resolve()))
    except ImportError as error:
        report, last = None, ("no report", str(error))
    # The page is what to look at next: its path stands last.
    seconds = console.format_seconds(time.perf_counter() - start)
    out.print(console.pairs([("model", console.format_file(model)), ("time", seconds), last]))
    return {"model": str(model), "report": report}


def _title(out: Console, text: str) -> None:
    out.print()
    out.print(Rule(Text(text, "bold"), style="cyan") if out.is_terminal else f"— {text}")


def _code(out: Console, code: str, comment: str = "") -> None:
    out.print()
    out.print(Text.assemble((code, "bold"), f"   {comment}" if comment else ""))
    out.print()
