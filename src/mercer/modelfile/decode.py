"""From plain JSON and arrays to a model; nothing of a file is ever run.

Classes are those of `registry`, looked up by name; parts are those that the class has. Whatever
a file says beyond that is refused.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.arrays import torch_tensor
from mercer.data.sparse import require_inside
from mercer.linalg.solvers import SOLVERS, arpack
from mercer.modelfile.agree import agree
from mercer.modelfile.registry import kinds
from mercer.modelfile.tree import (
    BITS,
    LEAST_REPEATED,
    MOST_DEPTH,
    MOST_REPEATED,
    MOST_STEPS,
    SPARSE,
)

Arrays = dict[str, np.ndarray[Any, Any]]
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class NonsenseError(ValueError):
    """What a tree says makes no sense."""


class Decoder:
    """Makes a model of a tree and arrays."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.used: set[str] = set()
        self._objects: list[tuple[Any, int, int]] = []
        self._said = self._sum = self._bytes = 0
        self._held = sum(array.nbytes for array in arrays.values())

    def model(self, tree: Any) -> Any:
        """Return the model; refuse arrays that no part of it is."""
        made = self.value(tree)
        unused = self.arrays.keys() - self.used
        if unused:
            raise NonsenseError(f"array {min(unused)[:80]!r} is no part of the model")
        return made

    def value(self, node: Any, depth: int = 0) -> Any:
        """Return what a node stands for."""
        self._count(1, 1)
        if depth > 3 * MOST_DEPTH:
            raise NonsenseError("parts lie too deep in each other")
        if node is None or isinstance(node, (bool, str, int, float)):
            return node
        if isinstance(node, list):
            return [self.value(x, depth + 1) for x in node]
        if "class" in node:
            return self._object(node, depth)
        if len(node) != 1:
            raise NonsenseError(f"a part is called {sorted(node)[:3]}")
        ((name, inner),) = node.items()
        if name not in _MAKERS:
            raise NonsenseError(f"a part is called {name[:80]!r}")
        return _MAKERS[name](self, inner, depth + 1)

    def _count(self, said: int, all_in_all: int, nbytes: int = 0) -> None:
        """Refuse a small tree of which each object stands for many."""
        self._said += said
        self._sum += all_in_all
        self._bytes += nbytes
        if self._sum > MOST_REPEATED * self._said + LEAST_REPEATED:
            raise NonsenseError("the same objects are repeated too often")
        if self._bytes > MOST_REPEATED * self._held + 2**20:
            raise NonsenseError("the same arrays are repeated too often")

    def _object(self, node: dict[str, Any], depth: int) -> Any:
        name, parts = node.get("class"), node.get("parts")
        if node.keys() != {"class", "parts"} or not isinstance(parts, dict):
            raise NonsenseError("an object has no parts")
        if not isinstance(name, str) or name not in kinds():
            raise NonsenseError(f"{str(name)[:80]!r} is no class that this version knows")
        before, held = self._sum, self._bytes
        made_of = {key: self.value(part, depth + 1) for key, part in parts.items()}
        made = kinds()[name].make(made_of)
        agree(made)
        self._objects.append((made, self._sum - before, self._bytes - held))
        return made

    def _same(self, number: Any, depth: int) -> Any:
        if type(number) is not int or not 0 <= number < len(self._objects):
            raise NonsenseError("a part is the same as one that is not there")
        made, size, nbytes = self._objects[number]
        self._count(0, size, nbytes)
        return made

    def _tuple(self, inner: Any, depth: int) -> Any:
        return tuple(_list(self.value(inner, depth)))

    def _dict(self, inner: Any, depth: int) -> Any:
        pairs = [_list(self.value(pair, depth), 2) for pair in _list(inner)]
        return dict(pairs)

    def _float(self, inner: Any, depth: int) -> float:
        return _FLOATS[inner]

    def _range(self, inner: Any, depth: int) -> range:
        if not all(type(x) is int and abs(x) < 2**62 for x in _list(inner, 3)):
            raise NonsenseError("a range is not of whole numbers")
        if len(range(*inner)) > MOST_STEPS:
            raise NonsenseError("a range is too long")
        return range(*inner)

    def _scalar(self, inner: Any, depth: int) -> Any:
        text, node = _list(inner, 2)
        value = self.value(node, depth)
        if text == "str" and isinstance(value, str):
            return np.str_(value)
        dtype = _dtype(text)
        fits = isinstance(value, bool) if dtype.kind == "b" else isinstance(value, (int, float))
        if not fits or (dtype.kind in "iu" and type(value) is not int):
            raise NonsenseError(f"{str(value)[:80]!r} is not of dtype {dtype}")
        with np.errstate(over="ignore"):
            return dtype.type(value)

    def _dtype(self, inner: Any, depth: int) -> np.dtype[Any]:
        return _dtype(inner)

    def _array(self, inner: Any, depth: int) -> np.ndarray[Any, Any]:
        if not isinstance(inner, str) or inner not in self.arrays:
            raise NonsenseError(f"array {str(inner)[:80]!r} is not there")
        self.used.add(inner)
        self._count(0, 0, self.arrays[inner].nbytes)
        return self.arrays[inner]

    def _columns(self, inner: Any, depth: int) -> np.ndarray[Any, Any]:
        return self._array(inner, depth).T

    def _torch(self, inner: Any, depth: int) -> Any:
        if not isinstance(inner, dict) or not inner.keys() <= {"array", "columns"}:
            raise NonsenseError("a tensor is no array")
        return torch_tensor(self.value(inner, depth))

    def _strings(self, inner: Any, depth: int) -> list[str]:
        letters, ends = (self._array(name, depth) for name in _list(inner, 2))
        if letters.dtype != np.uint8 or ends.dtype != np.int64 or letters.ndim + ends.ndim != 2:
            raise NonsenseError("strings are not bytes and where they end")
        stops = ends.tolist()
        steps = np.diff(ends, prepend=0)
        if (steps < 0).any() or int(steps.sum()) != len(letters):
            raise NonsenseError("strings do not end where they should")
        raw = letters.tobytes()
        pairs = zip([0, *stops], stops, strict=False)
        return [raw[start:stop].decode("utf-8", "surrogatepass") for start, stop in pairs]

    def _words(self, inner: Any, depth: int) -> np.ndarray[Any, Any]:
        text, shape, names = _list(inner, 3)
        found = self._strings(names, depth)
        if not (isinstance(text, str) and text[:1] == "U" and text[1:].isdecimal()):
            raise NonsenseError("an array of strings has no dtype")
        if int(text[1:]) > 16 * max(map(len, found), default=0) + 64:
            raise NonsenseError("an array of strings is wider than they are")
        return _shaped(np.array(found, dtype=f"<{text}"), shape)

    def _objects_array(self, inner: Any, depth: int) -> np.ndarray[Any, Any]:
        shape, nodes = _list(inner, 2)
        flat = np.empty(len(_list(nodes)), object)
        for i, node in enumerate(nodes):
            if isinstance(node, (list, dict)):
                raise NonsenseError("an array of objects holds more than strings and numbers")
            flat[i] = self.value(node, depth)
        return _shaped(flat, shape)

    def _sparse(self, inner: Any, depth: int) -> Any:
        name, shape, *names = _list(inner, 5)
        if name not in SPARSE:
            raise NonsenseError(f"{str(name)[:80]!r} is no sparse matrix")
        sizes = _list(shape, 2)
        if not all(type(x) is int and 0 <= x < 2**31 for x in sizes):
            raise NonsenseError("a sparse matrix has no shape")
        data, indices, indptr = (self._array(each, depth) for each in names)
        if data.dtype.kind not in "fiub" or data.ndim != 1:
            raise NonsenseError("a sparse matrix is not of numbers")
        require_inside(data, indices, indptr, sizes if name.startswith("csr") else sizes[::-1])
        return getattr(sp, name)((data, indices, indptr), shape=tuple(sizes))

    def _random(self, inner: Any, depth: int) -> Any:
        name, node = _list(inner, 2)
        state = self.value(node, depth)
        bits = state.get("bit_generator") if isinstance(state, dict) else None
        if bits not in BITS or name not in ("RandomState", "Generator"):
            raise NonsenseError("a random generator is not one of NumPy's")
        made = getattr(np.random, bits)(0)
        _check_state(bits, state)
        made.state = {key: part for key, part in state.items() if key in made.state}
        if name == "Generator":
            return np.random.Generator(made)
        legacy = np.random.RandomState(made)
        legacy.set_state(state)
        return legacy

    def _solver(self, inner: Any, depth: int) -> Any:
        return SOLVERS[inner]

    def _arpack(self, inner: Any, depth: int) -> Any:
        if type(inner) is not int or not 0 < inner < 2**31:
            raise NonsenseError("a number of steps is not one")
        return functools.partial(arpack, max_iter=inner)


_MAKERS = {
    "float": Decoder._float,
    "tuple": Decoder._tuple,
    "dict": Decoder._dict,
    "range": Decoder._range,
    "scalar": Decoder._scalar,
    "dtype": Decoder._dtype,
    "array": Decoder._array,
    "columns": Decoder._columns,
    "torch": Decoder._torch,
    "strings": Decoder._strings,
    "words": Decoder._words,
    "objects": Decoder._objects_array,
    "sparse": Decoder._sparse,
    "random": Decoder._random,
    "solver": Decoder._solver,
    "arpack": Decoder._arpack,
    "same": Decoder._same,
}


def _list(found: Any, length: int | None = None) -> list[Any]:
    if not isinstance(found, list) or (length is not None and len(found) != length):
        raise NonsenseError("a list is not one, or not of its length")
    return found


def _dtype(text: Any) -> np.dtype[Any]:
    known = {np.dtype(kind).newbyteorder("<").str: np.dtype(kind) for kind in "bBhHiIlLqQefd?"}
    if not isinstance(text, str) or text not in known:
        raise NonsenseError(f"{str(text)[:80]!r} is no dtype")
    return known[text]


def _shaped(flat: np.ndarray[Any, Any], shape: Any) -> np.ndarray[Any, Any]:
    sizes = _list(shape)
    if not all(type(x) is int and x >= 0 for x in sizes) or math.prod(sizes) != flat.size:
        raise NonsenseError("an array is not as long as its shape says")
    return flat.reshape(sizes)


def _check_state(bits: str, state: dict[str, Any]) -> None:
    """Refuse a state that NumPy would take, and read beyond its end."""
    inner = state.get("state")
    if not isinstance(inner, dict):
        raise NonsenseError("a random generator has no state")
    if bits == "MT19937":
        key, pos = inner.get("key"), inner.get("pos")
        whole = isinstance(key, np.ndarray) and key.shape == (624,) and key.dtype == np.uint32
        if not whole or type(pos) is not int or not 0 <= pos <= 624:
            raise NonsenseError("a random generator has no state")
