"""The scikit-learn face."""

from mercer.estimators.pca import PCA

__all__ = ["PCA"]
