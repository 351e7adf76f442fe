"""Figures on matplotlib Axes: contours of components and of projection norms, scores, spectra.

Nothing here shows a window or changes matplotlib's settings. A function draws on the Axes it is
given, or makes a figure, which a notebook displays and ``ax.figure.savefig("a.png")`` writes.
"""

from mercer.plotting.norms import projection_norms
from mercer.plotting.plane import contours
from mercer.plotting.scores import scatter
from mercer.plotting.spectrum import scree

__all__ = ["contours", "projection_norms", "scatter", "scree"]
