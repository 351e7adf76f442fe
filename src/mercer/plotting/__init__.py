"""Figures on matplotlib Axes: contours of components, scores, spectra.

Nothing here shows a window or changes matplotlib's settings. A function draws on the Axes it is
given, or makes a figure, which a notebook displays and ``ax.figure.savefig("a.png")`` writes.
"""

from mercer.plotting.plane import contours
from mercer.plotting.scores import scatter
from mercer.plotting.spectrum import scree

__all__ = ["contours", "scatter", "scree"]
