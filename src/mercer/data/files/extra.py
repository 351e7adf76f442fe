"""pyarrow, h5py and zarr, where they are installed."""

from __future__ import annotations

from typing import Any

from mercer import extras


def extra(module: str, what: str) -> Any:
    """Import a module of pyarrow, h5py or zarr, or say how to get it."""
    return extras.extra(module, "files", f"{what} files are read and written with")
