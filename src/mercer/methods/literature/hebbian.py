"""The kernel Hebbian algorithm (Kim, Franz & Schölkopf 2005; Günter et al. 2007)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import Vector, like, to_numpy
from mercer.certificate import Axes, Evidence, Figure
from mercer.checks import check_whole, is_real, require
from mercer.landmarks import Landmarks, as_landmarks
from mercer.linalg import Gram
from mercer.linalg.solvers import Spectrum
from mercer.linalg.span import Span
from mercer.linalg.upper_blocks import upper_block_rows
from mercer.messages import counted
from mercer.methods.base import Cost, Size, Streaming
from mercer.methods.kernel.exact import exact_axes, require_finite_gram, rows_in_memory
from mercer.methods.kernel.expansion import expansion_evidence
from mercer.methods.kernel.landmark_fit import SAMPLE_ROWS, LandmarkFit, fit_landmarks
from mercer.methods.kernel.subset import OnBasis
from mercer.methods.literature.hebbian_learning import (
    GainParameters,
    GramRows,
    HebbianFold,
    HebbianState,
    LandmarkRows,
    TrainingRows,
    half_memory_holds,
    random_coefficients,
)
from mercer.methods.preparation import move_rows
from mercer.problem import KernelProblem, Problem
from mercer.projection import KernelProjection

# Gain η₀ by default.
_ETA = {"kha": 0.2, "et": 0.05, "smd": 0.1}
# Without τ, the gain falls as this number over the number of updates, measured on the component
# that it changes least: components whose variances differ by more than its inverse still separate.
# A learned gain falls further, by e² at most.
_FALL = {"kha": 20.0, "et": 20.0, "smd": 150.0}
# Operations of an update per coefficient.
_WORK = {"kha": 8.0, "et": 12.0, "smd": 30.0}
# Default limit of passes: this many updates, between these numbers of passes.
_UPDATES, _MIN_PASSES, _MAX_PASSES = 1_000_000, 1000, 12_000
# Passes that a plan assumes.
_PLANNED_PASSES = 300
# Components to begin with if a rule chooses their number from the variances, and the most there
# may be then.
_FIRST_COMPONENTS, _MAX_COMPONENTS = 8, 256
_NOT_LEADING = "They are not the leading components: others explain more."


class Hebbian(OnBasis, Streaming):
    r"""Components learned from one row after another: KHA, KHA/et and KHA-SMD.

    With :math:`y = Ak'_t` the scores of row t for the components
    :math:`\sum_i a_i\tilde\Phi(x_i)`,

    .. math:: A \leftarrow A + \operatorname{diag}(e^\rho\eta)\,(y e_t^T - \operatorname{lt}(yy^T)A)

    where lt keeps the lower triangle, and k' is a row of the centered kernel matrix K'. The gain η
    is one number for all components ("kha"); or :math:`\eta_0\frac{\|\lambda\|}{\lambda_i}
    \frac{\tau}{t+\tau}` with :math:`\lambda_i = \|K'a_i\|/\|a_i\|` ("et"); or the same with
    log-gains ρ learned by stochastic meta-descent, along with :math:`B = \partial A/\partial\rho`
    ("smd"). AK' is updated with A: an update costs O(nr) and a row of the kernel matrix. Passes
    over the rows, n²r operations each, continue until the components no longer turn. Other methods
    are faster; this one learns from rows as they arrive.

    Each pass visits the rows in random order, the next one in reverse. Batches (`partial_fit`, with
    a basis) are learned in the order of their rows, and the components depend on it.

    Parameters
    ----------
    gain : {"smd", "et", "kha"}
        How the gain is set.
    n_basis : int, float or None
        Number of points of a basis that spans the components; below 1, their share of the rows.
        None, without `select`: components are sums over all rows.
    select : str, Landmarks, points, indices of rows or None
        How the basis is chosen: a rule of `mercer.landmarks` or its name; or the points
        themselves. None: at random, if `n_basis` is set.
    eta : float or None
        Initial gain η₀, relative to the mean of k'(x, x), so independent of the scale of the
        kernel. None: 0.2 for "kha", 0.05 for "et", 0.1 for "smd".
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
        Rotate the components to the principal ones of their span at the end: an r×r eigenproblem
        without kernel values. False: the components as learned, of unit length; they approach the
        principal ones much later than their span does.

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

    def __init__(
        self,
        gain: str = "smd",
        n_basis: int | float | None = None,
        select: Any = None,
        eta: float | None = None,
        tau: float | None = None,
        mu: float = 1.0,
        xi: float = 0.99,
        max_passes: int | None = None,
        tol: float = 5e-5,
        polish: bool = True,
    ) -> None:
        super().__init__(n_basis, select)
        self.gain, self.eta, self.tau, self.mu, self.xi = gain, eta, tau, mu, xi
        self.max_passes, self.tol, self.polish = max_passes, tol, polish

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
        update = _WORK.get(self.gain, 30.0)
        if not self.keeps_rows:
            cost, m = super().cost(size), self.points(n, size.k)
            stored = 8.0 * n * m if half_memory_holds(n * m) else 0.0
            work = passes * n * (update * m * r + (0.0 if stored else 2.0 * m * (m + size.d)))
            return replace(
                cost, passes=passes, products=cost.products + work, memory=cost.memory + stored
            )
        matrix, evaluations = 16.0 * n * n, 4
        if not half_memory_holds(n * n):
            matrix = 4 * 8.0 * n * upper_block_rows(n, 8, on_device=size.on_device)
            evaluations = passes + 6
        vectors = 8.0 * n * (8 * r + 16 + size.d)
        work = 2.0 * evaluations * n * n * size.d + passes * update * n * n * r
        return Cost(passes, work, 0.0, matrix + vectors)

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
            landmarks = LandmarkRows(fit_landmarks(problem, self.basis(problem)))
            state, converged, passes = self._learn(problem, landmarks)
            return self._landmark_axes(landmarks, state, converged, passes, SAMPLE_ROWS)
        problem = rows_in_memory(problem)
        gram = Gram(problem.kernel, problem.source, center=problem.center)
        require_finite_gram(problem, gram)
        if gram.trace > 0 and not 1e-150 < gram.trace < 1e150:
            raise ValueError(
                f"The variance in the feature space of the kernel is {gram.trace:.1e}, and Hebbian "
                f"cannot compute its square. Scale the rows, or the kernel: 1e-100 * kernel."
            )
        rows = GramRows(problem, gram)
        state, converged, passes = self._learn(problem, rows)
        state.V = rows.product(state.A)
        return self._row_axes(problem, rows, state, converged, passes)

    def begin(self, problem: Problem) -> HebbianFold:
        assert isinstance(problem, KernelProblem)
        self._check()
        span = Span(problem.kernel, self.basis(problem), problem.source)
        wanted = problem.n_leading
        r = span.rank if wanted is None else min(wanted, span.rank)
        self._require_few(problem, r)
        state = HebbianState.begin(random_coefficients(problem.rng, r, span.rank))
        return HebbianFold(span, problem.source, center=problem.center, state=state)

    def finish(self, problem: Problem, fold: Any) -> Axes:
        assert isinstance(problem, KernelProblem)
        self._check()
        landmarks, state = LandmarkRows(LandmarkFit(problem, fold.span, fold)), fold.state
        if not landmarks.constant:
            fold.learn(landmarks, self.gain_parameters)
            self._require_finite(state)
            self._converged(problem, state, landmarks)
        return self._landmark_axes(landmarks, state, state.turn <= self.tol, None, 0)

    def _check(self) -> None:
        """Refuse invalid parameters."""
        require(self, "gain", self.gain in _ETA, f"one of {', '.join(map(repr, _ETA))}")
        for name in ("eta", "tau", "mu", "tol"):
            value, optional = getattr(self, name), name in ("eta", "tau")
            valid = is_real(value) and math.isfinite(value) and value >= 0
            valid = valid and not (optional and value == 0)
            least = "above 0" if optional else "0 or more"
            require(self, name, (optional and value is None) or valid, f"a number {least}")
        require(self, "xi", is_real(self.xi) and 0 <= self.xi <= 1, "a number from 0 to 1")
        if self.max_passes is not None:
            check_whole(self, "max_passes")

    def gain_parameters(self, squares: Vector, trace: float, rows: int) -> GainParameters:
        """Return kind, η₀, τ, μ and ξ for a matrix of this trace, given squared eigenvalues."""
        eta = _ETA[self.gain] if self.eta is None else float(self.eta)
        scale, tau = trace / rows, self.tau
        if tau is None:
            eigenvalues = np.sqrt(squares)
            norm = float(np.linalg.norm(eigenvalues))
            least = float(np.min(eigenvalues, initial=norm)) if self.gain == "kha" else norm
            tau = _FALL[self.gain] * trace / (eta * max(least, 1e-2 * norm, 1e-300))
        return list(_ETA).index(self.gain), eta / scale, float(tau), self.mu / scale, self.xi

    def _learn(self, problem: KernelProblem, data: TrainingRows) -> tuple[HebbianState, bool, int]:
        """Return the components, whether they have converged, and the number of passes.

        If a rule needs variances first: a few components, then twice as many until it is met.
        """
        wanted = problem.n_components
        r = min(data.rank, _FIRST_COMPONENTS if wanted is None else wanted)
        self._require_few(problem, r)
        if data.constant:
            return data.begin(problem.rng, 0), True, 0
        state = None
        while True:
            state = data.begin(problem.rng, r, state)
            converged, passes = self._pass_over(problem, state, data)
            if wanted is not None or r >= data.rank:
                return state, converged, passes
            values, _ = state.principal(data.covariances(state), polish=self.polish)
            if problem.rule.choose(values, data.total, *problem.counts) is not None:
                return state, converged, passes
            r = min(data.rank, 2 * r)
            self._require_few(problem, r)

    def _pass_over(
        self, problem: KernelProblem, state: HebbianState, data: TrainingRows
    ) -> tuple[bool, int]:
        """Pass over the rows until convergence; return whether it was reached, and the passes."""
        order, limit = data.visited, self.passes(len(data.visited))
        with progress.task("Hebbian passes", limit) as tick:
            for done in range(1, limit + 1):
                order = problem.rng.permutation(data.visited) if done % 2 else order[::-1].copy()
                for first in range(0, len(order), data.chunk):
                    data.learn(state, order[first : first + data.chunk], self.gain_parameters)
                self._require_finite(state)
                tick(1)
                if done % 2 == 0 and self._converged(problem, state, data):
                    return True, done
        return False, limit

    def _converged(self, problem: KernelProblem, state: HebbianState, data: TrainingRows) -> bool:
        """Tell whether the components that the rule chooses no longer turn, and are the leading."""
        if float(np.max(state.travel, initial=0.0)) < 1.0:
            return False
        values, S = state.principal(data.covariances(state), polish=self.polish)
        k = problem.n_components
        if k is None:
            k = problem.rule.choose(values, data.total, *problem.counts)
        k = len(values) if k is None else min(k, len(values))
        turn = state.check_turn(values, S, k, polish=self.polish, enough=data.enough)
        return turn is not None and turn <= self.tol and data.leading(values[:k])

    def _require_few(self, problem: KernelProblem, r: int) -> None:
        if r > _MAX_COMPONENTS and r != problem.n_components:
            raise ValueError(
                f"{problem.rule!r} asks for {r} components or more: Hebbian learns a given number "
                f"of components, and cannot separate this many. Set n_components; method='exact' "
                f"finds all."
            )

    def _require_finite(self, state: HebbianState) -> None:
        if not (np.all(np.isfinite(state.V)) and np.all(np.isfinite(state.B))):
            raise ValueError(
                f"{self!r} diverged after {state.steps} updates. Use a smaller eta, or leave it "
                f"out."
            )

    def _row_axes(
        self,
        problem: KernelProblem,
        rows: GramRows,
        state: HebbianState,
        converged: bool,
        passes: int,
    ) -> Axes:
        """Return components that are sums over all rows, judged by products with the matrix."""
        gram, operator = rows.gram, rows.operator
        values, S = state.principal(rows.covariances(state), polish=self.polish)
        least = max(1e-12 * float(np.max(values, initial=0.0)), gram.noise_floor)
        rank = int((values > least).sum())
        wanted = problem.n_leading
        k = problem.choose(values[:rank], gram.trace) if wanted is None else min(wanted, rank)
        k = rank if k is None else min(k, rank)
        A = state.A.T @ S[:, :k] * (to_numpy(gram.roots) > 0)  # rows without weight take no part
        note = self._note(state, converged, passes)
        notes = ("Components are sums over all rows.", note)
        if k == 0:
            none, total = np.zeros(0), Figure(max(gram.trace, 0.0))
            evidence = Evidence(Figure(0.0), (), (total, total), none, none, none, notes=notes)
            spectrum = Spectrum(none, like(A, gram.reference), none)
            return exact_axes(problem, gram, spectrum, 0, evidence)
        evidence, overlaps = expansion_evidence(
            operator, like(A, operator.reference), problem.rng, converged=converged, notes=notes
        )
        if converged and not evidence.converged:
            evidence = evidence.annotated(_NOT_LEADING)
        values = evidence.eigenvalues
        vectors = like(A * np.sqrt(values), gram.reference)
        axes = exact_axes(problem, gram, Spectrum(values, vectors, evidence.residuals), k, evidence)
        weighted = to_numpy(gram.roots) * A
        signs = np.sign(np.einsum("ij,ij->j", to_numpy(axes.projection.components), weighted))
        assert isinstance(axes.projection, KernelProjection)
        overlaps = overlaps * np.outer(signs, signs)
        return replace(axes, projection=replace(axes.projection, overlaps=overlaps))

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
        values, S = state.principal(landmarks.covariances(state), polish=self.polish)
        k = fit.choose(values) if len(values) else 0
        converged = converged and landmarks.leading(values[:k])
        components = fit.span.whitener @ (state.A.T @ S[:, :k])
        evidence = fit.evidence(values[:k], components, fit.sample(k, sample_rows))
        evidence = evidence.annotated(self._note(state, converged, passes))
        projection = fit.projection(values[:k], components)
        if not self.polish:
            A = to_numpy(projection.components)
            at = fit.span.basis.at if fit.problem.kernel is None else slice(None)
            projection = replace(projection, overlaps=A[at].T @ fit.span.matrix @ A[at])
        return Axes(projection, replace(evidence, converged=converged))

    def _note(self, state: HebbianState, converged: bool, passes: int | None) -> str:
        """Describe the learning; `passes` is None for rows that came in batches."""
        rows = f"{counted(state.steps, 'row')} as they came"
        if passes is not None:
            rows = f"{counted(passes, 'pass', 'passes')} over the rows"
        what = "their span" if self.polish else "they"
        turn, tol = f"{math.degrees(state.turn):.2g}°", f"{math.degrees(self.tol):.2g}°"
        steady = state.turn <= self.tol
        note = f"Learned one row after another, gain {self.gain!r}, in {rows}: "
        note += f"at the last check, {what} had turned by {turn}"
        note += f" (tol: {tol})." if steady else f", more than tol, {tol}."
        note += f" {_NOT_LEADING}" if steady and not converged else ""
        if self.gain == "smd" and len(state.rho):
            gain = np.exp(state.rho)
            note += f" Learned factors of the gain: {gain.min():.2g} to {gain.max():.2g}."
        if state.limited > 0.01 * state.steps:
            share = 100.0 * state.limited / state.steps
            note += f" In {share:.0f} % of the updates it was limited, to avoid overshooting."
        return note
