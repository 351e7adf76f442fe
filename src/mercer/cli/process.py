"""The process of a command: signals that stop it, and its memory."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

MEMORY = Path("/proc/self/status")
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_SIGNALS = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
# Seconds after a signal in which others are ignored.
IMPATIENT = 1.0

_received: list[int] = []


def signal_code() -> int | None:
    """Return the exit code of the signal that came, as shells count it, or None."""
    return 128 + _received[-1] if _received else None


@contextlib.contextmanager
def interrupts() -> Iterator[None]:
    """Raise `KeyboardInterrupt` at a signal, so that cleanup runs; ignore others soon after it.

    A second Ctrl-C would interrupt the cleanup after the first; a later one counts, because a
    callback may have swallowed the exception. At the end all signals are ignored: the process is
    about to exit.
    """
    signals = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]  # nohup
    last = float("-inf")

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal last
        before, last = last, time.monotonic()
        if last - before >= IMPATIENT:
            _received.append(number)
            raise KeyboardInterrupt

    _handle(signals, stop)
    try:
        yield
    finally:
        _handle(signals, signal.SIG_IGN)


def _handle(signals: list[Any], handler: Any) -> None:
    for each in signals:
        signal.signal(each, handler)


def reset_peak() -> None:
    """Return freed memory to the system, and reset the peak that it counts."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        (MEMORY.parent / "clear_refs").write_text("5")


def process_memory(key: str) -> Any:
    """Return bytes of this process, VmRSS now, VmHWM at the peak; None except on Linux.

    Not ru_maxrss, which a child process inherits from its parent.
    """
    found = re.search(rf"{key}:\s*(\d+)", MEMORY.read_text()) if MEMORY.exists() else None
    return None if found is None else 1024 * int(found[1])
