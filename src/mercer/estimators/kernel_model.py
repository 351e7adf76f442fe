"""Base class of kernel PCA: methods of a fitted kernel projection, with pre-images."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from types import MethodType
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mercer import progress
from mercer.arrays import Array, Matrix, like, numpy_dtype, to_device_of, to_numpy
from mercer.data import ArraySource, Source
from mercer.estimators.base import ProjectionEstimator
from mercer.kernels import Kernel
from mercer.messages import warn
from mercer.methods import ConvergenceWarning, Exact, RandomFeatures
from mercer.preimage import PREIMAGES, Preimage, Preimages, suited_to
from mercer.preimage.closed_form import require_gram_fits, solve_ridge
from mercer.problem import KernelProblem
from mercer.projection import KernelProjection


class _IfInvertible:
    """A method that exists only if scores can be mapped back to samples; else a NotFittedError."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        functools.update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, estimator: Any, owner: Any = None) -> Callable[..., Any]:
        if estimator is None:
            return self.method
        requested = estimator.preimage is not None or estimator.fit_inverse_transform
        if not requested and not estimator._is_invertible:
            raise _not_invertible()  # an AttributeError too: hasattr is False
        return MethodType(self.method, estimator)


def _not_invertible() -> NotFittedError:
    return NotFittedError(
        "The fit_inverse_transform parameter was not set to True when instantiating and hence the "
        'inverse transform is not available. Set it, or preimage="auto", "fixed_point", '
        '"gradient", "ridge" or "distances", and fit again.'
    )


def _eigen(name: str, text: str) -> Any:
    """Return a property that changes the components of `projection_` when it is set."""

    def get(self: Any) -> Array:
        if name not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no {name}.")
        return vars(self)[name]

    def set_(self: Any, value: Any) -> None:
        if name in vars(self):  # else the fit, or a file, sets it
            values = name == "eigenvalues_"
            self._replace_eigen(*((value, None) if values else (self.eigenvalues_, value)))
        self.__dict__[name] = value

    return property(get, set_, doc=text)


class KernelModel(ProjectionEstimator):
    """Base of estimators whose fit ends in a kernel projection.

    Its components are α = √w v/√λ, with eigenvalues λ and eigenvectors v of the kernel matrix and
    weights w: a user may replace λ and v.
    """

    projection_: KernelProjection
    kernel_: Kernel | None
    gamma_: float | None
    explained_variance_: Array
    X_fit_: Any
    preimage: str | Preimage | None
    alpha: float
    fit_inverse_transform: bool
    _kernel: Kernel | None
    _shift: Any

    eigenvalues_ = _eigen("eigenvalues_", "Eigenvalues of the centered kernel matrix.")
    eigenvectors_ = _eigen("eigenvectors_", "Its eigenvectors; only if the method is exact.")

    def _replace_eigen(self, values: Array, vectors: Array | None) -> None:
        """Make the components √w v/√λ of new eigenvalues, and of new eigenvectors if any."""
        A, old = (to_numpy(x) for x in (self.projection_.components, self.eigenvalues_))
        new, old = to_numpy(values).astype(np.float64), old.astype(np.float64)
        weighted = A * np.sqrt(old[: A.shape[1]])  # √w v
        if vectors is not None:
            V, before = to_numpy(vectors), to_numpy(self.eigenvectors_)
            norms = np.linalg.norm(before.astype(np.float64), axis=1)
            roots = np.linalg.norm(weighted, axis=1)
            roots = np.divide(roots, norms, where=norms > 0, out=np.ones(len(V)))
            weighted = roots[:, None] * V
        k = min(len(new), len(old), weighted.shape[1])
        new, old = new[:k], old[:k]
        scale = np.divide(1.0, np.sqrt(new), where=new > 0, out=np.zeros(k))
        ratio = np.divide(new, old, where=old != 0, out=np.zeros(k))
        self.projection_ = replace(
            self.projection_,
            components=like(weighted[:, :k] * scale, self.projection_.components),
            eigenvalues=self.projection_.eigenvalues[:k] * ratio,
        )

    @_IfInvertible
    def inverse_transform(self, X: Any) -> Any:
        """Map scores back to samples.

        Parameters
        ----------
        X : array-like of shape (n, k)
            Scores.

        Returns
        -------
        array of shape (n, d)
            Pre-images computed by the method `preimage`. With preimage=None, the result of
            scikit-learn's kernel ridge regression, which needs fit_inverse_transform=True.
        """
        self._require_fitted()
        if hasattr(self, "preimage_"):
            return like(self.preimages(X).rows, self._check_scores(X).output_reference)
        if not self._is_invertible:  # the parameters were set after the fit
            raise _not_invertible()
        scores, kernel = self._check_scores(X), self.kernel_
        assert kernel is not None
        basis = to_device_of(self.X_transformed_fit_, scores.reference)
        dual = to_device_of(self.dual_coef_, scores.reference)
        rows = scores.map(lambda block: kernel(block.rows, basis) @ dual, int(dual.shape[1]))
        return self._output(X, rows)

    def preimages(self, scores: Any) -> Preimages:
        """Return pre-images of scores, and how well each one converged."""
        self._require_fitted()
        if not hasattr(self, "preimage_"):
            raise ValueError(
                'preimage=None. Set preimage="auto", "fixed_point", "gradient", "ridge" or '
                '"distances", and fit again.'
            )
        source = self._check_scores(scores)
        with progress.session():
            rows = to_numpy(source.collect())
            result: Preimages = self.preimage_.find(self.projection_, self._way, rows)
        failed = int((~result.converged).sum())
        if failed:
            warn(
                f"{failed} of {len(result.rows)} pre-images did not converge; preimages(scores) "
                f"tells which. Let {self.preimage_!r} run longer, or use another method.",
                ConvergenceWarning,
            )
        return result

    def reconstruct(self, X: Any) -> Any:
        """Return pre-images of the projections of samples onto the components."""
        return self.inverse_transform(self.transform(X))

    def _scores(self, source: Source) -> Source:
        dtype = np.result_type(source.dtype, numpy_dtype(self.eigenvalues_))
        return self.projection_.scores(source, dtype)

    def _residuals(self, source: Source) -> Source:
        return self.projection_.residuals(source)

    def _training_scores(self, source: Source) -> Source:
        """Return the scores of the training samples, √λ v/√w if there are eigenvectors."""
        weights = source.weights
        inexact = np.any(self.certificate_.residuals > 1e-6 * self.certificate_.eigenvalues)
        zero_weights = weights is not None and not np.all(weights > 0)
        if not hasattr(self, "eigenvectors_") or inexact or zero_weights:
            return self._scores(source)
        # In float64: eigenvalues of float32 rows may be too large or too small for float32.
        norms = np.sqrt(self.projection_.eigenvalues * (source.count - 1.0))
        scores = to_numpy(self.eigenvectors_) * norms
        scores = scores if weights is None else scores / np.sqrt(weights)[:, None]
        return ArraySource(like(scores, self.eigenvectors_, numpy_dtype(self.eigenvectors_)))

    @property
    def _is_invertible(self) -> bool:
        """Whether the last fit learned to map scores back to samples."""
        return hasattr(self, "preimage_") or hasattr(self, "dual_coef_")

    def _fit_inverse(self, problem: KernelProblem, reference: Array) -> None:
        """Learn the inverse transform from the samples and their scores."""
        preimage, ridge = self.preimage, self.fit_inverse_transform
        if preimage == "auto" and isinstance(self.plan_.method, RandomFeatures):
            preimage, ridge = None, True  # there are no components in the kernel's space
        elif preimage == "auto":
            preimage = suited_to(self.kernel_)
        source = problem.source
        scores = self._training_scores(source).load()
        if preimage is not None:
            exact = isinstance(self.plan_.method, Exact)
            method = PREIMAGES[preimage]() if isinstance(preimage, str) else preimage
            self.preimage_ = clone(method)
            self._way = self.preimage_.begin(
                self.projection_,
                source.load(),
                to_numpy(scores),
                products=_products(problem, self.projection_) if exact else None,
                weights=source.weights,
            )
        if ridge:
            self._fit_ridge(source, scores, reference)

    def _fit_ridge(self, source: Source, scores: Array, reference: Array) -> None:
        """Regress the samples on their scores with the kernel itself, as scikit-learn does."""
        rows, kernel = source.load(), self.kernel_
        if isinstance(rows, list):
            raise ValueError("fit_inverse_transform: scores cannot be mapped back to strings.")
        if hasattr(rows, "tocsr"):
            raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
        assert kernel is not None
        require_gram_fits("fit_inverse_transform", source.shape[0])
        self.X_transformed_fit_ = to_device_of(scores, reference)
        K = to_numpy(kernel(scores)).astype(np.float64)
        dual = solve_ridge(K, to_numpy(rows), self.alpha, source.weights)
        self.dual_coef_ = like(dual, reference, source.dtype)


def _products(problem: KernelProblem, fitted: KernelProjection) -> Matrix | None:
    """Return the kernel matrix times the components and the mean, without evaluating the kernel.

    Kα = λα/w + ⟨h̄, α⟩ for eigenvectors of the centered matrix, and K times the mean's
    coefficients is h̄.
    """
    weights = problem.source.weights
    w = np.ones(problem.shape[0]) if weights is None else weights
    if not (problem.center and np.all(w > 0)):
        return None
    A, values = to_numpy(fitted.components), fitted.eigenvalues * problem.divisor
    return np.column_stack([A * values / w[:, None] + fitted.mean @ A, fitted.mean])
