"""Growth of peak memory in one fit, in a fresh process: ``python -m benchmarks.peak``."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli import process_memory, reset_peak


def growth(task: str, *arguments: Any) -> dict[str, Any]:
    """Return what a fit adds to the resident memory, and the size of what it returns.

    Parameters
    ----------
    task : str
        "module:function". The function makes the data in the fresh process and returns the
        fit, a callable that returns the model.
    *arguments
        Of the function; whatever JSON can hold.

    Returns
    -------
    dict
        Bytes: "growth" (peak in the fit less what was resident before), "returned" (arrays
        of the model, which are part of the growth), "before" (resident before). And "notes",
        what the model has under that name.
    """
    if not Path("/proc/self/status").exists():
        raise OSError("peak memory is read from /proc, which this system lacks")
    command = [sys.executable, "-m", "benchmarks.peak", task, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{task}{arguments} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(fit: Callable[[], Any]) -> dict[str, Any]:
    """Run a fit in this process and return what `growth` does."""
    reset_peak()
    before = process_memory("VmRSS")
    model = fit()
    # Where the peak could not be reset it may be that of making the data: growth is then
    # overstated, never understated.
    peak = process_memory("VmHWM")
    figures = {"growth": peak - before, "returned": returned(model), "before": before}
    return {**figures, "notes": getattr(model, "notes", None)}


def returned(model: Any) -> int:
    """Return the bytes of the arrays that a fitted model holds; views count once."""
    parts = [model, getattr(model, "projection_", None), getattr(model, "certificate_", None)]
    owners = {}
    for part in parts:
        for array in vars(part).values() if hasattr(part, "__dict__") else ():
            while isinstance(getattr(array, "base", None), np.ndarray):
                array = array.base
            if isinstance(array, np.ndarray):
                owners[id(array)] = array.nbytes
    return sum(owners.values())


if __name__ == "__main__":
    module, function = sys.argv[1].split(":")
    prepare = getattr(importlib.import_module(module), function)
    print(json.dumps(measure(prepare(*json.loads(sys.argv[2])))))
