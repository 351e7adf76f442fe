"""Columns that have types: of Parquet and Arrow files, Arrow streams and queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.data.errors import FileError, not_numeric
from mercer.data.files.table import (
    Request,
    Table,
    assign_roles,
    choose_features,
    column_kind,
    identifies_rows,
    make_table,
    polars,
)
from mercer.data.source import Source

Rows = npt.NDArray[Any]


class TypedColumns:
    """The roles of columns that have types of Polars; columns of the `index` have row names."""

    def __init__(
        self, types: Mapping[str, Any], request: Request, index: Sequence[int] = ()
    ) -> None:
        if not types:
            raise FileError(f"{request.path} has no columns.")
        self.names, self.types, self.request = list(types), list(types.values()), request
        self.kinds = [column_kind(dtype) for dtype in self.types]
        self.roles = roles = assign_roles(self.names, request, index=index)
        odd = {self.names[i]: self.kinds[i] for i in (*roles.exact, *roles.weights)}
        odd = {name: kind for name, kind in odd.items() if kind}
        if odd:
            problem = not_numeric(request.path, odd)
            raise FileError(f"{problem} Encode them as numbers, or leave them out.")
        self.numeric = [i for i in roles.features if not self.kinds[i]]
        known = ("text", "categories")
        self.candidates = [
            i for i in roles.candidates if self.kinds[i] in known or self.types[i].is_numeric()
        ]
        self.beside = list(dict.fromkeys([*self.candidates, *roles.extra, *roles.weights]))
        """Columns whose values are stored beside the rows."""

    def names_of(self, columns: Sequence[int]) -> list[str]:
        """Return the names of columns."""
        return [self.names[i] for i in columns]

    def dtype(self, columns: Sequence[int]) -> np.dtype[Any]:
        """Return the precision of rows: single if that is the type of all columns."""
        single = all(self.types[i] == polars().Float32 for i in columns)
        return np.dtype(np.float32 if single else np.float64)

    def table(
        self,
        beside: Any,
        rows: Callable[[list[int]], tuple[Source, Rows | None]],
    ) -> Table:
        """Return the table: `beside` is the frame of these columns, and `rows` makes the source.

        `rows` takes the features and returns their missing entries too, if it has counted them.
        """
        columns = {i: beside[self.names[i]] for i in self.beside}
        ids = [i for i in self.candidates if identifies_rows(columns[i])]
        features = choose_features(self.request, self.roles, self.numeric, ids)
        source, missing = rows(features)
        return make_table(
            self.request,
            self.roles,
            source,
            missing,
            features=features,
            ids=ids,
            columns=columns,
            weights=next((floats(columns[i], np.float64) for i in self.roles.weights), None),
            reasons={i: self.kinds[i] for i in self.roles.features},
            flags=[i for i in features if self.types[i] == polars().Boolean],
        )


def floats(values: Any, dtype: Any) -> Rows:
    """Return a frame or a series of numbers as floats, NaN where they are missing."""
    pl = polars()
    kept = pl.Float32 if np.dtype(dtype) == np.float32 else pl.Float64
    return np.asarray(values.cast(kept).to_numpy(), dtype)
