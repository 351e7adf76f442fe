"""The way back from a kernel's feature space to rows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer import progress
from mercer.arrays import Array, Matrix, like, moved, to_numpy
from mercer.config import format_bytes, get_config
from mercer.data import Source, at_home
from mercer.estimators.base import Projecting
from mercer.kernels import Kernel
from mercer.messages import ParameterError, format_parameter, warn
from mercer.methods import ConvergenceWarning, Exact, RandomFeatures
from mercer.preimage import Found, Preimage, as_preimage, suited_to
from mercer.problem import KernelProblem
from mercer.projection import KernelProjection


class _IfWayBack:
    """A method that exists only where the estimator has a way back to rows.

    Like scikit-learn's `available_if`, but the error keeps its type and its remedy.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        functools.update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, estimator: Any, owner: Any = None) -> Callable[..., Any]:
        if estimator is None:
            return self.method
        asked = estimator.preimage is not None or estimator.fit_inverse_transform
        if not asked and not _learnt(estimator):
            raise _no_way_back()  # an AttributeError too: hasattr is False
        return MethodType(self.method, estimator)


def _learnt(estimator: Any) -> bool:
    """Tell whether the last fit learnt a way back."""
    return hasattr(estimator, "preimage_") or hasattr(estimator, "dual_coef_")


def _no_way_back() -> NotFittedError:
    return NotFittedError(
        "The fit_inverse_transform parameter was not set to True when instantiating and "
        'hence the inverse transform is not available; nor is preimage="auto", '
        '"fixed_point", "gradient", "ridge" or "distances" set.'
    )


class Back(Projecting):
    """Pre-images: rows whose images are near what the components keep of others."""

    projection_: KernelProjection
    kernel_: Kernel | None
    gamma_: float | None
    eigenvalues_: Array
    eigenvectors_: Array
    X_fit_: Any
    preimage: str | Preimage | None
    alpha: float
    fit_inverse_transform: bool

    @_IfWayBack
    def inverse_transform(self, X: Any) -> Any:
        """Return rows that scores stand for.

        Parameters
        ----------
        X : array-like of shape (n, k)
            Scores.

        Returns
        -------
        array of shape (n, d)
            Pre-images by the method `preimage`; where that is None, scikit-learn's kernel ridge
            regression, which takes fit_inverse_transform=True.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import KernelPCA
        >>> X = load_iris().data
        >>> kpca = KernelPCA(2, preimage="fixed_point").fit(X)
        >>> kpca.inverse_transform(kpca.transform(X[:1])).round(2)
        array([[5.08, 3.52, 1.4 , 0.21]])
        """
        check_is_fitted(self)
        if hasattr(self, "preimage_"):
            return like(self.preimages(X).rows, self._check_scores(X).home)
        if not _learnt(self):  # set after the fit
            raise _no_way_back()
        scores, basis, back = self._check_scores(X), self.X_transformed_fit_, self.dual_coef_
        kernel = self.kernel_
        assert kernel is not None
        basis, back = (moved(part, scores.reference) for part in (basis, back))
        rows = scores.map(lambda block: kernel(block.rows, basis) @ back, int(back.shape[1]))
        return self._handed(X, rows)

    def preimages(self, scores: Any) -> Found:
        """Return the rows that scores stand for, with a report of how near each came.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import KernelPCA
        >>> X = load_iris().data
        >>> kpca = KernelPCA(2, kernel="rbf", gamma=0.1, preimage="gradient").fit(X)
        >>> int(kpca.preimages(kpca.transform(X)).converged.sum())
        150
        """
        check_is_fitted(self)
        if not hasattr(self, "preimage_"):
            raise ValueError(
                'preimage=None. Set preimage="auto", "fixed_point", "gradient", "ridge" or '
                '"distances", and fit again.'
            )
        source = self._check_scores(scores)
        with progress.session():
            rows = to_numpy(source.collect())
            found: Found = self.preimage_.find(self.projection_, self._way, rows)
        lost = int((~found.converged).sum())
        if lost:
            warn(
                f"{lost} of {len(found.rows)} pre-images did not converge; preimages(scores) tells "
                f"which. Let {self.preimage_!r} run longer, or use another method.",
                ConvergenceWarning,
            )
        return found

    def reconstruct(self, X: Any) -> Any:
        """Return what the components keep of rows: pre-images of their projections.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import KernelPCA
        >>> X = load_iris().data
        >>> KernelPCA(2, preimage="gradient").fit(X).reconstruct(X[:1]).round(2)
        array([[5.08, 3.52, 1.4 , 0.21]])
        """
        return self.inverse_transform(self.transform(X))

    def reconstruction_error(self, X: Any) -> Any:
        """Return each row's squared distance from its reconstruction, in feature space.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import KernelPCA
        >>> X = load_iris().data
        >>> KernelPCA(2, kernel="rbf", gamma=0.1).fit(X).reconstruction_error(X[:1]).round(4)
        array([0.0074])
        """
        check_is_fitted(self)
        residuals = self._residuals(self._rows(X, reset=False))
        with progress.session():
            return at_home(residuals).collect(label="residuals")[:, 0]

    def _residuals(self, source: Source) -> Source:
        return self.projection_.residuals(source)

    def _refuse_preimage(self) -> None:
        """Refuse to look for rows whose images are near what features keep of others."""
        if self.preimage not in (None, "auto"):
            raise ParameterError(
                "preimage",
                self.preimage,
                f"needs components in the kernel's space, and random features have none. Use "
                f"fit_inverse_transform=True, which learns from scores, or "
                f"{format_parameter('method', 'subset')}.",
            )

    def _fit_back(self, problem: KernelProblem) -> None:
        """Learn what the way back needs, of rows and their scores."""
        for leftover in ("_way", "preimage_", "dual_coef_", "X_transformed_fit_"):
            self.__dict__.pop(leftover, None)
        preimage, ridge = self.preimage, self.fit_inverse_transform
        if preimage == "auto" and isinstance(self.plan_.method, RandomFeatures):
            preimage, ridge = None, True  # there are no components in the kernel's space
        elif preimage == "auto":
            preimage = suited_to(self.kernel_)
        if preimage is None and not ridge:
            return
        scores = self._own_scores(problem.source).whole()
        if preimage is not None:
            known = None
            if isinstance(self.plan_.method, Exact):
                known = _products(problem, self.projection_)
            self.preimage_ = clone(as_preimage(preimage))
            rows, weights = problem.source.whole(), problem.source.weights
            given = {"products": known, "weights": weights}
            self._way = self.preimage_.begin(self.projection_, rows, to_numpy(scores), **given)
        if ridge:
            self._fit_ridge(problem.source, scores)

    def _fit_ridge(self, source: Source, scores: Array) -> None:
        """Regress the rows on their scores, as scikit-learn does."""
        import scipy.linalg

        rows, kernel = source.whole(), self.kernel_
        if isinstance(rows, list):
            raise ValueError("fit_inverse_transform: strings cannot be made of scores.")
        if hasattr(rows, "tocsr"):
            raise NotImplementedError("Inverse transform not implemented for sparse matrices!")
        n, room = source.shape[0], get_config().budget
        if 8 * n * n > room:
            raise MemoryError(
                f"fit_inverse_transform needs {format_bytes(8 * n * n)} for the kernel of {n} "
                f"scores, more than the memory budget of {format_bytes(room)}. Raise it with "
                f'config_context(memory=...), or use preimage="gradient".'
            )
        assert kernel is not None
        self.X_transformed_fit_ = scores
        K = to_numpy(kernel(scores)).astype(np.float64)
        # A row of weight two is two equations: its penalty is half.
        weights = 1.0 if source.weights is None else source.weights
        K[np.diag_indices_from(K)] += self.alpha / weights
        back = scipy.linalg.solve(K, to_numpy(rows), assume_a="pos", overwrite_a=True)
        self.dual_coef_ = like(back, source.reference, source.dtype)


def _products(problem: KernelProblem, fitted: KernelProjection) -> Matrix | None:
    """Return the kernel matrix times the components and the mean, which the fit has found already.

    Kα = λα/w + ⟨h̄, α⟩ for eigenvectors of the centred matrix, and K times the shares is h̄.
    """
    weights = problem.source.weights
    w = np.ones(problem.shape[0]) if weights is None else weights
    if not (problem.center and np.all(w > 0)):
        return None
    A, values = to_numpy(fitted.components), fitted.eigenvalues * problem.divisor
    return np.column_stack([A * values / w[:, None] + fitted.mean @ A, fitted.mean])
