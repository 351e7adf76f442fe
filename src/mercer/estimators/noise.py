"""Noise, the error of a denoiser, and parameter selection by that error."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.arrays import Matrix, Vector, to_numpy
from mercer.checks import is_real
from mercer.data import Source
from mercer.estimators.inspection import host_rows
from mercer.estimators.kernel_parameters import has_gamma
from mercer.estimators.linear_model import LinearModel
from mercer.kernels import Kernel
from mercer.params import Params

Index = np.ndarray[Any, np.dtype[np.intp]]

# Step of the divergence in Stein's estimate, relative to the noise: well above the tolerance of
# pre-images, well below the curvature of the map.
_STEP = 0.1


class SaltAndPepper(Params):
    """Noise that turns entries white with probability p/2 and black with probability p/2.

    Source: Washizawa (2012), §6.5.

    Parameters
    ----------
    p : float
        Fraction of the entries that are lost.
    low, high : float
        Values of black and white.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SaltAndPepper
    >>> SaltAndPepper(0.5)(np.full((2, 4), 0.3), np.random.default_rng(0))
    array([[0.3, 0. , 1. , 1. ],
           [0.3, 0.3, 0.3, 0.3]])
    """

    def __init__(self, p: float, low: float = 0.0, high: float = 1.0) -> None:
        self.p, self.low, self.high = p, low, high

    def __call__(self, rows: Any, rng: np.random.Generator) -> Matrix:
        if not (is_real(self.p) and 0 <= self.p <= 1):
            raise ValueError(f"{self!r}: p must be a fraction of the entries, from 0 to 1.")
        clean = np.asarray(rows)
        # Integers become floats if black or white is one: 0.5 would be cut to 0.
        noisy = clean.astype(np.result_type(clean.dtype, self.low, self.high))
        uniform = rng.random(noisy.shape)
        noisy[uniform < self.p] = self.low
        noisy[uniform < self.p / 2] = self.high
        return noisy


Denoise = Callable[[Matrix], Matrix]


def error_measure(
    source: Source, truth: Source | None, noise: Any, noisy: bool, rng: np.random.Generator
) -> Callable[[Denoise], float]:
    r"""Return the mean squared error of denoisers, or Stein's unbiased estimate of it.

    It is measured on pairs, on noise added to clean rows or, for noisy rows alone, estimated:

    .. math:: \|f(x)-x\|^2 - d\sigma^2 + 2\sigma^2\,\mathrm{div} f(x),\qquad
              \mathrm{div} f(x) \approx b^T(f(x+\epsilon b)-f(x))/\epsilon

    with random signs b: Stein (1981); Ramani, Blu & Unser (2008), "Monte-Carlo SURE", (12)–(14).
    """
    if truth is None and noise is None:
        raise ValueError(
            "Several candidates, but no way to compare them. Set noise= to the standard deviation "
            "of the noise, or to a function that adds noise to clean rows; use fit(noisy, clean); "
            "or pass a single n_components and gamma."
        )
    rows = dense_rows(source)

    def mean(squares: Matrix) -> float:
        return float(np.average(np.mean(squares, axis=1), weights=source.weights))

    if truth is not None or not noisy:
        clean = rows if truth is None else dense_rows(truth)
        rows = add_noise(noise, rows, rng) if truth is None else rows
        return lambda denoise: mean((denoise(rows) - clean) ** 2)
    if callable(noise):
        raise ValueError(
            f"noisy=True uses Stein's estimate, which requires Gaussian noise of known standard "
            f"deviation, but noise={noise!r}. Set noise= to a number, or use fit(noisy, clean)."
        )
    variance, step = float(noise) ** 2, _STEP * float(noise)
    signs = rng.choice(np.array([-1.0, 1.0]), rows.shape)

    def estimate(denoise: Denoise) -> float:
        denoised = denoise(rows)
        divergence = signs * (denoise(rows + step * signs) - denoised) / step
        return mean((denoised - rows) ** 2 - variance + 2.0 * variance * divergence)

    return estimate


def add_noise(noise: Any, rows: Matrix, rng: np.random.Generator) -> Matrix:
    """Return rows with Gaussian noise of a standard deviation, or the result of a function."""
    if not callable(noise):
        return np.asarray(rows + float(noise) * rng.standard_normal(rows.shape))
    noisy = np.asarray(noise(rows.copy(), rng), dtype=np.float64)
    if noisy.shape != rows.shape:
        raise ValueError(f"noise={noise!r} returned shape {noisy.shape}, expected {rows.shape}.")
    if not np.isfinite(noisy).all():
        raise ValueError(f"noise={noise!r} returned NaN or infinity for finite rows.")
    return noisy


def as_candidates(value: Any) -> list[Any]:
    """Return candidates as a list; a single one, or None, is a list of one."""
    return [value] if value is None or np.ndim(value) == 0 else list(value)


def split_rows(
    validation: float | int, source: Source, rng: np.random.Generator
) -> tuple[Index, Index]:
    """Return validation rows, drawn from those with a weight, and the other rows."""
    n, weights = source.shape[0], source.weights
    rows = np.arange(n) if weights is None else np.flatnonzero(weights > 0)
    share = float(validation) * len(rows)
    count = int(validation) if isinstance(validation, Integral) else max(1, round(share))
    if len(rows) - count < 2:
        raise ValueError(
            f"validation={validation!r} uses {count} of {len(rows)} rows and leaves "
            f"{max(0, len(rows) - count)} for the fit. Use a smaller validation, or one candidate."
        )
    drawn = np.sort(rng.permutation(rows)[:count])
    return drawn, np.setdiff1d(np.arange(n), drawn)


def candidate_errors(
    model: Any,
    source: Source,
    counts: Sequence[int | None],
    gammas: Sequence[float | None],
    error: Callable[[Denoise], float],
) -> dict[str, Vector]:
    """Return the error of every candidate; NaN for more components than there are.

    There is one fit for every γ, with the most components: fewer are the first of them.
    """
    table: dict[str, list[Any]] = {"n_components": [], "gamma": [], "error": []}
    most = None if counts[0] is None else max(counts)  # type: ignore[type-var]
    if most is not None and isinstance(model, LinearModel):  # an error would be raised for more
        most = min(most, *source.shape)
    for gamma in gammas:
        with warnings.catch_warnings():  # the final fit warns
            warnings.simplefilter("ignore")
            fitted = with_parameters(model, most, gamma).fit(source)
            for k in counts:
                value, count = np.nan, fitted.n_components_ if k is None else k
                if count <= fitted.n_components_:
                    denoise = reconstruction(fitted, count)
                    if denoise is None:
                        denoise = with_parameters(model, k, gamma).fit(source).reconstruct
                    value = error(denoise)
                table["n_components"].append(count)
                table["gamma"].append(np.nan if gamma is None else gamma)
                table["error"].append(value)
    return {name: np.asarray(column) for name, column in table.items()}


def with_parameters(model: Any, k: int | None, gamma: float | None) -> Any:
    """Return an unfitted copy with these parameters; None leaves one as it is."""
    other = clone(model)
    if k is not None:
        other.set_params(n_components=int(k))
    if gamma is not None:
        other.set_params(**{gamma_name(other): float(gamma)})
    return other


def gamma_name(model: Any) -> str:
    """Return the name of the parameter that is the kernel's γ; raise if there is none."""
    kernel = getattr(model, "kernel", None)
    if isinstance(kernel, Kernel) and "gamma" in kernel.get_params():
        return "kernel__gamma"
    if isinstance(kernel, str) and has_gamma(kernel):
        return "gamma"
    raise ValueError(
        f"gamma is a kernel parameter, but {model!r} has none. Pass a KernelPCA whose kernel "
        f'has a gamma, for example KernelPCA(kernel="rbf"), or omit gamma.'
    )


def reconstruction(fitted: Any, k: int) -> Denoise | None:
    """Return the map of rows to their reconstruction from the first k components of a model.

    None if a fit with k components has others.
    """
    if k == fitted.n_components_:
        reconstruct: Denoise = fitted.reconstruct
        return reconstruct
    # A learned inverse depends on all scores, and overlapping components on each other.
    learned = not isinstance(getattr(fitted, "_way", None), np.ndarray)
    if not isinstance(fitted, LinearModel) and (learned or fitted.projection_.overlaps is not None):
        return None

    def reconstruct_first(rows: Matrix) -> Matrix:
        scores = np.array(fitted.transform(rows))
        scores[:, k:] = 0.0
        return to_numpy(fitted.inverse_transform(scores))

    return reconstruct_first


def dense_rows(source: Source) -> Matrix:
    """Return all rows as a float64 array."""
    return np.asarray(host_rows(source.load()), np.float64)
