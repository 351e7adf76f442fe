"""Kernel PCA of random Fourier features (Rahimi & Recht 2007; Lopez-Paz et al. 2014)."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import replace
from typing import Any, Self

import numpy as np

from mercer.checks import is_real, require
from mercer.config import format_bytes, get_config
from mercer.data import ArraySource, Source, StringSource
from mercer.kernels import Constant, Frequencies, Kernel, Sum
from mercer.landmarks.objective import axes_asked
from mercer.messages import counted
from mercer.methods.base import Cost, Method, Size, Streaming, largest
from mercer.methods.kernel.judged import affordable, judged, supposed, walks
from mercer.methods.kernel.products import MORE
from mercer.methods.linear.covariance import Covariance
from mercer.methods.linear.dot import Dot
from mercer.methods.linear.iterative import Iterative
from mercer.problem import KernelProblem, Problem
from mercer.projection import Projection
from mercer.projection.fourier import FourierMap, FourierProjection, OfFeatures
from mercer.rules import Count

# Frequencies of no given number: so many, or so many for every axis.
_LEAST, _EACH = 500, 4
# Variances below this share of the largest are rounding.
_ZERO = 1e-12
_OTHERS = 'method="exact", "subset" and "nystrom" take any kernel.'


class RandomFeatures(Streaming):
    r"""Linear PCA of random Fourier features.

    A kernel of x − y is the mean of waves, :math:`k(x,y) = E\,a^2\cos\omega^T(x-y)`. Of q
    frequencies drawn from its spectrum the features
    :math:`z(x) = [a_i\cos\omega_i^Tx,\ a_i\sin\omega_i^Tx]` have dot products that are unbiased
    estimates of it, and a linear method finds their axes. For RBF, Laplacian, Matérn and rational
    quadratic kernels, and sums, products, powers and positive multiples of them. The rows are
    read in blocks and not kept; nothing is as large as the kernel matrix. Rows can come in
    batches, where the linear method takes batches.

    Features do not lie in the kernel's space, so nothing bounds what they miss but products with
    the kernel matrix. Where those are affordable the certificate judges the span that the scores
    make over the rows; else its figures are the features' own, and said to be estimates. Variances
    and their ratios, and what a share in `n_components` is of, are the features' in any case. A
    `gap` sharpens that judgement; it does not raise q.

    Parameters
    ----------
    q : int or None
        Frequencies; each makes two features, a cosine and a sine. None: 500, or four for every
        axis.
    orthogonal : bool
        Draw frequencies that are orthogonal, as many at a time as there are columns: still
        unbiased, and of less variance. Not for `Laplacian(norm="l1")`.
    linear : Method or None
        The linear method that finds axes of the 2q features, such as `Covariance()`, `SVD()` or
        `Iterative()`. None: `Covariance()`; `Dot()` where there are fewer rows than features;
        `Iterative()` where neither fits the memory.

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
        seen = self._size(size.n, size.k, size.itemsize)
        linear = self._linear(seen)
        kept = self._kept(linear, seen)
        # Features that are not kept are not read by columns: few rows spare nothing.
        cost = linear.cost(seen if kept else replace(seen, n=max(seen.n, seen.d)))
        memory = cost.memory + 24.0 * d * q + (_bytes(seen) if kept else 0.0)
        products = cost.products + 2.0 * n * d * q * (1 if kept else cost.passes + 1)
        if affordable(n, d, size.axes):
            products += walks(n, d, size.axes)
            memory = max(memory, 16.0 * n * (d + 6 * (size.axes + MORE)))
        return Cost(cost.passes + 1, products, cost.factor, memory)

    def frequencies(self, n: int, k: int | None) -> int:
        """Return how many frequencies there are, for k axes of n rows; n axes are all there are."""
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

    def fit(self, problem: Problem) -> FourierProjection:
        self.check()
        problem = _with_waves(problem)
        problem.require_finite_rows()
        problem = problem.moved(always=True)
        features = self._drawn(problem)
        seen = self._size(problem.sides[0], _asked(problem), problem.source.dtype.itemsize)
        linear = self._linear(seen)
        source = features.of(problem.source)
        if self._kept(linear, seen):
            source = ArraySource(source.collect(label="features")).weighted(source.weights)
        found = linear.fit(_among(problem, source, features))
        return judged(problem, _fitted(problem, features, found))

    def begin(self, problem: Problem) -> OfFeatures:
        self.check()
        problem, linear = _with_waves(problem), self._stream
        features = self._drawn(problem)
        d = 0 if problem.source.sparse else problem.source.shape[1]
        source = problem.source.map(_gone, features.width, np.float64)
        return OfFeatures(features, linear.begin(_among(problem, source, features)), d)

    def finish(self, problem: Problem, fold: Any) -> FourierProjection:
        assert isinstance(problem, KernelProblem)
        source = problem.source.map(_gone, fold.features.width)
        found = self._stream.finish(_among(problem, source, fold.features), fold.inner)
        return supposed(_fitted(problem, fold.features, found))

    @property
    def streams(self) -> bool:
        """Whether rows may come in batches."""
        return self.linear is None or isinstance(self.linear, Streaming)

    @property
    def _stream(self) -> Streaming:
        linear = Covariance() if self.linear is None else self.linear
        assert isinstance(linear, Streaming)  # partial_fit is not offered else
        return linear

    def _drawn(self, problem: KernelProblem) -> FourierMap:
        """Draw the frequencies."""
        kernel, d, asked = problem.kernel, problem.source.shape[1], axes_asked(problem)
        assert kernel is not None
        n = problem.sides[0]
        q = self.frequencies(n, asked)
        if asked is not None:
            self.require_room(n, asked)
        waves, constant = _parts(kernel)
        drawn = waves.spectrum(d, q, problem.rng, orthogonal=self.orthogonal)
        if constant > 0:
            drawn = Frequencies.concat([drawn, Constant(constant).spectrum(d, 1, problem.rng)])
        return FourierMap(drawn)  # of rows that are moved already

    def label(self, size: Size) -> str:
        return f"{self.name} ({counted(self.frequencies(size.n, size.k), 'wave')})"

    def shrunk(self, size: Size, room: float) -> Self | None:
        def fits(q: int) -> bool:
            try:
                return self.changed(q=q).cost(size).memory <= room
            except MemoryError:  # of a linear method that needs the features kept
                return False

        q = largest(fits, max(1, -(-(size.k or 1) // 2)), self.frequencies(size.n, size.k))
        return None if q is None else self.changed(q=q)

    @property
    def nearer(self) -> str:
        return 'A larger q comes nearer; method="auto" finds the way.'

    def require_room(self, n: int, k: int) -> None:
        q = self.frequencies(n, k)
        if k > 2 * q:
            raise ValueError(
                f"n_components={k} does not fit the {2 * q} features of q={q} "
                f"frequencies. Take a q of at least {-(-k // 2)}; some times that is better."
            )

    def _size(self, n: int, k: int | None, itemsize: int) -> Size:
        """Return the size of the linear problem."""
        width = 2 * self.frequencies(n, k)
        return Size(n, width, None if k is None else min(k, n, width), itemsize)

    def _linear(self, seen: Size) -> Method:
        """Return the linear method."""
        if self.linear is not None:
            return self.linear
        budget = get_config().budget
        if seen.n < seen.d and self._kept(Dot(), seen) and Dot().cost(seen).memory <= budget / 2:
            return Dot()
        return Covariance() if Covariance().cost(seen).memory <= budget else Iterative()

    def _kept(self, linear: Method, seen: Size) -> bool:
        """Tell whether the features are kept: where they are read often, and there is room."""
        room = _bytes(seen) <= get_config().budget / 4
        if isinstance(linear, Dot) and not room:
            raise MemoryError(
                f"{linear!r} reads features by columns, and to keep those of {seen.n} rows takes "
                f"{format_bytes(int(_bytes(seen)))}. Use linear=Covariance() or Iterative(), or "
                f"raise the budget with config_context(memory=...)."
            )
        return room and linear.cost(seen).passes > 1


def _bytes(seen: Size) -> float:
    return float(seen.n) * seen.d * seen.itemsize


def _asked(problem: KernelProblem) -> int | None:
    return problem.rule.first_guess(*problem.sides)


def _gone(block: Any) -> Any:
    raise ValueError("The rows of earlier batches are gone.")


def suits(problem: KernelProblem) -> bool:
    """Tell whether the kernel of a problem has Fourier features."""
    try:
        _with_waves(problem)
    except ValueError:
        return False
    return True


def _with_waves(problem: Problem) -> KernelProblem:
    """Return the problem, if its kernel has Fourier features; say what else to do if not."""
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


def _parts(kernel: Kernel) -> tuple[Kernel, float]:
    """Return what a kernel has of waves, and what it adds to them, which one feature holds."""
    if not isinstance(kernel, Sum):
        return kernel, 0.0
    still = [term for term in kernel.terms if isinstance(term, Constant)]
    waves = [term for term in kernel.terms if not isinstance(term, Constant)]
    if not still or not waves:
        return kernel, 0.0
    return functools.reduce(operator.add, waves), float(sum(term.value for term in still))


def _among(problem: KernelProblem, source: Source, features: FourierMap) -> Problem:
    """Return the linear problem of features."""
    asked, limit = _asked(problem), min(problem.sides[0], features.width)
    rule = problem.rule if asked is None else Count(min(asked, limit))
    return Problem(source, rule, center=problem.center, tol=problem.tol, rng=problem.rng)


def _fitted(problem: KernelProblem, features: FourierMap, found: Projection) -> FourierProjection:
    """Return the map, without axes whose variance is rounding."""
    values = found.eigenvalues
    k = int((values > _ZERO * np.max(values, initial=0.0)).sum())
    assert problem.kernel is not None
    return FourierProjection(
        mean=found.mean,
        components=found.components[:, :k],
        eigenvalues=values[:k],
        total_variance=found.total_variance,
        rest=max(0.0, found.total_variance - float(values[:k].sum())),
        certificate=found.certificate,
        kernel=problem.kernel,
        map=replace(features, shift=problem.shift),
        centred=problem.center,
    )
