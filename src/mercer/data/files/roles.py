"""Roles of the columns of a file: features, row names, label, weights, columns to keep."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mercer.data.errors import FileError, format_names

# Names of identifiers: id, sample_id, PassengerId, the row names of R and pandas.
_ID_NAME = re.compile(
    r"(?i:ids?|idx|index|rows?|row[ _.-]?(names?|numbers?|nr|no)|uuid|guid|barcodes?|accession|"
    r"samples?|specimen|subject|patient|(samples?|subject|patient)[ _.-]?(names?|no|nr)|names?)"
    r"|.*[ _.-](?i:id|uuid|barcode)|.*[a-z](Id|ID)|Unnamed: 0"
)
# Columns with such names whose values are examined; any further ones are ordinary columns.
_CANDIDATES = 8


@dataclass(frozen=True)
class Request:
    """What the user wants from a file: the arguments of `read_table`."""

    path: str
    columns: tuple[str, ...] | None = None
    label: str | None = None
    weights: str | None = None
    id: str | None = None
    keep: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    """Columns to keep if the file has them."""
    drop: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    refuse: bool = True
    """Whether missing values are an error."""
    remarks: bool = False
    """Whether remarks about the columns are wanted, which take a pass over the rows."""
    direct: bool = False
    """Whether a path was passed instead of rows: then there are no options, and missing values
    are counted only where that takes no extra pass over a file."""
    encoding: str = "utf-8"
    """Of text that is not marked as another Unicode encoding."""
    part: str = ""
    """Name of the array or sheet in the file: what follows ``::`` in a path."""

    @property
    def all_columns(self) -> bool:
        """Whether no column has a role of its own."""
        roles = (self.columns, self.label, self.weights, self.id)
        return roles == (None,) * 4 and not (self.keep or self.drop or self.optional)

    def option(self, text: str) -> str:
        """Format an option of `read_table`; as a whole call if the user has not called it."""
        if not self.direct:
            return text
        call = f"read_table({self.path!r}, {text}).source"
        return f"{call}, with: from mercer.data.files import read_table"


@dataclass(frozen=True)
class Roles:
    """Numbers of columns by role; a column may have several."""

    names: tuple[str, ...]
    """Of all columns."""
    features: tuple[int, ...]
    exact: tuple[int, ...]
    """Features requested by their full name: they must be numbers."""
    extra: tuple[int, ...]
    """Columns returned next to the rows: id, label and those to keep."""
    weights: tuple[int, ...]
    """The column of weights, or none."""
    id: int | None
    candidates: tuple[int, ...]
    """Possible identifiers. Those that identify rows are not features."""


def assign_roles(
    names: Sequence[str], request: Request, *, named: bool = True, index: Sequence[int] = ()
) -> Roles:
    """Give every column its role, or say which name does not exist.

    Without names (`named` false), columns go by their numbers. Columns of the `index`, with row
    names or row numbers, are features only if the user names them.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        what = "1 column name occurs" if len(twice) == 1 else f"{len(twice)} column names occur"
        raise FileError(
            f"{request.path}: {what} more than once: {format_names(twice)}. Give every column a "
            f"name of its own."
        )
    path, place = request.path, {name: i for i, name in enumerate(names)}
    single = {
        role: [find_column(name, place, path, named)]
        for role in ("id", "label", "weights")
        if (name := getattr(request, role)) is not None
    }
    kept = _match(request.keep, place, path, named)[0]
    kept += [place[name] for name in request.optional if name in place]
    extra = dict.fromkeys([*single.get("id", ()), *single.get("label", ()), *kept])
    weights = single.get("weights", [])
    other = {*extra, *weights}
    dropped = set(_match(request.drop, place, path, named)[0]) - other
    features, exact = [i for i in range(len(names)) if i not in index], list[int]()
    if request.columns is not None:
        features, exact = _match(request.columns, place, path, named)
        for role in ("label", "weights"):
            if exact and single.get(role, [None])[0] in exact:
                name = getattr(request, role)
                raise FileError(f"{path}: {name!r} is both in columns and the {role} column.")
    # A pattern does not match columns that have another role.
    features = [i for i in features if i in exact or i not in other]
    features = [i for i in features if i not in dropped]
    if not features:
        raise FileError(f"{path}: no column is left for the rows; there are {format_names(names)}.")
    free = [i for i in range(len(names)) if named and i not in {*other, *exact, *dropped}]
    candidates = [i for i in free if i in index or is_id_name(names[i])]
    return Roles(
        tuple(names),
        tuple(features),
        tuple(i for i in exact if i not in dropped),
        tuple(extra),
        tuple(weights),
        single.get("id", [None])[0],
        tuple(sorted(candidates, key=lambda i: i not in index)[:_CANDIDATES]),
    )


def is_id_name(name: str) -> bool:
    """Tell whether a column is named like an identifier.

    Examples
    --------
    >>> from mercer.data.files.roles import is_id_name
    >>> [is_id_name(name) for name in ("id", "sample_id", "PassengerId", "width", "grid")]
    [True, True, True, False, False]
    """
    return _ID_NAME.fullmatch(name) is not None


def no_features(
    request: Request, names: Sequence[str], ids: Sequence[int], delimiter: str = ""
) -> FileError:
    """Return the error that no column can be a feature; `ids` identify rows."""
    text = f"{request.path} has no column of numbers"
    text += f", read with {delimiter!r} between fields" if delimiter else ""
    text += f". Its columns are {format_names(names)}."
    if ids:
        option = request.option(f"columns={[names[ids[0]]]}")
        which = format_names(names[i] for i in ids)
        text += f" Identifiers are not features: {which}. To use one, pass {option}."
    if delimiter == "\t" and len(names) == 1:
        option = request.option("format='csv'")
        text += f" If fields are separated otherwise, read it with {option}."
    return FileError(text)


def find_column(name: str, place: dict[str, int], path: str, named: bool = True) -> int:
    """Return the number of a column, or suggest the most similar names."""
    if name in place:
        return place[name]
    if not named:
        raise FileError(
            f"{path} has no column names: {name!r} must be a number from 0 to {len(place) - 1}."
        )
    near = difflib.get_close_matches(name, list(place)[:10_000], n=3, cutoff=0.5)
    near += [other for other in place if other.lower() == name.lower() and other not in near]
    hint = f"did you mean {format_names(near)}?" if near else f"there are {format_names(place)}."
    raise FileError(f"{path} has no column {name!r}: {hint}")


def _match(
    wanted: Sequence[str], place: dict[str, int], path: str, named: bool
) -> tuple[list[int], list[int]]:
    """Return the columns that match names and patterns, and those named in full."""
    wanted = wanted if named else _expand_ranges(wanted)
    columns: list[int] = []
    exact: list[int] = []
    unknown = [name for name in wanted if name not in place and not _is_pattern(name)]
    if named and len(unknown) > 1:
        raise FileError(
            f"{path} has no columns {format_names(unknown)}: there are {format_names(place)}."
        )
    for name in wanted:
        if name in place or not _is_pattern(name):
            exact.append(find_column(name, place, path, named))
            columns.append(exact[-1])
            continue
        matches = [i for other, i in place.items() if fnmatchcase(other, name)]
        if not matches:
            raise FileError(f"{path}: no column matches {name!r}; there are {format_names(place)}.")
        columns += matches
    return list(dict.fromkeys(columns)), list(dict.fromkeys(exact))


def _is_pattern(name: str) -> bool:
    return any(mark in name for mark in "*?[")


def _expand_ranges(columns: Sequence[str]) -> list[str]:
    """Expand ranges of column numbers such as "3-7"."""
    out: list[str] = []
    for text in columns:
        ends = re.fullmatch(r"(\d{1,9})-(\d{1,9})", text)
        if ends and int(ends[2]) - int(ends[1]) < 10_000_000:
            out += map(str, range(int(ends[1]), int(ends[2]) + 1))
        else:
            out.append(text)
    return out
