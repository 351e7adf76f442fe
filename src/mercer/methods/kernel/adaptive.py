"""The cheapest way to a captured variance that is certified within a gap of the optimum."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import Array, empty
from mercer.certificate import Certificate
from mercer.config import get_config
from mercer.kernels.evaluate import GramFold
from mercer.kernels.points import Points, cast_rows
from mercer.landmarks.base import taken
from mercer.linalg.span import Basis, precision
from mercer.methods.base import Cost, Method, Size
from mercer.methods.kernel.basis import ready, require_room, size_of
from mercer.methods.kernel.exact import Exact
from mercer.methods.kernel.landmark_fit import DRAWN, Spanned, spanned, with_notes
from mercer.methods.kernel.products import MORE, by_products, sharper
from mercer.methods.kernel.subset import Subset
from mercer.problem import KernelProblem, Problem
from mercer.projection import KernelProjection

# The first basis has so many points at least, or so many for every axis.
_FIRST, _EACH = 250, 4
# The most that a basis grows at a time: what it will take is not known so far ahead.
_GROWTH = 4.0
NEEDED = "The gap asked for takes"
"""How the note begins that says what would be needed."""


class Within(Method):
    r"""Axes that are certified to hold all but a share, the gap, of the most that any axes can.

    A random basis, and `Subset` on it, whose bounds cost next to nothing. Where they do not do,
    the basis grows, as long as that is predicted to cost less than one product with the kernel
    matrix; then such products, from the axes found, until the bound is met. The axes are those
    of the basis where they are good enough by then, else sums over all rows. Where no `gap` is
    asked for, as near as products come.

    Parameters
    ----------
    n_basis : int, float or None
        Points of the first basis; below 1, their share of the rows. None: 250, or four for
        every axis.
    store : {"float64", "float32", "none"} or None
        How the kernel matrix is kept, as in `Exact`; None: no products are made with it.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelPCA
    >>> from mercer.methods import Within
    >>> X = load_digits().data
    >>> kpca = KernelPCA(5, kernel="rbf", gamma=1e-4, gap=0.01, method=Within(), random_state=0)
    >>> kpca.fit(X).certificate_.gap <= 0.01
    True
    """

    name = "within"
    for_rows = False
    in_pairs = True

    def __init__(self, n_basis: int | float | None = None, store: str | None = "float32") -> None:
        self.n_basis, self.store = n_basis, store

    @property
    def keeps_rows(self) -> bool:
        return self.store is not None

    def cost(self, size: Size) -> Cost:
        first = Subset(self._first(size.n, size.k)).cost(replace(size, gap=None))
        if self.store is None:
            return first
        products = self._exact(size)
        return Cost(
            first.passes + 3,
            first.products + products,
            first.factor,
            max(first.memory, Exact("krylov", self.store).cost(size).memory),
        )

    def fit(self, problem: Problem) -> KernelProjection:
        problem = ready(problem)
        gap, order, kept = problem.gap or 0.0, _order(problem), None
        m: int | None = self._first(len(order), problem.rule.first_guess(*problem.sides))
        while m is not None:
            found, kept = _walked(problem, taken(problem, order[:m]), kept)
            xi, Z = found.pairs
            k = found.chosen(xi)
            sample = found.sample(k, DRAWN)
            certificate = found.certificate(xi[:k], Z[:, :k], sample)
            if certificate.gap > gap:
                sample, certificate = sharper(found, k, gap, sample, certificate)
            m = self._next(found, k, gap, certificate, len(order))
        fitted = found.projection(xi[:k], Z[:, :k], certificate)
        if certificate.gap <= gap:
            return fitted
        if self.store is None or not found.bounded:
            note = _needed(_predicted(found, k, gap), len(order))
            return replace(fitted, certificate=with_notes(certificate, note))
        return by_products(found, fitted, self.store, sample)

    def _first(self, n: int, k: int | None) -> int:
        if self.n_basis is None:
            return min(n, max(_FIRST, _EACH * min(k or 0, n)))
        m = size_of(self.n_basis, n)
        require_room(k if k is not None and k < n else None, m)
        return m

    def _next(
        self, found: Spanned, k: int, gap: float, certificate: Certificate, n: int
    ) -> int | None:
        """Return how many of n points the next basis has; None where it need not grow, or cannot.

        As many as the bound is predicted to need, where they cost less than products with the
        kernel matrix do. Else as many as cost a tenth of those, for axes that are near enough
        for one product to tell so.
        """
        m, shape = found.span.size, found.problem.source.shape
        size = Size(shape[0], shape[1] if len(shape) > 1 else 1, k, square=True)
        if certificate.gap <= gap or m >= n:
            return None
        wanted, most = _predicted(found, k, gap), self._exact(size)
        if _operations(min(wanted, n), size) <= most and (wanted < n / 2 or self.store is None):
            return int(min(n, max(m + 1.0, 1.5 * m, min(wanted, _GROWTH * m))))
        near = certificate.gap_estimate <= gap / 2
        points = float(m)
        while not near and points < n / 4 and _operations(1.1 * points, size) <= most / 10:
            points *= 1.1
        return int(points) if points >= 1.5 * m else None

    def _exact(self, size: Size) -> float:
        """Return the operations of a walk over all pairs and a few products."""
        if self.store is None:
            return math.inf
        vectors = 3.0 * (size.axes + MORE)
        pairs = float(size.n) * size.n
        return pairs * size.d * (3 if self.store == "none" else 1) + 2.0 * pairs * vectors


def _operations(m: float, size: Size) -> float:
    """Return the operations of a basis of m points; infinite where it does not fit the memory."""
    cost = Subset(int(min(m, size.n))).cost(size)
    if cost.memory > get_config().budget:
        return math.inf
    return cost.products + 4 * cost.factor  # LAPACK's take about four times as long


def _order(problem: KernelProblem) -> Any:
    """Return the rows in a random order, heavier ones earlier (Efraimidis & Spirakis 2006)."""
    n, weights = problem.source.shape[0], problem.source.weights
    if weights is None:
        return problem.rng.permutation(n)
    with np.errstate(divide="ignore"):
        keys = problem.rng.exponential(size=n) / weights
    return np.argsort(keys)[: int((weights > 0).sum())]


def _walked(problem: KernelProblem, basis: Basis, kept: Array) -> tuple[Spanned, Array]:
    """Walk the rows beside a basis; return the kernels to it too, where there is room for them.

    Those to its first points are kept already.
    """
    source, kernel, m = problem.source, problem.kernel, len(basis)
    n, kind = source.shape[0], precision(source)
    if kernel is None or get_config().budget // 4 < n * m * kind.itemsize:
        return spanned(problem, basis), None
    old = 0 if kept is None else int(kept.shape[1])
    h = empty((n, m), source.reference, kind)
    if old:
        h[:, :old] = kept
    assert basis.at is not None
    fresh = Points(cast_rows(source.take(basis.at[old:]), kind))
    source.fold(GramFold(kernel.on, fresh, h[:, old:], source.reference))
    known = source.map(lambda block: h[block.start : block.stop, :], m, kind)
    return spanned(problem, basis, known), h


def _predicted(found: Spanned, k: int, gap: float) -> float:
    """Predict the basis that the bound needs, from what half of this one leaves out.

    More points than this one has, which are too few.
    """
    span, m = found.span, found.span.size
    half = found.part(m // 2)
    allowed = gap / (1.0 - gap) * float(found.pairs[0][:k].sum())
    if found.beyond <= 0.0 or allowed <= 0.0:
        return math.inf
    slope = math.log2(max(half / found.beyond, 1.0 + 1e-9))
    with np.errstate(over="ignore"):
        points = float(m * np.power(found.beyond / allowed, 1.0 / slope)) if span.rank else math.inf
    return max(m + 1.0, points)


def _needed(m: float, n: int) -> str:
    points = f"a basis of about {m:.2g} points" if m < n / 2 else "most of the rows as a basis"
    return f"{NEEDED} {points}, or products with the kernel matrix of {n} rows."
