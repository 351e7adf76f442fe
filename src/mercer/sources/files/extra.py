"""pyarrow and h5py, where they are installed."""

from __future__ import annotations

import importlib
from typing import Any


def extra(module: str, what: str) -> Any:
    """Import a module of pyarrow or h5py, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise ImportError(
            f"{what} files are read and written with {module.split('.')[0]}, which could not be "
            f"imported ({missing}). Install it with: pip install 'mercer[files]'"
        ) from missing
