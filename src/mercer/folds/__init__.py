"""What one pass over the rows accumulates."""

from mercer.folds.directions import Directions
from mercer.folds.moments import Moments
from mercer.folds.products import Adjoint, Centre, Product
from mercer.folds.sketched import Lifted, Shifted, Sketched
from mercer.folds.triangle import Triangle

__all__ = [
    "Adjoint",
    "Centre",
    "Directions",
    "Lifted",
    "Moments",
    "Product",
    "Shifted",
    "Sketched",
    "Triangle",
]
