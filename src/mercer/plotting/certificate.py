"""Certificates: what components hold, what no others can exceed, and what is left between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from mercer.certificate import Certificate, Figure
from mercer.messages import percent
from mercer.plotting.models import split
from mercer.plotting.panels import (
    Axes,
    entitle,
    figure,
    matplotlib,
    open_panel,
    points_of,
    settle,
    short,
)
from mercer.plotting.points import BLUE, COLOURS, INK, ORANGE, PALE, VERMILION
from mercer.plotting.spread import extent, font_size

# Points; smaller letters cannot be read.
LEAST = 5.0


class CertificateDisplay:
    """What components explain of the variance, what no others can exceed, and the gap between them.

    A bar for each model: blue is held; hatched is the gap, what the best components may hold
    besides; grey is out of reach of as many components. The line at the end of the gap is solid
    where it is a bound, dashed where it is an estimate.

    Make it with `from_estimator`, or `from_estimators` for several.

    Parameters
    ----------
    certificates : mapping of str to Certificate
        Certificates by the names of their models.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    captured_, gaps_ : BarContainer
        What is held, and what lies between it and the bound on the optimum.
    optima_ : list of Line2D
        Where each bound, or estimate, on the optimum is.
    texts_ : list of Text
        The figures in words, below each bar.
    residuals_, errors_ : list of Line2D
        With kind="components": residuals, and errors of the eigenvalues, of each model.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> from mercer.methods import Subset
    >>> from mercer.plotting import CertificateDisplay
    >>> X = load_digits().data
    >>> kpca = KernelPCA(5, kernel="rbf", gamma="median", method=Subset(100), random_state=0)
    >>> display = CertificateDisplay.from_estimator(kpca.fit(X))
    >>> held, gap = (float(bars[0].get_width()) for bars in (display.captured_, display.gaps_))
    >>> 0.4 < held < held + gap < 1
    True
    """

    def __init__(self, certificates: Mapping[str, Certificate]) -> None:
        self.certificates = certificates

    @classmethod
    def from_estimator(cls, estimator: Any, *, kind: str = "bar", ax: Axes | None = None) -> Self:
        """Draw the certificate of a fitted model.

        Parameters
        ----------
        estimator : fitted model
            Mercer's PCA or KernelPCA, what is built around one, or a pipeline that ends in it.
        kind : {"bar", "components"}
            The shares of the variance; or residual and error of the eigenvalue of each component.
        ax : Axes or None
            None makes a figure.

        Returns
        -------
        CertificateDisplay
        """
        return cls.from_estimators({"": estimator}, kind=kind, ax=ax)

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], *, kind: str = "bar", ax: Axes | None = None
    ) -> Self:
        """Draw the certificates of several fitted models, by name; as `from_estimator`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA
        >>> from mercer.plotting import CertificateDisplay
        >>> X = load_iris().data
        >>> models = {"one": PCA(1).fit(X), "two": PCA(2).fit(X)}
        >>> display = CertificateDisplay.from_estimators(models)
        >>> [round(float(bar.get_width()), 3) for bar in display.captured_]
        [0.925, 0.978]
        """
        certificates = {}
        for name, estimator in estimators.items():
            axes = split(estimator)[1]
            found = getattr(axes, "certificate_", None)
            if not isinstance(found, Certificate):
                raise TypeError(
                    f"This {type(axes).__name__} has no certificate_: it is not fitted, or none "
                    f"of Mercer's. Pass a fitted mercer.PCA or mercer.KernelPCA."
                )
            certificates[name] = found
        return cls(certificates).plot(ax, kind=kind)

    def plot(self, ax: Axes | None = None, *, kind: str = "bar") -> Self:
        """Draw the certificates.

        Parameters
        ----------
        ax : Axes or None
            None makes a figure.
        kind : {"bar", "components"}
            The shares of the variance; or residual and error of the eigenvalue of each component.

        Returns
        -------
        CertificateDisplay
            Itself.
        """
        if not self.certificates:
            raise ValueError("certificates is empty: give one at least, by its name.")
        if kind not in ("bar", "components"):
            raise ValueError(f'kind={kind!r} must be "bar" or "components".')
        if kind == "components":
            self._check_residuals()
            self._draw_axes(open_panel(5.2, 3.4) if ax is None else ax)
            return self
        ours = ax is None
        if ax is None:
            ax = figure(6.4, 0.95 * len(self.certificates) + 0.75).subplots()
            ax.spines[["top", "right", "left"]].set_visible(False)
        self._draw_bars(ax)
        if ours and not any("\n" in text.get_text() for text in self.texts_):
            self._close_up()
        return self

    def _close_up(self) -> None:
        """Take away the room below the last bar that is kept for a second line of text."""
        low, high = self.ax_.get_ylim()
        height, less = points_of(self.ax_)[1] / 72, 0.3
        self.ax_.set_ylim(low - less, high)
        figure = self.ax_.figure
        figure.set_figheight(figure.get_figheight() - less / (low - high) * height)

    def _draw_bars(self, ax: Axes) -> None:
        found = list(self.certificates.values())
        at = np.arange(len(found), dtype=np.float64)
        captured = np.array([float(one.captured) for one in found])
        upper = np.array([float(one.optimum_upper) for one in found])
        whole = max(1.0, float(np.max(upper, initial=0.0)))
        thick = {"height": 0.34}
        ax.barh(at, np.full(len(at), whole), color=PALE, zorder=1, **thick)
        self.captured_ = ax.barh(at, captured, color=BLUE, zorder=2, **thick)
        hatched = {"facecolor": "#fbe3b6", "edgecolor": ORANGE, "hatch": "/////", "linewidth": 0}
        width = np.maximum(upper - captured, 0.0)
        self.gaps_ = ax.barh(at, width, left=captured, zorder=2, **hatched, **thick)
        self.optima_ = []
        for y, one in zip(at, found, strict=True):
            x, style = float(one.optimum_upper), "-" if one.optimum_upper.kind == "bound" else ":"
            line = {"color": INK, "linewidth": 1.6, "linestyle": style, "zorder": 3}
            self.optima_ += ax.plot([x, x], [y - 0.24, y + 0.17], **line)
            if one.likely is not None:
                ax.plot(one.likely, y - 0.24, "v", color=INK, markersize=5, zorder=4)
        ax.set(xlim=(0, whole), ylim=(len(at) - 0.2, -0.32))
        ax.xaxis.set_major_formatter(matplotlib("ticker").PercentFormatter(1, symbol=" %"))
        ax.set_yticks(at, [short(name, 18) for name in self.certificates], parse_math=False)
        ax.tick_params(axis="y", length=0)
        entitle(ax, xlabel="Share of the variance")
        self.ax_, self.figure_ = ax, ax.figure
        self._write(at, found)

    def _write(self, at: Any, found: list[Certificate]) -> None:
        """Write below each bar what it shows, in as many lines as it takes."""
        settle(self.ax_)
        width, height = points_of(self.ax_)
        room, size = 0.58 * height / (len(found) + 0.12), font_size("small")
        while True:
            said = [_lines(_words(one), width, size) for one in found]
            if size <= LEAST or 1.25 * size * max(map(len, said)) <= room:
                break
            size -= 0.5
        self.texts_ = []
        for y, one, lines in zip(at, found, said, strict=True):
            style = {"fontsize": size, "color": INK if one.converged else VERMILION}
            text = self.ax_.text(0, y + 0.2, "\n".join(lines), va="top", zorder=5, **style)
            text.set_parse_math(False)
            text.set_in_layout(False)
            self.texts_.append(text)

    def _check_residuals(self) -> None:
        for name, one in self.certificates.items():
            if not len(one.residuals) or np.all(np.isnan(one.residuals)):
                what = f"The certificate of {name!r}" if name else "This certificate"
                raise ValueError(
                    f"{what} has no residuals of single components: its method tells what all of "
                    f'them explain. Draw it with kind="bar".'
                )

    def _draw_axes(self, ax: Axes) -> None:
        """Draw residual and error of each eigenvalue as shares of it."""
        self.residuals_, self.errors_ = [], []
        for i, (name, one) in enumerate(self.certificates.items()):
            number = np.arange(1, len(one.eigenvalues) + 1)
            with np.errstate(divide="ignore", invalid="ignore"):
                # An axis of no variance has no share of it.
                least = 1e-14 * np.max(one.eigenvalues)
                values = np.where(one.eigenvalues > least, one.eigenvalues, np.nan)
                residual, error = one.residuals / values, one.eigenvalue_errors / values
            colour, of = COLOURS[i % len(COLOURS)], f"{short(name, 18)}: " if name else ""
            bound = {"color": colour, "marker": "o", "label": f"{of}residual (proven)"}
            guess = {"color": colour, "marker": "s", "markerfacecolor": "white"}
            thin = {"linewidth": 0.8, "markersize": 4}
            self.residuals_ += ax.plot(number, residual, **bound, **thin)
            guess |= {"linestyle": ":", "label": f"{of}error of the eigenvalue (estimated)"}
            self.errors_ += ax.plot(number, error, **guess, **thin)
        ax.set_yscale("log", nonpositive="mask")
        ticker = matplotlib("ticker")
        ax.xaxis.set_major_locator(ticker.MaxNLocator(integer=True, min_n_ticks=1))
        entitle(ax, xlabel="Component", ylabel="As a share of the eigenvalue")
        key = ax.legend(frameon=False, fontsize="small")
        for text in key.get_texts():
            text.set_parse_math(False)
        self.ax_, self.figure_ = ax, ax.figure


def _words(one: Certificate) -> list[str]:
    """Return what a certificate says, piece by piece."""
    words = [
        _say("explained", one.captured),
        _say("optimum", one.optimum_upper, "≤", like=percent(one.captured)),
        _say("gap", one.gap, "≤"),
    ]
    if one.likely is not None:
        words.append(f"probably {_percent(one.gap_estimate, up=True)} ▾")
    return [*words, "converged" if one.converged else "not converged"]


def _lines(words: list[str], width: float, size: float) -> list[str]:
    """Return the pieces in lines no longer than a width in points."""
    lines = words[:1]
    for word in words[1:]:
        longer = f"{lines[-1]},  {word}"
        if extent(longer, size)[0] <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _say(what: str, value: Figure, sign: str = "", like: str = "") -> str:
    """Say a figure, and what it is: a limit rounded up, unless it reads `like` another."""
    sign = ("about" if value.kind == "estimate" else sign) + " " if sign else ""
    said = _percent(value, up=bool(sign) and percent(value) != like)
    return f"{what} {sign}{said} ({value.label})"


def _percent(share: float, *, up: bool = False) -> str:
    """Write a share, rounded down, or up where it is a limit; a tiny gap keeps a digit."""
    if share != 0 and abs(share) < 1e-4:
        return percent(max(share, 1e-6), 4, up=up)
    return percent(share, up=up)
