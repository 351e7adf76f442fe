"""Memory that a piece of work takes, as the system counts it; Linux only."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from pathlib import Path

_PROCESS = Path("/proc/self")


def settle() -> None:
    """Give freed memory back, which the work could reuse unseen, and forget the peak so far."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        (_PROCESS / "clear_refs").write_text("5")


def resident(key: str) -> int:
    """Return a figure of /proc/self/status in bytes: VmRSS is now, VmHWM the most so far.

    Not ru_maxrss, which a child process inherits from its parent.
    """
    for line in (_PROCESS / "status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {key}")


def measurable() -> bool:
    """Tell whether this system says how much memory a process holds."""
    return (_PROCESS / "status").exists()
