"""Models as plain JSON and arrays, and back; no code in a file is ever run.

Numbers, strings, None and lists stand for themselves. Everything else is an object with one key
that says what it is::

    {"float": "nan"}, {"tuple": [...]}, {"dict": [[key, value], ...]}
    {"scalar": ["<f8", value]}, {"dtype": "<f4"}, {"solver": name}, {"arpack": max_iter}
    {"array": name}, {"columns": name}, {"torch": node}     an array, its transpose, a tensor
    {"torch": {"sparse": ...}}, {"tensor": node}            rows of tensors, and as one of torch's
    {"strings": [bytes, ends]}                              a list of str
    {"words": [dtype, shape, strings]}                      an array of str
    {"objects": [shape, [...]]}                             an array of str, numbers and None
    {"sparse": [class, shape, data, indices, indptr]}, {"random": [class, state]}
    {"class": name, "parts": {...}}                         an object of a class in `registry`
    {"same": number}                                        the object of that number, from 0
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from mercer.arrays import (
    CSR,
    as_csr,
    is_dask,
    is_foreign,
    is_sparse,
    to_device_of,
    to_numpy,
    torch_tensor,
)
from mercer.data.in_memory import require_inside
from mercer.linalg.solvers import SOLVERS, arpack
from mercer.modelfile.container import Arrays, ModelFileError, storable
from mercer.modelfile.format1 import build_format_1
from mercer.modelfile.registry import UnsavableError, build, codecs_by_class, ensure
from mercer.params import Params

# Objects within objects.
_DEEPEST = 100
# How many times larger than the file a model may be with its shared objects written out. So
# many values and bytes may be shared at will.
_MOST_SHARED, _FEW_VALUES, _FEW_BYTES = 64, 10_000, 2**20
# Shorter lists of strings stay readable in the JSON.
_FEW_STRINGS = 16
_SPARSE = ("csr_array", "csr_matrix", "csc_array", "csc_matrix")
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "SFC64")
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DTYPES = {np.dtype(code).newbyteorder("<").str: np.dtype(code) for code in "bBhHiIlLqQefd?"}
_OTHERWISE = (
    "A parameter that only fit uses can be set to None after the fit, with set_params. If "
    "readers trust the file, use pickle"
)


class Encoder:
    """Turns a model into a tree of plain JSON, and collects its arrays by name."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self._names: dict[Any, str] = {}
        self._numbers: dict[int, int] = {}
        self._hosted: dict[int, Any] = {}
        self._alive: list[Any] = []  # the id of a value must not be used again

    def node(self, value: Any, path: str, depth: int = 0) -> Any:
        """Return the JSON of a value; `path` says where in the model it is."""
        if depth > _DEEPEST:
            refuse(path, "is nested too deeply, or contains itself")
        cls = type(value)
        if value is None or cls in (bool, int, str):
            return value
        if cls is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if cls is list and len(value) > _FEW_STRINGS and all(type(x) is str for x in value):
            return {"strings": self._strings(value, path)}
        if cls in (list, tuple, range):
            items = self._items(value, path, depth)
            return {"tuple": items} if cls is tuple else items
        if cls is dict:
            paths = ((f"{path}[{key!r}]", (key, x)) for key, x in value.items())
            return {"dict": [[self.node(x, at, depth + 1) for x in pair] for at, pair in paths]}
        if cls in (np.ndarray, np.memmap):
            return self._array(np.asarray(value), path, depth)
        if isinstance(value, np.dtype):
            return {"dtype": _code(value, path)}
        if isinstance(value, np.generic):
            code = "str" if isinstance(value, np.str_) else _code(value.dtype, path)
            return {"scalar": [code, self.node(value.item(), path, depth + 1)]}
        if sp.issparse(value):
            return self._sparse(value, path)
        if isinstance(value, CSR):
            return self._rows(value, path)
        if is_sparse(value):
            return {"tensor": self._rows(as_csr(value), path)}
        if isinstance(value, (np.random.RandomState, np.random.Generator)):
            return self._random(value, path, depth)
        if cls is functools.partial and value.func is arpack:
            return {"arpack": int(value.keywords["max_iter"])}
        for name, solver in SOLVERS.items():
            if value is solver:
                return {"solver": name}
        return self._foreign(value, path) if is_foreign(value) else self._object(value, path, depth)

    def _items(self, values: Any, path: str, depth: int) -> list[Any]:
        return [self.node(x, f"{path}[{i}]", depth + 1) for i, x in enumerate(values)]

    def _array(self, value: np.ndarray[Any, Any], path: str, depth: int) -> Any:
        shape = list(value.shape)
        if value.dtype.kind == "U":
            return {"words": [value.dtype.str[1:], shape, self._strings(value.ravel(), path)]}
        if value.dtype.kind == "O":
            flat = self._items(value.ravel(), path, depth)
            if any(isinstance(x, (dict, list)) for x in flat):
                refuse(path, "is an array of objects that are not all strings and numbers")
            return {"objects": [shape, flat]}
        _code(value.dtype, path)
        # Memory order is kept: products of arrays in another order may round differently.
        if value.flags.f_contiguous and not value.flags.c_contiguous:
            return {"columns": self._named(value.T, path)}
        return {"array": self._named(value, path)}

    def _named(self, value: np.ndarray[Any, Any], path: str) -> str:
        """Return the name of an array, the same for the same memory."""
        key = (value.ctypes.data, value.dtype.str, value.shape, value.strides)
        if key not in self._names:
            self._names[key] = path
            self.arrays[path] = value
        return self._names[key]

    def _strings(self, values: Any, path: str) -> list[str]:
        """Return the names of two arrays: the bytes of all strings, and where each ends."""
        encoded = [str(text).encode("utf-8", "surrogatepass") for text in values]
        ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
        letters = np.frombuffer(b"".join(encoded), np.uint8)
        return [self._named(letters, f"{path}.bytes"), self._named(ends, f"{path}.ends")]

    def _sparse(self, value: Any, path: str) -> Any:
        name = type(value).__name__
        if name not in _SPARSE or type(value) is not getattr(sp, name):
            refuse(path, f"is a sparse {name}. Pass CSR: X.tocsr()")
        _code(value.dtype, path)
        parts = ("data", "indices", "indptr")
        names = [self._named(getattr(value, part), f"{path}.{part}") for part in parts]
        return {"sparse": [name, [int(size) for size in value.shape], *names]}

    def _rows(self, value: CSR, path: str) -> Any:
        if not hasattr(value.data, "detach"):
            refuse(path, f"has a {type(value.data)}. Fit with arrays of NumPy or torch")
        key = id(value.data)
        if key not in self._hosted:
            self._hosted[key] = to_device_of(value, np.empty(0))
            self._alive.append(value)
        return {"torch": self._sparse(self._hosted[key], path)}

    def _random(self, value: Any, path: str, depth: int) -> Any:
        legacy = isinstance(value, np.random.RandomState)
        bits = value._bit_generator if legacy else value.bit_generator
        if type(bits).__name__ not in _GENERATORS or not type(bits).__module__.startswith("numpy."):
            refuse(path, f"uses {type(bits).__name__}. Use an int, or default_rng")
        state = value.get_state(legacy=False) if legacy else bits.state
        return {"random": [type(value).__name__, self.node(state, path, depth + 1)]}

    def _foreign(self, value: Any, path: str) -> Any:
        if not is_dask(value) and not hasattr(value, "detach"):
            refuse(path, f"is a {type(value)}. Fit with arrays of NumPy or torch")
        if id(value) not in self._hosted:
            try:
                self._hosted[id(value)] = to_numpy(value)
            except MemoryError as error:
                refuse(path, f"is on a cluster. {error} Or use pickle, which saves the tasks")
            self._alive.append(value)
        array = self._array(self._hosted[id(value)], path, 0)
        return array if is_dask(value) else {"torch": array}

    def _object(self, value: Any, path: str, depth: int) -> Any:
        if id(value) in self._numbers:
            return {"same": self._numbers[id(value)]}
        codec = codecs_by_class().get(type(value))
        if codec is None:
            if isinstance(value, Params):  # a kernel of a function: refuse the function
                self._parts(value.get_params(deep=False), path, depth)
            cls = type(value)
            reason = f"is a {cls.__name__}, which a model file cannot hold"
            if callable(value):
                name = getattr(value, "__name__", cls.__name__)
                reason = f"is a function, {name}, but model files contain no code"
            refuse(path, f"{reason}. {_OTHERWISE}")
        try:
            parts = codec.take(value)
        except UnsavableError as error:
            part, reason = error.args
            refuse(f"{path}.{part}".strip("."), reason)
        nodes = self._parts(parts, path, depth)
        # Numbered after its parts: an object that contains itself is refused for its depth.
        self._alive.append(value)
        self._numbers[id(value)] = len(self._numbers)
        return {"class": codec.name, "parts": nodes}

    def _parts(self, parts: dict[str, Any], path: str, depth: int) -> dict[str, Any]:
        head = f"{path}." if path else ""
        return {name: self.node(part, head + name, depth + 1) for name, part in parts.items()}


def _code(dtype: np.dtype[Any], path: str) -> str:
    if not storable(dtype):
        refuse(path, f"has dtype {dtype}, which a model file cannot hold")
    return dtype.newbyteorder("<").str


def refuse(path: str, reason: str) -> NoReturn:
    """Raise an error about a part that cannot be saved."""
    raise ModelFileError(f"{path or 'the model'} {reason}. Nothing was written.")


class Decoder:
    """Builds a model from a tree of JSON and arrays."""

    def __init__(self, arrays: Arrays, version: int) -> None:
        self.arrays = arrays
        self._build = build_format_1 if version == 1 else build
        self._unused = set(arrays)
        self._objects: list[tuple[Any, int, int]] = []
        self._depth = self._written = self._values = self._bytes = 0
        self._stored = sum(array.nbytes for array in arrays.values())

    def model(self, tree: Any) -> Any:
        """Return the model; raise if an array is not part of it."""
        model = self.value(tree)
        ensure(not self._unused, f"array {min(self._unused, default='')[:80]!r} is not part of it")
        return model

    def value(self, node: Any) -> Any:
        self._written += 1
        self._values += 1
        self._depth += 1
        ensure(self._depth <= 3 * _DEEPEST, "parts are nested too deeply")
        if isinstance(node, list):
            node = [self.value(item) for item in node]
        elif isinstance(node, dict) and "class" in node:
            values, nbytes = self._values, self._bytes
            parts = {part: self.value(inner) for part, inner in node["parts"].items()}
            node = self._build(node["class"], parts)
            self._objects.append((node, self._values - values, self._bytes - nbytes))
        elif isinstance(node, dict):
            ((kind, content),) = node.items()
            node = _KINDS[kind](self, content)
        self._depth -= 1
        return node

    def _count(self, values: int, nbytes: int = 0) -> None:
        """Raise if shared objects of a small file expand to very many."""
        self._values += values
        self._bytes += nbytes
        most = _MOST_SHARED * self._written + _FEW_VALUES
        ensure(self._values <= most, "the same objects are repeated too often")
        most = _MOST_SHARED * self._stored + _FEW_BYTES
        ensure(self._bytes <= most, "the same arrays are repeated too often")

    # The kinds of values, by their names in a file; those of one line are in `_KINDS`.

    def as_same(self, number: int) -> Any:
        ensure(number >= 0, "objects are numbered from 0")
        obj, values, nbytes = self._objects[number]
        self._count(values, nbytes)
        return obj

    def as_scalar(self, content: Any) -> Any:
        code, node = content
        scalar = np.str_ if code == "str" else _DTYPES[code].type
        with np.errstate(over="ignore"):
            return scalar(self.value(node))

    def as_array(self, name: str) -> np.ndarray[Any, Any]:
        self._unused.discard(name)
        self._count(0, self.arrays[name].nbytes)
        return self.arrays[name]

    def as_strings(self, content: Any) -> list[str]:
        letters, ends = map(self.as_array, content)
        ensure(bool((np.diff(ends, prepend=0) >= 0).all()), "strings overlap")
        raw, stops = letters.tobytes(), ends.tolist()
        pairs = zip([0, *stops], stops, strict=False)
        return [raw[start:stop].decode("utf-8", "surrogatepass") for start, stop in pairs]

    def as_words(self, content: Any) -> np.ndarray[Any, Any]:
        code, shape, names = content
        words = self.as_strings(names)
        most = 16 * max(map(len, words), default=0) + 64
        ensure(code[0] == "U" and int(code[1:]) <= most, "strings are shorter than declared")
        return np.array(words, dtype=f"<{code}").reshape(shape)

    def as_objects(self, content: Any) -> np.ndarray[Any, Any]:
        shape, values = content
        nested = any(isinstance(value, (list, dict)) for value in values)
        ensure(not nested, "an array of objects holds more than strings and numbers")
        array = np.empty(len(values), object)
        array[:] = values
        return array.reshape(shape)

    def as_sparse(self, content: Any) -> Any:
        name, shape, *names = content
        ensure(name in _SPARSE, f"{str(name)[:80]!r} is not a sparse matrix")
        data, indices, indptr = map(self.as_array, names)
        require_inside(data, indices, indptr, shape if name.startswith("csr") else shape[::-1])
        return getattr(sp, name)((data, indices, indptr), shape=tuple(shape))

    def as_random(self, content: Any) -> Any:
        name, node = content
        state = self.value(node)
        bits = state["bit_generator"]
        ensure(bits in _GENERATORS, f"{str(bits)[:80]!r} is not a generator of NumPy")
        if bits == "MT19937":  # NumPy would read beyond the end of a shorter state
            key, position = state["state"]["key"], state["state"]["pos"]
            ensure(key.shape == (624,) and key.dtype == np.uint32, "a generator has no state")
            ensure(type(position) is int and 0 <= position <= 624, "a generator has no state")
        generator = getattr(np.random, bits)(0)
        generator.state = {part: state[part] for part in generator.state}
        if name == "Generator":
            return np.random.Generator(generator)
        legacy = np.random.RandomState(generator)
        legacy.set_state(state)
        return legacy

    def as_arpack(self, max_iter: int) -> Any:
        ensure(0 < max_iter < 2**31, "max_iter of arpack is not a count")
        return functools.partial(arpack, max_iter=max_iter)


def tensors_of(value: Any) -> Any:
    """Return a host array as a tensor, and sparse rows with tensors as their arrays."""
    return (
        to_device_of(value, torch_tensor(np.empty(0)))
        if sp.issparse(value)
        else torch_tensor(value)
    )


_KINDS: dict[str, Callable[[Decoder, Any], Any]] = {
    "float": lambda decoder, content: _FLOATS[content],
    "tuple": lambda decoder, content: tuple(decoder.value(content)),
    "dict": lambda decoder, content: dict(decoder.value(content)),
    "dtype": lambda decoder, content: _DTYPES[content],
    "columns": lambda decoder, name: decoder.as_array(name).T,
    "torch": lambda decoder, content: tensors_of(decoder.value(content)),
    "tensor": lambda decoder, content: decoder.value(content).native,
    "solver": lambda decoder, content: SOLVERS[content],
    **{name[3:]: method for name, method in vars(Decoder).items() if name.startswith("as_")},
}
