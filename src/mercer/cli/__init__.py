"""The command line: ``mercer fit | plan | transform | …``.

Heavy packages are imported only when a command needs them: ``mercer --help`` answers at once.
"""

from __future__ import annotations

import contextlib
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["main"]

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_SIGNALS = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
_STATUS = Path("/proc/self/status")
# Seconds after a signal in which others are ignored.
IMPATIENT = 1.0

_received: list[int] = []


def main() -> None:
    """Run the command line and end the process with its exit code."""
    code = 130
    try:
        with interrupts():
            from mercer.cli.app import run

            code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while the command line was read, or before
        pass
    sys.exit(signal_code() or code)  # typer has one code for all signals


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
    import ctypes
    import gc

    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        (_STATUS.parent / "clear_refs").write_text("5")


def process_memory(key: str) -> Any:
    """Return bytes of this process, VmRSS now, VmHWM at the peak; None except on Linux.

    Not ru_maxrss, which a child process inherits from its parent.
    """
    found = re.search(rf"{key}:\s*(\d+)", _STATUS.read_text()) if _STATUS.exists() else None
    return None if found is None else 1024 * int(found[1])
