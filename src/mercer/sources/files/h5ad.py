"""Rows of an AnnData file, `.h5ad`: the matrix X, the names in var, the columns of obs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.notices import warn
from mercer.sources.base import Source
from mercer.sources.errors import FileError, decoding
from mercer.sources.files.arrays import compressed, real_sparse, require_room
from mercer.sources.files.extra import extra
from mercer.sources.files.gather import Gather
from mercer.sources.files.roles import Ask, assign, find
from mercer.sources.files.table import Missing, Table, chosen, finished
from mercer.sources.sparse import SparseSource

# Bytes of the rows read at once.
_BATCH = 8 * 2**20
# What compression can save at most; more is a lie, or an array that was never filled.
_SMALLEST = 1032

Values = npt.NDArray[Any]


def read(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read X; label, weights and kept columns come from obs."""
    h5py = extra("h5py", "AnnData")
    with decoding(ask.path, "AnnData"), h5py.File(path, "r") as file:
        X = _inner(file, "X", ask)
        source = _matrix(X, ask)
        n, d = source.shape
        names = _names(file, "var", d, ask)
        only = Ask(ask.path, columns=ask.columns)
        features = assign(names, only).features if ask.columns is not None else range(d)
        if ask.columns is not None:
            source = chosen(source, features)
        beside = {name: _obs(file, name, n, ask) for name in ask.beside}
        weights = None if ask.weights is None else _obs(file, ask.weights, n, ask)
        if weights is not None and weights.dtype.kind not in "fiub":
            raise FileError(f"{ask.path}: {ask.weights!r} of obs is not numbers.")
        tick(path.stat().st_size)
        missing = source.fold(Missing(source.shape[1])).count
        own = [names[i] for i in features]
        return finished(ask, source, own, missing, extra=beside, weights=weights)


def _inner(group: Any, name: str, ask: Ask) -> Any:
    """Return a member of a group; one that lies in another file is refused."""
    link = group.get(name, getlink=True)
    if link is None:
        raise FileError(f"{ask.path} has no {group.name.rstrip('/')}/{name}: not an AnnData file.")
    if type(link).__name__ == "ExternalLink":
        raise FileError(f"{ask.path}: {name} is a link to another file, which is not followed.")
    found = group[name]
    if hasattr(found, "is_virtual") and (found.is_virtual or found.external):
        raise FileError(f"{ask.path}: {name} lies in other files, which are not read.")
    if hasattr(found, "shape") and found.shape is not None:
        size = int(np.prod(found.shape, dtype=object)) * found.dtype.itemsize
        if size > _SMALLEST * found.id.get_storage_size() + 2**20:
            raise FileError(f"{ask.path}: {name} claims shape {found.shape}, and is not filled.")
    return found


def _matrix(X: Any, ask: Ask) -> Source:
    if hasattr(X, "shape"):
        return _dense(X, ask)
    kind = _string(X.attrs.get("encoding-type", X.attrs.get("h5sparse_format", b"")))
    kind = kind.removesuffix("_matrix")
    if kind not in ("csr", "csc"):
        raise FileError(f"{ask.path}: X is encoded as {kind!r}, which is not known.")
    shape = tuple(int(i) for i in X.attrs.get("shape", X.attrs.get("h5sparse_shape", ())))
    if len(shape) != 2 or min(shape) < 1:
        raise FileError(f"{ask.path}: X has shape {shape}, not rows and columns.")
    parts = [_inner(X, name, ask) for name in ("data", "indices", "indptr")]
    require_room(ask, 3 * sum(part.size * part.dtype.itemsize for part in parts))
    data, indices, indptr = (part[:] for part in parts)
    matrix = compressed(kind, data, indices, indptr, shape)
    return SparseSource(real_sparse(ask, matrix))


def _dense(X: Any, ask: Ask) -> Source:
    if X.shape is None or len(X.shape) != 2 or 0 in X.shape or X.dtype.kind not in "fiub":
        raise FileError(f"{ask.path}: X is {X.dtype} of shape {X.shape}, not rows of numbers.")
    gather = Gather(X.shape[1], np.float32 if X.dtype == np.float32 else np.float64)
    rows = max(1, _BATCH // (8 * X.shape[1]))
    try:
        for start in range(0, X.shape[0], rows):
            gather.add(X[start : start + rows])
        return gather.finish(range(X.shape[1]))
    finally:
        gather.close()


def _names(file: Any, which: str, count: int, ask: Ask) -> list[str]:
    """Return the names of var, made unique as AnnData does where some are there twice."""
    group = _inner(file, which, ask)
    if hasattr(group, "shape"):  # a table of old: the first field is the index
        values = group[:][group.dtype.names[0]]
    else:
        values = _inner(group, _string(group.attrs.get("_index", "_index")), ask)[:]
    names = [_string(value) for value in values]
    if len(names) != count:
        raise FileError(f"{ask.path}: {which} names {len(names)} columns, and X has {count}.")
    twice = sum(n > 1 for n in Counter(names).values())
    if twice:
        warn(f"{ask.path}: {twice} names in {which} are there more than once; they get a number.")
    return _unique(names)


def _unique(names: list[str]) -> list[str]:
    taken, seen = set(names), Counter[str]()
    out = []
    for name in names:
        seen[name] += 1
        own = name
        while seen[name] > 1 and own in taken:
            own = f"{name}-{seen[name] - 1}"
            seen[name] += own in taken
        taken.add(own)
        out.append(own)
    return out


def _obs(file: Any, name: str, n: int, ask: Ask) -> Values:
    """Return a column of obs: numbers, texts or categories."""
    obs = _inner(file, "obs", ask)
    if hasattr(obs, "shape"):
        find(name, {key: i for i, key in enumerate(obs.dtype.names or ())}, ask)
        values = obs[:][name]
    else:
        find(name, {key: i for i, key in enumerate(obs) if not key.startswith("__")}, ask)
        values = _column(_inner(obs, name, ask), obs, ask)
    if values.shape != (n,):
        raise FileError(f"{ask.path}: {name!r} of obs has shape {values.shape}, not ({n},).")
    return values if values.dtype.kind in "fiub" else _texts(values)


def _column(found: Any, obs: Any, ask: Ask) -> Values:
    if not hasattr(found, "shape"):
        if "codes" in found:
            codes, categories = _inner(found, "codes", ask)[:], _inner(found, "categories", ask)[:]
            return _decoded(codes, categories)
        values, mask = _inner(found, "values", ask)[:], _inner(found, "mask", ask)[:]
        return np.where(mask, np.nan, values) if mask.any() else values
    name = found.name.rsplit("/", 1)[-1]
    if "__categories" in obs and name in obs["__categories"]:  # as AnnData wrote until 0.7
        return _decoded(found[:], _inner(_inner(obs, "__categories", ask), name, ask)[:])
    return np.asarray(found[:])


def _decoded(codes: Values, categories: Values) -> Values:
    values = categories if categories.dtype.kind in "fiub" else _texts(categories)
    if np.any(codes >= len(values)):
        raise FileError("codes point past the categories.")
    if not np.any(codes < 0):
        return values[codes]
    absent = "" if values.dtype == object else np.nan
    return np.append(values.astype(object if absent == "" else float), [absent])[codes]


def _texts(values: Values) -> Values:
    return np.array([_string(value) for value in values.ravel()], dtype=object).reshape(
        values.shape
    )


def _string(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
