"""Scree plot: explained variance of each component, and the cutoffs of rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np

from mercer.estimators.inspection import FittedSpectrum, rule_name, variance_shares
from mercer.plotting import base
from mercer.plotting.base import Axes, Display, Values
from mercer.rules import MLE, BrokenStick, Fraction, GavishDonoho, Kaiser, ParallelAnalysis, Rule

RULES: tuple[Rule, ...] = (Fraction(0.9), Kaiser(), BrokenStick())
# These assume noise in the columns, of which nothing is known in the feature space of a kernel.
LINEAR_RULES: tuple[Rule, ...] = (ParallelAnalysis(), GavishDonoho(), MLE())
MAX_BARS = 100


@dataclass(eq=False, repr=False)
class SpectrumDisplay(Display):
    """Scree plot: the share of each component in the variance, λⱼ / Σλ, their sum, and cutoffs.

    Create it with `from_estimator`, or from eigenvalues. Source: R. B. Cattell (1966), The scree
    test for the number of factors, Multivariate Behavioral Research 1, 245–276.

    Parameters
    ----------
    eigenvalues : array of shape (k,)
        Variances of the components, largest first.
    total_variance : float or None
        Sum of all eigenvalues. None if it is unknown; then the bars are eigenvalues, not shares.
    cutoffs : mapping of str to int
        How many components each rule keeps; without the rules that need more eigenvalues.

    Attributes
    ----------
    ax_, sum_ax_, figure_ : matplotlib Axes and Figure
    bars_, line_, cutoffs_
        The eigenvalues, their cumulative sum, and a pair (Line2D, Annotation) for each rule.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mercer import PCA
    >>> from mercer.plotting import SpectrumDisplay
    >>> display = SpectrumDisplay.from_estimator(PCA(scale=True).fit(load_wine().data))
    >>> display.shares.round(3)[:3]
    array([0.362, 0.192, 0.111])
    >>> display.cutoffs["Kaiser"], display.cutoffs["broken stick"]
    (3, 2)
    >>> SpectrumDisplay.from_estimator(PCA().fit(load_wine().data), rules=[0.95]).cutoffs
    {'95 % of the variance': 1}
    """

    eigenvalues: Any
    total_variance: float | None = None
    _: KW_ONLY
    cutoffs: Mapping[str, int] = field(default_factory=dict)

    @property
    def shares(self) -> Values | None:
        """Shares of the total variance, where that is known."""
        return variance_shares(self.eigenvalues, self.total_variance)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        rules: Iterable[Any] | Mapping[str, Any] | None = None,
        **style: Any,
    ) -> Self:
        """Draw the spectrum of a PCA or KernelPCA, or of a model or pipeline with one.

        `rules` are values that `n_components` takes, or a mapping of names to them: rules of
        `mercer.rules`, shares, "mle". None: 90 % of the variance, Kaiser and broken stick; for
        linear models also parallel analysis, Gavish–Donoho and Minka, as far as the known
        eigenvalues decide them. `ax` and `cumulative` are those of `plot`.
        """
        spectrum = FittedSpectrum(estimator)
        if rules is None:
            usual = RULES + LINEAR_RULES if spectrum.linear else RULES
            named = {rule_name(rule): rule for rule in usual}
        else:
            named = spectrum.named_rules(rules)
        cutoffs = {}
        for name, rule in named.items():
            try:
                k = spectrum.cut(rule)
            except ValueError:  # Minka's rule needs as many rows as columns
                if rules is not None:
                    raise
                continue
            if k is not None:
                cutoffs[name] = k
        return cls(spectrum.values, spectrum.total, cutoffs=cutoffs).plot(**style)

    def plot(self, ax: Axes | None = None, *, cumulative: bool = True) -> Self:
        """Draw the spectrum, with the cumulative sum where the total variance is known."""
        heights = np.asarray(self.eigenvalues, np.float64) if self.shares is None else self.shares
        k = len(heights) if heights.ndim == 1 else 0
        if not k:
            raise ValueError(
                f"eigenvalues has shape {heights.shape}: there is no component to draw."
            )
        ax, ticker = self._open(ax), base.matplotlib("ticker")
        if k <= MAX_BARS:
            self.bars_ = ax.bar(np.arange(1, k + 1), heights, color=base.SKY, width=0.75)
        else:
            self.bars_ = ax.stairs(heights, np.arange(k + 1) + 0.5, fill=True, color=base.SKY)
        ax.xaxis.set_major_locator(ticker.MaxNLocator("auto", integer=True, min_n_ticks=1))
        margin = 0.02 * k + 0.1
        ax.set_xlim(0.5 - margin, k + 0.5 + margin)
        ylabel = "Eigenvalue" if self.shares is None else "Explained variance"
        base.set_texts(ax, xlabel="Component", ylabel=ylabel)
        if self.shares is not None:
            ax.yaxis.set_major_formatter(ticker.PercentFormatter(1, symbol=" %"))
        top = {ax: float(np.max(heights, initial=0.0)) or 1.0}
        self.sum_ax_, self.line_ = None, None
        if cumulative and self.shares is not None:
            self._draw_sum(np.cumsum(self.shares))
            top[self.sum_ax_] = max(1.0, float(self.shares.sum()))
        ordered = sorted(self.cutoffs.items(), key=lambda item: item[1])
        texts = [f"{base.one_line(name)}: {count}" for name, count in ordered]
        flags = base.draw_flags(top, [count + 0.5 for _, count in ordered], texts)
        self.cutoffs_ = dict(zip((name for name, _ in ordered), flags, strict=True))
        ax.set_xticks([tick for tick in ax.get_xticks() if 1 <= tick <= k])
        return self

    def _draw_sum(self, sums: Values) -> None:
        """Draw the cumulative sum with an axis of its own, on the right."""
        ticker, right = base.matplotlib("ticker"), self.ax_.twinx()
        dots = {"marker": "o", "markersize": 3.2} if len(sums) <= 40 else {}
        style = {"color": base.INK, "linewidth": 1.2, **dots}
        (self.line_,) = right.plot(np.arange(1, len(sums) + 1), sums, **style)
        right.yaxis.set_major_formatter(ticker.PercentFormatter(1, symbol=" %"))
        right.yaxis.set_major_locator(ticker.FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        right.spines[:].set_visible(False)
        right.spines["right"].set_visible(True)
        base.set_texts(right, ylabel="Cumulative")
        self.ax_.tick_params(axis="y", colors=base.BLUE)
        self.ax_.yaxis.label.set_color(base.BLUE)
        self.sum_ax_ = right
