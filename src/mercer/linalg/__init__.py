"""Matrices of rows: moments, triangular factors, operators and their eigenvalues."""

from mercer.linalg.frequent_directions import Directions
from mercer.linalg.gram import Gram
from mercer.linalg.low_precision_gram import Coarse
from mercer.linalg.moments import Moments
from mercer.linalg.operator import Deflated, Dense, Operator, apart
from mercer.linalg.products import Adjoint, Centre, Product
from mercer.linalg.standardized import Covariance, Dots
from mercer.linalg.tsqr import Triangle

__all__ = [
    "Adjoint",
    "Centre",
    "Coarse",
    "Covariance",
    "Deflated",
    "Dense",
    "Directions",
    "Dots",
    "Gram",
    "Moments",
    "Operator",
    "Product",
    "Triangle",
    "apart",
]
