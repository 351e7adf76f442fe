"""Symmetric operators that are never larger than memory."""

from mercer.operators.base import Deflated, Dense, Operator, apart
from mercer.operators.coarse import Coarse
from mercer.operators.combined import best_in_span, combined, facing, held_by, points_of
from mercer.operators.gram import Gram
from mercer.operators.treated import Covariance, Dots

__all__ = [
    "Coarse",
    "Covariance",
    "Deflated",
    "Dense",
    "Dots",
    "Gram",
    "Operator",
    "apart",
    "best_in_span",
    "combined",
    "facing",
    "held_by",
    "points_of",
]
