"""Estimators with the scikit-learn API."""

from mercer.estimators.pca import PCA

__all__ = ["PCA"]
