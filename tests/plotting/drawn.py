"""What is on Axes, and models to draw."""

import io

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.contour import QuadContourSet
from matplotlib.text import Text
from sklearn.base import BaseEstimator


class Powers(BaseEstimator):
    """A model of any number of components: yⱼ = x₁ʲ x₂."""

    n_features_in_ = 2

    def __init__(self, width=1):
        self.width = width

    def transform(self, X):
        self.seen = X
        x, y = np.asarray(X).T
        return np.stack([x**j * y for j in range(self.width)], axis=1)


def sets(ax):
    return [c for c in ax.collections if isinstance(c, QuadContourSet)]


def points(ax):
    return [c for c in ax.collections if isinstance(c, PathCollection)]


def texts(host):
    return [text.get_text() for text in host.get_texts()]


def rendered(display):
    """Write a figure as a user would: text is laid out, and formulas are parsed."""
    display.figure_.savefig(io.BytesIO(), format="png", dpi=50)


def boxes(artists):
    """Return the places of texts on a rendered figure; a line to a tip is not text."""
    found = [artist.get_window_extent() for artist in artists]  # places the text of a note, too
    return [
        Text.get_window_extent(artist) if isinstance(artist, Text) else box
        for artist, box in zip(artists, found, strict=True)
    ]


def apart(artists, slack=1.0):
    """Tell whether no text covers another, but for a pixel."""
    found = [box.padded(-slack) for box in boxes(artists)]
    return not any(a.overlaps(b) for i, a in enumerate(found) for b in found[:i])
