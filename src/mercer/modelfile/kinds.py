"""How objects of a class are taken apart, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer.arrays import numpy_dtype
from mercer.params import Params

# What scikit-learn leaves on an estimator while its callbacks are at work.
_PASSING = ("_callback_", "_skl_callbacks")


class LostError(ValueError):
    """Part of an object that has no place in a file; its name comes first."""


class Kind:
    """A class whose objects can be saved: constructor arguments, and what a fit leaves.

    Parameters
    ----------
    name : str
        What files call it.
    cls : type
        The class; objects of classes derived from it are not meant.
    given : tuple of str
        Constructor arguments, which objects keep under the same names.
    fitted : iterable of str
        What else objects may have.
    """

    def __init__(
        self, name: str, cls: type, given: Iterable[str], fitted: Iterable[str] = ()
    ) -> None:
        self.name, self.cls = name, cls
        self.given, self.fitted = tuple(given), frozenset(fitted)

    def parts(self, obj: Any) -> dict[str, Any]:
        """Return what an object is made of, by name; refuse what has no place in a file."""
        found = {name: getattr(obj, name) for name in self.given}
        for name, value in getattr(obj, "__dict__", {}).items():
            if name in found or name.startswith(_PASSING) or self._remade(name):
                continue
            if name not in self.fitted:
                raise LostError(name, "is not something that Mercer knows of. Delete it first")
            found[name] = value
        return found

    def _remade(self, name: str) -> bool:
        """Tell whether this is kept for speed alone."""
        return isinstance(getattr(self.cls, name, None), cached_property)

    def make(self, parts: dict[str, Any]) -> Any:
        """Return the object that is made of these parts."""
        self.require(parts)
        # An argument that is not there is younger than the file: its default stands for it.
        obj = self.cls(**{name: part for name, part in parts.items() if name in self.given})
        if self.fitted:
            vars(obj).update({name: part for name, part in parts.items() if name in self.fitted})
        return obj

    def require(self, parts: dict[str, Any]) -> None:
        """Refuse parts that objects of the class do not have."""
        for name in parts:
            if name not in self.given and name not in self.fitted:
                raise ValueError(f"it has a part {name[:80]!r}, which is not known")


class Whole(Kind):
    """A class whose objects are nothing but some attributes: its constructor is not called."""

    def parts(self, obj: Any) -> dict[str, Any]:
        return {name: getattr(obj, name) for name in self.given}

    def make(self, parts: dict[str, Any]) -> Any:
        self.require(parts)
        lacking = [name for name in self.given if name not in parts]
        if lacking:
            raise ValueError(f"it has no {lacking[0]}")
        obj: Any = object.__new__(self.cls)
        vars(obj).update(parts)
        return obj


class Summed(Kind):
    """A fold: what begins it, and the arrays that it hands out and takes up again.

    Arrays that are named in `wide` have as many columns as the fold: it makes some as large.
    """

    def __init__(
        self,
        name: str,
        cls: type,
        given: Iterable[str],
        wide: tuple[str, ...],
        waits: Callable[[Any], bool] = lambda _: False,
    ) -> None:
        super().__init__(name, cls, given)
        self.wide, self.waits = wide, waits

    def parts(self, obj: Any) -> dict[str, Any]:
        if self.waits(obj):
            raise LostError("", "holds rows that were not summed yet")
        obj.settle()
        return {**{name: getattr(obj, name) for name in self.given}, "arrays": obj.arrays()}

    def make(self, parts: dict[str, Any]) -> Any:
        arrays = parts.get("arrays")
        if not isinstance(arrays, dict):
            raise ValueError("it has no arrays")
        self.require({name: part for name, part in parts.items() if name != "arrays"})
        width = parts["d"] if "d" in parts else parts["span"].size
        if type(width) is not int or any(arrays[name].shape[-1] != width for name in self.wide):
            raise ValueError("sums are not of their columns")
        if any(numpy_dtype(array) != np.float64 for array in arrays.values()):
            raise ValueError("sums are not of float64")
        obj = self.cls(**{name: parts[name] for name in self.given})
        obj.restore(arrays)
        return obj


class Translated(Kind):
    """A class whose objects are made by a function, of parts that another takes of them."""

    def __init__(
        self,
        name: str,
        cls: type,
        given: Iterable[str],
        apart: Callable[[Any], dict[str, Any]],
        together: Callable[..., Any],
    ) -> None:
        super().__init__(name, cls, given)
        self.apart, self.together = apart, together

    def parts(self, obj: Any) -> dict[str, Any]:
        return self.apart(obj)

    def make(self, parts: dict[str, Any]) -> Any:
        self.require(parts)
        return self.together(**parts)


def arguments(cls: type) -> tuple[str, ...]:
    """Return what the constructor of a parameter object, a dataclass or a named tuple takes."""
    if issubclass(cls, Params):
        from mercer.params import _arguments

        return tuple(_arguments(cls))
    if is_dataclass(cls):
        return tuple(field.name for field in fields(cls))
    return tuple(cls._fields)  # type: ignore[attr-defined]
