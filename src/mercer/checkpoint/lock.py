"""One owner of a folder at a time; the end of the process, however it comes, gives it back."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there
    fcntl = None  # type: ignore[assignment]

NAME = "mercer-run.lock"


class BusyError(OSError):
    """Another fit holds the folder, in this process or another."""


class Lock:
    """A folder that is ours until `release`, or until the process ends."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._file = self._taken()

    def _taken(self) -> int | None:
        if fcntl is None:
            return None
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Who held it before may have removed it meanwhile: then it guards nothing.
                if os.stat(self.path).st_ino == os.fstat(file).st_ino:
                    return file
            except BlockingIOError:
                os.close(file)
                raise BusyError("another fit is using this folder") from None
            except FileNotFoundError:
                pass
            except OSError:  # a file system without locks
                os.close(file)
                return None
            os.close(file)

    def release(self) -> None:
        """Give the folder back."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
        if self._file is not None:
            os.close(self._file)
            self._file = None
