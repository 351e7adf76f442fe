"""Block Krylov with full orthogonalization, thick restarts and residuals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    cast,
    column_norms,
    eigh,
    empty,
    like,
    orthogonalize,
    orthonormalize,
    svd,
    to_numpy,
)
from mercer.config import get_config
from mercer.linalg.bounds import lanczos_excess
from mercer.linalg.operator import DeflatedOperator, Figure, Operator
from mercer.linalg.solvers.spectrum import (
    Spectrum,
    StopRule,
    WarmStart,
    random_basis,
    residual_target,
)
from mercer.threads import serial_blas

_STEPS = 600
# A block whose directions are no farther apart in length stays orthogonal to the basis.
_CLEAN = 1e-2
# What a residual gets down to, as a share of what products are usually off by.
_NOISE = 4e-3
# Estimate of the rounding of the recurrence, in ε ‖A‖ for each vector of the basis: 170 ε ‖A‖ was
# seen for 56.
_RECURRENCE = 8
# `unseen_norm` multiplies so many vectors, and checks its bound after so many products; each
# check may fail with its share of one in a thousand.
_STARTS, _LOOKS, _CONFIDENCE = 4, (6, 10, 16), 0.999


def krylov(
    operator: Operator,
    k: int,
    *,
    tol: float,
    rng: Generator,
    start: Spectrum | WarmStart | None = None,
    enough: StopRule | None = None,
) -> Spectrum:
    """Find the k largest eigenvalues by block Lanczos.

    A float32 operator drives the iteration in float32; then float64 products take over from
    the vectors found, so that values and residuals are float64's. `enough` may end the
    iteration before the residuals do.
    """
    # Float32 products of very large or very small rows would overflow or vanish.
    drive = operator.dtype if 1e-25 < operator.trace < 1e30 else np.float64
    if isinstance(start, WarmStart):
        basis = KrylovBasis(operator, start.vectors, drive)
        # As precise as the operator's own products: not to be taken for float64's.
        basis.known = start.product if drive == operator.dtype else None
    elif start is not None and isinstance(start.state, KrylovBasis):
        basis = start.state
    else:
        block = min(operator.size, operator.block, k + 8)
        basis = KrylovBasis(operator, random_basis(operator, block, rng), drive)
    with serial_blas():
        spectrum = basis.grow(k, tol, rng, enough)
        if basis.dtype == np.float64:
            return spectrum
        # Where no products are to spare for bounds, much of what was searched serves them.
        wide = k + 8 if operator.probe_dtype is not None else min(basis.m, 4 * k + 256)
        Q, _ = orthonormalize(cast(basis.vectors(min(operator.size, wide)), np.float64))
        sharp = KrylovBasis(operator, Q, np.float64, spectrum.products)
        return replace(sharp.grow(k, tol, rng, enough), state=basis)


class KrylovBasis:
    """An orthonormal basis that grows by blocks, and the operator's compression to it.

    The vectors are rows of one array, so that every product with them is one GEMM. `H` is
    QᵀAQ; `tail` is the factor R in A Q = Q H + Q_next R, which acts on the last block alone.
    `room` is how many vectors memory is taken for at once, `capacity` how many there can be.
    """

    def __init__(self, operator: Operator, Q: Array, dtype: object, products: int = 0) -> None:
        self.operator = operator
        self.dtype = np.dtype(dtype)  # type: ignore[call-overload]
        self.N, self.block = operator.size, int(Q.shape[1])
        self.products = products
        self.rows = cast(Q.T, self.dtype)
        self.H: Matrix = np.zeros((0, 0))
        self.next: Array = None
        self.known: Array = None
        self.tail: Matrix = np.zeros((0, 0))
        self.m = 0
        self.width = self.block
        self._ritz: tuple[Vector, Matrix, Matrix] | None = None
        self.broken = self.fresh = False
        self.room, self.capacity = 0, self.N
        self._sum = (0, 0.0)

    def grow(self, k: int, tol: float, rng: Generator, enough: StopRule | None) -> Spectrum:
        """Add blocks until k residuals are small enough."""
        met, late = False, 0
        wanted = 6 * k + 20 * self.block
        fits = get_config().budget // 3 // int(self.N * self.dtype.itemsize)
        self.room = min(self.N, max(min(wanted, fits), k + 3 * self.block))
        for step in range(_STEPS):
            if self.m < self.N and (self.m == 0 or step > 0 or self.m < k):
                if self.m + self.block > self.room:
                    self._restart(k)
                self.step(rng)
            full = self.m == self.N
            # A check costs less than the product with a wide block.
            wide = self.width > self.operator.block
            if self.m >= k and (full or wide or step % self.operator.check_interval == 0):
                spectrum = self._spectrum(k)
                # Float64 products must reach what the precision of the data allows.
                least = self.operator.dtype if tol == 0 else self.dtype
                # No residual gets below the noise of products, which is well below its bound.
                goal = residual_target(spectrum.values, tol, least, self.N)
                goal = goal + _NOISE * self.operator.noise_floor
                met = full or bool(np.all(column_norms(self.ritz_pairs()[2][:, :k]) <= goal))
                met = (met and not self._hides(k)) or self._noise(k)
                rule = enough if self.dtype == np.float64 else None
                if rule is None and met:
                    break
                # Beyond convergence a larger basis still tightens what can be certified.
                late = late + 1 if met else 0
                if rule is not None and (full or late > 4 or rule(spectrum)):
                    met = True
                    break
        basis = self.rows[: self.m, :].T
        return replace(self._spectrum(k), vectors=self.vectors(k), basis=basis, converged=met)

    def _noise(self, k: int) -> bool:
        """Return whether the matrix is only rounding: eigenvalues of both signs may cancel."""
        if self.operator.psd:
            return self.operator.trace <= self.operator.noise_floor
        ritz, _, coupled = self.ritz_pairs()
        reach = np.abs(ritz).max() + np.max(column_norms(coupled[:, :k]), initial=0.0)
        return bool(reach <= self.operator.noise_floor)

    def _hides(self, k: int) -> bool:
        """Return whether another random block may find more eigenvalues.

        A Krylov space holds no more copies of an eigenvalue than its block has vectors. When
        it is exhausted, random vectors go on: until they change nothing among the first k, or
        settle below them.
        """
        if not self.broken or self.m == self.N:
            return False
        ritz, _, coupled = self.ritz_pairs()
        if self.fresh:
            before, self._sum = self._sum, (k, float(ritz[:k].sum()))
            return before[0] != k or not np.isclose(before[1], self._sum[1], rtol=1e-10, atol=0.0)
        reach = ritz + column_norms(coupled)
        return bool(np.max(reach[k:], initial=0.0) > ritz[k - 1] * (1 + 1e-10))

    def vectors(self, k: int) -> Array:
        S = self.ritz_pairs()[1]
        return self.rows[: self.m, :].T @ like(S[:, :k], self.rows, self.dtype)

    def step(self, rng: Generator) -> None:
        """Take the next block into the basis and multiply it."""
        old, near = self.m, max(0, self.m - self.width)
        if old > 0:
            self.width = int(self.next.shape[1])
            need = old + self.width
            if need > self.rows.shape[0]:
                grown = empty((min(self.N, max(need, self.room)), self.N), self.rows, self.dtype)
                grown[:old, :] = self.rows[:old, :]
                self.rows = grown
            self.rows[old:need, :] = self.next.T
        self.m = old + self.width
        rows = self.rows[: self.m, :]
        known, self.known = self.known, None  # the first product may have been made already
        W = known if known is not None else self.operator.matmat(rows[old:, :].T)
        W = cast(W, self.dtype)
        self.products += self.width
        # The recurrence leaves parts along the last two blocks, and rounding along the rest:
        # without those parts one pass over the basis is enough.
        W, first = orthogonalize(rows[near:, :], W)
        W, part = orthogonalize(rows, W)
        overlap = to_numpy(part).astype(np.float64)
        overlap[near:] += to_numpy(first)
        H = np.zeros((self.m, self.m))
        H[:old, :old] = self.H
        H[:, old:] = overlap
        H[old:, :] = overlap.T
        H[old:, old:] = (overlap[old:] + overlap[old:].T) / 2
        self.H = H
        self._ritz = None
        self._continue(W, rng)

    def _continue(self, W: Array, rng: Generator) -> None:
        """Orthonormalize the remainder of the product as the next block; pad it randomly."""
        width = min(self.width, self.block, self.capacity - self.m)
        self.tail = np.zeros((width, self.width))
        if width == 0:
            return
        Q, R = orthonormalize(W)
        sizes, least = np.abs(np.diag(R)), 16 * np.finfo(self.dtype).eps * np.abs(self.H).max()
        if width == self.width and sizes.min() > max(least, _CLEAN * sizes.max()):
            self.next, self.tail, self.fresh = Q, R, False
            return
        # By singular vectors: all that W has along those that are left out is rounding.
        U, sizes, _ = svd(R)
        Q, weak = Q @ like(U[:, :width], Q, self.dtype), sizes[:width] <= least
        self.fresh = bool(weak.any())
        if self.fresh:  # a direction made of rounding: any other will do
            self.broken = True
            fill = like(rng.standard_normal((self.N, width)), Q, self.dtype)
            # The last block completes the space: with what the operator projects away, or
            # nothing but rounding would be left for it. Only the fill is projected: what is
            # left of W must stay in the span, or the tail would be too small.
            fill = self.operator.project(fill) if self.m + width < self.N else fill
            noise = like(weak, Q, self.dtype)[None, :]
            Q = Q * (1 - noise) + fill * noise
        for _ in range(1 + self.fresh):  # the second time for W's part, twice is enough
            Q, _ = orthogonalize(self.rows[: self.m, :], Q)
        self.next, _ = orthonormalize(Q)
        self.tail = to_numpy(self.next.T @ W).astype(np.float64)

    def _restart(self, k: int) -> None:
        """Keep the best Ritz vectors only; the next block and its coupling stay."""
        values, S, coupled = self.ritz_pairs()
        p = min(k + self.block, self.m)
        kept = like(S[:, :p].T.copy(), self.rows, self.dtype) @ self.rows[: self.m, :]
        # Orthonormal but for rounding, which would grow from restart to restart.
        Q, R = orthonormalize(kept.T)
        self.rows[:p, :] = (Q * like(np.sign(np.diag(R)), Q, self.dtype)).T
        self.tail = coupled[:, :p]
        self.m = self.width = p
        self.H = np.diag(values[:p])
        self._ritz = None

    def ritz_pairs(self) -> tuple[Vector, Matrix, Matrix]:
        """Return the Ritz values, their vectors in the basis, and their parts beyond it.

        The residuals are the lengths of those parts, but for rounding.
        """
        if self._ritz is None:
            ritz, S = eigh(self.H)
            self._ritz = ritz, S, self.tail @ S[self.m - self.width :, :]
        return self._ritz

    def _spectrum(self, k: int) -> Spectrum:
        ritz, _, coupled = self.ritz_pairs()
        # The recurrence rounds too: by up to some ε ‖A‖ for each vector of the basis.
        rounding = _RECURRENCE * self.m * float(np.finfo(self.dtype).eps)
        rounding = rounding * float(np.abs(ritz).max(initial=0.0)) + self.operator.rounding
        residuals = column_norms(coupled) + rounding
        return Spectrum(
            values=ritz[:k],
            vectors=None,
            residuals=residuals[:k],
            residuals_kind="estimate",
            complete=self.m == self.N,
            ritz=ritz,
            coupling=coupled.T @ coupled,
            products=self.products,
            state=self,
        )


def unseen_norm(
    operator: Operator,
    basis: Array,
    rng: Generator,
    enough: Callable[[float], bool] = lambda bound: False,
) -> Figure:
    """Return a bound, at 99.9 %, on the largest eigenvalue of (I − QQᵀ)A(I − QQᵀ), A ⪰ 0.

    Six products of four fresh random vectors, those that the basis grew from tell nothing of
    what it missed; up to ten more where that bound is not `enough`.
    """
    hidden = DeflatedOperator(operator, basis)
    left = hidden.rank
    if left <= 0:
        return Figure(0.0)
    starts = min(_STARTS, left)
    G = like(rng.standard_normal((operator.size, starts)), cast(basis, np.float64))
    Q, _ = orthonormalize(hidden.project(hidden.project(G)))
    search = KrylovBasis(hidden, Q, operator.probe_dtype)
    search.room, search.capacity = starts * _LOOKS[-1], left
    bound = np.inf
    for steps in _LOOKS:
        while search.m < min(steps * starts, left):
            search.step(rng)
        if search.m == left:
            return Figure(float(search.ritz_pairs()[0][0]) + operator.product_error)
        excess = lanczos_excess(steps, left, starts, 1 - (1 - _CONFIDENCE) / len(_LOOKS))
        largest = float(search.ritz_pairs()[0][0])
        bound = min(bound, largest * excess + operator.product_error)
        if enough(bound):
            break
    return Figure(bound, "bound", _CONFIDENCE)
