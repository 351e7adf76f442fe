"""Data sets fetched from OpenML through scikit-learn, where there is no file of them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
SECONDS = 30
"""How long a server may stay silent."""


class Stored(NamedTuple):
    """A data set of OpenML: its number, its shape with the target, and how it becomes ours."""

    number: int
    shape: tuple[int, int]
    arrays: Callable[[Array], dict[str, Array]]


def fetched(name: str, absent: FileNotFoundError) -> dict[str, Array]:
    """Return the arrays of a data set; scikit-learn keeps what it has fetched once."""
    if name not in STORED:
        raise FileNotFoundError(
            f"{absent}, and OpenML has no such copy of it; set MERCER_DATA to the folder of that "
            "file"
        ) from absent
    number, shape, arrays = STORED[name]
    print(f"{absent}: fetching data set {number} of OpenML", flush=True)
    try:
        table = _table(number)
        if table.shape != shape:
            raise ValueError(f"it has {table.shape} rows and columns, not {shape}")
        return arrays(table)
    except (OSError, HTTPException, ImportError, ValueError) as failed:
        raise FileNotFoundError(
            f"{absent}, and data set {number} of OpenML could not be had ({failed}); go online, or "
            "set MERCER_DATA to the folder of that file"
        ) from failed


def _table(number: int) -> Array:
    """Return all columns as numbers, the target last; classes are numbered in their order."""
    from sklearn.datasets import fetch_openml

    with _patience(SECONDS):
        frame = fetch_openml(data_id=number, as_frame=True, parser="auto", n_retries=1).frame
    return np.column_stack([_numbers(frame[column]) for column in frame.columns])


def _numbers(column: Any) -> Array:
    # Categories may be numbers written out, which their codes are not: 1, 2, 24.
    try:
        return np.asarray(column.astype("float64"))
    except ValueError:
        codes = np.asarray(column.astype("category").cat.codes, np.float64)
        return np.where(codes < 0, np.nan, codes)


@contextmanager
def _patience(seconds: float) -> Iterator[None]:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _plain(table: Array) -> dict[str, Array]:
    return {"X": table[:, :-1], "y": table[:, -1]}


def _classes(table: Array) -> dict[str, Array]:
    """Return classes as they are numbered: of two, the one that comes first by name is 0."""
    return {"X": table[:, :-1], "y": table[:, -1].astype(np.uint8)}


def _digits(table: Array) -> dict[str, Array]:
    X, y = table[:, :-1].astype(np.uint8), table[:, -1].astype(np.uint8)
    return {"X": X[:60_000], "y": y[:60_000], "X_test": X[60_000:], "y_test": y[60_000:]}


def _usps(table: Array) -> dict[str, Array]:
    X, y = table[:, :-1], table[:, -1].astype(np.uint8)
    y = y - y.min()  # some copies call the digits 1 to 10
    _expect(int((y[:7291] == 0).sum()), 1194, "zeros to learn from")
    parts = {"X": X[:7291], "y": y[:7291], "X_test": X[7291:], "y_test": y[7291:]}
    return parts | {"scale": np.array(1.0)}


def _tic(table: Array) -> dict[str, Array]:
    X, y = table[:, :-1], table[:, -1].astype(np.uint8)
    _expect(int(y[:5822].sum()), 348, "policies among the first 5822 rows")
    return {"X": X[:5822], "y": y[:5822], "X_test": X[5822:], "y_test": y[5822:]}


def _cifar(table: Array) -> dict[str, Array]:
    """Return the training images, colours beside one another where OpenML has planes."""
    rows = table[:50_000]  # the test images come after them
    planes = rows[:, :-1].astype(np.uint8).reshape(-1, 3, 1024)
    return {"X": planes.swapaxes(1, 2).reshape(-1, 3072), "y": rows[:, -1].astype(np.uint8)}


def _expect(found: int, right: int, what: str) -> None:
    if found != right:
        raise ValueError(f"it has {found} {what}, not {right}: its rows are in another order")


STORED = {
    "boston_housing": Stored(531, (506, 14), _plain),
    "breast_cancer_wisconsin_original": Stored(15, (699, 10), _classes),
    "cifar10": Stored(40927, (60_000, 3073), _cifar),
    "concrete": Stored(4353, (1030, 9), _plain),
    "mnist": Stored(554, (70_000, 785), _digits),
    "tic": Stored(298, (9822, 86), _tic),
    "usps": Stored(41082, (9298, 257), _usps),
}
