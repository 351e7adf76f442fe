"""Which column of a file does what."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from mercer.data.errors import FileError, listed
from mercer.messages import as_python, format_parameter

# Names that identifiers have: id, sample_id, PassengerId, row names of R and pandas.
_ID_NAME = re.compile(
    r"(?i:ids?|idx|index|rows?|row[ _.-]?(names?|numbers?|nr|no)|uuid|guid|barcodes?|accession|"
    r"samples?|specimen|subject|patient|(samples?|subject|patient)[ _.-]?(names?|no|nr)|names?)"
    r"|.*[ _.-](?i:id|uuid|barcode)|.*[a-z](Id|ID)|Unnamed: 0"
)
# Columns of such names whose values are looked at; further ones are ordinary columns.
_CANDIDATES = 8


@dataclass(frozen=True)
class Ask:
    """What a user wants of the columns of a file."""

    path: str
    columns: tuple[str, ...] | None = None
    label: str | None = None
    weights: str | None = None
    keep: tuple[str, ...] = ()
    refuse: bool = True
    part: str = ""
    """Which array of the file: what follows ``::`` in a path."""
    count: bool = True
    """Whether what is missing is counted where that takes a pass over the file."""
    id: str | None = None
    optional: tuple[str, ...] = ()
    """Columns to keep if the file has them."""
    drop: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    look: bool = False
    """Whether remarks about the columns are wanted, which takes a pass over the rows."""
    direct: bool = False
    """Whether the path was given in place of rows, where there are no options."""

    @property
    def plain(self) -> bool:
        """Whether nothing is asked of single columns."""
        roles = (self.columns, self.label, self.weights, self.id)
        return roles == (None,) * 4 and not (self.keep or self.drop or self.optional)

    def option(self, name: str, value: Any, **others: Any) -> str:
        """Write an option of `read_table`; the whole call where the user has not called it.

        The whole call has the `others` too.
        """
        if not self.direct:
            return format_parameter(name, value)
        arguments = ", ".join(as_python(*each) for each in {name: value, **others}.items())
        call = f"read_table({self.path!r}, {arguments}).source"
        return f"{call}, with: from mercer.data.files import read_table"


@dataclass(frozen=True)
class Roles:
    """Columns by number.

    Attributes
    ----------
    names : tuple of str
    features : tuple of int
    named : tuple of int
        Features that were asked for by their full name: they must be numbers.
    beside : tuple of int
        Columns that come beside the rows: id, label and those kept.
    weights, id : int or None
    candidates : tuple of int
        Columns that may turn out to be identifiers: the first of them names the rows where no
        other column does, and none is a feature.
    dropped : tuple of int
        Columns that the user leaves out.
    """

    names: tuple[str, ...]
    features: tuple[int, ...]
    named: tuple[int, ...]
    beside: tuple[int, ...]
    weights: int | None
    id: int | None = None
    candidates: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()

    @property
    def required(self) -> set[int]:
        """The columns that must be numbers."""
        return {*self.named, *_some(self.weights)}


def assign(
    names: Sequence[str], ask: Ask, *, named: bool = True, skipped: Sequence[int] = ()
) -> Roles:
    """Give every column its role, or say which name is not there.

    Parameters
    ----------
    names : sequence of str
        Of the columns; their numbers where `named` is false.
    ask : Ask
        Who shall do what.
    named : bool
        Whether the names are the file's own.
    skipped : sequence of int
        Columns that are features only where they are asked for: row numbers and row names.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        what = "1 column name is" if len(twice) == 1 else f"{len(twice)} column names are"
        raise FileError(
            f"{ask.path}: {what} there more than once: {listed(twice)}. Give every column a name "
            f"of its own."
        )
    place = {name: i for i, name in enumerate(names)}
    one = {
        what: None if name is None else find(name, place, ask, named)
        for what, name in (("id", ask.id), ("label", ask.label), ("weights", ask.weights))
    }
    kept, _ = _matched(ask.keep, place, ask, named)
    kept += [place[name] for name in ask.optional if name in place]
    beside = tuple(dict.fromkeys([*_some(one["id"]), *_some(one["label"]), *kept]))
    apart = {*beside, *_some(one["weights"])}
    dropped = tuple(i for i in _matched(ask.drop, place, ask, named)[0] if i not in apart)
    if ask.columns is None:
        exact: list[int] = []
        features = [i for i in range(len(names)) if i not in apart and i not in skipped]
    else:
        features, exact = _matched(ask.columns, place, ask, named)
        for what, name in (("label", ask.label), ("weights", ask.weights)):
            if name is not None and one[what] in exact:
                raise FileError(f"{ask.path}: {name!r} is both in columns and the {what} column.")
        loose = apart - set(exact)  # a pattern takes no column that has another role
        features = [i for i in features if i not in loose]
    features = [i for i in features if i not in dropped]
    if not features:
        raise FileError(
            f"{ask.path}: no column is left for the rows; there are {listed(list(names))}."
        )
    taken = {*apart, *exact, *dropped}
    candidates = (
        [i for i in range(len(names)) if i not in taken and (i in skipped or says_id(names[i]))]
        if named
        else []
    )
    return Roles(
        tuple(names),
        tuple(features),
        tuple(i for i in exact if i not in dropped),
        beside,
        one["weights"],
        one["id"],
        tuple(sorted(candidates, key=lambda i: i not in skipped)[:_CANDIDATES]),
        dropped,
    )


def says_id(name: str) -> bool:
    """Tell whether a column has the name of an identifier.

    Examples
    --------
    >>> from mercer.data.files.roles import says_id
    >>> [says_id(name) for name in ("id", "sample_id", "PassengerId", "width", "grid")]
    [True, True, True, False, False]
    """
    return _ID_NAME.fullmatch(name) is not None


def only_ids(ids: Sequence[int], names: Sequence[str], ask: Ask) -> str:
    """Say which columns are identifiers, where no others are left."""
    if not ids:
        return ""
    which = [names[i] for i in ids]
    option = ask.option("columns", which[:1])
    return f" Identifiers are not features: {listed(which)}. To use one, pass {option}."


def find(name: str, place: dict[str, int], ask: Ask, named: bool = True) -> int:
    """Return where a column is, or name those that are nearest."""
    if name in place:
        return place[name]
    if not named:
        raise FileError(
            f"{ask.path} has no column names: {name!r} must be a number from 0 to {len(place) - 1}."
        )
    near = difflib.get_close_matches(name, list(place)[:10_000], n=3, cutoff=0.5)
    near += [other for other in place if other.lower() == name.lower() and other not in near]
    meant = f"did you mean {listed(near)}?" if near else f"there are {listed(list(place))}."
    raise FileError(f"{ask.path} has no column {name!r}: {meant}")


def _matched(
    wanted: Sequence[str], place: dict[str, int], ask: Ask, named: bool
) -> tuple[list[int], list[int]]:
    """Return the columns that names and patterns stand for, and those that are named in full."""
    wanted = wanted if named else _ranges(wanted)
    found: list[int] = []
    exact: list[int] = []
    lost = [name for name in wanted if name not in place and not _is_pattern(name)]
    if named and len(lost) > 1:
        there = f"there are {listed(list(place))}."
        raise FileError(f"{ask.path} has no columns {listed(lost)}: {there}")
    for name in wanted:
        if name in place or not _is_pattern(name):
            exact.append(find(name, place, ask, named))
            found.append(exact[-1])
            continue
        matches = [i for other, i in place.items() if fnmatchcase(other, name)]
        if not matches:
            raise FileError(
                f"{ask.path}: no column matches {name!r}; there are {listed(list(place))}."
            )
        found += matches
    return _distinct(found), _distinct(exact)


def _is_pattern(name: str) -> bool:
    return any(mark in name for mark in "*?[")


def _distinct(numbers: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(numbers))


def _ranges(columns: Sequence[str]) -> list[str]:
    """Write out ranges of column numbers, "3-7"."""
    out: list[str] = []
    for text in columns:
        ends = re.fullmatch(r"(\d{1,9})-(\d{1,9})", text)
        if ends and int(ends[2]) - int(ends[1]) < 10_000_000:
            out += map(str, range(int(ends[1]), int(ends[2]) + 1))
        else:
            out.append(text)
    return out


def _some(number: int | None) -> tuple[int, ...]:
    return () if number is None else (number,)
