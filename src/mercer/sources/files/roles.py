"""Which column of a file does what."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mercer.sources.errors import FileError, listed


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

    @property
    def beside(self) -> tuple[str, ...]:
        """The columns that come beside the rows."""
        return tuple(
            dict.fromkeys((*((self.label,) if self.label is not None else ()), *self.keep))
        )


@dataclass(frozen=True)
class Roles:
    """Columns by number: `chosen` tells whether the features were named, and must be numbers."""

    names: tuple[str, ...]
    features: tuple[int, ...]
    chosen: bool
    beside: tuple[int, ...]
    weights: int | None

    @property
    def required(self) -> set[int]:
        """The columns that must be numbers."""
        return {*(self.features if self.chosen else ()), *_some(self.weights)}


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
        Columns that are features only where they are asked for: row numbers.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise FileError(
            f"{ask.path}: {len(twice)} column name(s) are there more than once: {listed(twice)}. "
            f"Give every column a name of its own."
        )
    place = {name: i for i, name in enumerate(names)}
    beside = tuple(find(name, place, ask, named) for name in ask.beside)
    weights = None if ask.weights is None else find(ask.weights, place, ask, named)
    if ask.columns is None:
        apart = {*beside, *_some(weights), *skipped}
        features = tuple(i for i in range(len(names)) if i not in apart)
    else:
        wanted = ask.columns if named else _ranges(ask.columns)
        lost = [name for name in wanted if name not in place]
        if named and len(lost) > 1:
            there = f"there are {listed(list(place))}."
            raise FileError(f"{ask.path} has no columns {listed(lost)}: {there}")
        features = tuple(dict.fromkeys(find(name, place, ask, named) for name in wanted))
        for what, name in (("label", ask.label), ("weights", ask.weights)):
            if name is not None and place[name] in features:
                raise FileError(f"{ask.path}: {name!r} is both in columns and the {what} column.")
    if not features:
        raise FileError(
            f"{ask.path}: no column is left for the rows; there are {listed(list(names))}."
        )
    return Roles(tuple(names), features, ask.columns is not None, beside, weights)


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
