"""Matrices of rows: moments, triangular factors, operators and their eigenvalues."""

from mercer.linalg.factors import DirectionsSketch, TriangularFactor
from mercer.linalg.gram import Gram, LowPrecisionGram
from mercer.linalg.moments import Moments
from mercer.linalg.operator import DeflatedOperator, DenseOperator, Operator
from mercer.linalg.standardized import (
    Centering,
    CovarianceOperator,
    CovarianceProduct,
    DotOperator,
)

__all__ = [
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
