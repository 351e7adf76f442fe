"""Kernel PCA of random Fourier features (Rahimi & Recht 2007; Lopez-Paz et al. 2014)."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import replace
from typing import Any, Self

import numpy as np

from mercer.certificate import Axes
from mercer.checks import is_real, require
from mercer.config import format_bytes, get_config
from mercer.data import ArraySource, Source, StringSource
from mercer.kernels import Constant, Frequencies, Kernel, Sum
from mercer.messages import ParameterError, counted, format_parameter
from mercer.methods.base import Cost, Method, Size, Streaming, largest
from mercer.methods.kernel.feature_evidence import (
    affordable,
    estimate_by_features,
    judge_features,
    walk_cost,
)
from mercer.methods.kernel.products import EXTRA
from mercer.methods.linear.direct import Covariance, Dot
from mercer.methods.linear.iterative import Iterative
from mercer.methods.preparation import move_rows
from mercer.problem import KernelProblem, Problem
from mercer.projection.fourier import FeatureFold, FourierMap, FourierProjection
from mercer.rules import Count

# Frequencies if q is None: at least this many, and this many per component.
_LEAST, _EACH = 500, 4
# Variances below this share of the largest are rounding.
_ZERO = 1e-12
_OTHERS = 'method="exact", "subset" and "nystrom" take any kernel.'


class RandomFeatures(Streaming):
    r"""Linear PCA of random Fourier features.

    A shift-invariant kernel is a mean of cosines, :math:`k(x,y) = E\,a^2\cos\omega^T(x-y)`. With q
    frequencies drawn from its spectrum, dot products of the features
    :math:`z(x) = [a_i\cos\omega_i^Tx,\ a_i\sin\omega_i^Tx]` are unbiased estimates of the kernel,
    and a linear method finds their components. For RBF, Laplacian, Matérn and rational quadratic
    kernels, and sums, products, powers and positive multiples of them. The rows are read in blocks
    and not kept; nothing is as large as the kernel matrix. Rows can come in batches if the linear
    method takes batches.

    Features do not lie in feature space, and only products with the kernel matrix bound what they
    miss. If those are affordable, the certificate judges the span of the scores over the rows;
    otherwise its figures are those of the features, labelled as estimates. Variances, their ratios
    and a share in `n_components` always refer to the features. A `gap` makes the judgement sharper;
    it does not raise q.

    Parameters
    ----------
    q : int or None
        Number of frequencies; each gives two features, a cosine and a sine. None: 500, or four per
        component.
    orthogonal : bool
        Draw orthogonal frequencies, as many at a time as there are columns: still unbiased, with
        less variance. Not for `Laplacian(norm="l1")`.
    linear : Method or None
        The linear method for the 2q features, such as `Covariance()`, `SVD()` or `Iterative()`.
        None: `Covariance()`; `Dot()` if there are fewer rows than features; `Iterative()` if
        neither fits in memory.

    References
    ----------
    A. Rahimi & B. Recht, Random features for large-scale kernel machines, NIPS (2007).
    D. Lopez-Paz, S. Sra, A. Smola, Z. Ghahramani & B. Schölkopf, Randomized nonlinear component
    analysis, ICML (2014). F. X. Yu, A. T. Suresh, K. Choromanski, D. Holtmann-Rice & S. Kumar,
    Orthogonal random features, NIPS (2016).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> from mercer.methods import RandomFeatures
    >>> X = load_digits().data
    >>> method = RandomFeatures(300, orthogonal=True)
    >>> kpca = KernelPCA(5, kernel="rbf", gamma=0.001, method=method, random_state=0).fit(X)
    >>> kpca.transform(X).shape
    (1797, 5)
    >>> bool(kpca.certificate_.gap_estimate < 0.02)
    True
    """

    name = "features"
    for_rows = False

    def __init__(
        self, q: int | None = None, orthogonal: bool = False, linear: Method | None = None
    ) -> None:
        self.q, self.orthogonal, self.linear = q, orthogonal, linear

    def cost(self, size: Size) -> Cost:
        self.check()
        q, n, d = self.frequencies(size.n, size.k), size.n, size.d
        features = self._size(size.n, size.k, size.itemsize)
        linear = self._linear(features)
        stored = self._stores(linear, features)
        # Features that are not stored cannot be read by columns: few rows save nothing.
        cost = linear.cost(features if stored else replace(features, n=max(n, features.d)))
        memory = cost.memory + 24.0 * d * q + (_nbytes(features) if stored else 0.0)
        products = cost.products + 2.0 * n * d * q * (1 if stored else cost.passes + 1)
        passes = cost.passes + 1
        if affordable(n, d, size.components):
            # Two of the scores, three of the kernel matrix; float32 rows need another product.
            passes += 5 + (size.itemsize == 4)
            products += walk_cost(n, d, size.components)
            memory = max(memory, 16.0 * n * (d + 6 * (size.components + EXTRA)))
        return Cost(passes, products, cost.factor, memory)

    def frequencies(self, n: int, k: int | None) -> int:
        """Return the number of frequencies for k components of n rows."""
        few = 0 if k is None or k >= n else k
        return max(_LEAST, _EACH * few) if self.q is None else int(self.q)

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        q = self.q
        fine = q is None or (is_real(q) and math.isfinite(q) and q == int(q) >= 1)
        require(self, "q", fine, "a whole number, 1 or more, or None")
        require(self, "orthogonal", isinstance(self.orthogonal, bool), "True or False")
        fine = isinstance(self.linear, Method) and self.linear.for_rows
        wanted = "a method of linear PCA, such as Covariance() or Iterative(), or None"
        require(self, "linear", fine or self.linear is None, wanted)

    def fit(self, problem: Problem) -> Axes:
        self.check()
        problem = move_rows(_require_spectrum(problem), always=True)
        map = self._draw(problem)
        n, k = problem.shape[0], problem.n_components
        features = self._size(n, k, problem.source.dtype.itemsize)
        linear = self._linear(features)
        source = map.of(problem.source)
        if self._stores(linear, features):
            source = ArraySource(source.collect(label="features")).weighted(source.weights)
        axes = linear.fit(_linear_problem(problem, source, map))
        projection = _fourier_projection(problem, map, axes)
        return judge_features(problem, projection, converged=axes.evidence.converged)

    def begin(self, problem: Problem) -> FeatureFold:
        self.check()
        problem, linear = _require_spectrum(problem), self._stream
        map = self._draw(problem)
        d = 0 if problem.source.sparse else problem.source.shape[1]
        source = problem.source.map(_gone, map.width, np.float64)
        return FeatureFold(map, linear.begin(_linear_problem(problem, source, map)), d)

    def finish(self, problem: Problem, fold: Any) -> Axes:
        assert isinstance(problem, KernelProblem)
        source = problem.source.map(_gone, fold.features.width)
        axes = self._stream.finish(_linear_problem(problem, source, fold.features), fold.inner)
        projection = _fourier_projection(problem, fold.features, axes)
        return estimate_by_features(projection, converged=axes.evidence.converged)

    @property
    def streams(self) -> bool:
        """Whether rows may come in batches."""
        return self.linear is None or isinstance(self.linear, Streaming)

    @property
    def _stream(self) -> Streaming:
        linear = Covariance() if self.linear is None else self.linear
        assert isinstance(linear, Streaming)  # else partial_fit is not offered
        return linear

    def _draw(self, problem: KernelProblem) -> FourierMap:
        """Draw the frequencies."""
        kernel, d, k = problem.kernel, problem.source.shape[1], problem.n_leading
        assert kernel is not None
        n = problem.shape[0]
        q = self.frequencies(n, k)
        if k is not None:
            self.check_size(n, k)
        waves, constant = _split_constant(kernel)
        drawn = waves.spectrum(d, q, problem.rng, orthogonal=self.orthogonal)
        if constant > 0:
            drawn = Frequencies.concat([drawn, Constant(constant).spectrum(d, 1, problem.rng)])
        return FourierMap(drawn)  # for rows that are moved already

    def label(self, size: Size) -> str:
        return f"{self.name} ({counted(self.frequencies(size.n, size.k), 'wave')})"

    def shrink(self, size: Size, room: float) -> Self | None:
        def fits(q: int) -> bool:
            try:
                return self.with_params(q=q).cost(size).memory <= room
            except MemoryError:  # of a linear method that needs stored features
                return False

        q = largest(fits, max(1, -(-(size.k or 1) // 2)), self.frequencies(size.n, size.k))
        return None if q is None else self.with_params(q=q)

    @property
    def remedy(self) -> str:
        return f"A larger q comes nearer; {format_parameter('method', 'auto')} finds the way."

    def check_size(self, n: int, k: int) -> None:
        q = self.frequencies(n, k)
        if k > 2 * q:
            raise ParameterError(
                "n_components",
                k,
                f"does not fit the {2 * q} features of q={q} frequencies. Take a q of at least "
                f"{-(-k // 2)}; some times that is better.",
            )

    def _size(self, n: int, k: int | None, itemsize: int) -> Size:
        """Return the size of the linear problem."""
        width = 2 * self.frequencies(n, k)
        return Size(n, width, None if k is None else min(k, n, width), itemsize)

    def _linear(self, size: Size) -> Method:
        """Return the linear method."""
        if self.linear is not None:
            return self.linear
        budget = get_config().budget
        if size.n < size.d and self._stores(Dot(), size) and Dot().cost(size).memory <= budget / 2:
            return Dot()
        return Covariance() if Covariance().cost(size).memory <= budget else Iterative()

    def _stores(self, linear: Method, size: Size) -> bool:
        """Tell whether to store the features: if they are read often, and fit."""
        fits = _nbytes(size) <= get_config().budget / 4
        if isinstance(linear, Dot) and not fits:
            raise MemoryError(
                f"{linear!r} reads features by columns, and to keep those of {size.n} rows takes "
                f"{format_bytes(int(_nbytes(size)))}. Use linear=Covariance() or Iterative(), or "
                f"raise the budget with {format_parameter('memory')}."
            )
        return fits and linear.cost(size).passes > 1


def _nbytes(size: Size) -> float:
    return float(size.n) * size.d * size.itemsize


def _gone(block: Any) -> Any:
    raise ValueError("The rows of earlier batches are gone.")


def has_spectrum(problem: KernelProblem) -> bool:
    """Tell whether the kernel of a problem has Fourier features."""
    try:
        _require_spectrum(problem)
    except ValueError:
        return False
    return True


def _require_spectrum(problem: Problem) -> KernelProblem:
    """Return the problem; refuse a kernel without Fourier features."""
    assert isinstance(problem, KernelProblem)
    kernel, source = problem.kernel, problem.source
    if kernel is None:
        raise ValueError(
            "kernel='precomputed' has no Fourier features: they are of rows, by the kernel's "
            f"formula. Pass the rows and the kernel itself; of a matrix, {_OTHERS}"
        )
    if isinstance(source, StringSource):
        raise ValueError(f"{kernel!r} of strings has no Fourier features. {_OTHERS}")
    try:
        kernel.value_at_zero(source.shape[1])
    except ValueError as error:
        raise ValueError(f"{error} {_OTHERS}") from None
    return problem


def _split_constant(kernel: Kernel) -> tuple[Kernel, float]:
    """Split a sum into its waves and its constant, which takes one feature."""
    if not isinstance(kernel, Sum):
        return kernel, 0.0
    constants = [term for term in kernel.terms if isinstance(term, Constant)]
    waves = [term for term in kernel.terms if not isinstance(term, Constant)]
    if not constants or not waves:
        return kernel, 0.0
    return functools.reduce(operator.add, waves), float(sum(term.value for term in constants))


def _linear_problem(problem: KernelProblem, source: Source, map: FourierMap) -> Problem:
    """Return the linear problem of the features."""
    k, limit = problem.n_components, min(problem.shape[0], map.width)
    rule = problem.rule if k is None else Count(min(k, limit))
    return Problem(source, rule, center=problem.center, tol=problem.tol, rng=problem.rng)


def _fourier_projection(problem: KernelProblem, map: FourierMap, axes: Axes) -> FourierProjection:
    """Return the map, without components whose variance is rounding."""
    linear = axes.projection
    values = linear.eigenvalues
    k = int((values > _ZERO * np.max(values, initial=0.0)).sum())
    assert problem.kernel is not None
    return FourierProjection(
        mean=linear.mean,
        components=linear.components[:, :k],
        eigenvalues=values[:k],
        total_variance=linear.total_variance,
        rest=max(0.0, linear.total_variance - float(values[:k].sum())),
        kernel=problem.kernel,
        map=replace(map, shift=problem.shift),
        centred=problem.center,
    )
