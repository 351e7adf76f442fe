"""Words for messages: warnings that point at the user's line, counts and percentages."""

from __future__ import annotations

import math
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


def percent(share: float, digits: int = 2, *, up: bool = False) -> str:
    """Return a share in percent, rounded down: 99.998 % is not 100 %; or up, for what is a limit.

    Examples
    --------
    >>> percent(0.99998), percent(0.99998, up=True), percent(0.57)
    ('99.99 %', '100.00 %', '57.00 %')
    """
    whole = 100.0 * 10.0**digits
    last = whole * float(share)
    if math.isfinite(last):  # what rounding put beside a whole number is that number
        last = math.ceil(last - 1e-6) if up else math.floor(last + 1e-6)
        if not up and last == whole and share < 1.0 - 1e-12:
            last -= 1  # less than all is not 100 %, however many digits are shown
    return f"{last / 10.0**digits + 0.0:.{digits}f} %"
