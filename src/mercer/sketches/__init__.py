"""Maps of rows that keep their dot products: ``Hashing(500).fit_transform(X)``."""

from mercer.sketches.base import RandomMap, SketchMap
from mercer.sketches.drawn import Drawn
from mercer.sketches.gaussian import Gaussian
from mercer.sketches.grouping import FeatureGrouping
from mercer.sketches.hadamard import Hadamard
from mercer.sketches.hashing import Hashing
from mercer.sketches.images import PixelGrouping, Resize
from mercer.sketches.size import suggested_size
from mercer.sketches.sparse_sign import SparseSign

__all__ = [
    "Drawn",
    "FeatureGrouping",
    "Gaussian",
    "Hadamard",
    "Hashing",
    "PixelGrouping",
    "RandomMap",
    "Resize",
    "SketchMap",
    "SparseSign",
    "suggested_size",
]
