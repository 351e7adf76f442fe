"""What the parameters of kernels must be."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np


def positive(owner: Any, *names: str) -> None:
    """Refuse parameters that are not finite numbers above 0."""
    _numbers(owner, names, lambda value: value > 0, "a positive number")


def not_negative(owner: Any, *names: str) -> None:
    """Refuse parameters that are not finite numbers of 0 or more."""
    _numbers(owner, names, lambda value: value >= 0, "a number, 0 or more")


def finite(owner: Any, *names: str) -> None:
    """Refuse parameters that are not finite numbers."""
    _numbers(owner, names, lambda _: True, "a finite number")


def share(owner: Any, *names: str) -> None:
    """Refuse parameters that are not above 0 and at most 1."""
    _numbers(owner, names, lambda value: 0 < value <= 1, "a number above 0 and at most 1")


def whole(owner: Any, *names: str) -> None:
    """Refuse parameters that are not whole numbers from 1 on."""
    _numbers(owner, names, lambda value: 1 <= value == int(value), "a whole number, 1 or more")


def require(owner: Any, name: str, holds: bool, what: str) -> None:
    """Refuse a parameter, and say what it must be."""
    if not holds:
        value = getattr(owner, name)
        raise ValueError(f"{type(owner).__name__}: {name}={value!r} must be {what}.")


def is_number(value: Any) -> bool:
    """Tell whether a value is a real number; truth values are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def as_float(value: Any) -> float:
    """Return a real number as a float; refuse those that none holds."""
    try:
        return float(value)
    except OverflowError:
        raise ValueError("a kernel was given a number that is too large for a float.") from None


def _numbers(owner: Any, names: tuple[str, ...], holds: Callable[[Any], bool], what: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if is_number(value) and not isinstance(value, (int, float, np.integer, np.floating)):
            require(owner, name, False, f"{what}, as an int or a float")
        require(owner, name, is_number(value) and _is_finite(value) and holds(value), what)


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False
