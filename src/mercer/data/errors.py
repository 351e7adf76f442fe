"""What is wrong with a file of rows."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# Names of columns that a message lists before it gives their number.
_SHOWN = 10


class FileError(ValueError):
    """A file that does not hold what its format promises, or not what was asked of it."""


class BudgetError(MemoryError):
    """Rows that the memory budget does not hold."""


class MissingValues(ValueError):  # noqa: N818
    """Rows with entries that are missing.

    Attributes
    ----------
    missing : dict
        How many entries are missing, by column.
    estimator : tuple of str or None
        Module, name and arguments of `fit` of the estimator that was to be fitted to the rows.

    Examples
    --------
    >>> from mercer.data.files import MissingValues
    >>> str(MissingValues("rows.csv", {"age": 3}))[:43]
    "rows.csv: 3 values are missing: 3 of 'age'."
    """

    def __init__(self, path: object, missing: Mapping[str, int]) -> None:
        super().__init__(path, missing)
        self.path, self.missing = path, dict(missing)
        self.estimator: tuple[str, str, str] | None = None

    def __str__(self) -> str:
        return (
            f"{self.summary} Impute missing values, for example with the mean of the column: "
            f"{self.remedy}. Or drop those rows or columns."
        )

    @property
    def summary(self) -> str:
        """Numbers of missing values by column, as a sentence."""
        most = sorted(self.missing.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{count} of {name!r}" for name, count in most[:_SHOWN])
        rest = len(most) - _SHOWN
        columns = "column" if rest == 1 else "columns"
        others = f" and of {rest} more {columns}" if rest > 0 else ""
        total = sum(self.missing.values())
        values = "values are" if total > 1 else "value is"
        return f"{self.path}: {total} {values} missing: {shown}{others}."

    @property
    def remedy(self) -> str:
        """Lines of Python that impute the values, between semicolons."""
        lines = [
            "from sklearn.impute import SimpleImputer",
            "from mercer.data.files import read_table",
            f"X = read_table({str(self.path)!r}, missing='keep').source.collect()",
        ]
        if self.estimator is None:
            return "; ".join([*lines, "X = SimpleImputer().fit_transform(X)"])
        module, name, given = self.estimator
        lines[1:1] = ["from sklearn.pipeline import make_pipeline", f"from {module} import {name}"]
        model = f"model = make_pipeline(SimpleImputer(), {name}()).fit({given})"
        return "; ".join([*lines, model])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.missing), {"estimator": self.estimator}


def listed(names: Iterable[str]) -> str:
    """Write names for people: quoted, and not more than fit a message."""
    every = [repr(name if len(name) <= 60 else name[:59] + "…") for name in names]
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more


@contextlib.contextmanager
def decoding(path: Path | str, what: str) -> Iterator[None]:
    """Say in one way that a file is not what it should be, whatever library finds out."""
    try:
        yield
    except (FileError, MissingValues, BudgetError, ImportError):
        raise
    except OSError as error:
        if error.filename is not None or error.errno in _DISK:
            raise  # of the system: no such file, no permission, no space
        raise _bad(path, what, error) from error
    except Exception as error:
        raise _bad(path, what, error) from error


def _bad(path: Path | str, what: str, error: Exception) -> FileError:
    text = " ".join(str(error).split())
    reason = f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__
    return FileError(f"{path} could not be read as {what} ({reason}). Write it again.")
