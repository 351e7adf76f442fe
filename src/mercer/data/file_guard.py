"""Whether files are still those that were opened."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from mercer.data.errors import FileError


class Stamp:
    """Time of change and size of files, to be compared before every read.

    A change within the clock tick of the file system that leaves the size as it was is not seen.
    """

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        self.seen = {Path(path): _facts(os.stat(path)) for path in paths}

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(size for _, size, _ in self.seen.values())

    def check(self, path: Path, file: int | None = None) -> None:
        """Refuse a file that is not what it was: by its path, or as it is open."""
        try:
            now = os.stat(path if file is None else file)
        except FileNotFoundError:
            raise FileError(
                f"{path} was removed while it was being read. Put it back, and fit it again."
            ) from None
        if _facts(now) != self.seen[path]:
            raise FileError(f"{path} changed while it was being read. Fit it again.")

    def check_all(self) -> None:
        """Refuse any file that is not what it was."""
        for path in self.seen:
            self.check(path)


def _facts(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
