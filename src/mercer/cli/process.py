"""The process of a command: signals that stop it, and its memory.

The first signal raises an exception, which cleans up.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

MEMORY = Path("/proc/self/status")
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_SIGNALS = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
# Seconds between checks whether the exception was lost, and checks in a row that must say so.
CHECK_SECONDS, CHECKS = 0.1, 3

_received: list[int] = []
_lost = threading.Event()


class Interrupted(KeyboardInterrupt):
    """A signal stopped the command."""


def signal_code() -> int | None:
    """Return the exit code of the signal that came, as shells count it, or None."""
    return 128 + _received[-1] if _received else None


@contextlib.contextmanager
def interrupts() -> Iterator[None]:
    """Raise `Interrupted` at the first signal, and ignore further ones.

    A second Ctrl-C would interrupt the cleanup after the first. At the end all signals are
    ignored: the process is about to exit.
    """
    signals = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]  # nohup
    over = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if _received and not _lost.is_set():
            return
        if not _received:
            threading.Thread(target=_watch, args=(over,), daemon=True).start()
        _lost.clear()
        _received.append(number)
        raise Interrupted

    def unraisable(lost: Any) -> None:  # in a callback; `_watch` sends the signal again
        if not isinstance(lost.exc_value, Interrupted):
            default_hook(lost)

    _handle(signals, stop)
    default_hook, sys.unraisablehook = sys.unraisablehook, unraisable
    try:
        yield
    finally:
        over.set()
        _handle(signals, signal.SIG_IGN)
        sys.unraisablehook = default_hook


def _watch(over: threading.Event) -> None:
    """Send the signal again if a callback or an `except:` of an import lost the exception.

    During the cleanup, the main thread is handling it.
    """
    main, missed = int(threading.main_thread().ident or 0), 0
    while not over.wait(CHECK_SECONDS):
        missed = 0 if handles_interrupt(sys._current_exceptions().get(main)) else missed + 1
        if missed == CHECKS:
            missed = 0
            _lost.set()
            if hasattr(signal, "pthread_kill"):  # a waiting thread hears no other's signal
                signal.pthread_kill(main, _received[-1])
            else:
                signal.raise_signal(_received[-1])


def handles_interrupt(current: Any) -> bool:
    """Return whether the exception that a thread handles is, or was caused by, `Interrupted`."""
    error: BaseException | None = current[1] if isinstance(current, tuple) else current  # 3.11
    while error is not None and not isinstance(error, Interrupted):
        error = error.__context__
    return error is not None


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


def process_memory(key: str) -> int:
    """Return bytes of this process: VmRSS now, VmHWM at the peak.

    Not ru_maxrss, which a child process inherits from its parent.
    """
    for line in MEMORY.read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{MEMORY} has no {key}")
