"""Accuracy of approximations: dot products, components, eigenvalues, operators, subspaces."""

from mercer.metrics.dot_products import DotProductError, dot_product_error, measured_size
from mercer.metrics.errors import empirical_error, kernel_axes, validation_error
from mercer.metrics.operators import (
    eigenvalue_difference,
    operator_distance,
    similarity,
    subspace_angles,
)

__all__ = [
    "DotProductError",
    "dot_product_error",
    "eigenvalue_difference",
    "empirical_error",
    "kernel_axes",
    "measured_size",
    "operator_distance",
    "similarity",
    "subspace_angles",
    "validation_error",
]
