"""Kernel PCA of random Fourier features (Rahimi & Recht 2007; Lopez-Paz et al. 2014)."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import Array, like, to_numpy
from mercer.certificate import Axes, Evidence, Figure
from mercer.checks import check_integer, require
from mercer.config import format_bytes, get_config
from mercer.data import ArraySource, Block, Source, StringSource
from mercer.kernels import Constant, Frequencies, Sum
from mercer.landmarks.base import Uniform
from mercer.messages import ParameterError, counted, format_parameter
from mercer.methods.base import Cost, Method, Size, Streaming
from mercer.methods.kernel.landmark_fit import fit_landmarks
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
# Landmarks that judge the components: at least this many, and this many per component.
_LANDMARKS, _LANDMARKS_EACH = 1000, 8
# Bytes for each entry of their kernel matrix.
_LANDMARK_BYTES = 512
_OTHERS = 'method="exact", "subset" and "nystrom" take any kernel.'
_BY_FEATURES = (
    "Components of random features. They explain a share of the features' variance, which "
    "approaches the kernel's as q grows."
)
_BY_SCORES = (
    "Components of random features: the variance in feature space along their scores. Variances "
    "of components are of the features."
)


class RandomFeatures(Streaming):
    r"""Linear PCA of random Fourier features.

    A shift-invariant kernel is a mean of cosines, :math:`k(x,y) = E\,a^2\cos\omega^T(x-y)`. With q
    frequencies drawn from its spectrum, dot products of the features
    :math:`z(x) = [a_i\cos\omega_i^Tx,\ a_i\sin\omega_i^Tx]` are unbiased estimates of the kernel,
    and a linear method finds their components. For RBF, Laplacian, Matérn and rational quadratic
    kernels, and sums, products, powers and positive multiples of them. Rows are read in blocks and
    not kept; they can come in batches if the linear method takes batches.

    The certificate bounds the variance in the kernel's feature space that the scores of the rows
    explain, along the span of some landmarks. With batches, its figures are estimates from the
    features. Variances, their ratios and a share in `n_components` refer to the features.

    Parameters
    ----------
    q : int or None
        Number of frequencies; each gives two features, a cosine and a sine. None: 500, or four per
        component.
    orthogonal : bool
        Draw orthogonal frequencies, which have less variance. Not for `Laplacian(norm="l1")`.
    linear : Method or None
        The linear method for the 2q features. None: `Covariance()`; `Dot()` if there are fewer rows
        than features; `Iterative()` if neither fits in memory.

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
    >>> bool(kpca.certificate_.gap < 0.05)
    True
    """

    name = "features"
    for_rows = False
    approximates = judges = True

    def __init__(
        self, q: int | None = None, orthogonal: bool = False, linear: Method | None = None
    ) -> None:
        self.q, self.orthogonal, self.linear = q, orthogonal, linear

    def cost(self, size: Size) -> Cost:
        self.check()
        n, d = size.n, size.d
        linear, features, stored = self._linear(n, size.k, size.itemsize)
        # Features that are not stored cannot be read by columns: few rows save nothing.
        cost = linear.cost(features if stored else replace(features, n=max(n, features.d)))
        waves = float(d * self.frequencies(n, size.k))
        memory = cost.memory + 24.0 * waves
        memory += float(n) * features.d * features.itemsize if stored else 0.0
        products = cost.products + 2.0 * n * waves * (1 if stored else cost.passes + 1)
        return Cost(cost.passes + 1, products, cost.factor, memory)

    def frequencies(self, n: int, k: int | None) -> int:
        """Return the number of frequencies for k components of n rows."""
        few = 0 if k is None or k >= n else k
        return max(_LEAST, _EACH * few) if self.q is None else int(self.q)

    def check(self) -> None:
        """Raise if parameters are invalid."""
        if self.q is not None:
            check_integer(self, "q")
        require(self, "orthogonal", isinstance(self.orthogonal, bool), "True or False")
        valid = self.linear is None or (isinstance(self.linear, Method) and self.linear.for_rows)
        wanted = "a method of linear PCA, such as Covariance() or Iterative(), or None"
        require(self, "linear", valid, wanted)

    def fit(self, problem: Problem) -> Axes:
        self.check()
        problem = move_rows(_require_spectrum(problem), always=True)
        map, n = self._draw(problem), problem.shape[0]
        linear, _, stored = self._linear(n, problem.n_components, problem.source.dtype.itemsize)
        source = map.of(problem.source)
        if stored:
            source = ArraySource(source.collect(label="features")).weighted(source.weights)
        axes = linear.fit(_linear_problem(problem, source, map))
        return _estimate(_fourier_projection(problem, map, axes), axes.evidence.converged)

    def judge(self, problem: Problem, axes: Axes) -> Axes:
        """Bound the variance that scores explain, along the span of some landmarks."""
        assert isinstance(problem, KernelProblem)
        projection, k = axes.projection, len(axes.evidence.eigenvalues)
        m = _landmark_count(problem.shape[0], k)
        if k == 0 or m <= k:
            return axes
        assert isinstance(projection, FourierProjection)
        where = problem.source.reference
        mean, A = (like(to_numpy(x), where) for x in (projection.mean, projection.components))

        def scores(block: Block) -> Array:
            return (projection.map(block.rows, np.float64) - mean) @ A

        fit = fit_landmarks(problem, Uniform().select(problem, m), beside=(scores, k))
        evidence = fit.evidence(axes.evidence.eigenvalues, *fit.explained_by(fit.along_scores()))
        converged = axes.evidence.converged
        evidence = replace(evidence, notes=(_BY_SCORES,), converged=converged, rayleigh=False)
        return Axes(projection, evidence)

    def begin(self, problem: Problem) -> FeatureFold:
        self.check()
        problem = _require_spectrum(problem)
        map = self._draw(problem)
        d = 0 if problem.source.sparse else problem.source.shape[1]
        source = problem.source.map(_gone, map.width, np.float64)
        return FeatureFold(map, self._stream.begin(_linear_problem(problem, source, map)), d)

    def finish(self, problem: Problem, fold: Any) -> Axes:
        assert isinstance(problem, KernelProblem)
        source = problem.source.map(_gone, fold.features.width)
        axes = self._stream.finish(_linear_problem(problem, source, fold.features), fold.inner)
        projection = _fourier_projection(problem, fold.features, axes)
        return _estimate(projection, axes.evidence.converged)

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
        """Draw the frequencies; the constant of a sum takes one feature."""
        kernel, (n, d), k = problem.kernel, problem.source.shape, problem.n_leading
        assert kernel is not None
        if k is not None:
            self.check_size(n, k)
        terms = kernel.terms if isinstance(kernel, Sum) else (kernel,)
        waves = [term for term in terms if not isinstance(term, Constant)]
        constant = float(sum(term.value for term in terms if isinstance(term, Constant)))
        if not waves:
            waves, constant = [kernel], 0.0
        kernel = functools.reduce(operator.add, waves)
        drawn = kernel.spectrum(d, self.frequencies(n, k), problem.rng, orthogonal=self.orthogonal)
        if constant > 0:
            drawn = Frequencies.concat([drawn, Constant(constant).spectrum(d, 1, problem.rng)])
        return FourierMap(drawn)  # for rows that are moved already

    def label(self, size: Size) -> str:
        return f"{self.name} ({counted(self.frequencies(size.n, size.k), 'wave')})"

    @property
    def remedy(self) -> str:
        return f"Increase q, or use {format_parameter('method', 'auto')}."

    def check_size(self, n: int, k: int) -> None:
        q = self.frequencies(n, k)
        if k > 2 * q:
            why = f"is more than the {2 * q} features of q={q}. Use q >= {-(-k // 2)}."
            raise ParameterError("n_components", k, why)

    def _linear(self, n: int, k: int | None, itemsize: int) -> tuple[Method, Size, bool]:
        """Return the linear method, the size of its problem, and whether to store the features."""
        width = 2 * self.frequencies(n, k)
        size = Size(n, width, None if k is None else min(k, n, width), itemsize)
        budget, nbytes = get_config().budget, float(n) * width * itemsize
        fits, linear = nbytes <= budget / 4, self.linear
        if linear is None:
            linear = Covariance() if Covariance().cost(size).memory <= budget else Iterative()
            dot = Dot().cost(size) if n < width and fits else None
            if dot is not None and dot.passes > 1 and dot.memory <= budget / 2:
                linear = Dot()
        if isinstance(linear, Dot) and not fits:
            raise MemoryError(
                f"{linear!r} reads features by columns, but storing those of {n} rows takes "
                f"{format_bytes(int(nbytes))}. Use linear=Covariance() or Iterative(), or raise "
                f"the budget with {format_parameter('memory')}."
            )
        return linear, size, fits and linear.cost(size).passes > 1  # they are read often


def _gone(block: Any) -> Any:
    raise ValueError("The rows of earlier batches are not stored.")


def has_spectrum(problem: KernelProblem) -> bool:
    """Return whether the kernel of a problem has Fourier features."""
    try:
        _require_spectrum(problem)
    except ValueError:
        return False
    return True


def _require_spectrum(problem: Problem) -> KernelProblem:
    """Return the problem; raise if the kernel has no Fourier features."""
    assert isinstance(problem, KernelProblem)
    kernel, source = problem.kernel, problem.source
    if kernel is None:
        raise ValueError(
            "kernel='precomputed' has no Fourier features, which need rows and a kernel formula. "
            f"Pass the rows and the kernel itself. For a matrix: {_OTHERS}"
        )
    if isinstance(source, StringSource):
        raise ValueError(f"{kernel!r} on strings has no Fourier features. {_OTHERS}")
    try:
        kernel.value_at_zero(source.shape[1])
    except ValueError as error:
        raise ValueError(f"{error} {_OTHERS}") from None
    return problem


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


def _landmark_count(n: int, k: int) -> int:
    """Return how many landmarks judge k components: fewer if they do not fit in memory."""
    most = math.isqrt(get_config().budget // _LANDMARK_BYTES)
    return min(n, most, max(_LANDMARKS, _LANDMARKS_EACH * k))


def _estimate(projection: FourierProjection, converged: bool) -> Axes:
    """Return the components with an estimate from the features alone."""
    values, total = projection.eigenvalues, projection.total_variance
    none = np.zeros(0)
    evidence = Evidence.of_estimates(values, none, total, _BY_FEATURES, converged=converged)
    # The total of the features is not that of the kernel.
    about = Figure(total, "estimate")
    evidence = replace(evidence, total=(about, about))
    return Axes(projection, evidence)
