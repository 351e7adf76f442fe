"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings

_OURS = ("mercer", "sklearn", "contextlib", "functools")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if from the first caller outside this library and scikit-learn."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
