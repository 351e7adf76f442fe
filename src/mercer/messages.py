"""Warnings that point at the user's line, and numbers of things in messages."""

from __future__ import annotations

import sys
import warnings

_OURS = ("mercer", "sklearn", "contextlib", "functools")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Write how many there are.

    Examples
    --------
    >>> counted(1, "pass", "passes"), counted(2, "pass", "passes"), counted(0, "row")
    ('1 pass', '2 passes', '0 rows')
    """
    return f"{number} {one if number == 1 else many or one + 's'}"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if from the first caller outside this library and scikit-learn."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
