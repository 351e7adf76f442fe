"""Imports of optional packages."""

from __future__ import annotations

import importlib
from typing import Any


def extra(module: str, group: str, what: str) -> Any:
    """Import a module of an optional package, or say that `what` needs it and how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise ImportError(
            f"{what} {module.partition('.')[0]}, which could not be imported ({missing}). "
            f"Install it with: pip install 'mercer[{group}]'"
        ) from missing
