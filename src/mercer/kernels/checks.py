"""Whether a kernel is what it says."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import to_numpy
from mercer.kernels.base import Kernel, as_precise
from mercer.sources import as_source


def check_psd(kernel: Kernel, X: Any, *, size: int = 500, random_state: int = 0) -> bool:
    """Tell whether the matrix of some rows is positive semi-definite, to rounding.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array-like, list of str or Source
        Rows; as many as `size` are drawn at random.

    Examples
    --------
    >>> from mercer.kernels import RBF, Tanh, check_psd
    >>> check_psd(RBF(1.0), [[0.0], [1.0], [2.0]]), check_psd(Tanh(1.0, -1.0), [[0.1], [2.0]])
    (True, False)
    """
    source = as_source(X)
    rng = np.random.default_rng(random_state)
    if source.shape[0] == 0:
        return True
    rows = source.take(np.sort(rng.permutation(source.shape[0])[:size]))
    K = to_numpy(kernel(as_precise(rows, np.float64)))
    values = np.linalg.eigvalsh((K + K.T) / 2)
    return bool(values[0] >= -1e-10 * max(abs(values[-1]), abs(values[0]), 0.0))
