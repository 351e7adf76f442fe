"""Scree: shares of the variance, component by component, and where the rules would cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from mercer.arrays import to_numpy
from mercer.plotting.flags import draw_flags, row_height
from mercer.plotting.models import split
from mercer.plotting.panels import Axes, Values, entitle, matplotlib, open_panel, settle, short
from mercer.plotting.points import BLUE, INK, SKY
from mercer.rules import BrokenStick, GavishDonoho, Kaiser, ParallelAnalysis, Rule, as_rule

EVERY: tuple[Any, ...] = (0.9, Kaiser(), BrokenStick())
# Noise of rows themselves: nothing is known of it in the space of a kernel.
LINEAR: tuple[Any, ...] = (ParallelAnalysis(), GavishDonoho(), "mle")
NAMES = {
    "Count": "{k}",
    "Fraction": "{p:.4g} of the variance",
    "RelativeError": "error ≤ {e:g}",
    "Threshold": "≥ {eps:g} λ₁",
    "Kaiser": "Kaiser",
    "BrokenStick": "broken stick",
    "ParallelAnalysis": "parallel analysis",
    "MLE": "Minka",
    "GavishDonoho": "Gavish–Donoho",
}
BARS = 100


class SpectrumDisplay:
    """Scree: each component's share of the variance, λⱼ / Σλ, their sum, and the rules' cut-offs.

    Make it with `from_estimator`, or from eigenvalues.

    Parameters
    ----------
    eigenvalues : array of shape (k,)
        Variances of the components, largest first.
    total_variance : float or None
        The sum of all eigenvalues; None where it is not known: then there are no shares.
    cutoffs : mapping of str to int or None
        How many components each rule would keep, by its name.
    undecided : iterable of str
        Rules that would have to see more eigenvalues than these.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    sum_ax_ : matplotlib Axes or None
        The scale of the running sum, on the right.
    bars_ : BarContainer, or StepPatch of more than 100 components
    line_ : Line2D or None
        The running sum.
    cutoffs_ : dict of str to (Line2D, Annotation)
        What marks each rule.

    References
    ----------
    R. B. Cattell (1966), The scree test for the number of factors, Multivariate Behavioral
    Research 1, 245–276.

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
    """

    def __init__(
        self,
        eigenvalues: Any,
        total_variance: float | None = None,
        *,
        cutoffs: Mapping[str, int] | None = None,
        undecided: Iterable[str] = (),
    ) -> None:
        self.eigenvalues = eigenvalues
        self.total_variance = total_variance
        self.cutoffs = dict(cutoffs or {})
        self.undecided = tuple(undecided)

    @property
    def shares(self) -> Values | None:
        """Shares of the total variance, where that is known."""
        values = np.asarray(self.eigenvalues, np.float64)
        if self.total_variance is None:
            return None
        return values / self.total_variance if self.total_variance > 0 else 0.0 * values

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        rules: Iterable[Any] | Mapping[str, Any] | None = None,
        cumulative: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the spectrum of a fitted model.

        Parameters
        ----------
        estimator : fitted model
            PCA, KernelPCA, what is built around one, or a pipeline that ends in it.
        rules : iterable or mapping of names to rules, or None
            What could be `n_components`: rules of `mercer.rules`, shares, "mle". None: 90 % of
            the variance, Kaiser and broken stick; for linear models besides parallel analysis,
            Gavish–Donoho and Minka, as far as the eigenvalues that are known decide them.
        cumulative : bool
            Whether the running sum is drawn.
        ax : Axes or None
            None makes a figure.

        Returns
        -------
        SpectrumDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA
        >>> from mercer.plotting import SpectrumDisplay
        >>> pca = PCA().fit(load_iris().data)
        >>> SpectrumDisplay.from_estimator(pca, rules=[0.95, 0.99]).cutoffs
        {'95 % of the variance': 2, '99 % of the variance': 3}
        """
        known = Spectrum(estimator)
        cutoffs: dict[str, int] = {}
        undecided = []
        for text, rule, asked in known.rules(rules):
            found = known.cut(rule, asked)
            if isinstance(found, int):
                cutoffs[text] = found
            elif found is None:
                undecided.append(text)
        made = cls(known.values, known.total, cutoffs=cutoffs, undecided=undecided)
        return made.plot(ax, cumulative=cumulative)

    def plot(self, ax: Axes | None = None, *, cumulative: bool = True) -> Self:
        """Draw the spectrum.

        Parameters
        ----------
        ax : Axes or None
            None makes a figure.
        cumulative : bool
            Whether the running sum is drawn, where the total variance is known.

        Returns
        -------
        SpectrumDisplay
            Itself.

        Examples
        --------
        >>> from mercer.plotting import SpectrumDisplay
        >>> SpectrumDisplay([4.0, 2.0, 1.0], 8.0).plot().line_.get_ydata()
        array([0.5  , 0.75 , 0.875])
        """
        heights = np.asarray(self.eigenvalues, np.float64) if self.shares is None else self.shares
        if heights.ndim != 1 or not len(heights):
            raise ValueError(
                f"eigenvalues has shape {heights.shape}: there is no component to draw."
            )
        ax = open_panel(5.6, 3.6) if ax is None else ax
        number = np.arange(1, len(heights) + 1)
        if len(heights) <= BARS:
            self.bars_ = ax.bar(number, heights, color=SKY, width=0.75)
        else:
            edges = np.arange(len(heights) + 1) + 0.5
            self.bars_ = ax.stairs(heights, edges, fill=True, color=SKY)
        ticker = matplotlib("ticker")
        whole = ticker.MaxNLocator("auto", integer=True, min_n_ticks=1)
        ax.xaxis.set_major_locator(whole)
        margin = 0.02 * len(heights) + 0.1
        ax.set_xlim(0.5 - margin, len(heights) + 0.5 + margin)
        entitle(ax, xlabel="Component", ylabel="Share of the variance")
        self.ax_, self.figure_, self.sum_ax_, self.line_ = ax, ax.figure, None, None
        if self.shares is None:
            entitle(ax, ylabel="Eigenvalue")
        else:
            ax.yaxis.set_major_formatter(ticker.PercentFormatter(1, symbol=" %"))
        if cumulative and self.shares is not None:
            self._draw_sum(number)
        self._draw_cutoffs(float(np.max(heights, initial=0.0)) or 1.0)
        ax.set_xticks([tick for tick in ax.get_xticks() if 1 <= tick <= len(heights)])
        return self

    def _draw_sum(self, number: Values) -> None:
        """Draw the running sum on a scale of its own, on the right."""
        ticker = matplotlib("ticker")
        right, shares = self.ax_.twinx(), np.asarray(self.shares)
        dots = {"marker": "o", "markersize": 3.2} if len(number) <= 40 else {}
        style = {"color": INK, "linewidth": 1.2, **dots}
        (self.line_,) = right.plot(number, np.cumsum(shares), **style)
        right.yaxis.set_major_formatter(ticker.PercentFormatter(1, symbol=" %"))
        right.yaxis.set_major_locator(ticker.FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        right.spines[:].set_visible(False)
        right.spines["right"].set_visible(True)
        entitle(right, ylabel="Sum of the first")
        self.ax_.tick_params(axis="y", colors=BLUE)
        self.ax_.yaxis.label.set_color(BLUE)
        self.sum_ax_ = right

    def _draw_cutoffs(self, highest: float) -> None:
        """Draw the cut-offs above the data: the scales leave room for their names."""
        settle(self.ax_)
        count = len(self.cutoffs)
        room = 1 - count * row_height(self.ax_, count) if count else 1.0
        self.ax_.set_ylim(0, 1.05 * highest / room)
        ticks = [t for t in self.ax_.get_yticks() if t <= 1.05 * highest]
        self.ax_.set_yticks(ticks)
        host = self.ax_ if self.sum_ax_ is None else self.sum_ax_
        if self.sum_ax_ is not None:
            top = max(1.0, float(self.line_.get_ydata()[-1]))
            self.sum_ax_.set_ylim(0, 1.05 * top / room)
        ordered = sorted(self.cutoffs.items(), key=lambda item: item[1])
        texts = [f"{short(text)}: {k}" for text, k in ordered]
        flags = draw_flags(host, [k + 0.5 for _, k in ordered], texts)
        self.cutoffs_ = dict(zip((text for text, _ in ordered), flags, strict=True))


class Spectrum:
    """What a fitted model tells of its spectrum."""

    def __init__(self, model: Any) -> None:
        axes = split(model)[1]
        fitted = getattr(axes, "projection_", None)
        ratio = getattr(axes, "explained_variance_ratio_", None)
        found = getattr(axes, "explained_variance_", getattr(axes, "eigenvalues_", None))
        if found is None:
            raise ValueError(
                f"This {type(axes).__name__} has neither explained_variance_ nor eigenvalues_ to "
                f"draw: it is not fitted, or it never has them. Fit it, or pass a PCA or a "
                f"KernelPCA."
            )
        self.linear = hasattr(axes, "components_")
        self.values = to_numpy(found).astype(np.float64)
        self.total: float | None = None
        if fitted is not None:
            self.values, self.total = fitted.eigenvalues, float(fitted.total_variance)
        elif ratio is not None:
            share = float(to_numpy(ratio).sum(dtype=np.float64))
            self.total = float(self.values.sum()) / share if share > 0 else 0.0
        elif getattr(axes, "n_components", 0) is None:  # scikit-learn's KernelPCA: every one
            self.total = float(self.values.sum())
        self.n, self.d = self._sides(axes)

    def _sides(self, axes: Any) -> tuple[int | None, int | None]:
        """Return rows, as often as their weights say, and features, where they are known."""
        rows = getattr(axes, "n_samples_", None)
        if rows is None and hasattr(axes, "eigenvectors_"):
            rows = axes.eigenvectors_.shape[0]
        if rows is None and hasattr(axes, "plan_"):
            rows = axes.plan_.size.n
        if rows is None:
            return None, None
        self.rows = int(rows)
        count = float(rows)
        larger = getattr(axes, "eigenvalues_", None)
        if larger is None and hasattr(axes, "singular_values_"):
            larger = to_numpy(axes.singular_values_).astype(np.float64) ** 2
        variances = to_numpy(getattr(axes, "explained_variance_", []))
        if larger is not None and len(variances) and variances[0] > 0:
            count = float(to_numpy(larger)[0] / variances[0]) + 1  # λ of the scatter is (Σw − 1)λ
        n = max(round(count), self.rows)
        return n, int(axes.components_.shape[1]) if self.linear else n

    def rules(self, asked: Any) -> list[tuple[str, Rule, bool]]:
        """Return names and rules, and whether they were asked for."""
        if isinstance(asked, Mapping):
            return [(name, self._rule(rule), True) for name, rule in asked.items()]
        wanted = (EVERY + LINEAR if self.linear else EVERY) if asked is None else tuple(asked)
        found = []
        for one in wanted:
            try:
                rule = self._rule(one)
            except ValueError:
                if asked is not None:
                    raise
                continue  # Minka's needs as many rows as columns
            found.append((rule_name(rule), rule, asked is not None))
        return found

    def _rule(self, rule: Any) -> Rule:
        n, d = (self.n or 2**62, self.d or 2**62)
        return as_rule(rule, n, d)

    def cut(self, rule: Rule, asked: bool) -> int | ValueError | None:
        """Return how many components a rule would keep; None where it must see more."""
        if self.total is None:
            return None
        values, n, d = np.maximum(self.values, 0.0), self.n, self.d
        if n is None or d is None:
            # A share is of what is shown; every other rule counts rows or columns.
            if type(rule).__name__ not in ("Fraction", "Threshold", "Count"):
                return None
            n = d = len(values) + 1
        most = min(n, d)
        if len(values) < most and self.total - values.sum() <= 1e-12 * self.total:
            values = np.concatenate([values, np.zeros(most - len(values))])
        try:
            k = rule.choose(values, self.total, n, d)
        except ValueError as refused:
            if asked:
                raise
            return refused
        return k if k is None else min(k, len(self.values))


def rule_name(rule: Rule) -> str:
    """Name a rule in words."""
    words = NAMES.get(type(rule).__name__)
    if words is None or type(rule).__module__ != Rule.__module__:
        return repr(rule)
    values = rule.get_params()
    if "p" in values:
        values["p"] = f"{100 * values['p']:.4g} %"
        words = words.replace("{p:.4g}", "{p}")
    return words.format(**values)
