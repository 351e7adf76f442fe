"""Rows of an AnnData file, `.h5ad`: the matrix X, the names in var, the columns of obs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.config import get_config
from mercer.data.errors import FileError, decoding, listed
from mercer.data.files import hdf5
from mercer.data.files.arrays import compressed, real_sparse, require_room
from mercer.data.files.compressed import H5Rows
from mercer.data.files.extra import extra
from mercer.data.files.labels import Column
from mercer.data.files.roles import Ask, assign, find
from mercer.data.files.table import Table, chosen, finished
from mercer.data.source import Source
from mercer.data.sparse import SparseSource
from mercer.messages import format_parameter, warn

Values = npt.NDArray[Any]


def read(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read X, or a layer (`x.h5ad::layers/counts`); labels and other columns come from obs."""
    h5py = extra("h5py", "AnnData")
    part = ask.part.strip("/")
    if part and not part.startswith("layers/") and part not in ("X", "raw/X"):
        return hdf5.read(path, ask, tick)
    with decoding(ask.path, "AnnData"), h5py.File(path, "r") as file:
        X = _member(file, part or "X", ask)
        n, d = _shape(X, ask)
        names = _names(hdf5.inner(file, "raw", ask) if part == "raw/X" else file, "var", d, ask)
        features = _features(names, ask)
        every = list(features) == list(range(d))
        source = _matrix(path, X, (n, d), None if every else features, ask)
        own = ask.id if ask.id is not None else _index(file, ask)
        wanted = _beside(file, own, ask)
        beside = {name: Column.of_numbers(_obs(file, name, n, ask)) for name in wanted}
        weights = None if ask.weights is None else _obs(file, ask.weights, n, ask)
        if weights is not None and weights.dtype.kind not in "fiub":
            raise FileError(f"{ask.path}: {ask.weights!r} of obs is not numbers.")
    tick(path.stat().st_size)
    kept = [names[i] for i in features]
    used = set(kept)
    dropped = [name for name in names if name not in used]
    return finished(
        ask, source, kept, None, beside=beside, weights=weights, dropped=dropped, id=own
    )


def _member(file: Any, part: str, ask: Ask) -> Any:
    """Return the matrix of that name, or say which there are."""
    if "X" not in file and "var" not in file:
        raise FileError(
            f"{ask.path} has no /X: not an AnnData file. Read other HDF5 with "
            f"{format_parameter('format', 'h5')}."
        )
    if part not in file:
        layers = sorted(file["layers"]) if "layers" in file else []
        there = [*(["X"] if "X" in file else []), *(f"layers/{name}" for name in layers)]
        raise FileError(f"{ask.path}: there is no {part!r}. Its matrices are {listed(there)}.")
    group = file
    for name in part.split("/"):
        group = hdf5.inner(group, name, ask)
    return group


def _features(names: list[str], ask: Ask) -> Sequence[int]:
    if ask.columns is None and not ask.drop:
        return range(len(names))
    return assign(names, Ask(ask.path, columns=ask.columns, drop=ask.drop)).features


def _beside(file: Any, own: str | None, ask: Ask) -> list[str]:
    """Return the columns of obs that are wanted: names of the rows, labels, those kept."""
    there: list[str] = []
    if "obs" in file:
        obs = hdf5.inner(file, "obs", ask)
        there = list((obs.dtype.names or ()) if hasattr(obs, "shape") else obs)
    wanted = [name for name in (own, ask.label) if name is not None]
    for name in ask.keep:
        matches = [other for other in there if fnmatchcase(other, name)]
        wanted += [name] if name in there or not matches else matches
    wanted += [name for name in ask.optional if name in there]
    return list(dict.fromkeys(wanted))


def _index(file: Any, ask: Ask) -> str | None:
    """Return the column of obs that names the rows, where there is one."""
    if "obs" not in file:
        return None
    obs = hdf5.inner(file, "obs", ask)
    if hasattr(obs, "shape"):  # a table of old: the first field is the index
        return str(obs.dtype.names[0]) if obs.dtype.names else None
    name = _string(obs.attrs.get("_index", "_index"))
    return name if name in obs else None


def _shape(X: Any, ask: Ask) -> tuple[int, int]:
    if hasattr(X, "shape"):
        hdf5.check_rows(X, "X", ask)
        return int(X.shape[0]), int(X.shape[1])
    shape = tuple(int(i) for i in X.attrs.get("shape", X.attrs.get("h5sparse_shape", ())))
    if len(shape) != 2 or min(shape) < 1:
        raise FileError(f"{ask.path}: X has shape {shape}, not rows and columns.")
    return shape[0], shape[1]


def _matrix(
    path: Path, X: Any, shape: tuple[int, int], features: Sequence[int] | None, ask: Ask
) -> Source:
    """Return rows of X: in memory where they fit, else where they lie, if that goes by rows."""
    if hasattr(X, "shape"):
        return hdf5.dense(path, X, ask, features)
    kind = _string(X.attrs.get("encoding-type", X.attrs.get("h5sparse_format", b"")))
    kind = kind.removesuffix("_matrix")
    if kind not in ("csr", "csc"):
        raise FileError(f"{ask.path}: X is encoded as {kind!r}, which is not known.")
    parts = [hdf5.inner(X, name, ask) for name in ("data", "indices", "indptr")]
    needed = 3 * sum(part.size * part.dtype.itemsize for part in parts)
    if kind == "csr" and needed > get_config().budget:
        at = None if features is None else np.asarray(features, np.int64)
        return H5Rows(path, X, shape, ask, at)
    require_room(ask, needed)
    data, indices, indptr = (part[:] for part in parts)
    source = SparseSource(real_sparse(ask, compressed(kind, data, indices, indptr, shape)))
    return source if features is None else chosen(source, features)


def _names(file: Any, which: str, count: int, ask: Ask) -> list[str]:
    """Return the names of var, made unique as AnnData does where some are there twice."""
    group = hdf5.inner(file, which, ask)
    if hasattr(group, "shape"):  # a table of old: the first field is the index
        values = group[:][group.dtype.names[0]]
    else:
        values = hdf5.inner(group, _string(group.attrs.get("_index", "_index")), ask)[:]
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
    obs = hdf5.inner(file, "obs", ask)
    if hasattr(obs, "shape"):
        find(name, {key: i for i, key in enumerate(obs.dtype.names or ())}, ask)
        values = obs[:][name]
    else:
        find(name, {key: i for i, key in enumerate(obs) if not key.startswith("__")}, ask)
        values = _column(hdf5.inner(obs, name, ask), obs, ask)
    if values.shape != (n,):
        raise FileError(f"{ask.path}: {name!r} of obs has shape {values.shape}, not ({n},).")
    return values if values.dtype.kind in "fiub" else _texts(values)


def _column(found: Any, obs: Any, ask: Ask) -> Values:
    if not hasattr(found, "shape"):
        if "codes" in found:
            codes = hdf5.inner(found, "codes", ask)[:]
            return _decoded(codes, hdf5.inner(found, "categories", ask)[:])
        values, mask = hdf5.inner(found, "values", ask)[:], hdf5.inner(found, "mask", ask)[:]
        return np.where(mask, np.nan, values) if mask.any() else values
    name = found.name.rsplit("/", 1)[-1]
    if "__categories" in obs and name in obs["__categories"]:  # as AnnData wrote until 0.7
        return _decoded(found[:], hdf5.inner(hdf5.inner(obs, "__categories", ask), name, ask)[:])
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
