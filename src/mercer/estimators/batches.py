"""Kernel PCA of rows that come in batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from sklearn.base import clone

from mercer.data import Seen, Source
from mercer.estimators.back import Back
from mercer.estimators.session import available_if
from mercer.methods import RandomFeatures, Streaming, Subset
from mercer.methods.preparation import move_rows, require_finite_vectors, shifted
from mercer.planning import Plan, make_kernel_plan
from mercer.problem import KernelProblem, Problem

LEFT_OVER = ("_fold", "_stream", "_kernel", "_seen", "_begun", "_coarse", "_shift")
"""What a stream leaves on the estimator; a fit of all rows takes it off."""
# What batches are summed by.
_FIXED = ("center", "kernel", "method", "gamma", "degree", "coef0", "kernel_params")


def _streams(estimator: Any) -> bool:
    """Tell whether rows may come in batches; say why not."""
    method, back = estimator.method, estimator.preimage is not None
    named = isinstance(method, str) and method in ("auto", "subset", "features")
    if not named and not isinstance(method, Streaming):
        raise AttributeError(
            f"method={method!r} needs all rows at once. partial_fit takes method='subset', "
            f"Subset(...) or Hebbian(n_basis=...), with a basis from the first batch or given, "
            f"and method='features'."
        )
    if isinstance(method, RandomFeatures) and not method.streams:
        raise AttributeError(
            f"method={method!r}: {method.linear!r} needs all rows at once. partial_fit takes "
            f"linear=Covariance(), SVD() or FrequentDirections()."
        )
    if isinstance(method, Streaming) and method.keeps_rows:
        raise AttributeError(
            f"method={method!r} keeps all rows, and batches are gone once seen. partial_fit takes "
            f"Subset with centroid='span' or 'basis', and Hebbian with a basis: n_basis or select."
        )
    if estimator.kernel == "precomputed":
        raise AttributeError(
            "partial_fit: batches of a precomputed kernel matrix have no columns for rows to "
            "come. Pass the kernel itself."
        )
    if back or estimator.fit_inverse_transform:
        raise AttributeError(
            "partial_fit: the way back is learnt from all rows, and batches are gone once seen. "
            "Leave preimage and fit_inverse_transform out."
        )
    return True


class Batches(Back):
    """Adds `partial_fit`: components in the span of a basis that the first batch fixes."""

    center: bool
    kernel: Any
    method: Any
    _kernel: Any
    _shift: Any

    @available_if(_streams)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those seen so far, and find the best components for all of them.

        The components lie in the span of a basis, which is chosen from the first batch, or given:
        `method=Subset(select=points)`. The same as one fit of all rows on that basis; of
        `Hebbian`, components that have learnt from the rows in the order they came. What is found
        inside the fit, such as gamma="median", is found from the first batch too. Rows of an
        earlier `fit` are not among those seen, and a warning says so; `n_samples_seen_` counts
        those that are. Parameters of the kernel, `center` and `method` cannot change between
        batches.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from mercer import KernelPCA
        >>> from mercer.methods import Subset
        >>> X = load_digits().data
        >>> kpca = KernelPCA(2, kernel="rbf", gamma=0.001, method=Subset(select=X[:100]))
        >>> for batch in (X[:600], X[600:1200], X[1200:]):
        ...     kpca = kpca.partial_fit(batch)
        >>> kpca.transform(X).shape
        (1797, 2)
        """
        return self._partial_fit(X, sample_weight)

    @property
    def _fixed(self) -> tuple[str, ...]:
        learns = isinstance(self.method, Streaming) and self.method.fixes_components
        return (*_FIXED, "n_components") if learns else _FIXED

    def _begin(self, batch: Source) -> None:
        """Choose the basis, and begin the sums."""
        named = RandomFeatures() if self.method == "features" else Subset()
        self._stream = clone(self.method) if isinstance(self.method, Streaming) else named
        problem: KernelProblem = self._problem(batch)
        require_finite_vectors(problem)
        problem = move_rows(problem)
        self._kernel, self._shift = problem.kernel, problem.shift
        self._fold = self._stream.begin(problem)

    def _shifted(self, batch: Source) -> Source:
        return batch if self._shift is None else shifted(batch, self._shift).weighted(batch.weights)

    def _prepared_batches(self, rows: Seen) -> tuple[Problem, Plan]:
        problem = replace(self._problem(rows, self._kernel), gap=None, shift=self._shift)
        return problem, make_kernel_plan(problem, "auto", self._stream)
