"""A temporary folder that goes away with the rows in it."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

from mercer.config import format_bytes
from mercer.messages import format_parameter


class Folder:
    """A folder for rows that do not fit into memory: held by their source, gone with it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="mercer-"))
        weakref.finalize(self, _remove, self.path, os.getpid())

    @contextlib.contextmanager
    def room(self) -> Iterator[None]:
        """Say where there is no room, and how to give more."""
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            free = format_bytes(shutil.disk_usage(self.path).free)
            raise OSError(
                error.errno,
                f"no room for the rows in {self.path.parent} ({free} free), where they are kept "
                f"while they do not fit the memory budget. Set TMPDIR to a folder with more room, "
                f"or raise the budget with {format_parameter('memory')}",
            ) from error


def _remove(path: Path, process: int) -> None:
    if os.getpid() == process:  # a forked process leaves its parent's alone
        shutil.rmtree(path, ignore_errors=True)
