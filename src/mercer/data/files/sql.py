"""Results of SQL queries, read as Arrow streams."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mercer.config import BudgetError
from mercer.data.errors import FileError
from mercer.data.files.streams import frames, read_frames
from mercer.data.files.table import Request, Table
from mercer.extras import extra


def read_query(uri: str, query: str, request: Request) -> Table:
    """Return the result of a query as a table; it is read once, in blocks."""
    scheme = uri.partition("://")[0].lower()
    if scheme not in DATABASES:
        raise FileError(
            f"{request.path} is not the URI of a database that can be queried: "
            f"{', '.join(f'{name}://' for name in DATABASES)}. Of another one, pass an Arrow "
            f"stream, such as the reader of its ADBC driver."
        )
    return read_frames(_frames(uri, DATABASES[scheme], query, request), request)


def redacted(uri: str) -> str:
    """Return a URI without its password, which files and messages must not have."""
    uri = re.sub(r"^(\w+://[^/@]*?):[^/]*@", r"\1:***@", uri)
    return re.sub(r"([?&](?:ssl)?password=)[^&]*", r"\1***", uri) if "://" in uri else uri


def _frames(
    uri: str, run: Callable[[str, str, ExitStack], Any], query: str, request: Request
) -> Generator[Any]:
    """Yield the result as frames of Polars; whatever a driver raises names the query."""
    try:
        with ExitStack() as stack:
            # The reader is closed before its connection: DuckDB would wait for it at the next one.
            yield from frames(run(uri, query, stack))
    except (FileNotFoundError, ImportError, BudgetError):
        raise
    except Exception as error:
        said = str(error).strip()
        asked = "" if query in said else f"\nquery: {query}"
        raise FileError(f"{request.path}: the query failed: {said}{asked}") from error


def _sqlite(uri: str, query: str, stack: ExitStack) -> Any:
    driver = extra("adbc_driver_sqlite.dbapi", "sql", "SQLite databases require")
    # Read-only; otherwise SQLite makes a database that does not exist.
    connection = driver.connect(f"file:{quote(str(_file(uri).absolute()))}?mode=ro")
    return _execute(connection, query, stack)


def _duckdb(uri: str, query: str, stack: ExitStack) -> Any:
    driver = extra("duckdb", "sql", "DuckDB databases require")
    connection = stack.enter_context(driver.connect(str(_file(uri)), read_only=True))
    result = connection.sql(query)
    if result is None:
        raise ValueError("it returns no rows")
    return result


def _postgresql(uri: str, query: str, stack: ExitStack) -> Any:
    driver = extra("adbc_driver_postgresql.dbapi", "sql", "PostgreSQL databases require")
    return _execute(driver.connect(uri), query, stack)


def _execute(connection: Any, query: str, stack: ExitStack) -> Any:
    cursor = stack.enter_context(stack.enter_context(connection).cursor())
    cursor.execute(query)
    return stack.enter_context(cursor.fetch_record_batch())


def _file(uri: str) -> Path:
    """Return the file of a database: x.db of sqlite:///x.db, and /x.db of sqlite:////x.db."""
    path = Path(re.sub(r"^\w+:/{2,3}", "", uri)).expanduser()
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return path


DATABASES: dict[str, Callable[[str, str, ExitStack], Any]] = {
    "sqlite": _sqlite,
    "duckdb": _duckdb,
    "postgresql": _postgresql,
    "postgres": _postgresql,
}
"""Functions that run a query, by the scheme of the URI."""
