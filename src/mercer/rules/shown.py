"""What a rule for the number of components sees of a spectrum."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Values: TypeAlias = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


class Shown(NamedTuple):
    """What a rule sees: leading eigenvalues, total variance, samples and features."""

    values: Values
    total: float
    n: int
    d: int

    @property
    def whole(self) -> bool:
        return len(self.values) >= min(self.n, self.d)

    @property
    def slack(self) -> float:
        """Rounding error of total - Σ values."""
        return EPS * (len(self.values) + 64) * self.total

    @property
    def rest(self) -> float:
        """Variance of the components not shown."""
        rest = max(self.total - float(self.values.sum()), 0.0)
        return 0.0 if self.whole and rest <= self.slack else rest

    def capped(self, k: int) -> int | None:
        """k; where it is more than shown, all there are, or None if there are more."""
        return min(k, len(self.values)) if self.whole or k <= len(self.values) else None

    def leading(self, cuts: Values | float) -> int | None:
        """How many exceed their cut before the first that does not; none exceeds a missing cut."""
        upper = self.values
        if not self.whole:  # The largest that the next value can be.
            upper = np.append(upper, min([*upper[-1:], self.rest + self.slack]))
        cuts = np.full(len(upper), cuts) if isinstance(cuts, float) else cuts
        passed = upper[: len(cuts)] > cuts[: len(upper)]
        return self.capped(int(np.argmin(np.append(passed, False))))
