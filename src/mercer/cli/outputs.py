"""Files to be written: whether they may be is known before any work is done."""

from __future__ import annotations

import os
from pathlib import Path

from mercer.cli.errors import UsageError, WorkError

STDOUT = "-"
PAGES = (".html", ".htm")


def claim(path: Path, *, force: bool, inputs: tuple[str | Path, ...] = ()) -> None:
    """Refuse a file that cannot, or must not, be written."""
    if str(path) == STDOUT:
        return
    folder = path.parent
    if not folder.is_dir():
        raise WorkError(f"There is no folder {folder} to write {path.name} to. Make it first.")
    if path.is_dir():
        raise WorkError(f"{path} is a folder. Name a file to write.")
    for given in inputs:
        if _same(path, given):
            raise WorkError(f"{path} is what is read: it cannot be written to as well.")
    if path.exists() and not force:
        raise WorkError(f"{path} already exists; use --force to overwrite.")
    if not os.access(folder, os.W_OK):
        raise WorkError(f"{folder} does not let you write files to it. Name another folder.")


def require_suffix(path: Path, *known: str) -> None:
    """Refuse a name that says it is another kind of file."""
    if path.suffix.lower() not in known:
        raise UsageError(f"{path}: give it a name that ends in {' or '.join(known)}.")


def there(path: Path) -> None:
    """Refuse a model file that is not there."""
    if path.is_dir():
        raise WorkError(f"{path} is a folder, not a model file.")
    if not path.exists():
        raise WorkError(f"There is no file {path}.")


def _same(path: Path, other: str | Path) -> bool:
    if str(other) == STDOUT:
        return False
    if path.exists() and os.path.exists(other):
        return os.path.samefile(path, other)
    return path.absolute() == Path(other).absolute()
