"""File errors, and the guard that detects changes to a file while it is read."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mercer.config import BudgetError
from mercer.messages import counted

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# Names that a message lists before it gives their number.
_SHOWN = 10


class FileError(ValueError):
    """The contents of a file do not match its format, or lack what was requested."""


class MissingValues(ValueError):  # noqa: N818
    """Rows have missing entries: `missing` has their number by column.

    `arguments` are those of `read_table` that read the rows, if they are not the path alone.

    Examples
    --------
    >>> from mercer.data.files import MissingValues
    >>> str(MissingValues("rows.csv", {"age": 3}))[:43]
    "rows.csv: 3 values are missing: 3 of 'age'."
    """

    def __init__(self, path: object, missing: Mapping[str, int], arguments: str = "") -> None:
        super().__init__(path, missing, arguments)
        self.path, self.missing = path, dict(missing)
        self.arguments = arguments or repr(str(path))

    def __str__(self) -> str:
        return (
            f"{self.summary} Impute missing values, for example with column means: "
            f"from sklearn.impute import SimpleImputer; "
            f"from mercer.data.files import read_table; "
            f"X = read_table({self.arguments}, missing='keep').source.collect(); "
            f"X = SimpleImputer().fit_transform(X). Or drop those rows or columns."
        )

    @property
    def summary(self) -> str:
        """Numbers of missing values by column, as a sentence."""
        most = sorted(self.missing.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{count} of {name!r}" for name, count in most[:_SHOWN])
        total, rest = sum(self.missing.values()), len(most) - _SHOWN
        others = f" and of {counted(rest, 'more column')}" if rest > 0 else ""
        values = counted(total, "value is", "values are")
        return f"{self.path}: {values} missing: {shown}{others}."


class FileGuard:
    """Time of change, size and inode of files, compared before every read.

    A change within one clock tick of the file system that keeps the size goes unnoticed.
    """

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        self.state: dict[Path, tuple[int, int, int]] = {}
        self.size = 0
        """Bytes of all files."""
        for path in paths:
            stat = os.stat(path)
            self.state[Path(path)] = stat.st_mtime_ns, stat.st_size, stat.st_ino
            self.size += stat.st_size

    def check(self) -> None:
        """Raise if any of the files has changed."""
        for path, before in self.state.items():
            try:
                now = os.stat(path)
            except FileNotFoundError:
                raise FileError(
                    f"{path} was removed while it was being read. Restore it and fit again."
                ) from None
            if (now.st_mtime_ns, now.st_size, now.st_ino) != before:
                raise FileError(f"{path} changed while it was being read. Fit again.")


def format_names(names: Iterable[str]) -> str:
    """Format names for a message: quoted, and not more than fit into it."""
    quoted = [repr(name if len(name) <= 60 else name[:59] + "…") for name in names]
    more = f" and {len(quoted) - _SHOWN} more" if len(quoted) > _SHOWN else ""
    return ", ".join(quoted[:_SHOWN]) + more


def format_kinds(kinds: Mapping[str, str]) -> str:
    """Format names with what is said of each, those of a kind together: "'a', 'b' (text)"."""
    groups: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        groups.setdefault(kind, []).append(name)
    return "; ".join(f"{format_names(names)} ({kind})" for kind, names in groups.items())


def not_numeric(what: object, kinds: Mapping[str, str]) -> str:
    """Return a sentence about columns that are not numeric: the kind of each, by name."""
    columns = counted(len(kinds), "column that is", "columns that are")
    return f"{what} has {columns} not numeric: {format_kinds(kinds)}."


@contextlib.contextmanager
def file_errors(path: Path | str, format: str) -> Iterator[None]:
    """Turn whatever a library raises about a file into a `FileError`."""
    try:
        yield
    except (FileError, MissingValues, BudgetError, ImportError):
        raise
    except BaseException as error:
        # From the system: no such file, no permission, no space.
        system = isinstance(error, OSError) and (error.filename or error.errno in _DISK)
        # A panic of Rust code, as in Polars, is not an Exception.
        panic = type(error).__name__ == "PanicException"
        if system or not (panic or isinstance(error, Exception)):
            raise
        reason = ": ".join(filter(None, [type(error).__name__, " ".join(str(error).split())[:300]]))
        raise FileError(
            f"{path} could not be read as {format} ({reason}). Recreate the file."
        ) from error
