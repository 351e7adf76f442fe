"""The contract of a method: what it costs, and the components it finds."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from mercer.certificate import Axes
from mercer.data import Fold
from mercer.messages import counted, format_parameter
from mercer.params import Params
from mercer.problem import Problem

# Below this share of the largest eigenvalue, a product in this precision loses digits that an
# SVD of the data keeps.
FLOOR = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-6}
# Below this share, a float32 product has lost the component, not only some of its digits.
LOST = 1e-5


@dataclass(frozen=True)
class Size:
    """What a cost depends on: shapes and parameters, never the machine."""

    n: int
    d: int
    k: int | None
    """Number of components; None where the rule must see the eigenvalues first."""
    itemsize: int = 8
    nnz: int | None = None
    columns: bool = True
    """Whether the rows can be read by columns."""
    gap: float | None = None
    """Certified distance from the optimum that is good enough."""
    kernel: bool = False
    """Whether the components lie in feature space, where there may be as many as rows."""
    strings: bool = False
    """Whether rows are strings; d is then the cost of comparing two of them."""
    on_device: bool = False
    """Whether rows live on a device with its own memory."""
    remote: bool = False
    """Whether rows live on a cluster, where products with their kernel matrix are computed."""
    first_pass: bool = False
    """Whether columns are summed in a pass of its own, to scale rows or to shift them."""

    @property
    def shape(self) -> str:
        """The shape of the rows, in words."""
        return counted(self.n, "string") if self.strings else f"{self.n} × {self.d}"

    @property
    def side(self) -> int:
        """The largest possible number of components."""
        return self.n if self.kernel else min(self.n, self.d)

    @property
    def components(self) -> int:
        """Number of components to plan for."""
        return self.side if self.k is None else self.k


@dataclass(frozen=True)
class Cost:
    """What a method needs.

    Attributes
    ----------
    passes : int
        Passes over the rows.
    products : float
        Floating-point operations in matrix products, in the precision of the data.
    sparse : float
        The same in products with a sparse matrix.
    factor : float
        Floating-point operations in LAPACK, float64.
    memory : float
        Bytes beside the data.
    """

    passes: int
    products: float
    factor: float
    memory: float
    sparse: float = 0.0


class Method(Params, ABC):
    """A way to find components: `fit` turns a problem into axes, `cost` says what that takes."""

    name: str
    for_rows = for_kernels = True
    """Whether it finds components of the rows themselves, and in the feature space of a kernel."""
    pairwise = False
    """Whether rows enter only by products with the kernel matrix: remote rows can stay remote."""

    @property
    def keeps_rows(self) -> bool:
        """Whether the fitted map contains all rows."""
        return False

    @abstractmethod
    def fit(self, problem: Problem) -> Axes:
        """Find the components."""

    @abstractmethod
    def cost(self, size: Size) -> Cost:
        """Return what `fit` needs for rows of this size."""

    def label(self, size: Size) -> str:
        """Return its name in plans."""
        solver = getattr(self, "solver", "dense")
        name = solver if isinstance(solver, str) else type(solver).__name__.lower()
        return self.name if name == "dense" else f"{self.name} ({name})"

    def shrink(self, size: Size, room: float) -> Self | None:
        """Return the method with parameters that fit into `room` bytes; None if none fit."""
        return None

    def suggestion(self, size: Size, room: float) -> str | None:
        """Name a change of parameters that fits into `room` bytes; None if none fits."""
        smaller = self.shrink(size, room)
        return None if smaller is None else f"{format_parameter('method', smaller)} fits"

    def with_params(self, **params: Any) -> Self:
        """Return a copy with other parameters."""
        return copy.copy(self).set_params(**params)

    @property
    def remedy(self) -> str:
        """What to change if the gap was missed."""
        return f"{format_parameter('method', 'exact')} takes all rows."

    def check_size(self, n: int, k: int) -> None:
        """Refuse to find k components of n rows if the method cannot."""


def largest(fits: Callable[[int], bool], low: int, high: int) -> int | None:
    """Return the largest number from low to high that fits, by bisection; None if low does not."""
    if low > high or not fits(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


class Streaming(Method):
    """A method that reads every row once, so that rows may come in batches."""

    fixes_components: ClassVar[bool] = False
    """Whether the first batch fixes the number of components."""

    @abstractmethod
    def begin(self, problem: Problem) -> Fold:
        """Return the fold that the rows are added to."""

    @abstractmethod
    def finish(self, problem: Problem, fold: Any) -> Axes:
        """Return the components of the rows added so far, without reading the source."""


class ConvergenceWarning(UserWarning):
    """A solver stopped before it met its tolerance, or a certificate missed its gap."""
