"""Whether a kernel is what it says."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import eigvalsh, to_numpy
from mercer.kernels.evaluate import as_precise
from mercer.kernels.grammar import as_kernel
from mercer.kernels.parameters import is_number

# Kernel values between these have squares, and sums of them, that float64 can hold.
_LEAST, _MOST = 1e-140, 1e140


def check_psd(kernel: Any, X: Any, *, size: int = 500, random_state: int = 0) -> bool:
    """Tell whether the matrix of some rows is positive semi-definite, to rounding.

    Parameters
    ----------
    kernel : Kernel, str or callable
        What `as_kernel` takes.
    X : array-like, list of str or Source
        Rows; as many as `size` are drawn at random.

    Examples
    --------
    >>> from mercer.kernels import RBF, Tanh, check_psd
    >>> check_psd(RBF(1.0), [[0.0], [1.0], [2.0]]), check_psd(Tanh(1.0, -1.0), [[0.1], [2.0]])
    (True, False)
    """
    kernel = as_kernel(kernel)
    if not (is_number(size) and size >= 1):
        raise ValueError(f"check_psd: size={size!r} must be a whole number, 1 or more.")
    source = kernel._rows(X)
    rng = np.random.default_rng(random_state)
    if source.shape[0] == 0:
        return True
    rows = source.take(np.sort(rng.permutation(source.shape[0])[: int(size)]))
    K = to_numpy(kernel(as_precise(rows, np.float64)))
    if not np.isfinite(K).all():
        raise ValueError(f"check_psd: X, or the matrix of {kernel!r}, contains NaN or infinity.")
    values = eigvalsh((K + K.T) / 2)
    return bool(values[0] >= -1e-10 * max(abs(values[-1]), abs(values[0]), 0.0))


def require_moderate(kernel: str, largest: float) -> None:
    """Refuse kernel values whose squares float64 cannot hold."""
    if 0.0 < largest < _LEAST or largest > _MOST:
        raise ValueError(
            f"{kernel} gives values of about {largest:.0e}: their squares are too large, or too "
            f"small, for float64. Scale the rows, or change the kernel's parameters."
        )
