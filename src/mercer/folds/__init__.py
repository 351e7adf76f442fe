"""What one pass over the rows accumulates."""

from mercer.folds.directions import Directions
from mercer.folds.moments import Moments
from mercer.folds.products import Adjoint, Centre, Product
from mercer.folds.triangle import Triangle

__all__ = [
    "Adjoint",
    "Centre",
    "Directions",
    "Moments",
    "Product",
    "Triangle",
]
