"""Symmetric operators that are never larger than memory."""

from mercer.operators.base import Deflated, Dense, Operator, apart
from mercer.operators.combined import best_in_span, combined, facing, held_by
from mercer.operators.gram import Coarse, Gram
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
]
