"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk, a quota or a file that is full."""


@contextlib.contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` after a successful write."""
    path = Path(path)
    # The suffix stays last: some writers go by it.
    part = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        if error.filename == str(part):
            error.filename = str(path)
        if error.errno not in FULL or "no room" in str(error):
            raise
        free = shutil.disk_usage(path.parent).free / 2**20
        text = f"no room to write the file ({free:.0f} MiB free). Free space, or use another folder"
        raise OSError(error.errno, text, str(path)) from error
    finally:
        part.unlink(missing_ok=True)
