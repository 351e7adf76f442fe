"""Displays on matplotlib Axes, in scikit-learn's style.

A display stores what was computed; `plot` draws it and returns the display, with `ax_`, `figure_`
and what was drawn as attributes. ``SpectrumDisplay.from_estimator(pca)`` computes and draws.
No window is shown and no setting of matplotlib is changed: a display draws on the Axes passed, or
in a new figure, which a notebook displays and ``display.figure_.savefig("a.png")`` writes.
"""

from mercer.plotting.biplot import BiplotDisplay
from mercer.plotting.errors import ReconstructionErrorDisplay
from mercer.plotting.gallery import GalleryDisplay
from mercer.plotting.plane import ContoursDisplay, NormsDisplay
from mercer.plotting.scores import PairsDisplay, ScoresDisplay
from mercer.plotting.variance import CertificateDisplay, SpectrumDisplay

__all__ = [
    "BiplotDisplay",
    "CertificateDisplay",
    "ContoursDisplay",
    "GalleryDisplay",
    "NormsDisplay",
    "PairsDisplay",
    "ReconstructionErrorDisplay",
    "ScoresDisplay",
    "SpectrumDisplay",
]
