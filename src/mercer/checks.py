"""Checks of the parameters of kernels, landmark rules, methods and sketches."""

from __future__ import annotations

import math
import numbers
from functools import partial
from typing import Any

import numpy as np

from mercer.messages import ParameterError

__all__ = [
    "check_finite",
    "check_fraction",
    "check_integer",
    "check_nonnegative",
    "check_positive",
    "is_positive_integer",
    "is_real",
    "require",
]


def require(owner: Any, name: str, valid: bool, expected: str) -> None:
    """Raise unless a parameter is valid; the error says what it must be."""
    if not valid:
        value = getattr(owner, name)
        raise ParameterError(name, value, f"must be {expected}.", type(owner).__name__)


def is_real(value: Any) -> bool:
    """Return whether a value is a real number; True and False are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_positive_integer(value: Any) -> bool:
    """Return whether a value is an integer of at least 1; True is not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) > 0


def _check_numbers(
    owner: Any,
    *names: str,
    expected: str,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    integer: bool = False,
) -> None:
    """Require parameters of an object to be finite numbers in a range."""
    for name in names:
        value = getattr(owner, name)
        if isinstance(value, numbers.Real) and not isinstance(
            value, (bool, int, float, np.integer, np.floating)
        ):
            require(owner, name, False, f"{expected}, as an int or a float")
        try:
            valid = isinstance(value, numbers.Real) and math.isfinite(value)
        except OverflowError:  # an int that no float can represent
            valid = False
        valid = valid and not isinstance(value, bool) and above < value and least <= value <= most
        if not valid or (integer and value != int(value)):
            require(owner, name, False, expected)


check_positive = partial(_check_numbers, expected="a positive number", above=0.0)
check_nonnegative = partial(_check_numbers, expected="a number, 0 or more", least=0.0)
check_finite = partial(_check_numbers, expected="a finite number")
check_fraction = partial(
    _check_numbers, expected="a number above 0 and at most 1", above=0.0, most=1.0
)
check_integer = partial(
    _check_numbers, expected="an integer of at least 1", least=1.0, integer=True
)
