"""Biplot: rows as points and columns as arrows, in the plane of two components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.arrays import to_numpy
from mercer.estimators import inspection
from mercer.plotting import base
from mercer.plotting.base import Axes, ComponentDisplay, Style, Values
from mercer.plotting.scores import check_plot_scores

# Places for the name of an arrow, best first: points from its tip, degrees from its direction.
PLACES = [(r, t) for r in (4, 12, 24, 36) for t in (0, 30, -30, 60, -60, 90, -90, 135, -135)]


@dataclass(eq=False, repr=False)
class BiplotDisplay(ComponentDisplay):
    r"""Biplot: standardized scores as points, loadings as arrows.

    With scores of unit variance, :math:`z = y/\sqrt\lambda`, and loadings
    :math:`l = \sqrt\lambda\,v`, the product :math:`z_i^T l_j` is the reconstruction of column j
    of the centered row i from two components; the length of an arrow is the standard deviation
    of its column in this reconstruction, and the cosine between two arrows approximates the
    correlation of their columns, the better the more variance the components explain. All arrows
    are stretched by one factor, `stretch_`, to the size of the base.

    Create it with `from_estimator`. Source: K. R. Gabriel (1971), The biplot graphic display of
    matrices with application to principal component analysis, Biometrika 58, 453–467.

    Parameters
    ----------
    scores, loadings : arrays of shape (n, 2) and (d, 2)
        Standardized scores on the components drawn; components times standard deviations.
    names : sequence of d str
        Names of the columns.
    components, ratio, labels
        As in `ScoresDisplay`.

    Attributes
    ----------
    points_, key_
        As in `ScoresDisplay`.
    arrows_, drawn_ : Quiver and ndarray of int
        The arrows, longest first, and their columns.
    names_ : list of Annotation
        Names of the arrows, as far as there is room for them.
    stretch_ : float
        Factor that the loadings are multiplied by.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mercer import PCA
    >>> from mercer.plotting import BiplotDisplay
    >>> X, cultivar = load_wine(return_X_y=True, as_frame=True)
    >>> display = BiplotDisplay.from_estimator(PCA(2, scale=True).fit(X), X, labels=cultivar)
    >>> display.names[display.drawn_[0]]
    'flavanoids'
    """

    figsize = (6.2, 4.6)
    scores: Any
    loadings: Any
    names: Sequence[str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        labels: Any = None,
        *,
        components: Any = None,
        names: Sequence[str] | None = None,
        **style: Any,
    ) -> Self:
        """Draw rows and loadings of a fitted PCA, or of a pipeline that ends in one.

        `X`, `labels` and `components` are as in `ScoresDisplay.from_estimator`; `names`, those of
        the columns, are by default the ones that the model was fitted with; `ax` and `top` are
        those of `plot`.
        """
        pca = inspection.unwrap(estimator)[1]
        if not hasattr(pca, "components_") or not hasattr(pca, "explained_variance_"):
            raise TypeError(
                f"This {type(pca).__name__} has no loadings: it is not fitted, or not linear. Fit "
                f"it, or draw its scores with mercer.plotting.ScoresDisplay."
            )
        V = to_numpy(pca.components_).astype(np.float64)
        if len(V) < 2:
            raise ValueError(
                f"A biplot needs two components, but the model has {len(V)}. Fit at least two."
            )
        scores, selected = inspection.selected_scores(estimator, X, components, 2)
        deviation = np.sqrt(to_numpy(pca.explained_variance_).astype(np.float64))[selected]
        if not getattr(pca, "whiten", False):
            scores = scores / np.where(deviation > 0, deviation, 1.0)
        names = inspection.fitted_feature_names(estimator) if names is None else names
        ratio = inspection.explained_ratio(estimator)
        about = {"components": selected, "ratio": ratio, "labels": labels}
        display = cls(scores, V[selected].T * deviation, [str(name) for name in names], **about)
        return display.plot(**style)

    def plot(self, ax: Axes | None = None, *, top: int = 10) -> Self:
        """Draw the biplot with the `top` longest arrows on `ax`, or in a new figure."""
        Y, L = check_plot_scores(self.scores), np.asarray(self.loadings, np.float64)
        if Y.shape[1] != 2 or L.shape != (len(self.names), 2) or len(self.components) != 2:
            raise ValueError(
                f"components={self.components!r}, scores {Y.shape}, loadings {L.shape} and "
                f"{len(self.names)} names: a biplot needs two components, such as (0, 1), and one "
                f"name per column."
            )
        lengths = np.hypot(*L.T)
        longest = np.argsort(-lengths, kind="stable")[:top]
        self.drawn_ = longest[lengths[longest] > 0]
        reach = np.quantile(np.abs(Y), 0.99) or 1.0
        self.stretch_ = float(1.1 * reach / lengths.max()) if lengths.max() > 0 else 1.0
        tips = self.stretch_ * L[self.drawn_]
        self._open(ax)
        self._set_limits(tips)
        self._draw_rows(Y, outside=ax is None, faint=True)
        self._draw_arrows(tips)
        return self

    def _set_limits(self, tips: Values) -> None:
        """Leave room for arrows and names; both axes have the same unit, so angles are true."""
        ax, (xlabel, ylabel) = self.ax_, base.component_titles(self.components, self.ratio)
        ax.update_datalim(np.concatenate([tips, np.zeros((1, 2))]))
        ax.margins(0.1)
        ax.set_aspect("equal", adjustable="datalim")
        base.set_texts(ax, xlabel=xlabel, ylabel=ylabel)
        for draw in (ax.axhline, ax.axvline):
            draw(0, color="#d0d0d0", linewidth=0.7, zorder=1)

    def _draw_arrows(self, tips: Values) -> None:
        ax, origin = self.ax_, np.zeros(len(tips))
        ax.autoscale_view()
        base.lay_out(ax)
        shape = {"width": 1.0 / 72, "units": "inches", "headwidth": 6, "headlength": 7}
        shape |= {"angles": "xy", "scale_units": "xy", "scale": 1}
        self.arrows_ = ax.quiver(origin, origin, *tips.T, color=base.INK, zorder=5, **shape)
        names = [base.one_line(self.names[j], 20) for j in self.drawn_]
        key = ax.get_legend()
        self.names_ = _name_tips(ax, tips, names, [] if key is None else [key.get_window_extent()])
        drawn, d = len(tips), len(self.names)
        note = "standardized scores" + (f", {drawn} of {d} loadings" if drawn < d else "")
        style = {"ha": "right", "va": "bottom", "fontsize": "x-small", "color": "#6b6b6b"}
        ax.text(0.995, 0.01, note, transform=ax.transAxes, zorder=6, **style)


def _name_tips(ax: Axes, tips: Values, names: list[str], taken: list[Any]) -> list[Any]:
    """Write names beside their tips, outside of the boxes taken; those without room are left out.

    The first name has the first choice.
    """
    bbox, text = base.matplotlib("transforms").Bbox, base.matplotlib("text").Text
    frame, point = ax.get_window_extent(), ax.figure.figure.dpi / 72
    style: Style = {"textcoords": "offset points", "ha": "center", "va": "center", "zorder": 6}
    style |= {"color": base.INK, "fontsize": "small", "parse_math": False}
    style |= {"bbox": {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.6}}
    style |= {"arrowprops": {"arrowstyle": "-", "linewidth": 0.5, "color": base.GRAY}}
    center, *ends = ax.transData.transform([(0, 0), *tips])
    shafts = np.vstack([center, *(np.linspace(center, end, 50) for end in ends)])
    taken = [*taken, *(bbox([end - 3 * point, end + 3 * point]) for end in ends)]
    notes = []
    for tip, end, name in zip(tips, ends, names, strict=True):
        note = ax.annotate(name, tip, xytext=(0, 0), **style)
        half, free = text.get_window_extent(note).size / 2, []
        for distance, turn in PLACES:
            angle = np.arctan2(*(end - center)[::-1]) + np.radians(turn)
            unit = np.array([np.cos(angle), np.sin(angle)])
            # The edge of the name nearest to the tip is about at this distance from it.
            middle = end + distance * point * unit + np.clip([2.5, 1] * unit, -1, 1) * half
            middle = np.clip(middle, frame.min + half, frame.max - half)
            box = bbox([middle - half, middle + half])
            if (2 * half <= frame.size).all() and not box.count_overlaps(taken):
                free.append(box)
        if not free:
            note.remove()
            continue
        box = min(free, key=lambda box: box.count_contains(shafts))
        note.xyann = ((box.min + box.max) / 2 - end) / point
        taken.append(box)
        notes.append(note)
    return notes
