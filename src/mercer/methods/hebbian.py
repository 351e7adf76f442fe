"""The kernel Hebbian algorithm (Kim, Franz & Schölkopf 2005; Günter et al. 2007)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np

from mercer import progress
from mercer.arrays import Array, Matrix, Vector, like, to_numpy
from mercer.certificate import Certificate, Figure
from mercer.config import get_config
from mercer.eigen import Spectrum
from mercer.kernels.parameters import is_number, require
from mercer.landmarks import Landmarks, as_landmarks
from mercer.landmarks.columns import Columns
from mercer.landmarks.objective import axes_asked
from mercer.methods.base import Cost, Size, Streaming
from mercer.methods.basis import OnBasis, ready
from mercer.methods.exact import in_memory, projected, require_finite_kernel
from mercer.methods.learner import KINDS, Gain, Learner, principal
from mercer.methods.rows import judged
from mercer.methods.spanned import DRAWN, Spanned, spanned, with_notes
from mercer.operators import Dense, Gram, Operator
from mercer.operators.gram import strip_rows
from mercer.problem import KernelProblem, Problem
from mercer.projection import KernelProjection
from mercer.sources import Block
from mercer.span import KernelMoments, Span

# Passes that a plan reckons with.
_PASSES = 300
# Axes to begin with where a rule is to say how many, from their variances.
_SOME = 8
# More rows than these have more axes than can be learnt.
_ALL = 256


class Hebbian(OnBasis, Streaming):
    r"""Axes learnt from one row after another: KHA, KHA/et and KHA-SMD.

    With :math:`y = Ak'_t` the scores of a row along the axes :math:`\sum_i a_i\tilde\Phi(x_i)`,

    .. math:: A \leftarrow A + \operatorname{diag}(e^\rho\eta)\,(y e_t^T - \operatorname{lt}(yy^T)A)

    where lt keeps the lower triangle, and k' is a row of the centred kernel matrix K'. The gain η
    is a number for all axes ("kha"); or :math:`\eta_0\frac{\|\lambda\|}{\lambda_i}
    \frac{\tau}{t+\tau}` with :math:`\lambda_i = \|K'a_i\|/\|a_i\|` ("et"); or this, and its log-gain
    ρ is learnt by stochastic meta-descent along with :math:`B = \partial A/\partial\rho` ("smd").
    AK' is kept beside A, so that a step costs O(nr) and a row of the kernel matrix. Passes over
    the rows go on until the axes stand still. For large problems other methods are faster; this
    is the one that learns as rows come.

    Rows are visited in a random order, and then back: what comes last counts no more than what
    came first. Of batches (`partial_fit`, on a basis) the order is the one they come in, and
    the axes depend on it.

    Parameters
    ----------
    gain : {"smd", "et", "kha"}
        How the gain is found.
    n_basis : int or None
        Points of a basis in whose span the axes are learnt. None, and no `select`: axes are sums
        over all rows.
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
    max_passes : int
        Passes over the rows at most.
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

    def __init__(
        self,
        gain: str = "smd",
        n_basis: int | None = None,
        select: Any = None,
        eta: float | None = None,
        tau: float | None = None,
        mu: float = 1.0,
        xi: float = 0.99,
        max_passes: int = 1000,
        tol: float = 1e-4,
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

    def cost(self, size: Size) -> Cost:
        n, passes = size.n, min(_PASSES, int(self.max_passes))
        r = min(size.axes, _ALL) if size.k is None else size.k
        each = {"kha": 8.0, "et": 12.0, "smd": 30.0}.get(self.gain, 30.0)
        if not self.keeps_rows:
            cost = super().cost(size)
            m = self.points(n, size.k)
            held = 8.0 * n * m if _fits(n * m) else 0.0
            work = passes * n * (each * m * r + (0.0 if held else 2.0 * m * (m + size.d)))
            return replace(cost, passes=passes, products=cost.products + work, memory=cost.memory + held)
        kept = _fits(n * n)
        walks = 4 if kept else passes + 6
        held = 16.0 * n * n if kept else 4 * 8.0 * n * strip_rows(n, 8)
        vectors = 8.0 * n * (8 * r + 16 + size.d)
        work = 2.0 * walks * n * n * size.d + passes * each * n * n * r
        return Cost(passes, work, 0.0, held + vectors)

    def fit(self, problem: Problem) -> KernelProjection:
        rule = self._checked()
        if not self.keeps_rows:
            problem = ready(problem)
            found = spanned(problem, self.basis(problem))
            return self._on_basis(found, rule)
        assert isinstance(problem, KernelProblem)
        problem.require_finite_rows()
        problem = in_memory(problem)
        gram = Gram(problem.kernel, problem.source, center=problem.center)
        require_finite_kernel(problem, gram)
        return self._over_rows(problem, gram, rule)

    def _checked(self) -> Gain:
        """Return the gain, if it and the other parameters are in order."""
        require(self, "gain", self.gain in KINDS, f"one of {', '.join(map(repr, KINDS))}")
        for name in ("eta", "tau", "mu", "tol"):
            value = getattr(self, name)
            least = "0 or more" if name in ("mu", "tol") else "above 0"
            optional = name in ("eta", "tau")
            fine = is_number(value) and math.isfinite(value) and value >= 0
            fine = fine and (value > 0 or least == "0 or more")
            require(self, name, (optional and value is None) or fine, f"a number {least}")
        require(self, "xi", is_number(self.xi) and 0 <= self.xi <= 1, "a number from 0 to 1")
        passes = self.max_passes
        whole = is_number(passes) and math.isfinite(passes) and passes == int(passes) >= 1
        require(self, "max_passes", whole, "a whole number, 1 or more")
        return Gain(self.gain, self.eta, self.tau, self.mu, self.xi)

    # Over all rows.

    def _over_rows(self, problem: KernelProblem, gram: Gram, rule: Gain) -> KernelProjection:
        operator, rows = _matrix(problem, gram)
        counts = to_numpy(gram.roots)[:, 0] > 0
        visited = np.flatnonzero(counts)
        limit = min(gram.rank, len(visited))
        r = self._wanted(problem, limit)
        learner, converged = Learner.begin(np.zeros((0, gram.size))), True
        if gram.trace <= gram.rounding:  # all rows are the same
            return self._handed_out(problem, gram, operator, learner, converged, 0)
        while True:
            more = _drawn(problem.rng, r - len(learner.A), visited, gram)
            A = np.vstack([learner.A, more])
            learner = Learner.begin(A, _product(operator, A))
            converged, passes = self._learnt(learner, rows, visited, operator.trace, rule, problem)
            learner.V = _product(operator, learner.A)
            values, _ = principal(*_inner(learner), turned=self.polish)
            if problem.rule.first_guess(*problem.sides) is not None or r >= limit:
                break
            if problem.choose(values, gram.trace) is not None:
                break
            r = min(limit, 2 * r)
        return self._handed_out(problem, gram, operator, learner, converged, passes)

    def _wanted(self, problem: KernelProblem, limit: int) -> int:
        asked = problem.rule.first_guess(*problem.sides)
        if asked is None:
            return min(limit, _SOME)
        if asked >= problem.sides[0] > _ALL:
            raise ValueError(
                f"n_components={problem.rule!r} of {problem.sides[0]} rows: Hebbian learns a given "
                f"number of axes, and all of them are more than it can tell apart. Give "
                f"n_components; method='exact' finds all."
            )
        return max(1, min(asked, limit))

    def _learnt(
        self,
        learner: Learner,
        rows: Callable[[Any], tuple[Matrix, Any]],
        visited: Any,
        trace: float,
        rule: Gain,
        problem: KernelProblem,
    ) -> tuple[bool, int]:
        """Pass over the rows until the axes stand still; return whether they do, and the passes."""
        from mercer.methods.steps import over_rows

        order, chunk = visited, _chunk(len(learner.A.T))
        with progress.task("Hebbian passes", int(self.max_passes)) as tick:
            for done in range(1, int(self.max_passes) + 1):
                order = problem.rng.permutation(visited) if done % 2 else order[::-1].copy()
                gain = rule.numbers(learner.squares(learner.V), trace, len(visited))
                state = (learner.A, learner.V, learner.B, learner.rho, learner.spent)
                for first in range(0, len(order), chunk):
                    some = order[first : first + chunk]
                    K, at = rows(some)
                    learner.held += over_rows(K, at, some, *state, gain, learner.steps)
                    learner.steps += len(some)
                self._require_bounded(learner)
                tick(1)
                if done % 2 == 0 and learner.looked(
                    learner.squares(learner.V), self.tol, turned=self.polish
                ):
                    return True, done
        return False, int(self.max_passes)

    def _require_bounded(self, learner: Learner) -> None:
        if not learner.finite:
            raise ValueError(
                f"{self!r} has led to infinity after {learner.steps} steps. Take a smaller eta, or "
                f"leave it out."
            )

    def _handed_out(
        self,
        problem: KernelProblem,
        gram: Gram,
        operator: Operator,
        learner: Learner,
        converged: bool,
        passes: int,
    ) -> KernelProjection:
        """Return the map of the axes learnt, and what products with the matrix say of them."""
        values, S = principal(*_inner(learner), turned=self.polish)
        least = max(1e-12 * float(np.max(values, initial=0.0)), gram.rounding)
        there = int((values > least).sum())
        asked = axes_asked(problem)
        k = problem.choose(values[:there], gram.trace) if asked is None else min(asked, there)
        k = there if k is None else min(k, there)
        A = like(learner.A.T @ S[:, :k], gram.reference)
        note = self._report(learner, converged, f"{passes} passes over the rows")
        how = {"converged": converged, "notes": ("Axes are sums over all rows.", note)}
        if k == 0:
            none = Spectrum(np.zeros(0), A, np.zeros(0))
            return projected(problem, gram, none, 0, _nothing(how))
        certificate, overlaps = judged(operator, A, problem.rng, **how)  # type: ignore[arg-type]
        values = certificate.eigenvalues
        spectrum = Spectrum(values, A * like(np.sqrt(values), A), certificate.residuals)
        projection = projected(problem, gram, spectrum, k, certificate)
        turned = np.sign(np.einsum("ij,ij->j", to_numpy(projection.components), to_numpy(gram.roots * A)))
        return replace(projection, overlaps=overlaps * np.outer(turned, turned))

    def _report(self, learner: Learner, converged: bool, after: str) -> str:
        """Say how the learning went."""
        gain = np.exp(learner.rho) if self.gain == "smd" else np.ones(0)
        what = "their span" if self.polish else "they"
        turned = f"when last looked at, {what} had turned by {learner.change:.1e} rad"
        note = f"Learnt one row after another, gain {self.gain!r}, in {after}: {turned}"
        note += f" (tol={self.tol:g})." if converged else f", more than tol={self.tol:g}."
        if len(gain):
            note += f" Learnt factors of the gain: {gain.min():.2g} to {gain.max():.2g}."
        if learner.held > 0.01 * learner.steps:
            share = 100.0 * learner.held / learner.steps
            note += f" In {share:.0f} % of the steps it was held down, not to overshoot."
        return note

    # On a basis.

    def _on_basis(self, found: Spanned, rule: Gain) -> KernelProjection:
        problem, C = found.problem, _covariance(found)
        weights = problem.source.weights
        visited = np.arange(problem.source.shape[0]) if weights is None else np.flatnonzero(weights)
        rows = _coordinates(found)
        learner = Learner.begin(_start(problem.rng, self._axes(found), found.span.rank))
        converged = float(np.trace(C)) <= 0.0
        order, done, chunk = visited, 0, _chunk(found.span.size)
        with progress.task("Hebbian passes", int(self.max_passes)) as tick:
            while not converged and done < self.max_passes:
                done += 1
                order = problem.rng.permutation(visited) if done % 2 else order[::-1].copy()
                for first in range(0, len(order), chunk):
                    _follow(learner, rows(order[first : first + chunk]), C, rule, len(visited))
                self._require_bounded(learner)
                tick(1)
                if done % 2 == 0:
                    squares = learner.squares(learner.A @ C)
                    converged = learner.looked(squares, self.tol, turned=self.polish)
        return self._placed(found, learner, converged, f"{done} passes over the rows", DRAWN)

    def _axes(self, found: Spanned) -> int:
        """Return how many axes to learn: those asked for, or as many as there can be."""
        asked, rank = axes_asked(found.problem), found.span.rank
        return rank if asked is None else min(asked, rank)

    def _placed(
        self, found: Spanned, learner: Learner, converged: bool, after: str, rows: int
    ) -> KernelProjection:
        """Return the map of axes in the span."""
        W, C = learner.A, _covariance(found)
        values, S = principal(W @ W.T, W @ C @ W.T, turned=self.polish)
        k = found.chosen(values) if len(values) else 0
        axes = found.span.white @ (W.T @ S[:, :k])
        certificate = found.certificate(values[:k], axes, found.sample(k, rows))
        certificate = with_notes(certificate, self._report(learner, converged, after))
        certificate = replace(certificate, converged=converged)
        projection = found.projection(values[:k], axes, certificate)
        if self.polish:
            return projection
        A = to_numpy(projection.components)
        at = found.span.basis.at if found.problem.kernel is None else slice(None)
        return replace(projection, overlaps=A[at].T @ found.span.matrix @ A[at])

    # Of batches.

    def begin(self, problem: Problem) -> Learning:
        assert isinstance(problem, KernelProblem)
        self._checked()
        span = Span(problem.kernel, self.basis(problem), problem.source)
        asked = axes_asked(problem)
        r = span.rank if asked is None else min(asked, span.rank)
        start = Learner.begin(_start(problem.rng, r, span.rank))
        return Learning(span, problem.source, center=problem.center, learner=start)

    def finish(self, problem: Problem, fold: Any) -> KernelProjection:
        assert isinstance(problem, KernelProblem)
        rule = self._checked()
        found = Spanned(problem, fold.span, fold)
        C, learner = _covariance(found), fold.learner
        if float(np.trace(C)) > 0.0:
            for F in fold.waiting(found):
                _follow(learner, F, C, rule, problem.source.shape[0])
            self._require_bounded(learner)
            learner.looked(learner.squares(learner.A @ C), self.tol, turned=self.polish)
        converged = learner.change <= self.tol
        return self._placed(found, learner, converged, f"{learner.steps} rows as they came", 0)


class Learning(KernelMoments):
    """Moments of h(x), and axes that learn from the rows in the order they came.

    Rows wait until all blocks of a batch are in: workers take them in turn.
    """

    def __init__(
        self,
        span: Span,
        source: Any,
        *,
        center: bool,
        known: Any = None,
        learner: Learner | None = None,
    ) -> None:
        super().__init__(span, source, center=center, known=known)
        self.learner = learner
        self.rows: dict[int, Matrix] = {}

    def add(self, block: Block) -> None:
        super().add(block)
        h = to_numpy(self.features.f(block)).astype(np.float64)  # type: ignore[attr-defined]
        self.rows[block.start] = np.column_stack([h, block.count])

    def merge(self, other: Self) -> None:
        super().merge(other)
        self.rows.update(other.rows)

    def waiting(self, found: Spanned) -> list[Matrix]:
        """Return the coordinates of the rows that wait, in their order; none wait then."""
        blocks = [self.rows[start] for start in sorted(self.rows)]
        self.rows = {}
        return [_white(found, h[:, :-1], h[:, -1]) for h in blocks]

    def arrays(self) -> dict[str, Array]:
        state = {} if self.learner is None else self.learner.arrays()
        return {**super().arrays(), **{f"learner {name}": x for name, x in state.items()}}

    def restore(self, arrays: dict[str, Array]) -> None:
        head = "learner "
        state = {k.removeprefix(head): v for k, v in arrays.items() if k.startswith(head)}
        super().restore({k: v for k, v in arrays.items() if not k.startswith(head)})
        self.learner = Learner.restore(state) if state else None


def _follow(learner: Learner, F: Matrix, C: Matrix, rule: Gain, visits: int) -> None:
    """Learn from rows given by their coordinates; eigenvalues are looked up now and then.

    As often as the number of coordinates lets it: where blocks end makes no difference.
    """
    from mercer.methods.steps import over_features

    every, done = max(32, len(C)), 0
    while done < len(F):
        now = min(len(F) - done, every - learner.steps % every)
        if learner.steps % every == 0 or learner.squared is None:
            learner.squared = learner.squares(learner.A @ C)
        gain = rule.numbers(learner.squared, float(np.trace(C)), visits)
        some = np.ascontiguousarray(F[done : done + now])
        state = (learner.A, learner.B, learner.rho, learner.spent, learner.squared)
        learner.held += over_features(some, *state, gain, learner.steps)
        learner.steps += now
        done += now


def _covariance(found: Spanned) -> Matrix:
    """Return the covariance of the rows' coordinates in the span."""
    T = found.span.white
    return np.asarray(T.T @ found.covariance @ T)


def _white(found: Spanned, h: Matrix, counts: Vector) -> Matrix:
    """Return coordinates in the span, about the mean, whose squares add up to the covariance."""
    mean = found.seen.mean * found.problem.center
    roots = np.sqrt(counts / max(found.divisor, 1e-300))
    return np.asarray((h - mean) @ found.span.white * roots[:, None])


def _coordinates(found: Spanned) -> Callable[[Any], Matrix]:
    """Return what gives the coordinates of rows by their numbers; kept where they fit."""
    source = found.problem.source
    features = found.span.features(source)
    n, counts = source.shape[0], source.weights
    counts = np.ones(n) if counts is None else counts
    if _fits(n * found.span.size):
        kept = _white(found, to_numpy(features.collect()).astype(np.float64), counts)
        return lambda at: kept[at]

    def rows(at: Any) -> Matrix:
        h = features.f(Block(0, source.take(at), None))  # type: ignore[attr-defined]
        return _white(found, to_numpy(h).astype(np.float64), counts[at])

    return rows


def _matrix(
    problem: KernelProblem, gram: Gram
) -> tuple[Operator, Callable[[Any], tuple[Matrix, Any]]]:
    """Return the centred kernel matrix, and what gives its rows: kept where it fits."""
    if _fits(gram.size**2):
        K = gram.dense()
        operator: Operator = Dense(K, psd=gram.psd, rounding=gram.rounding)
        return operator, lambda at: (K, at)
    columns, roots = Columns(problem, np.float64), to_numpy(gram.roots)[:, 0]
    means = gram.means * problem.center
    height = gram.height * problem.center

    def rows(at: Any) -> tuple[Matrix, Any]:
        K = columns.collect(at).T - means - means[at][:, None] + height
        K *= roots * roots[at][:, None] / gram.divisor
        return np.ascontiguousarray(K), np.arange(len(at))

    return gram, rows


def _product(operator: Operator, A: Matrix) -> Matrix:
    """Return AK'."""
    if not len(A):
        return np.zeros_like(A)
    return np.ascontiguousarray(to_numpy(operator.matmat(like(A.T, operator.reference))).T)


def _inner(learner: Learner) -> tuple[Matrix, Matrix]:
    """Return the inner products of axes over all rows, and their covariances."""
    G = learner.A @ learner.V.T
    return (G + G.T) / 2, learner.V @ learner.V.T


def _drawn(rng: np.random.Generator, r: int, visited: Any, gram: Gram) -> Matrix:
    """Return random axes, of variance 1/(rn) a coefficient as in the sources, centred."""
    A = np.zeros((r, gram.size))
    A[:, visited] = _start(rng, r, len(visited)) * math.sqrt(len(visited) / gram.trace)
    return to_numpy(gram.project(like(A.T, gram.reference))).T


def _start(rng: np.random.Generator, r: int, n: int) -> Matrix:
    return rng.standard_normal((r, n)) / math.sqrt(max(1, r * n))


def _fits(entries: float) -> bool:
    return 16.0 * entries <= get_config().budget / 2


def _chunk(n: int) -> int:
    return strip_rows(n, 8)


def _nothing(how: dict[str, Any]) -> Certificate:
    """Return what is known where there is no variance."""
    none = np.zeros(0)
    return Certificate(Figure(0.0), Figure(0.0), none, none, none, **how)
