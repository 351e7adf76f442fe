"""Artists on Axes, and models to draw."""

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure
from matplotlib.text import Text
from sklearn.base import BaseEstimator


class Powers(BaseEstimator):
    """A model with any number of components: yⱼ = x₁ʲ x₂."""

    n_features_in_ = 2

    def __init__(self, width=1):
        self.width = width

    def transform(self, X):
        self.rows = X
        x, y = np.asarray(X).T
        return np.stack([x**j * y for j in range(self.width)], axis=1)


def plain_axes():
    """Return Axes of a figure without a layout engine, which takes most of the time."""
    return Figure().subplots()


def contour_sets(ax):
    return [c for c in ax.collections if isinstance(c, QuadContourSet)]


def points(ax):
    return [c for c in ax.collections if isinstance(c, PathCollection)]


def offsets(display):
    return np.concatenate([np.asarray(c.get_offsets()) for c in display.points_])


def texts(host):
    return [text.get_text() for text in host.get_texts()]


def lay_out(display):
    """Do all that writing a file does but the pixels: texts are placed, formulas are parsed."""
    display.figure_.draw_without_rendering()


def boxes(artists):
    """Return the places of texts in a figure that is laid out, without lines to their tips."""
    extents = [artist.get_window_extent() for artist in artists]  # places an annotation's text
    return [
        Text.get_window_extent(artist) if isinstance(artist, Text) else box
        for artist, box in zip(artists, extents, strict=True)
    ]


def apart(artists, slack=1.0):
    """Tell whether no artist covers another by more than a pixel."""
    inner = [box.padded(-slack) for box in boxes(artists)]
    return not any(a.overlaps(b) for i, a in enumerate(inner) for b in inner[:i])
