"""Sketches, linear maps that preserve dot products: ``Hashing(500).fit_transform(X)``."""

from mercer.sketches.base import RandomMap, SketchMap
from mercer.sketches.dense import Gaussian, Hadamard, suggested_size
from mercer.sketches.grouping import FeatureGrouping
from mercer.sketches.images import PixelGrouping, Resize
from mercer.sketches.matrix import SketchMatrix
from mercer.sketches.sparse import Hashing, SparseSign

__all__ = [
    "FeatureGrouping",
    "Gaussian",
    "Hadamard",
    "Hashing",
    "PixelGrouping",
    "RandomMap",
    "Resize",
    "SketchMap",
    "SketchMatrix",
    "SparseSign",
    "suggested_size",
]
