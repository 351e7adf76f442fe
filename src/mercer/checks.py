"""Checks of the parameters of kernels, landmark rules, methods and sketches."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.messages import ParameterError

__all__ = [
    "check_finite",
    "check_fraction",
    "check_nonnegative",
    "check_positive",
    "check_whole",
    "is_real",
    "require",
]


def check_positive(owner: Any, *names: str) -> None:
    """Require finite numbers above 0."""
    _check_numbers(owner, names, lambda value: value > 0, "a positive number")


def check_nonnegative(owner: Any, *names: str) -> None:
    """Require finite numbers of 0 or more."""
    _check_numbers(owner, names, lambda value: value >= 0, "a number, 0 or more")


def check_finite(owner: Any, *names: str) -> None:
    """Require finite numbers."""
    _check_numbers(owner, names, lambda _: True, "a finite number")


def check_fraction(owner: Any, *names: str) -> None:
    """Require numbers above 0 and at most 1."""
    _check_numbers(owner, names, lambda value: 0 < value <= 1, "a number above 0 and at most 1")


def check_whole(owner: Any, *names: str) -> None:
    """Require whole numbers of 1 or more."""
    _check_numbers(
        owner, names, lambda value: 1 <= value == int(value), "a whole number, 1 or more"
    )


def require(owner: Any, name: str, valid: bool, expected: str) -> None:
    """Raise unless a parameter is valid; the error says what it must be."""
    if not valid:
        value = getattr(owner, name)
        raise ParameterError(name, value, f"must be {expected}.", type(owner).__name__)


def is_real(value: Any) -> bool:
    """Return whether a value is a real number; True and False are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _check_numbers(
    owner: Any, names: tuple[str, ...], valid: Callable[[Any], bool], expected: str
) -> None:
    for name in names:
        value = getattr(owner, name)
        if is_real(value) and not isinstance(value, (int, float, np.integer, np.floating)):
            require(owner, name, False, f"{expected}, as an int or a float")
        require(owner, name, is_real(value) and _is_finite(value) and valid(value), expected)


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int that no float can represent
        return False
