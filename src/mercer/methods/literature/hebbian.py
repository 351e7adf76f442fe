"""The kernel Hebbian algorithm (Kim, Franz & Schölkopf 2005; Günter et al. 2007)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import Matrix, Vector, like, to_numpy
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
from mercer.methods.kernel.landmark_method import OnBasis, prepare
from mercer.methods.literature.learner import KINDS, Gain, Learner, principal
from mercer.methods.literature.lessons import Learning, Lessons, OfRows, OfSpan, fits, start
from mercer.problem import KernelProblem, Problem
from mercer.projection import KernelProjection

# Passes at most where the user does not say: as many as make so many steps, between these.
_STEPS, _FEWEST, _MOST = 1_000_000, 1000, 12_000
# Passes that a plan reckons with.
_PASSES = 300
# Axes to begin with where a rule is to say how many, from their variances.
_SOME = 8
_OTHERS = "They are not the first: others hold more."
# More rows than these have more axes than can be learnt.
_ALL = 256


class Hebbian(OnBasis, Streaming):
    r"""Axes learnt from one row after another: KHA, KHA/et and KHA-SMD.

    With :math:`y = Ak'_t` the scores of a row along the axes :math:`\sum_i a_i\tilde\Phi(x_i)`,

    .. math:: A \leftarrow A + \operatorname{diag}(e^\rho\eta)\,(y e_t^T - \operatorname{lt}(yy^T)A)

    where lt keeps the lower triangle, and k' is a row of the centred kernel matrix K'. The gain η
    is a number for all axes ("kha"); or :math:`\eta_0\frac{\|\lambda\|}{\lambda_i}
    \frac{\tau}{t+\tau}` with :math:`\lambda_i = \|K'a_i\|/\|a_i\|` ("et"); or this, and its
    log-gain ρ is learnt by stochastic meta-descent, along with :math:`B = \partial A/\partial\rho`
    ("smd"). AK' is kept beside A, so that a step costs O(nr) and a row of the kernel matrix.
    Passes over the rows go on until the axes stand still: n²r operations each. Other methods are
    faster; this is the one that learns as rows come.

    Rows are visited in a random order, and then back: what comes last counts no more than what
    came first. Of batches (`partial_fit`, on a basis) the order is the one they come in, and
    the axes depend on it.

    Parameters
    ----------
    gain : {"smd", "et", "kha"}
        How the gain is found.
    n_basis : int, float or None
        Points of a basis in whose span the axes are learnt; below 1, their share of the rows.
        None, and no `select`: axes are sums over all rows.
    select : str, Landmarks, points, numbers of rows or None
        How the basis is chosen: a rule of `mercer.landmarks` or its name; or the points
        themselves. None: at random, where `n_basis` is given.
    eta : float or None
        Gain η₀ at first, over the mean of k'(x, x): the same for any scale of the kernel. None:
        0.2 for "kha", 0.05 for "et", 0.1 for "smd".
    tau : float or None
        Steps after which the gain is down to half, and falls as 1/t. None: found from the
        eigenvalues, so that axes whose variances are some percent apart are still told apart.
    mu, xi : float
        Gain of the log-gains, over the mean of k'(x, x); and how much of B is kept in a step.
    max_passes : int or None
        Passes over the rows at most. None: 1000, or, of few rows, a million steps and no more
        than 12000 passes.
    tol : float
        The passes end when axes, or their span where they are polished, turn by no more than
        this angle, in radians, while what does not belong to them would shrink to 1/e.
    polish : bool
        Turn the axes within their span to its principal ones in the end: an r×r eigenproblem, no
        kernel values. False: the axes as they were learnt, of unit length; they come near the
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
        n, passes = size.n, min(_PASSES, self.passes(size.n))
        r = min(size.components, _ALL) if size.k is None else size.k
        each = {"kha": 8.0, "et": 12.0, "smd": 30.0}.get(self.gain, 30.0)
        if not self.keeps_rows:
            cost = super().cost(size)
            m = self.points(n, size.k)
            held = 8.0 * n * m if fits(n * m) else 0.0
            work = passes * n * (each * m * r + (0.0 if held else 2.0 * m * (m + size.d)))
            return replace(
                cost, passes=passes, products=cost.products + work, memory=cost.memory + held
            )
        kept = fits(n * n)
        walks = 4 if kept else passes + 6
        held = (
            16.0 * n * n if kept else 4 * 8.0 * n * upper_block_rows(n, 8, on_device=size.on_device)
        )
        vectors = 8.0 * n * (8 * r + 16 + size.d)
        work = 2.0 * walks * n * n * size.d + passes * each * n * n * r
        return Cost(passes, work, 0.0, held + vectors)

    def passes(self, n: int) -> int:
        """Return how many passes over n rows there are at most."""
        if self.max_passes is None:
            return min(max(_FEWEST, _STEPS // n), _MOST)
        return int(self.max_passes)

    def fit(self, problem: Problem) -> Axes:
        rule = self._checked()
        if not self.keeps_rows:
            problem = prepare(problem)
            span = OfSpan(fit_landmarks(problem, self.basis(problem)))
            learner, converged, passes = self._learnt(problem, span, rule)
            return self._placed(span, learner, converged, _over_rows(passes), SAMPLE_ROWS)
        assert isinstance(problem, KernelProblem)
        problem = rows_in_memory(problem)
        gram = Gram(problem.kernel, problem.source, center=problem.center)
        require_finite_gram(problem, gram)
        if gram.trace > 0 and not 1e-150 < gram.trace < 1e150:
            raise ValueError(
                f"The variance in the kernel's space is {gram.trace:.1e}: its square, which "
                f"Hebbian takes, is no number. Scale the rows, or the kernel: 1e-100 * kernel."
            )
        rows = OfRows(problem, gram)
        learner, converged, passes = self._learnt(problem, rows, rule)
        learner.V = rows.product(learner.A)
        return self._handed_out(problem, rows, learner, converged, passes)

    def begin(self, problem: Problem) -> Learning:
        assert isinstance(problem, KernelProblem)
        self._checked()
        span = Span(problem.kernel, self.basis(problem), problem.source)
        asked = problem.n_leading
        r = span.rank if asked is None else min(asked, span.rank)
        self._require_few(problem, r)
        learner = Learner.begin(start(problem.rng, r, span.rank))
        return Learning(span, problem.source, center=problem.center, learner=learner)

    def finish(self, problem: Problem, fold: Any) -> Axes:
        assert isinstance(problem, KernelProblem)
        rule, span = self._checked(), OfSpan(LandmarkFit(problem, fold.span, fold))
        learner = fold.learner
        if not span.nothing:
            fold.learn(span, rule)
            self._require_bounded(learner)
            self._still(problem, learner, span)
        still = learner.change <= self.tol
        return self._placed(
            span, learner, still, f"{counted(learner.steps, 'row')} as they came", 0
        )

    def _checked(self) -> Gain:
        """Return the gain, if it and the other parameters are in order."""
        require(self, "gain", self.gain in KINDS, f"one of {', '.join(map(repr, KINDS))}")
        for name in ("eta", "tau", "mu", "tol"):
            value = getattr(self, name)
            least = "0 or more" if name in ("mu", "tol") else "above 0"
            optional = name in ("eta", "tau")
            fine = is_real(value) and math.isfinite(value) and value >= 0
            fine = fine and (value > 0 or least == "0 or more")
            require(self, name, (optional and value is None) or fine, f"a number {least}")
        require(self, "xi", is_real(self.xi) and 0 <= self.xi <= 1, "a number from 0 to 1")
        if self.max_passes is not None:
            check_whole(self, "max_passes")
        return Gain(self.gain, self.eta, self.tau, self.mu, self.xi)

    def _learnt(
        self, problem: KernelProblem, lessons: Lessons, rule: Gain
    ) -> tuple[Learner, bool, int]:
        """Return axes that were learnt, whether they stand still, and after how many passes.

        Where the rule must see variances first, some axes, and then twice as many.
        """
        asked, limit = problem.n_components, lessons.limit
        r = min(limit, _SOME if asked is None else asked)
        self._require_few(problem, r)
        if lessons.nothing:
            return lessons.begun(problem.rng, 0, None), True, 0
        learner = None
        while True:
            learner = lessons.begun(problem.rng, r, learner)
            converged, passes = self._passes(problem, learner, lessons, rule)
            if asked is not None or r >= limit:
                return learner, converged, passes
            G, M = learner.A @ learner.V.T, lessons.covariances(learner)
            values, _ = principal(G, M, turned=self.polish)
            if problem.rule.choose(values, lessons.total, *problem.counts) is not None:
                return learner, converged, passes
            r = min(limit, 2 * r)
            self._require_few(problem, r)

    def _passes(
        self, problem: KernelProblem, learner: Learner, lessons: Lessons, rule: Gain
    ) -> tuple[bool, int]:
        """Pass over the rows until the axes stand still; return whether they do, and the passes."""
        order, most = lessons.visited, self.passes(len(lessons.visited))
        with progress.task("Hebbian passes", most) as tick:
            for done in range(1, most + 1):
                order = problem.rng.permutation(lessons.visited) if done % 2 else order[::-1].copy()
                for first in range(0, len(order), lessons.chunk):
                    lessons.take(learner, order[first : first + lessons.chunk], rule)
                self._require_bounded(learner)
                tick(1)
                if done % 2 == 0 and self._still(problem, learner, lessons):
                    return True, done
        return False, most

    def _still(self, problem: KernelProblem, learner: Learner, lessons: Lessons) -> bool:
        """Tell whether the axes stand still: as many as the rule chooses."""
        asked = problem.n_components

        def keep(values: Vector) -> int:
            chosen = asked
            if asked is None:
                chosen = problem.rule.choose(values, lessons.total, *problem.counts)
            return len(values) if chosen is None else chosen

        def covariances() -> Matrix:
            return lessons.covariances(learner)

        if not learner.looked(covariances, self.tol, keep, turned=self.polish, least=lessons.least):
            return False
        values, _ = principal(learner.A @ learner.V.T, covariances(), turned=self.polish)
        return lessons.best(values[: keep(values)])

    def _require_few(self, problem: KernelProblem, r: int) -> None:
        if r > _ALL and r != problem.n_components:
            raise ValueError(
                f"{problem.rule!r} asks for {r} components or more: Hebbian learns a given number "
                f"of them, and so many are more than it can tell apart. Give n_components; "
                f"method='exact' finds all."
            )

    def _require_bounded(self, learner: Learner) -> None:
        if not learner.finite:
            raise ValueError(
                f"{self!r} has led to infinity after {learner.steps} steps. Take a smaller eta, or "
                f"leave it out."
            )

    def _handed_out(
        self,
        problem: KernelProblem,
        rows: OfRows,
        learner: Learner,
        converged: bool,
        passes: int,
    ) -> Axes:
        """Return the map of axes over all rows, and what products with the matrix say of them."""
        gram, operator = rows.gram, rows.operator
        M = rows.covariances(learner)
        values, S = principal(learner.A @ learner.V.T, M, turned=self.polish)
        least = max(1e-12 * float(np.max(values, initial=0.0)), gram.noise_floor)
        there = int((values > least).sum())
        asked = problem.n_leading
        k = problem.choose(values[:there], gram.trace) if asked is None else min(asked, there)
        k = there if k is None else min(k, there)
        A = learner.A.T @ S[:, :k] * (to_numpy(gram.roots) > 0)  # rows of no weight have no part
        note = self._report(learner, converged, _over_rows(passes))
        notes = ("Components are sums over all rows.", note)
        if k == 0:
            none = np.zeros(0)
            total = Figure(max(gram.trace, 0.0))
            evidence = Evidence(Figure(0.0), (), (total, total), none, none, none, notes=notes)
            spectrum = Spectrum(none, like(A, gram.reference), none)
            return exact_axes(problem, gram, spectrum, 0, evidence)
        evidence, overlaps = expansion_evidence(
            operator, like(A, operator.reference), problem.rng, converged=converged, notes=notes
        )
        if converged and not evidence.converged:
            evidence = evidence.annotated(_OTHERS)
        values = evidence.eigenvalues
        vectors = like(A * np.sqrt(values), gram.reference)
        spectrum = Spectrum(values, vectors, evidence.residuals)
        axes = exact_axes(problem, gram, spectrum, k, evidence)
        weighed = to_numpy(gram.roots) * A
        turned = np.sign(np.einsum("ij,ij->j", to_numpy(axes.projection.components), weighed))
        assert isinstance(axes.projection, KernelProjection)
        overlaps = overlaps * np.outer(turned, turned)
        return replace(axes, projection=replace(axes.projection, overlaps=overlaps))

    def _placed(
        self, span: OfSpan, learner: Learner, converged: bool, after: str, rows: int
    ) -> Axes:
        """Return the map of axes in the span."""
        found, W = span.found, learner.A
        values, S = principal(W @ W.T, span.covariances(learner), turned=self.polish)
        k = found.choose(values) if len(values) else 0
        converged = converged and span.best(values[:k])
        components = found.span.whitener @ (W.T @ S[:, :k])
        evidence = found.evidence(values[:k], components, found.sample(k, rows))
        evidence = evidence.annotated(self._report(learner, converged, after))
        evidence = replace(evidence, converged=converged)
        projection = found.projection(values[:k], components)
        if not self.polish:
            A = to_numpy(projection.components)
            at = found.span.basis.at if found.problem.kernel is None else slice(None)
            projection = replace(projection, overlaps=A[at].T @ found.span.matrix @ A[at])
        return Axes(projection, evidence)

    def _report(self, learner: Learner, converged: bool, after: str) -> str:
        """Say how the learning went."""
        gain = np.exp(learner.rho) if self.gain == "smd" else np.ones(0)
        what = "their span" if self.polish else "they"
        turned = f"when last looked at, {what} had turned by {math.degrees(learner.change):.2g}°"
        note = f"Learnt one row after another, gain {self.gain!r}, in {after}: {turned}"
        still = learner.change <= self.tol
        limit = f"{math.degrees(self.tol):.2g}°"
        note += f" (tol: {limit})." if still else f", more than tol, {limit}."
        note += f" {_OTHERS}" if still and not converged else ""
        if len(gain):
            note += f" Learnt factors of the gain: {gain.min():.2g} to {gain.max():.2g}."
        if learner.held > 0.01 * learner.steps:
            share = 100.0 * learner.held / learner.steps
            note += f" In {share:.0f} % of the steps it was held down, not to overshoot."
        return note


def _over_rows(passes: int) -> str:
    return f"{counted(passes, 'pass', 'passes')} over the rows"
