"""How many columns a sketch needs."""

from __future__ import annotations

import math

from mercer.checks import is_real


def suggested_size(n: int, error: float, confidence: float = 0.99) -> int:
    r"""Return a q that keeps the dot products of all pairs of n rows.

    With q columns of a Gaussian map, :math:`|f(x)^Tf(y) - x^Ty| \le \epsilon\|x\|\|y\|` for all
    pairs of n rows at once, and each row with itself, with the confidence 1 − δ, where

    .. math:: q = \left\lceil \frac{\ln(2n^2/\delta)}{\epsilon^2/4 - \epsilon^3/6} \right\rceil

    From the lemma of Johnson & Lindenstrauss as Dasgupta & Gupta (2003) prove it: a squared
    length is off by more than a share ε with probability below
    :math:`2\exp(-q(\epsilon^2/4-\epsilon^3/6))`; dot products follow from the lengths of
    :math:`x/\|x\| \pm y/\|y\|`, and n² such lengths are asked for. It holds whatever the rows
    and whatever d, so it is large; the error measured by `mercer.metrics.dot_product_error` is
    mostly far smaller. For SparseSign, Hadamard and Hashing it is a guide, not a bound: their
    dot products have about the same variance, but rows of few large features can do worse, by
    Hashing above all.

    Parameters
    ----------
    n : int
        Number of rows.
    error : float
        Wanted ε, above 0 and below 1.
    confidence : float
        Probability, over the draw of the map, that all hold; above 0 and below 1.

    Examples
    --------
    >>> from mercer.sketches import suggested_size
    >>> suggested_size(1000, 0.1)
    8192
    """
    if not (is_real(n) and n >= 1 and n == int(n)):
        raise ValueError(f"n={n!r} must be a whole number of rows, 1 or more.")
    for name, value in {"error": error, "confidence": confidence}.items():
        if not (is_real(value) and 0 < value < 1):
            raise ValueError(f"{name}={value!r} must be a number above 0 and below 1.")
    log = math.log(2.0) + 2.0 * math.log(n) - math.log1p(-confidence)
    return math.ceil(log / (error**2 / 4 - error**3 / 6))
