"""A file of 8 GB, float32, in 1 GiB: PCA k=20 and Subset m=500, at the speed of disk or memory.

The bound is the slower of two: reading from the disk all bytes that the fit reads, and the same
fit of the same rows in memory. The file leaves the page cache before every timing, as far as the
system lets it. ``python -m benchmarks.beyond 2`` takes a file of 2 GB.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil

import mercer
from benchmarks import data, report
from benchmarks.harness import MIB, Row, say, skipped
from benchmarks.peak import growth
from mercer.methods import Subset

_BUDGET = "1GiB"
_WIDTH = 512
_LARGEST = 1.2 * 2**30
_FITS = {
    "PCA k=20": lambda: mercer.PCA(20),
    "Subset m=500": lambda: mercer.KernelPCA(
        20, kernel="rbf", gamma=1e-3, method=Subset(500), random_state=0
    ),
}


def run(repeats: int | None = None, quick: bool = False, gigabytes: float = 8.0) -> list[Row]:
    """Make the file, fit it in processes of their own, and remove it."""
    with tempfile.TemporaryDirectory() as folder:
        # A third of the room: a run must not fill the disk of others.
        size = min(gigabytes * 1e9, shutil.disk_usage(folder).free / 3)
        n = 5_000 if quick else int(size) // (4 * _WIDTH)
        path = Path(folder) / "rows.npy"
        say(f"writing {n}×{_WIDTH} float32")
        data.write_rows(path, n, _WIDTH)
        return [row for name in _FITS for row in _rows(name, path, n, repeats or 1)]


def _rows(name: str, path: Path, n: int, repeats: int) -> list[Row]:
    case = f"beyond {n}×{_WIDTH} float32, {name}"
    try:
        runs = [growth("benchmarks.beyond:ours", name, str(path)) for _ in range(repeats)]
    except OSError as error:
        return [skipped(case, error)]
    seconds = sorted(run["notes"]["seconds"] for run in runs)[repeats // 2]
    read, rate = runs[0]["notes"]["read"], disk_rate(path)
    memory, part = _in_memory(name, path, n)
    bound = max(read / rate, memory)
    which = "disk" if read / rate > memory else "memory"
    whole = "" if part == n else f" (of {part} rows, scaled)"
    return [
        Row(
            case,
            "time",
            seconds,
            bound,
            unit="s",
            must=0.7,
            note=f"bound: {which}; reads {read / path.stat().st_size:.1f} times the file; "
            f"disk {rate / MIB:.0f} MiB/s; in memory {memory:.1f} s{whole}",
            times={"file": [run["notes"]["seconds"] for run in runs], "memory": [memory]},
        ),
        Row(
            case,
            "memory growth",
            max(run["growth"] for run in runs),
            unit="MiB",
            must=_LARGEST,
            note=f"budget {_BUDGET}",
        ),
    ]


def ours(name: str, path: str) -> Callable[[], Any]:
    """Return the fit of the file; its notes are the seconds it took and the bytes it read."""
    _warm_up(name)
    forget(path)

    def fit() -> Any:
        before, begin = _read_so_far(), time.perf_counter()
        with mercer.config_context(memory=_BUDGET):
            model = _FITS[name]().fit(path)
        seconds = time.perf_counter() - begin
        values = np.asarray(model.projection_.eigenvalues)
        notes = {"seconds": seconds, "read": _read_so_far() - before, "first": float(values[0])}
        return SimpleNamespace(notes=notes, model=model)

    return fit


def in_memory(name: str, path: str, part: int) -> Callable[[], Any]:
    """Return the fit of the first rows of the file, in memory."""
    _warm_up(name)
    X = np.array(np.load(path, mmap_mode="r")[:part])

    def fit() -> Any:
        begin = time.perf_counter()
        with mercer.config_context(memory=_BUDGET):
            _FITS[name]().fit(X)
        return SimpleNamespace(notes={"seconds": time.perf_counter() - begin})

    return fit


def _in_memory(name: str, path: Path, n: int) -> tuple[float, int]:
    """Return the seconds of the same fit in memory, and of how many rows; fewer are scaled."""
    room = psutil.virtual_memory().available // 2
    part = min(n, room // (4 * _WIDTH))
    found = growth("benchmarks.beyond:in_memory", name, str(path), part)
    return found["notes"]["seconds"] * n / part, part


def disk_rate(path: Path) -> float:
    """Return the bytes a second at which the file is read from beginning to end."""
    forget(path)
    buffer = bytearray(16 * MIB)
    begin = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return path.stat().st_size / (time.perf_counter() - begin)


def forget(path: str | Path) -> None:
    """Let the file leave the page cache, where the system has a way to say so."""
    if hasattr(os, "posix_fadvise"):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _warm_up(name: str) -> None:
    _FITS[name]().fit(np.random.default_rng(0).standard_normal((2000, 30)).astype(np.float32))


def _read_so_far() -> int:
    """Return the bytes that this process has read from files, cached or not."""
    return int(psutil.Process().io_counters().read_chars)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gigabytes", nargs="?", type=float, default=8.0)
    print(report.table(run(gigabytes=parser.parse_args().gigabytes)))
