"""Matrices of rows: moments, triangular factors, operators and their eigenvalues."""

from mercer.linalg.factors import *
from mercer.linalg.gram import *
from mercer.linalg.moments import *
from mercer.linalg.operator import *
from mercer.linalg.standardized import *
