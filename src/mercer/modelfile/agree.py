"""Whether the parts of what a file describes fit together.

A file may have been written by anyone. What is checked here keeps the methods of the objects to
the errors that they have for wrong rows: types and shapes, and numbers that loops trust.
"""

from __future__ import annotations

from typing import Any

from mercer.modelfile.agree_models import MODELS
from mercer.modelfile.agree_parts import PARTS


def agree(made: Any) -> None:
    """Refuse an object whose parts do not fit together; what is not known here is let through."""
    for cls, check in (*PARTS, *MODELS):
        if isinstance(made, cls):
            check(made)
