"""The input of a method: rows and parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from mercer.arrays import Vector
from mercer.data import Source
from mercer.kernels.base import Kernel
from mercer.rules import Rule


@dataclass(frozen=True)
class Problem:
    """Rows, and the parameters of a fit.

    Attributes
    ----------
    source : Source
        The rows, with their weights.
    rule : Rule
        The rule for the number of components.
    center, scale : bool
        Subtract the mean of every column; divide by its standard deviation.
    feature_weight : ndarray of shape (d,) or None
        Weights of the columns: components are those of standardized rows times their roots.
    tol : float
        Relative residual required of a solver; 0 for working precision.
    gap : float or None
        Certified distance from the optimum that is good enough.
    exponent : int
        The rows are the user's rows divided by 2**exponent, against over- and underflow.
    shift : ndarray of shape (d,) or None
        What was subtracted from the user's rows.
    columns : int or None
        Number of columns with a share in the components, where that is not all.
    shape : tuple of int
        Number of rows and of features.
    limit, n_components : int, int or None
        The largest possible number of components, and the number if it is known in advance.
    divisor : float
        The divisor of variances: the number of rows minus one.
    counts : tuple of int
        Number of rows, as often as their weights say if those are counts, and of features.
    metric : ndarray of shape (d,) or None
        The weights divided by a power of four: the largest is below 1.
    unit : float
        The user's standardized and weighted rows are those of the problem times this.
    """

    source: Source
    rule: Rule
    center: bool = True
    scale: bool = False
    feature_weight: Vector | None = None
    tol: float = 0.0
    gap: float | None = None
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    exponent: int = 0
    shift: Vector | None = None
    columns: int | None = None
    shape: tuple[int, int] = field(init=False)
    limit: int = field(init=False)
    n_components: int | None = field(init=False)
    divisor: float = field(init=False)
    counts: tuple[int, int] = field(init=False)
    metric: Vector | None = field(init=False)
    unit: float = field(init=False)

    def __post_init__(self) -> None:
        n, count = self.source.shape[0], self.source.count
        kernel = isinstance(self, KernelProblem)  # n rows span n dimensions of feature space
        d, rows = n if kernel else self.source.shape[1], max(round(count), n)
        wanted, w, power = self.rule.first_guess(n, d), self.feature_weight, 0
        if w is not None:
            power = (math.frexp(float(w.max()))[1] + 1) // 2
        vars(self).update(
            shape=(n, d),
            limit=min(n, d),
            n_components=wanted,
            divisor=count - 1.0,
            counts=(rows, rows if kernel else d),
            metric=None if w is None else np.ldexp(w, -2 * power),
            unit=np.ldexp(1.0, power if self.scale else power + self.exponent),
        )
        if isinstance(self, KernelProblem):
            k = self.kernel
            sees_offset = k is not None and k.shift_invariant and k.offset_sensitive
            vars(self).update(
                n_leading=None if wanted is None or wanted >= n else max(1, wanted),
                sees_offset=self.center and sees_offset,
            )

    def choose(self, values: Vector, total: float) -> int | None:
        """Apply the rule to eigenvalues; None where it needs more of them."""
        n, d = self.counts
        values = np.maximum(values, 0.0)
        if self.n_components is None and self.columns is not None:
            # A rule does not count columns that are constant or of weight zero.
            d = self.columns
            values = values[: min(n, d)]
        if len(values) == self.limit < min(n, d):
            # Fewer rows than their weights say: the other eigenvalues are zero.
            values = np.concatenate([values, np.zeros(min(n, d) - len(values))])
        chosen = self.rule.choose(values, total, n, d)
        if chosen is None and len(values) >= min(n, d):
            raise ValueError(
                f"{self.rule!r} did not choose a number from all {len(values)} eigenvalues."
            )
        return None if chosen is None else min(chosen, self.limit)


@dataclass(frozen=True)
class KernelProblem(Problem):
    """Rows and a kernel, None where the rows are the kernel matrix: components in feature space.

    Attributes
    ----------
    n_leading : int or None
        The number of leading components that are wanted; None for all, or where a rule decides.
    sees_offset : bool
        Whether a common offset of the rows costs digits that `move_rows` can regain.
    """

    kernel: Kernel | None = None
    n_leading: int | None = field(init=False)
    sees_offset: bool = field(init=False)
