"""Similarities of rows, and their algebra: ``RBF(0.1) + 2 * Polynomial(5)``."""

from mercer.kernels.algebra import InSpace, Normalized, Power, Product, Scaled
from mercer.kernels.base import Kernel
from mercer.kernels.checks import check_psd
from mercer.kernels.columns import OnColumns, Separable
from mercer.kernels.distances import RBF, Laplacian, Matern, RationalQuadratic
from mercer.kernels.dots import Cosine, Linear, Polynomial, Tanh
from mercer.kernels.given import FromFunction, Precomputed
from mercer.kernels.grammar import as_kernel, parse
from mercer.kernels.histograms import (
    AdditiveChi2,
    ChiSquare,
    ExponentialChiSquare,
    GeneralizedHistogramIntersection,
    Hellinger,
    HistogramIntersection,
    JensenShannon,
)
from mercer.kernels.models import Fisher
from mercer.kernels.slopes import Frequencies, Slopes
from mercer.kernels.strings import Subsequence, Substring
from mercer.kernels.sums import Constant, Sum

__all__ = [
    "RBF",
    "AdditiveChi2",
    "ChiSquare",
    "Constant",
    "Cosine",
    "ExponentialChiSquare",
    "Fisher",
    "Frequencies",
    "FromFunction",
    "GeneralizedHistogramIntersection",
    "Hellinger",
    "HistogramIntersection",
    "InSpace",
    "JensenShannon",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Normalized",
    "OnColumns",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Separable",
    "Slopes",
    "Subsequence",
    "Substring",
    "Sum",
    "Tanh",
    "as_kernel",
    "check_psd",
    "parse",
]
