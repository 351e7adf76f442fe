"""The tables: from files in MERCER_DATA where they are real, from generators otherwise."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

ROOT = Path(__file__).resolve().parent.parent
Array = np.ndarray[Any, Any]


def find(name: str) -> Path:
    """Return the path of a data file."""
    folder = Path(os.environ.get("MERCER_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / name).is_file():
        raise FileNotFoundError(f"{name} is not in MERCER_DATA")
    return folder / name


def with_target(arrays: Mapping[str, Array]) -> Array:
    """Return rows with what is to be predicted as a column, or all rows where some are to test."""
    if "X_test" in arrays:
        return np.concatenate([arrays["X"], arrays["X_test"]]).astype(np.float64)
    return np.column_stack([arrays["X"], arrays["y"]]).astype(np.float64)


def tall(dtype: DTypeLike, quick: bool = False) -> tuple[Array, str]:
    """Return 60000×784 rows and what they are: MNIST where there is a copy, else `decaying`."""
    n = 3000 if quick else 60_000
    try:
        pixels = _pixels(find("mnist.npz"))[:n]
    except FileNotFoundError as absent:
        return decaying(n, 784, dtype), f"synthetic: {absent}"
    X = np.empty(pixels.shape, dtype)
    for rows in chunks(len(X)):
        X[rows] = pixels[rows]
    return X, "MNIST"


def digits(n: int, dtype: DTypeLike) -> Array:
    """Return the first rows of MNIST, pixels from 0 to 1."""
    pixels = _pixels(find("mnist.npz"))[:n]
    X = np.empty(pixels.shape, dtype)
    for rows in chunks(len(X)):
        X[rows] = pixels[rows] / 255.0
    return X


@functools.cache
def _pixels(path: Path) -> Array:
    """Unpack a file once: it takes seconds."""
    with np.load(path) as archive:
        return archive["X"]


def wide(quick: bool = False) -> tuple[Array, str]:
    """Return 1400×40000 float32 rows and what they are."""
    shape = (200, 4000) if quick else (1400, 40_000)
    return decaying(*shape, np.float32), "synthetic: singular values fall as i^-0.6"


def decaying(n: int, d: int, dtype: DTypeLike) -> Array:
    """Return G diag(i^-0.6) H + 1, where G and H are standard normal, i = 1 … min(n, d).

    Photographs fall about as fast: a seventh of the axes hold nine tenths of the variance.
    """
    rng = np.random.default_rng(0)
    r = min(n, d)
    scales = np.arange(1, r + 1, dtype=np.float32) ** np.float32(-0.6)
    left = rng.standard_normal((n, r), dtype=np.float32) * scales
    right = rng.standard_normal((r, d), dtype=np.float32)
    X = np.empty((n, d), dtype)
    step = 4096
    for start in range(0, d, step):
        X[:, start : start + step] = left @ right[:, start : start + step]
    X += 1
    return X


def write_rows(path: Path, n: int, d: int) -> None:
    """Write n×d float32 rows of the kind of `decaying` to a .npy file, some rows at a time."""
    rng = np.random.default_rng(0)
    scales = np.arange(1, d + 1, dtype=np.float32) ** np.float32(-0.6)
    mix = scales[:, None] * rng.standard_normal((d, d), dtype=np.float32)
    header = {"descr": "<f4", "fortran_order": False, "shape": (n, d)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for rows in chunks(n):
            size = rows.stop - rows.start
            file.write((rng.standard_normal((size, d), dtype=np.float32) @ mix + 1).tobytes())


def news(quick: bool = False) -> Any:
    """Return TF-IDF of 20 newsgroups, a CSR matrix of 18846×35189."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfTransformer

    parts = np.load(find("20news_counts_csr.npz"))
    counts = csr_matrix(
        (parts["data"], parts["indices"].astype("int32"), parts["indptr"]),
        shape=tuple(parts["shape"]),
    )
    return TfidfTransformer().fit_transform(counts[:2000] if quick else counts)


def cells(quick: bool = False) -> Any:
    """Return AnnData of 2700 cells and 32738 genes: log1p of counts scaled to 10 000 for a cell."""
    import scanpy
    from scipy.sparse import csr_matrix

    parts = np.load(find("pbmc3k_counts_csr.npz"))
    entries = parts["data"].astype(np.float32), parts["indices"].astype("int32"), parts["indptr"]
    counts = csr_matrix(entries, shape=tuple(parts["shape"]))
    adata = scanpy.AnnData(counts[:600] if quick else counts)
    scanpy.pp.normalize_total(adata, target_sum=1e4)
    scanpy.pp.log1p(adata)
    return adata


def promoters() -> list[str]:
    """Return 106 DNA strings of 57 letters."""
    return [str(row) for row in np.load(find("promotergene.npz"))["X"]]


def chunks(n: int, size: int = 4096) -> list[slice]:
    """Return the slices of n rows, so many at a time."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
