"""Matrices of rows: moments, triangular factors, operators and their eigenvalues."""

from mercer.linalg.factors import DirectionsSketch as DirectionsSketch
from mercer.linalg.factors import TriangularFactor as TriangularFactor
from mercer.linalg.gram import Gram as Gram
from mercer.linalg.gram import LowPrecisionGram as LowPrecisionGram
from mercer.linalg.moments import Moments as Moments
from mercer.linalg.operator import DenseOperator as DenseOperator
from mercer.linalg.operator import Operator as Operator
from mercer.linalg.standardized import Centering as Centering
from mercer.linalg.standardized import CovarianceOperator as CovarianceOperator
from mercer.linalg.standardized import CovarianceProduct as CovarianceProduct
from mercer.linalg.standardized import DotOperator as DotOperator
