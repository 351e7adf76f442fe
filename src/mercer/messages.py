"""Messages: parameters as the user sets them, warnings at the user's line, counts, percentages."""

from __future__ import annotations

import contextlib
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

_OURS = ("mercer", "sklearn", "contextlib", "functools")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if from the first caller outside this library and scikit-learn."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def percent(share: float, digits: int = 2, *, up: bool = False) -> str:
    """Format a share in percent, rounded down (99.998 % is not 100 %), or up for a bound."""
    whole = 100.0 * 10.0**digits
    last = whole * float(share)
    if math.isfinite(last):  # what rounding put beside an integer is that number
        last = math.ceil(last - 1e-6) if up else math.floor(last + 1e-6)
        if not up and last == whole and share < 1.0 - 1e-12:
            last -= 1  # less than all is not 100 %, however many digits are shown
    return f"{last / 10.0**digits + 0.0:.{digits}f} %"


class ParameterError(ValueError):
    """A parameter of the class `owner` has an invalid value.

    The message gives the parameter and its value, as `format_parameter` formats them, and the
    problem with its remedy.
    """

    def __init__(self, parameter: str, value: Any, problem: str, owner: str = "") -> None:
        super().__init__(parameter, value, problem, owner)
        self.parameter, self.value, self.problem, self.owner = parameter, value, problem, owner

    def __str__(self) -> str:
        owner = f"{self.owner}: " if self.owner else ""
        return f"{owner}{format_parameter(self.parameter, self.value)} {self.problem}"


def format_parameter(name: str, value: Any = ...) -> str:
    """Format a parameter, and its value if given, as the user sets it.

    As Python code or, in `parameter_format`, as an option of the command line.
    """
    return _formats[-1](name, value)


def as_python(name: str, value: Any = ...) -> str:
    """Format a parameter as an argument of a call."""
    if name == "impute":
        return "PCA(missing='em')"
    if name in ("memory", "checkpoint"):
        return f"config_context({name}={'...' if value is ... else repr(value)})"
    return name if value is ... else f"{name}={value!r}"


_formats: list[Callable[[str, Any], str]] = [as_python]


@contextlib.contextmanager
def parameter_format(function: Callable[[str, Any], str]) -> Iterator[None]:
    """Format parameters in messages by another function, in all threads, in this context."""
    _formats.append(function)
    try:
        yield
    finally:
        _formats.remove(function)
