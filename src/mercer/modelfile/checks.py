"""Checks that keep a forged file from doing harm when its model is loaded or used.

Compiled code trusts indices, shapes and finite numbers, and sizes decide how much memory is
taken: those are checked. A file that passes may still describe a model that makes no sense.
Using it raises an ordinary error or gives meaningless numbers; it runs no code of the file's,
crashes nothing and allocates no more than a model of its size.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer.arrays import numpy_dtype, to_numpy
from mercer.config import get_config, machine_memory
from mercer.kernels import Kernel
from mercer.kernels.strings import StringKernel
from mercer.linalg.span import Span
from mercer.methods.literature.hebbian import HebbianFold
from mercer.projection import Projection

_MOST_JOBS, _NAME_BYTES = 1024, 64
# Loops count letters with 32-bit numbers.
_LONGEST_WORD = 2**31 - 1


def check(obj: Any) -> None:
    """Refuse an object that compiled code could not cope with."""
    if isinstance(obj, Kernel):
        obj.check()
        short = not isinstance(obj, StringKernel) or obj.length <= _LONGEST_WORD
        ensure(short, f"length={getattr(obj, 'length', None)} is more letters than a string has")
    elif isinstance(obj, BaseEstimator):
        _check_estimator(obj)
    elif isinstance(obj, (Projection, Span)):
        _check_matrices(obj)
    elif isinstance(obj, HebbianFold) and obj.state is not None:
        _check_hebbian(obj.state, obj.span.rank)


def ensure(holds: bool, problem: str) -> None:
    """Refuse the file unless something holds."""
    if not holds:
        raise ValueError(problem)


def _check_estimator(model: Any) -> None:
    """Check the parameters, and the counts that decide how many threads and names are made."""
    model._validate_params()
    jobs = getattr(model, "n_jobs", None)
    ensure(jobs is None or abs(jobs) <= _MOST_JOBS, f"n_jobs={jobs} is more than machines have")
    for name in ("n_components_", "n_features_in_"):
        count = vars(model).get(name, 0)
        fits = isinstance(count, Integral) and 0 <= int(count) * _NAME_BYTES <= machine_memory()
        ensure(fits, f"{name}={str(count)[:80]}")


def _check_matrices(obj: Any) -> None:
    """Check that matrices are finite: LAPACK may not end on those that are not."""
    for name, value in vars(obj).items():
        if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind == "f":
            ensure(bool(np.isfinite(value).all()), f"{name} is not finite")


def _check_hebbian(state: Any, rank: int) -> None:
    """Check the shapes that the compiled loops of the Hebbian algorithm rely on."""
    r = len(state.A)
    wide = state.A.shape == state.B.shape == (r, rank)
    ensure(
        wide and state.rho.shape == state.travel.shape == (r,),
        "the arrays of Hebbian components do not fit together",
    )


def check_sums(parts: dict[str, Any], arrays: Any) -> None:
    """Check the arrays of a fold before it allocates some as large."""
    ensure(isinstance(arrays, dict), "sums are not arrays")
    for name, array in arrays.items():
        ensure(numpy_dtype(array) == np.float64, "sums are not float64")
        # "own" holds bounds on rounding, which may be infinite.
        ensure(name == "own" or bool(np.isfinite(to_numpy(array)).all()), "sums are not finite")
    if "inner" not in parts:  # a fold around another allocates nothing
        width = parts["span"].size if "span" in parts else parts["d"]
        ensure(arrays["offset"].shape == (width,), "sums are not as wide as the rows")


def check_map(parts: dict[str, Any]) -> None:
    """Check the sizes and indices of the matrix of a sketch before it is built."""
    if "sample" in parts:
        _check_sample(parts["up"], parts["sample"])
        return
    sizes: dict[str, Any] = {name: parts[name] for name in ("d", "q", "each") if name in parts}
    if "matrix" in parts:
        sizes["q"] = parts["matrix"].shape[1]
    for name, size in sizes.items():
        whole = isinstance(size, Integral) and not isinstance(size, bool)
        ensure(whole and 0 < 8 * int(size) <= get_config().budget, f"{name}={size!r} of a map")
    ensure(sizes.get("each", 0) <= sizes.get("q", math.inf), "a map has more entries than columns")


def _check_sample(up: Any, sample: Any) -> None:
    """Check the coordinates that loops of the Hadamard transform read."""
    signs = isinstance(up, np.ndarray) and up.dtype == bool and up.ndim == 1 and len(up) > 0
    places = isinstance(sample, np.ndarray) and sample.dtype == np.int64 and sample.ndim == 1
    ensure(signs and places and 0 < len(sample) <= 2 * len(up), "a map has no signs or sample")
    size = 1 << (len(up) - 1).bit_length()
    ensure(bool(((sample >= 0) & (sample < size)).all()), "a map samples columns it does not have")
    room = len(sample) * 4 * math.isqrt(2 * size)
    ensure(room <= get_config().budget, "a map takes more than the memory budget")
