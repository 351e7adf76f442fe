"""Matrices of rows: moments, triangular factors, operators and their eigenvalues."""

from mercer.linalg.centering import Centering
from mercer.linalg.frequent_directions import DirectionsSketch
from mercer.linalg.gram import Gram, LowPrecisionGram
from mercer.linalg.moments import Moments
from mercer.linalg.operator import DeflatedOperator, DenseOperator, Operator
from mercer.linalg.products import AdjointProduct, CovarianceProduct
from mercer.linalg.standardized import CovarianceOperator, DotOperator
from mercer.linalg.tsqr import TriangularFactor

__all__ = [
    "AdjointProduct",
    "Centering",
    "CovarianceOperator",
    "CovarianceProduct",
    "DeflatedOperator",
    "DenseOperator",
    "DirectionsSketch",
    "DotOperator",
    "Gram",
    "LowPrecisionGram",
    "Moments",
    "Operator",
    "TriangularFactor",
]
