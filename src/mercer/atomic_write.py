"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
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
    except Exception as error:
        code, text = getattr(error, "errno", None), ""
        # Libraries in Rust give the number in their text alone; a ValueError is about the rows.
        told = re.search(r"os error (\d+)", str(error))
        if code is None and told and not isinstance(error, ValueError):
            code, text = int(told[1]), os.strerror(int(told[1]))
        if code in FULL and "no room" not in str(error):
            free = f"{shutil.disk_usage(path.parent).free / 2**20:.0f} MiB free"
            text = f"no room to write the file ({free}). Free space, or use another folder"
        if text:
            raise OSError(code, text, str(path)) from error
        if isinstance(error, OSError) and error.filename == str(part):
            error.filename = str(path)
        raise
    finally:
        part.unlink(missing_ok=True)
