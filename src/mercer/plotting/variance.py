"""Explained variance: of each component, with cutoffs of rules, and certificates of models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np

from mercer.certificate import Certificate
from mercer.estimators.inspection import FittedSpectrum, rule_name, unwrap, variance_shares
from mercer.messages import percent
from mercer.plotting import base
from mercer.plotting.base import Axes, Display, Style, Values
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
    bars_, line_, cutoffs_
        The eigenvalues, their cumulative sum, on `sum_ax_`, and a pair (Line2D, Annotation) for
        each rule.

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


@dataclass(eq=False, repr=False)
class CertificateDisplay(Display):
    """Explained variance, the bound on the optimum, and the gap between them.

    One bar per model: blue is the variance explained; hatched is the gap, what the best components
    may explain beyond it; gray is out of reach for as many components. The line at the end of the
    gap is solid for a bound, dotted for an estimate. A method that knows the total variance only
    within bounds divides by the upper one for the blue part and by the lower one for the line;
    the gap in words does not depend on it, and can be smaller than the hatched part.

    Create it with `from_estimator`, or `from_estimators` for several.

    Parameters
    ----------
    certificates : mapping of str to Certificate
        Certificates by the names of their models.

    Attributes
    ----------
    captured_, gaps_ : BarContainer
        The blue and the hatched bars.
    optima_, texts_ : lists of Line2D and Text
        The lines at the ends of the gaps, and the figures in words.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import PCA
    >>> from mercer.plotting import CertificateDisplay
    >>> display = CertificateDisplay.from_estimator(PCA(5).fit(load_digits().data))
    >>> print(display.captured_[0].get_width().round(3))
    0.545
    """

    certificates: Mapping[str, Certificate]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw the certificate of a fitted PCA or KernelPCA, or a model or pipeline with one."""
        return cls.from_estimators({"": estimator}, ax=ax)

    @classmethod
    def from_estimators(cls, estimators: Mapping[str, Any], *, ax: Axes | None = None) -> Self:
        """Draw the certificates of fitted models by name."""
        certificates = {}
        for name, estimator in estimators.items():
            model = unwrap(estimator)[1]
            certificate = getattr(model, "certificate_", None)
            if not isinstance(certificate, Certificate):
                raise TypeError(
                    f"This {type(model).__name__} has no certificate_: it is not fitted, or not a "
                    f"Mercer model. Pass a fitted mercer.PCA or mercer.KernelPCA."
                )
            certificates[name] = certificate
        return cls(certificates).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the certificates on `ax`, or in a new figure."""
        if not self.certificates:
            raise ValueError("certificates is empty: pass at least one certificate by name.")
        certificates = list(self.certificates.values())
        ax = self._open(ax, (6.4, 0.95 * len(certificates) + 0.55))
        at = np.arange(len(certificates), dtype=np.float64)
        captured = np.array([float(one.captured) for one in certificates])
        upper = np.array([float(one.optimum_upper) for one in certificates])
        whole = max(1.0, float(upper.max()))
        bar: Style = {"height": 0.34, "zorder": 2}
        ax.barh(at, np.full(len(at), whole), color="#e8e8e8", height=0.34, zorder=1)
        self.captured_ = ax.barh(at, captured, color=base.BLUE, **bar)
        bar |= {"facecolor": "#fbe3b6", "edgecolor": base.ORANGE, "hatch": "/////", "linewidth": 0}
        self.gaps_ = ax.barh(at, np.maximum(upper - captured, 0.0), left=captured, **bar)
        self.optima_ = []
        for y, one in zip(at, certificates, strict=True):
            style: Style = {"linestyle": "-" if one.optimum_upper.kind == "bound" else ":"}
            style |= {"color": base.INK, "linewidth": 1.6, "zorder": 3}
            self.optima_ += ax.plot([float(one.optimum_upper)] * 2, [y - 0.24, y + 0.17], **style)
            if one.likely is not None:
                share = one.likely / float(one.total[1])  # the total of `captured`
                ax.plot(share, y - 0.24, "v", color=base.INK, markersize=5, zorder=4)
        ax.set(xlim=(0, whole), ylim=(len(at) - 0.2, -0.32))
        ax.xaxis.set_major_formatter(base.matplotlib("ticker").PercentFormatter(1, symbol=" %"))
        ax.set_yticks(at, [base.one_line(name, 18) for name in self.certificates], parse_math=False)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        base.set_texts(ax, xlabel="Share of the variance")
        words = [_words(one) for one in certificates]
        style = {"fontsize": base.fitting_size(ax, words), "va": "top", "zorder": 5}
        self.texts_ = []
        for y, text, one in zip(at, words, certificates, strict=True):
            style["color"] = base.INK if one.converged else base.VERMILION
            self.texts_.append(ax.text(0, y + 0.2, text, parse_math=False, **style))
            self.texts_[-1].set_in_layout(False)
        return self


def _words(one: Certificate) -> str:
    """Return the figures of a certificate in two lines; bounds are rounded up."""
    likely = "" if one.likely is None else f",  probably {_gap_text(one.gap_estimate)} ▾"
    optimum, gap = (
        "about" if value.kind == "estimate" else "≤" for value in (one.optimum_upper, one.gap)
    )
    return (
        f"explained {percent(one.captured)} ({one.captured.label}),  optimum {optimum} "
        f"{percent(one.optimum_upper, up=True)} ({one.optimum_upper.label})\n"
        f"gap {gap} {_gap_text(one.gap)} ({one.gap.label}){likely},  "
        f"{'converged' if one.converged else 'not converged'}"
    )


def _gap_text(gap: float) -> str:
    """Write a gap, rounded up; a tiny one keeps a digit."""
    return percent(max(gap, 1e-6), 4 if gap < 1e-4 else 2, up=True)
