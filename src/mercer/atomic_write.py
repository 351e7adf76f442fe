"""Files that are there whole or not at all."""

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
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path beside `path` to write to; it takes the name when all is written.

    Whatever ends the writing, an error or Ctrl-C, leaves what stood under the name before.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mercer.atomic_write import whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "words.txt"
    ...     with whole(path) as part:
    ...         _ = part.write_text("all of them")
    ...     path.read_text(), len(list(path.parent.iterdir()))
    ('all of them', 1)
    """
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
        text = f"no room to write the file ({free:.0f} MiB free). Free some, or name another folder"
        raise OSError(error.errno, text, str(path)) from error
    finally:
        part.unlink(missing_ok=True)
