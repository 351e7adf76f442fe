"""The command line: how soon it answers, and a CSV of 1000000×50 fitted in 1 GiB.

Peak memory is all that the process holds, Python and its libraries included.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.data import chunks
from benchmarks.harness import MIB, Row, say

REPEATS = 5
_COMMAND = [sys.executable, "-m", "mercer"]


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Time --help, and a fit of a large CSV; watch its memory."""
    n, d = (20_000, 50) if quick else (1_000_000, 50)
    times = [_watched(["--help"])[0] for _ in range(repeats or REPEATS)]
    helped = Row("mercer --help", "time", statistics.median(times), unit="s", must=0.4)
    helped.times = {"mercer --help": times}
    case = f"mercer fit, CSV of {n}×{d}, --memory 1GiB"
    with tempfile.TemporaryDirectory() as folder:
        path, model = Path(folder) / "rows.csv", Path(folder) / "rows.mercer"
        _write(path, n, d)
        say(f"CSV of {path.stat().st_size / MIB:.0f} MiB")
        asked = ["fit", str(path), "--components", "10", "--memory", "1GiB", "-o", str(model)]
        seconds, peak = _watched(asked)
        note = f"file {path.stat().st_size / MIB:.0f} MiB"
    rows = [helped, Row(case, "time", seconds, unit="s", note=note)]
    if peak is not None:
        rows.append(Row(case, "peak memory", peak, unit="MiB", must=1024 * MIB))
    return rows


def _write(path: Path, n: int, d: int) -> None:
    """Write rows of numbers, some at a time."""
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(d, d)) / np.arange(1, d + 1)
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(f"x{i}" for i in range(d)) + "\n")
        for part in chunks(n, 20_000):
            rows = rng.normal(size=(part.stop - part.start, d)) @ mix
            np.savetxt(file, rows, fmt="%.7g", delimiter=",")


def _watched(arguments: list[str]) -> tuple[float, int | None]:
    """Run the command; return its seconds and, where the system tells, its peak in bytes."""
    start, peak = time.perf_counter(), None
    process = subprocess.Popen(
        [*_COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None:
        peak = _peak(process.pid) or peak
        time.sleep(0.005)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise RuntimeError(f"mercer {' '.join(arguments)} failed: {process.communicate()[1]}")
    return seconds, peak


def _peak(pid: int) -> int | None:
    """Return the most that a process has held so far."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
