"""What a device has found, brought to where the data came from."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from mercer.arrays import Array, Remote, is_foreign, like, on_accelerator, to_numpy, together
from mercer.data import Source
from mercer.params import Params


def bring_home(estimator: Any, source: Source) -> None:
    """Bring the fitted attributes of an estimator to where its rows came from."""
    home, known = source.home, dict[int, tuple[Any, Any]]()
    if together(source.reference, home):
        return
    for name, value in vars(estimator).items():
        if name.endswith("_"):
            setattr(estimator, name, brought(value, home, known))


def brought(value: Any, home: Array, known: dict[int, tuple[Any, Any]]) -> Any:
    """Return a value with all arrays of a device in it brought home; itself where it has none."""
    if isinstance(value, Remote):
        return np.asarray(value)
    if isinstance(value, (np.ndarray, np.generic, str, int, float, type(None))):
        return value
    if id(value) not in known:  # with the value itself: the number of what is gone is given anew
        known[id(value)] = value, _brought(value, home, known)
    return known[id(value)][1]


def _brought(value: Any, home: Array, known: dict[int, tuple[Any, Any]]) -> Any:
    if isinstance(value, dict):
        parts = {key: brought(part, home, known) for key, part in value.items()}
        return parts if any(parts[key] is not value[key] for key in parts) else value
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        found = [brought(part, home, known) for part in value]
        changed = any(new is not old for new, old in zip(found, value, strict=True))
        return type(value)(found) if changed else value
    if is_foreign(value):
        return like(to_numpy(value), home) if on_accelerator(value) else value
    ours = type(value).__module__.startswith("mercer.") and hasattr(value, "__dict__")
    if not ours or isinstance(value, Params):  # parameters are the user's own
        return value
    parts = brought(vars(value), home, known)
    if parts is vars(value):
        return value
    other = copy.copy(value)
    vars(other).update(parts)  # also of what is frozen
    return other


def wide_enough(x: Any, kind: np.dtype[Any]) -> np.dtype[Any]:
    """Return the precision to hand x out in: float64 where this one cannot hold its numbers.

    Variances of float32 rows of 1e20 are no float32 numbers.
    """
    if kind == np.float64:
        return kind
    largest, reach = float(np.max(np.abs(x), initial=0.0)), np.finfo(kind)
    fits = largest == 0.0 or float(reach.tiny) <= largest <= float(reach.max)
    return kind if fits else np.dtype(np.float64)
