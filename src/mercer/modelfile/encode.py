"""From a fitted model to plain JSON and arrays."""

from __future__ import annotations

import functools
import math
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from mercer.arrays import is_dask, is_foreign, to_numpy
from mercer.kernels import Fisher, FromFunction, Separable
from mercer.linalg.solvers import SOLVERS, arpack
from mercer.modelfile.container import storable
from mercer.modelfile.errors import ModelFileError
from mercer.modelfile.kinds import LostError
from mercer.modelfile.registry import by_class
from mercer.modelfile.tree import BITS, MOST_DEPTH, MOST_STEPS, SPARSE

_AFTER = "A parameter that only a fit needs can be set to None after the fit: set_params"


# Kernels of something of the user's, and under what name it is theirs.
_WITHIN: dict[type, str] = {FromFunction: "f", Separable: "f", Fisher: "model"}


class Encoder:
    """Makes a tree of a model; gathers the arrays.

    Attributes
    ----------
    arrays : dict of ndarray
        Arrays by name, each once, C-contiguous or as the user's strides are.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._names: dict[Any, str] = {}
        self._numbers: dict[int, int] = {}
        self._brought: dict[int, np.ndarray[Any, Any]] = {}
        self._kept: list[Any] = []  # so that no address is used twice

    def node(self, value: Any, path: str, depth: int = 0) -> Any:
        """Return what stands for a value; `path` is where it was found."""
        if depth > MOST_DEPTH:
            _refuse(path, "lies too deep, in itself perhaps")
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            if abs(value) >= 2**1024:
                _refuse(path, "is a number of more than 1024 bits")
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is list:
            return self._list(value, path, depth)
        if kind is tuple:
            return {"tuple": [self.node(x, f"{path}[{i}]", depth + 1) for i, x in enumerate(value)]}
        if kind is dict:
            return {"dict": [self._pair(key, x, path, depth) for key, x in value.items()]}
        if kind is range:
            if len(value) > MOST_STEPS:
                _refuse(path, f"is a range of {len(value)} numbers. Pass an array of them")
            return {"range": [value.start, value.stop, value.step]}
        return self._array_like(value, path, depth)

    def _list(self, value: list[Any], path: str, depth: int) -> Any:
        if len(value) > 16 and all(type(x) is str for x in value):
            return {"strings": self._strings(value, path)}
        return [self.node(x, f"{path}[{i}]", depth + 1) for i, x in enumerate(value)]

    def _pair(self, key: Any, value: Any, path: str, depth: int) -> list[Any]:
        there = f"{path}[{key!r}]"
        if not isinstance(key, (str, int, float, bool, tuple, np.generic, type(None))):
            _refuse(path, f"has a key of type {type(key).__name__}")
        return [self.node(key, there, depth + 1), self.node(value, there, depth + 1)]

    def _array_like(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, np.dtype):
            return {"dtype": self._dtype(value, path)}
        if isinstance(value, np.str_):
            return {"scalar": ["str", str(value)]}
        if isinstance(value, np.generic):
            text = self._dtype(value.dtype, path)
            return {"scalar": [text, self.node(value.item(), path, depth + 1)]}
        if type(value) in (np.ndarray, np.memmap):
            return self._array(np.asarray(value), path, depth)
        if sp.issparse(value):
            return self._sparse(value, path)
        if isinstance(value, (np.random.RandomState, np.random.Generator)):
            return self._random(value, path, depth)
        if type(value) in by_class():
            return self._object(value, path, depth)
        return self._other(value, path)

    def _dtype(self, dtype: np.dtype[Any], path: str) -> str:
        if not storable(dtype):
            _refuse(path, f"has dtype {dtype}, which a model file cannot hold")
        return dtype.newbyteorder("<").str

    def _array(self, value: np.ndarray[Any, Any], path: str, depth: int) -> Any:
        if value.dtype.kind == "U":
            shape = list(value.shape)
            return {"words": [value.dtype.str[1:], shape, self._strings(value.ravel(), path)]}
        if value.dtype.kind == "O":
            flat = [self.node(x, f"{path}[{i}]", depth + 1) for i, x in enumerate(value.ravel())]
            if any(isinstance(x, (dict, list)) for x in flat):
                _refuse(path, "is an array of objects that are not all strings and numbers")
            return {"objects": [list(value.shape), flat]}
        self._dtype(value.dtype, path)
        # Memory order is kept: products of other strides may round otherwise.
        if value.flags.f_contiguous and not value.flags.c_contiguous:
            return {"columns": self._named(value.T, path)}
        return {"array": self._named(value, path)}

    def _named(self, value: np.ndarray[Any, Any], path: str) -> str:
        """Return the name of an array; the same for the same entries in memory."""
        key = (value.ctypes.data, value.dtype.str, value.shape, value.strides)
        if key not in self._names:
            self._kept.append(value)
            self._names[key] = path
            self.arrays[path] = value
        return self._names[key]

    def _strings(self, value: Any, path: str) -> list[str]:
        """Return the names of two arrays: the bytes of all strings, and where each ends."""
        each = [str(text).encode("utf-8", "surrogatepass") for text in value]
        ends = np.cumsum([len(text) for text in each], dtype=np.int64)
        letters = np.frombuffer(b"".join(each), np.uint8)
        return [self._named(letters, f"{path}.bytes"), self._named(ends, f"{path}.ends")]

    def _sparse(self, value: Any, path: str) -> Any:
        name = type(value).__name__
        if name not in SPARSE or type(value) is not getattr(sp, name):
            _refuse(path, f"is a sparse {name}. Pass CSR: X.tocsr()")
        parts = {key: getattr(value, key) for key in ("data", "indices", "indptr")}
        self._dtype(parts["data"].dtype, path)
        names = [self._named(part, f"{path}.{key}") for key, part in parts.items()]
        return {"sparse": [name, [int(size) for size in value.shape], *names]}

    def _random(self, value: Any, path: str, depth: int) -> Any:
        bits = value._bit_generator if isinstance(value, np.random.RandomState) else None
        bits = value.bit_generator if bits is None else bits
        if type(bits).__name__ not in BITS or type(bits).__module__.split(".")[0] != "numpy":
            _refuse(path, f"draws from {type(bits).__name__}. Use an int, or default_rng")
        legacy = isinstance(value, np.random.RandomState)
        state = value.get_state(legacy=False) if legacy else bits.state
        return {"random": [type(value).__name__, self.node(state, path, depth + 1)]}

    def _object(self, value: Any, path: str, depth: int) -> Any:
        if id(value) in self._numbers:
            return {"same": self._numbers[id(value)]}
        kind = by_class()[type(value)]
        try:
            parts = kind.parts(value)
        except LostError as error:
            name, why = error.args
            _refuse(".".join(part for part in (path, name) if part), why)
        # Numbered when all parts are: what refers to itself finds no number, and goes too deep.
        made = {
            name: self.node(part, f"{path}.{name}" if path else name, depth + 1)
            for name, part in parts.items()
        }
        self._kept.append(value)
        self._numbers[id(value)] = len(self._numbers)
        return {"class": kind.name, "parts": made}

    def _other(self, value: Any, path: str) -> Any:
        if type(value) is functools.partial and value.func is arpack:
            return {"arpack": int(value.keywords["max_iter"])}
        for name, solver in SOLVERS.items():
            if value is solver:
                return {"solver": name}
        if is_foreign(value):
            return self._foreign(value, path)
        if type(value) in _WITHIN:
            name = _WITHIN[type(value)]
            _refuse(f"{path}.{name}", _reason(getattr(value, name)))
        _refuse(path, _reason(value))

    def _dask(self, value: Any, path: str) -> Any:
        """Bring the rows of a fit here: a file holds them, and no tasks."""
        if id(value) not in self._brought:
            try:
                self._brought[id(value)] = to_numpy(value)
            except MemoryError as error:
                _refuse(path, f"lies on a cluster. {error} Or use pickle, which saves the tasks")
            self._kept.append(value)
        return self._array(self._brought[id(value)], path, 0)

    def _foreign(self, value: Any, path: str) -> Any:
        if is_dask(value):
            return self._dask(value, path)
        if not hasattr(value, "detach"):
            library = type(value).__module__.split(".")[0]
            _refuse(path, f"is an array of {library}. Fit with NumPy arrays, or torch's")
        there = to_numpy(value)
        self._dtype(there.dtype, path)
        self._kept.append(there)
        return {"torch": self._array(there, path, 0)}


def _reason(value: Any) -> str:
    """Say why something cannot be saved, and what can be done."""
    kind = type(value)
    known = [base.__name__ for base in kind.__mro__[1:] if base in by_class()]
    if known:
        return (
            f"is a {kind.__name__}, a class derived from {known[0]} that whoever loads the file "
            f"would need. Use {known[0]} itself, or pickle, for those who trust the file"
        )
    if hasattr(value, "score_vectors") or hasattr(value, "precisions_cholesky_"):
        return (
            f"is a {kind.__name__}, the fitted model of a Fisher kernel, and a model file holds "
            f"none. Use another kernel, or pickle, for those who trust the file"
        )
    if callable(value):
        name = getattr(value, "__name__", kind.__name__)
        return (
            f"is a function, {name}, and a model file holds no code. Use a kernel by name, such as "
            f"'rbf', or of mercer.kernels. {_AFTER}"
        )
    if isinstance(value, BaseEstimator):
        return (
            f"is a {kind.__name__}. Beside Mercer's estimators only SimpleImputer and "
            f"StandardScaler before one of them are saved"
        )
    return f"is a {kind.__name__}, which a model file does not hold. {_AFTER}"


def _refuse(path: str, why: str) -> NoReturn:
    raise ModelFileError(f"{path or 'the model'} {why}. Nothing was written.")
