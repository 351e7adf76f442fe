"""Kernels and kernel algebra: ``RBF(0.1) + 2 * Polynomial(5)``.

A family of kernels lists what it offers in its own ``__all__``: a new kernel needs no line here.
"""

from mercer.kernels import (
    algebra,
    custom,
    dot_product,
    feature_space,
    histograms,
    stationary,
    strings,
)
from mercer.kernels.algebra import *
from mercer.kernels.base import Frequencies, Kernel
from mercer.kernels.custom import *
from mercer.kernels.dot_product import *
from mercer.kernels.feature_space import *
from mercer.kernels.grammar import as_kernel, parse
from mercer.kernels.histograms import *
from mercer.kernels.pair import Slopes
from mercer.kernels.stationary import *
from mercer.kernels.strings import *

__all__ = ["Frequencies", "Kernel", "Slopes", "as_kernel", "parse"]
__all__ += algebra.__all__
__all__ += custom.__all__
__all__ += dot_product.__all__
__all__ += feature_space.__all__
__all__ += histograms.__all__
__all__ += stationary.__all__
__all__ += strings.__all__
