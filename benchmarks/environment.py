"""What runs where: date, versions, machine, threads."""

from __future__ import annotations

import datetime
import functools
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from benchmarks.data import ROOT


def environment() -> dict[str, Any]:
    """Return the date, the versions, the machine and the threads that both sides find."""
    import numpy
    import scipy
    import sklearn

    import mercer

    modules = (mercer, numpy, scipy, sklearn)
    keys = ("user_api", "internal_api", "version", "architecture", "num_threads")
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), "commit": _commit()}
        | {module.__name__: module.__version__ for module in modules},
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "load": load(),
        "threads": [{key: pool.get(key) for key in keys} for pool in threadpool_info()],
    }


def load() -> tuple[float, ...] | None:
    """Return how busy the machine is."""
    return os.getloadavg() if hasattr(os, "getloadavg") else None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@functools.cache  # as it was at first: what a run writes is no change of the code that ran
def _commit() -> str:
    """Return the commit, with a + where files differ from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
