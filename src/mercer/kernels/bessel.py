"""The profile of the Matérn kernel: a modified Bessel function, scaled to 1 at zero."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from mercer.arrays import Vector, like, to_numpy

# From this order on Debye's expansion is exact to rounding, with so many terms.
_LARGE = 50.0
_TERMS = 9


def bessel(z: Any, nu: float) -> Any:
    """Return 2^{1−ν}/Γ(ν) z^ν K_ν(z), 1 at zero; on the host."""
    host = to_numpy(z).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        values = _debye(host, nu) if nu > _LARGE else _direct(host, nu)
    values = np.where(np.isinf(host), 0.0, np.clip(values, 0.0, 1.0))
    return like(np.where(host == 0, 1.0, values).astype(to_numpy(z).dtype), z)


def _direct(z: Vector, nu: float) -> Vector:
    """Return it by the function itself; where that overflows, by two terms of the series."""
    from scipy.special import gammaln, kve

    log = (1.0 - nu) * math.log(2.0) - gammaln(nu) + nu * np.log(z) - z
    values: Vector = np.exp(log) * kve(nu, z)
    lost = ~np.isfinite(values) & np.isfinite(z)
    values[lost] = 1.0 - z[lost] ** 2 / (4.0 * max(nu - 1.0, 1.0))
    return values


def _debye(z: Vector, nu: float) -> Vector:
    """Return it by Debye's uniform expansion, of which nothing cancels.

    Source: DLMF 10.41.4; the Gamma function is the same expansion at zero.
    """
    x = z / nu
    w = np.hypot(1.0, x)
    y = x * (x / (w + 1.0))  # w − 1
    total = sum(((-1 / nu) ** k * u for k, u in enumerate(_terms())), Polynomial([0.0]))
    share = total(1.0 / w) / total(1.0)
    return np.asarray(np.exp(nu * (np.log1p(0.5 * y) - y)) / np.sqrt(w) * share)


@functools.cache
def _terms() -> tuple[Polynomial, ...]:
    """Return u_0, u_1, ...: DLMF 10.41.9."""
    terms, t = [Polynomial([1.0])], Polynomial([0.0, 1.0])
    while len(terms) < _TERMS:
        u = terms[-1]
        terms.append(0.5 * t**2 * (1 - t**2) * u.deriv() + ((1 - 5 * t**2) * u).integ() / 8)
    return tuple(terms)
