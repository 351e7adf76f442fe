"""The kernel Hebbian algorithm (Kim, Franz & Schölkopf 2005; Günter et al. 2007)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from mercer import progress
from mercer.arrays import Array, Matrix, Vector, eigh, like, svd, to_numpy
from mercer.certificate import Axes
from mercer.checks import check_integer, check_nonnegative, check_positive, is_real, require
from mercer.config import get_config
from mercer.data import Block, PastRows
from mercer.landmarks import Landmarks, as_landmarks
from mercer.landmarks.columns import KernelColumns
from mercer.linalg import DenseOperator, Gram, Operator
from mercer.linalg.solvers import Spectrum
from mercer.linalg.span import KernelMoments, Span
from mercer.linalg.upper_blocks import upper_block_rows
from mercer.messages import counted
from mercer.methods.base import Cost, Size, Streaming
from mercer.methods.kernel.exact import exact_axes, require_finite_gram, rows_in_memory
from mercer.methods.kernel.landmark_fit import LandmarkFit, fit_landmarks
from mercer.methods.kernel.products import BETTER, expansion_evidence
from mercer.methods.kernel.subset import OnBasis
from mercer.methods.preparation import move_rows
from mercer.problem import KernelProblem, Problem
from mercer.projection import KernelProjection

# Of each kind of gain: η₀; its fall without τ; and the operations of an update per coefficient. The
# gain falls as this number over the number of updates, measured on the component that it changes
# least: components whose variances differ by more than its inverse still separate. A learned gain
# falls further, by e² at most.
_GAINS = {"kha": (0.2, 20.0, 8.0), "et": (0.05, 20.0, 12.0), "smd": (0.1, 150.0, 30.0)}
# Default limit of passes: this many updates, between these numbers of passes.
_UPDATES, _MIN_PASSES, _MAX_PASSES = 1_000_000, 1000, 12_000
# Passes that a plan assumes.
_PLANNED_PASSES = 300
# Components to begin with if a rule chooses their number from the variances, and the most there
# may be then.
_FIRST_COMPONENTS, _MAX_COMPONENTS = 8, 256
_NOT_LEADING = "They are not the leading components: others explain more."
# Share of the variance that need not be learned.
_NEGLIGIBLE = 1e-9
# Squared norms below this share of the largest are zero.
_ZERO = 1e-10
# In coordinates, eigenvalues are computed again after at least this many updates.
_EVERY = 32
# Arrays of the state by their names in files.
_ARRAYS = {"axes": "A", "slopes": "B", "log-gains": "rho", "spent": "travel", "before": "last"}


@dataclass(eq=False, repr=False)
class Hebbian(OnBasis, Streaming):
    r"""Components learned from one row after another: KHA, KHA/et and KHA-SMD.

    With :math:`y = Ak'_t` the scores of row t for the components
    :math:`\sum_i a_i\tilde\Phi(x_i)`,

    .. math:: A \leftarrow A + \operatorname{diag}(e^\rho\eta)\,(y e_t^T - \operatorname{lt}(yy^T)A)

    where lt keeps the lower triangle, and k' is a row of the centered kernel matrix K'. The gain η
    is one number for all components ("kha"); or :math:`\eta_0\frac{\|\lambda\|}{\lambda_i}
    \frac{\tau}{t+\tau}` with :math:`\lambda_i = \|K'a_i\|/\|a_i\|` ("et"); or the same with
    log-gains ρ learned by stochastic meta-descent, along with :math:`B = \partial A/\partial\rho`
    ("smd"). An update costs O(nr) and a row of the kernel matrix. Passes over the rows, n²r
    operations each, in random order and in reverse, continue until the components no longer turn.
    Other methods are faster; this one learns from rows as they arrive: batches (`partial_fit`, with
    a basis) are learned in the order of their rows, and the components depend on it.

    Parameters
    ----------
    gain : {"smd", "et", "kha"}
        How the gain is set.
    n_basis, select
        A basis that spans the components, as for `Subset`. None: components are sums over all rows;
        with `n_basis` alone, the basis is drawn at random.
    eta : float or None
        Initial gain η₀, relative to the mean of k'(x, x). None: 0.2 for "kha", 0.05 for "et", 0.1
        for "smd".
    tau : float or None
        Number of updates after which the gain is halved; then it falls as 1/t. None: derived from
        the eigenvalues such that components whose variances differ by a few percent separate.
    mu, xi : float
        Gain of the log-gains, relative to the mean of k'(x, x); and decay factor of B.
    max_passes : int or None
        Maximum number of passes over the rows. None: 1000, or for few rows a million updates, and
        at most 12000 passes.
    tol : float
        Passes end when components, or their span with `polish`, turn by at most this angle, in
        radians, while anything outside the leading components would shrink to 1/e.
    polish : bool
        Rotate the components to the principal ones of their span at the end. False: the components
        as learned, of unit length; they approach the principal ones much later than their span.

    References
    ----------
    K. I. Kim, M. O. Franz & B. Schölkopf, Iterative kernel principal component analysis for image
    modeling, IEEE PAMI 27 (2005). S. Günter, N. N. Schraudolph & S. V. N. Vishwanathan, Fast
    iterative kernel principal component analysis, JMLR 8 (2007): (20) to (22) and (31) to (37).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA
    >>> from mercer.methods import Hebbian
    >>> X = load_iris().data
    >>> kpca = KernelPCA(2, kernel="rbf", gamma=0.1, method=Hebbian(), random_state=0).fit(X)
    >>> kpca.explained_variance_ratio_.round(3)
    array([0.681, 0.182])
    >>> kpca.certificate_.converged
    True
    """

    name = "hebbian"
    for_rows = False
    fixes_components = True

    gain: str = "smd"
    n_basis: int | float | None = None
    select: Any = None
    eta: float | None = None
    tau: float | None = None
    mu: float = 1.0
    xi: float = 0.99
    max_passes: int | None = None
    tol: float = 5e-5
    polish: bool = True

    @property
    def keeps_rows(self) -> bool:
        return self.n_basis is None and self.select is None

    @property
    def rule(self) -> Landmarks:
        return as_landmarks("uniform" if self.select is None else self.select)

    def points(self, n: int, k: int | None) -> int:
        return n if self.keeps_rows else super().points(n, k)

    def label(self, size: Size) -> str:
        return f"{self.name} (all rows)" if self.keeps_rows else super().label(size)

    @property
    def remedy(self) -> str:
        return 'method="exact" is faster.' if self.keeps_rows else super().remedy

    def cost(self, size: Size) -> Cost:
        n, passes = size.n, min(_PLANNED_PASSES, self.passes(size.n))
        r = min(size.components, _MAX_COMPONENTS) if size.k is None else size.k
        update = _GAINS.get(self.gain, _GAINS["smd"])[2]
        if not self.keeps_rows:
            cost, m = super().cost(size), self.points(n, size.k)
            work = passes * n * update * m * r + 2.0 * n * m * (m + size.d)
            products, memory = cost.products + work, cost.memory + 8.0 * n * m
            return cost._replace(passes=cost.passes + 1, products=products, memory=memory)
        # Its diagonal, its means and the matrix itself.
        matrix, evaluations, extra = 16.0 * n * n, 4, 0.0
        if not _fits_twice(n):
            matrix = 4 * 8.0 * n * upper_block_rows(n, 8, on_device=size.on_device)
            evaluations, extra = passes + 6, math.inf
        vectors = 8.0 * n * (8 * r + 16 + size.d)
        work = 2.0 * evaluations * n * n * size.d + passes * update * n * n * r
        return Cost(3 + size.first_pass, work, 0.0, matrix + vectors, extra_passes=extra)

    def passes(self, n: int) -> int:
        """Return the maximum number of passes over n rows."""
        if self.max_passes is None:
            return min(max(_MIN_PASSES, _UPDATES // n), _MAX_PASSES)
        return int(self.max_passes)

    def fit(self, problem: Problem) -> Axes:
        assert isinstance(problem, KernelProblem)
        self._check()
        if not self.keeps_rows:
            problem = move_rows(problem)
            landmarks = LandmarkRows(self, fit_landmarks(problem, self.basis(problem)))
            return self._landmark_axes(landmarks, *self._learn(problem, landmarks), 0)
        problem = rows_in_memory(problem)
        gram = Gram(problem.kernel, problem.source, center=problem.center)
        require_finite_gram(problem, gram)
        rows = GramRows(self, problem, gram)
        return self._row_axes(rows, *self._learn(problem, rows))

    def begin(self, problem: Problem) -> HebbianFold:
        assert isinstance(problem, KernelProblem)
        self._check()
        span = Span(problem.kernel, self.basis(problem), problem.source)
        wanted = problem.n_leading
        r = span.rank if wanted is None else min(wanted, span.rank)
        self._require_few(problem, r)
        state = HebbianState.begin(_random(problem.rng, r, span.rank))
        rows = PastRows(problem.source, 0, 0.0)
        return HebbianFold(span, rows, center=problem.center, state=state)

    def finish(self, problem: Problem, fold: Any) -> Axes:
        assert isinstance(problem, KernelProblem)
        self._check()
        landmarks = LandmarkRows(self, LandmarkFit(problem, fold.span, fold))
        state = fold.state
        if not landmarks.constant:
            fold.learn(landmarks)
            self._require_finite(state)
            self._converged(problem, state, landmarks)
        return self._landmark_axes(landmarks, state, state.turn <= self.tol, None, 0)

    def _check(self) -> None:
        """Raise if parameters are invalid."""
        require(self, "gain", self.gain in _GAINS, f"one of {', '.join(map(repr, _GAINS))}")
        check_positive(self, *(name for name in ("eta", "tau") if getattr(self, name) is not None))
        check_nonnegative(self, "mu", "tol")
        require(self, "xi", is_real(self.xi) and 0 <= self.xi <= 1, "a number from 0 to 1")
        if self.max_passes is not None:
            check_integer(self, "max_passes")

    def gain_parameters(self, squares: Vector, trace: float, rows: int) -> tuple[Any, ...]:
        """Return kind, η₀, τ, μ and ξ for a matrix of this trace, given squared eigenvalues."""
        eta, fall, _ = _GAINS[self.gain]
        eta = eta if self.eta is None else float(self.eta)
        scale, tau = trace / rows, self.tau
        if tau is None:
            eigenvalues = np.sqrt(squares)
            norm = float(np.linalg.norm(eigenvalues))
            least = float(np.min(eigenvalues, initial=norm)) if self.gain == "kha" else norm
            tau = fall * trace / (eta * max(least, 1e-2 * norm, 1e-300))
        return list(_GAINS).index(self.gain), eta / scale, float(tau), self.mu / scale, self.xi

    def _learn(self, problem: KernelProblem, data: TrainingRows) -> tuple[HebbianState, bool, int]:
        """Return the components, whether they have converged, and the number of passes.

        If a rule needs variances first: a few components, then twice as many until it is met.
        """
        wanted, state = problem.n_components, None
        r = min(data.rank, _FIRST_COMPONENTS if wanted is None else wanted)
        if data.constant:
            return data.begin(problem.rng, 0), True, 0
        while True:
            self._require_few(problem, r)
            state = data.begin(problem.rng, r, state)
            converged, passes = self._make_passes(problem, data, state)
            if wanted is not None or r >= data.rank:
                return state, converged, passes
            values, _ = data.principal(state, polish=self.polish)
            if problem.rule.choose(values, data.total, *problem.counts) is not None:
                return state, converged, passes
            r = min(data.rank, 2 * r)

    def _make_passes(
        self, problem: KernelProblem, data: TrainingRows, state: HebbianState
    ) -> tuple[bool, int]:
        """Learn from all rows until the components are stable; return that, and the passes."""
        order, limit = data.visited, self.passes(len(data.visited))
        with progress.task("Hebbian passes", limit) as tick:
            for done in range(1, limit + 1):
                forth = done % 2 == 1
                order = problem.rng.permutation(data.visited) if forth else order[::-1].copy()
                for first in range(0, len(order), data.chunk):
                    at = order[first : first + data.chunk]
                    data.learn(state, data.read(at), at)
                self._require_finite(state)
                tick(1)
                if not forth and self._converged(problem, state, data):
                    return True, done
        return False, limit

    def _converged(self, problem: KernelProblem, state: HebbianState, data: TrainingRows) -> bool:
        """Return whether the chosen components are stable and the leading ones."""
        if float(np.max(state.travel, initial=0.0)) < 1.0:
            return False
        values, S = data.principal(state, polish=self.polish)
        k = problem.n_components
        if k is None:
            k = problem.rule.choose(values, data.total, *problem.counts)
        k = len(values) if k is None else min(k, len(values))
        turn = state.check_turn(values, S, k, polish=self.polish, enough=data.enough)
        return turn is not None and turn <= self.tol and data.leads(values[:k])

    def _require_few(self, problem: KernelProblem, r: int) -> None:
        if r > _MAX_COMPONENTS and r != problem.n_components:
            raise ValueError(
                f"{problem.rule!r} needs {r} components or more, too many for Hebbian to separate. "
                f"Set n_components to a number, or use method='exact'."
            )

    def _require_finite(self, state: HebbianState) -> None:
        if not (np.all(np.isfinite(state.V)) and np.all(np.isfinite(state.B))):
            raise ValueError(
                f"{self!r} diverged after {state.steps} updates. Use a smaller eta, or omit it."
            )

    def _row_axes(self, rows: GramRows, state: HebbianState, converged: bool, passes: int) -> Axes:
        """Return components that are sums over all rows, certified by kernel matrix products."""
        gram, problem, operator = rows.gram, rows.problem, rows.operator
        state.V = rows.product(state.A)
        values, S = rows.principal(state, polish=self.polish)
        least = max(1e-12 * float(np.max(values, initial=0.0)), gram.noise_floor)
        rank, wanted = int((values > least).sum()), problem.n_leading
        k = problem.choose(values[:rank], gram.trace) if wanted is None else wanted
        k = rank if k is None else min(k, rank)
        A = state.A.T @ S[:, :k] * (to_numpy(gram.roots) > 0)  # rows without weight take no part
        notes = ("Components are sums over all rows.", self._note(state, converged, passes))
        evidence, overlaps = expansion_evidence(
            operator, like(A, operator.reference), problem.rng, converged=converged, notes=notes
        )
        if converged and not evidence.converged:
            evidence = evidence.annotated(_NOT_LEADING)
        values = evidence.eigenvalues
        vectors = like(A * np.sqrt(values), gram.reference)
        axes = exact_axes(problem, gram, Spectrum(values, vectors, evidence.residuals), k, evidence)
        projection, weighted = axes.projection, to_numpy(gram.roots) * A
        assert isinstance(projection, KernelProjection)
        signs = np.sign(np.einsum("ij,ij->j", to_numpy(projection.components), weighted))
        projection = replace(projection, overlaps=overlaps * np.outer(signs, signs))
        return replace(axes, projection=projection)

    def _landmark_axes(
        self,
        landmarks: LandmarkRows,
        state: HebbianState,
        converged: bool,
        passes: int | None,
        sample_rows: int,
    ) -> Axes:
        """Return components in the span of landmarks."""
        fit = landmarks.fit
        values, S = landmarks.principal(state, polish=self.polish)
        k = fit.choose(values)
        converged = converged and landmarks.leads(values[:k])
        components = fit.span.whitener @ (state.A.T @ S[:, :k])
        evidence = fit.evidence(values[:k], components)
        evidence = evidence.annotated(self._note(state, converged, passes))
        projection = fit.projection(values[:k], components)
        if not self.polish:
            A = to_numpy(projection.components)
            at = fit.span.basis.at if fit.problem.kernel is None else slice(None)
            projection = replace(projection, overlaps=A[at].T @ fit.span.matrix @ A[at])
        return Axes(projection, replace(evidence, converged=converged))

    def _note(self, state: HebbianState, converged: bool, passes: int | None) -> str:
        """Describe the learning; `passes` is None for rows that came in batches."""
        rows = f"{counted(state.steps, 'row')} in order of arrival"
        if passes is not None:
            rows = f"{counted(passes, 'pass', 'passes')} over the rows"
        steady = state.turn <= self.tol
        note = (
            f"Learned one row after another, gain {self.gain!r}, in {rows}: at the last check, "
            f"{'their span' if self.polish else 'they'} had rotated by "
            f"{math.degrees(state.turn):.2g}° (tol: {math.degrees(self.tol):.2g}°)."
        )
        if state.limited > 0.01 * state.steps:
            share = 100.0 * state.limited / state.steps
            note += f" The gain was limited in {share:.0f} % of the updates to avoid overshooting."
        return f"{note} {_NOT_LEADING}" if steady and not converged else note


def _fits_twice(n: int) -> bool:
    """Return whether two n×n matrices of float64 fit into half of the memory."""
    return 16.0 * n * n <= get_config().budget / 2


def _random(rng: np.random.Generator, r: int, n: int) -> Matrix:
    """Return random coefficients of variance 1/(rn), as in the papers."""
    return rng.standard_normal((r, n)) / math.sqrt(max(1, r * n))


@dataclass
class HebbianState:
    """The components while they are learned: the rows of A."""

    A: Matrix  # coefficients, or in orthonormal coordinates the components themselves
    V: Matrix  # AK', or in orthonormal coordinates A
    B: Matrix  # ∂A/∂ρ
    rho: Vector  # log-gains
    # Σ η_i y_i² since the last check: at 1, what does not belong to a component is down to 1/e.
    travel: Vector
    last: Matrix  # components at the last check
    steps: int = 0
    limited: int = 0  # updates whose gains were limited
    turn: float = 1.0  # sine of the angle by which components had turned at the last check
    squares: Vector | None = None  # squared eigenvalues
    gain: Any = None  # kind, η₀, τ, μ and ξ

    @classmethod
    def begin(cls, A: Matrix, V: Matrix | None = None) -> HebbianState:
        """Return the state before the first update."""
        A = np.ascontiguousarray(A)
        V, r = A if V is None else np.ascontiguousarray(V), len(A)
        return cls(A, V, np.zeros_like(A), np.zeros(r), np.zeros(r), np.zeros((0, A.shape[1])))

    def check_turn(
        self, values: Vector, S: Matrix, k: int, *, polish: bool, enough: float
    ) -> float | None:
        """Return how far the first k principal components have turned since the last check.

        `values` and `S` are the result of `principal_components`. None if it is too early to tell,
        or if components have become dependent and explain less than `enough`: others are missing.
        """
        if k == len(values) < len(self.rho) and float(values.sum()) < enough:
            self.turn = 1.0
            return None
        if float(np.min(self.travel[:k], initial=np.inf)) < 1.0:
            return None
        last, self.last = self.last, S[:, :k].T @ self.A
        products, self.turn = last @ self.V.T @ S[:, :k], 1.0
        if products.shape[0] == products.shape[1]:
            cosines = svd(products)[1] if polish else np.abs(np.diag(products))
            least = min(1.0, float(np.min(cosines, initial=1.0)))
            self.turn = float(np.sqrt((1.0 - least) * (1.0 + least)))
        self.travel = np.zeros(len(self.rho))
        return self.turn


def principal_components(G: Matrix, M: Matrix, *, polish: bool) -> tuple[Vector, Matrix]:
    """Return the variances of unit components, largest first, and the map S to them.

    G contains inner products of the learned components, M their covariances. With `polish` they
    are rotated to the principal components of their span (Rayleigh–Ritz); without, they are
    normalized, and those that depend on earlier ones are dropped.
    """
    G = (G + G.T) / 2
    if polish:
        values, U = eigh(G)
        nonzero = values > _ZERO * np.max(values, initial=0.0)
        N = U[:, nonzero] / np.sqrt(values[nonzero])
        values, U = eigh(N.T @ M @ N)
        return np.maximum(values, 0.0), np.asarray(N @ U)
    norms = np.sqrt(np.maximum(np.diag(G), 0.0))
    unit = G / np.maximum(np.outer(norms, norms), 1e-300)
    independent: list[int] = []
    for i in np.flatnonzero(norms > np.sqrt(_ZERO) * np.max(norms, initial=0.0)):
        more = [*independent, int(i)]
        if np.linalg.matrix_rank(unit[np.ix_(more, more)], 1e-6, hermitian=True) == len(more):
            independent = more
    S = np.zeros((len(G), len(independent)))
    S[independent, np.arange(len(independent))] = 1.0 / norms[independent]
    values = np.einsum("ij,ij->j", S, M @ S)
    order = np.argsort(-values, kind="stable")
    return values[order], S[:, order]


class TrainingRows(ABC):
    """Rows to learn from, those numbered `visited`, and what they say of all components.

    `total` is the variance, and `trace` bounds the sum of the eigenvalues; components that explain
    `enough` leave out nothing but rounding. Rows are read in chunks; eigenvalues and gains are
    computed again after `every` updates. `covariance` and the variances of the `leading` components
    are those of coordinates; they are not known for rows of the kernel matrix.
    """

    method: Hebbian
    visited: Any
    size: int
    total: float
    trace: float
    rank: int
    constant: bool
    enough: float
    chunk: int
    every: int
    covariance: Matrix | None = None
    leading: Vector | None = None

    @abstractmethod
    def begin(
        self, rng: np.random.Generator, r: int, before: HebbianState | None = None
    ) -> HebbianState:
        """Return the state of r components: those learned before, and random ones."""

    @abstractmethod
    def read(self, at: Any) -> Matrix:
        """Return these rows of the kernel matrix, or their coordinates."""

    def image(self, state: HebbianState) -> Matrix:
        """Return AK', or in coordinates the product of A with the covariance."""
        return state.V if self.covariance is None else state.A @ self.covariance

    def leads(self, values: Vector) -> bool:
        """Return whether components with these variances are the leading ones, if it is known."""
        if self.leading is None:
            return True
        return float(values.sum()) >= (1.0 - BETTER) * float(self.leading[: len(values)].sum())

    def principal(self, state: HebbianState, *, polish: bool) -> tuple[Vector, Matrix]:
        """Return variances, and what makes unit components of the learned ones."""
        M = self.image(state) @ state.V.T
        return principal_components(state.A @ state.V.T, M, polish=polish)

    def learn(self, state: HebbianState, K: Matrix, at: Any = None) -> None:
        """Learn from the rows K, numbered `at`, in this order."""
        from mercer.methods.literature.hebbian_updates import update

        at, first = at if self.covariance is None else np.zeros(0, int), 0
        while first < len(K):
            if state.steps % self.every == 0 or state.squares is None:
                above, below = (np.einsum("ij,ij->i", X, X) for X in (self.image(state), state.A))
                squares = np.divide(above, below, where=below > 0, out=np.zeros_like(above))
                state.gain = self.method.gain_parameters(squares, self.trace, self.size)
                state.squares = squares
            rows = slice(first, first + self.every - state.steps % self.every)
            arrays, sums = (state.A, state.V, state.B, state.rho), (state.travel, state.squares)
            state.limited += update(K[rows], at[rows], arrays, *sums, state.gain, state.steps)
            state.steps += len(K[rows])
            first = rows.stop


class GramRows(TrainingRows):
    """Rows of the centered kernel matrix: stored if it fits, otherwise computed as needed."""

    def __init__(self, method: Hebbian, problem: KernelProblem, gram: Gram) -> None:
        self.method, self.problem, self.gram = method, problem, gram
        self.operator: Operator = gram
        self.visited = np.flatnonzero(to_numpy(gram.roots)[:, 0])
        self.total, self.rank = gram.trace, min(gram.rank, len(self.visited))
        self.enough = (1.0 - _NEGLIGIBLE) * gram.trace - gram.noise_floor
        self.chunk = upper_block_rows(gram.size, 8)
        self.size = self.every = len(self.visited)
        # With negative eigenvalues the trace is less than the sum of the positive ones.
        self.trace = gram.trace if gram.psd else max(gram.trace, math.sqrt(gram.square or 0.0))
        self.constant = self.trace <= gram.noise_floor
        self._matrix: Matrix | None = None
        if _fits_twice(gram.size):
            self._matrix = gram.dense()
            self.operator = DenseOperator(self._matrix, psd=gram.psd, rounding=gram.rounding)
        else:
            self._columns = KernelColumns(problem, np.float64)

    def begin(
        self, rng: np.random.Generator, r: int, before: HebbianState | None = None
    ) -> HebbianState:
        known = np.zeros((0, self.gram.size)) if before is None else before.A
        more = np.zeros((r - len(known), self.gram.size))
        more[:, self.visited] = _random(rng, len(more), len(self.visited))
        more *= math.sqrt(len(self.visited) / max(self.trace, 1e-300))
        centered = to_numpy(self.gram.project(like(more.T, self.gram.reference))).T
        A = np.vstack([known, centered])
        state = HebbianState.begin(A, self.product(A))
        # Principal components of their span: one that begins along a much longer one stays there.
        _, S = self.principal(state, polish=True)
        return HebbianState.begin(S.T @ A, S.T @ state.V) if S.shape[1] == r else state

    def product(self, A: Matrix) -> Matrix:
        """Return AK'."""
        product = self.operator.matmat(like(A.T, self.operator.reference))
        return np.ascontiguousarray(to_numpy(product).T)

    def read(self, at: Any) -> Matrix:
        if self._matrix is not None:
            return np.asarray(self._matrix[at])
        gram, roots = self.gram, to_numpy(self.gram.roots)[:, 0]
        K, means = self._columns.collect(at).T, gram.means * self.problem.center
        K = K - means - means[at][:, None] + gram.mean_square * self.problem.center
        return np.ascontiguousarray(K * (roots * roots[at][:, None] / gram.divisor))


class LandmarkRows(TrainingRows):
    """Centered rows in orthonormal coordinates of the span of landmarks."""

    def __init__(self, method: Hebbian, fit: LandmarkFit) -> None:
        self.method, self.fit = method, fit
        source, T = fit.problem.source, fit.span.whitener
        self.covariance, self.leading = np.asarray(T.T @ fit.covariance @ T), fit.pairs[0]
        self.size = source.shape[0]
        self.visited = np.arange(self.size)
        if source.weights is not None:
            self.visited = np.flatnonzero(source.weights)
        self.total, self.rank = fit.total_upper, fit.span.rank
        self.trace = float(np.trace(self.covariance))
        self.constant = self.trace <= 0.0
        self.enough = (1.0 - _NEGLIGIBLE) * self.trace
        # Not the chunk of rows: eigenvalues must not depend on blocks.
        self.chunk, self.every = upper_block_rows(fit.span.size, 8), max(_EVERY, self.rank)

    def begin(
        self, rng: np.random.Generator, r: int, before: HebbianState | None = None
    ) -> HebbianState:
        known = np.zeros((0, self.rank)) if before is None else before.A
        more = _random(rng, r - len(known), self.rank)
        return HebbianState.begin(np.vstack([known, more]))

    @cached_property
    def _coordinates(self) -> Matrix:
        source = self.fit.problem.source
        counts = np.ones(source.shape[0]) if source.weights is None else source.weights
        return self.coordinates(self.fit.span.features(source).collect(), counts)

    def read(self, at: Any) -> Matrix:
        return np.asarray(self._coordinates[at])

    def coordinates(self, h: Array, counts: Vector) -> Matrix:
        """Return coordinates of rows, scaled such that their squares sum to the covariance."""
        mean = self.fit.moments.mean * self.fit.problem.center
        roots = np.sqrt(counts / max(self.fit.divisor, 1e-300))
        centered = to_numpy(h).astype(np.float64) - mean
        return np.asarray(centered @ self.fit.span.whitener) * roots[:, None]


class HebbianFold(KernelMoments):
    """Moments of h(x), and components that learn from the rows in the order of the batches.

    Rows wait until all blocks of a batch have been added: threads add them in any order.
    """

    local = True  # the rows that wait are not among the arrays
    resumable = False

    def __init__(self, span: Span, source: Any, *, center: bool, state: Any = None) -> None:
        super().__init__(span, source, center=center)
        self.state: HebbianState | None = state
        self.rows: dict[int, Matrix] = {}

    def add_features(self, block: Block, h: Array) -> None:
        super().add_features(block, h)
        self.rows[block.start] = np.column_stack([to_numpy(h).astype(np.float64), block.count])

    def merge(self, other: Self) -> None:
        super().merge(other)
        self.rows.update(other.rows)

    def learn(self, data: LandmarkRows) -> None:
        """Learn from the rows that wait, in their order."""
        assert self.state is not None
        for start in sorted(self.rows):
            h, counts = self.rows[start][:, :-1], self.rows[start][:, -1]
            data.learn(self.state, data.coordinates(h, counts))
        self.rows = {}

    def arrays(self) -> dict[str, Array]:
        if self.state is None:
            return super().arrays()
        arrays = {f"learner {name}": getattr(self.state, at) for name, at in _ARRAYS.items()}
        steps = np.array([self.state.steps, self.state.limited, self.state.turn])
        return super().arrays() | arrays | {"learner steps": steps}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore({k: v for k, v in arrays.items() if not k.startswith("learner ")})
        self.state = None
        if "learner steps" in arrays:
            parts: dict[str, Any] = {
                at: np.array(arrays[f"learner {name}"], np.float64) for name, at in _ARRAYS.items()
            }
            steps, limited, turn = (float(x) for x in arrays["learner steps"])
            self.state = HebbianState(
                **parts, V=parts["A"], steps=int(steps), limited=int(limited), turn=turn
            )
