"""Ctrl-C and its like: an exception, once, so that what was begun is cleared away."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_SIGNALS = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
# Seconds after which a stop that was lost is tried again.
_AGAIN = 0.01

_last: list[int] = []


class Stopped(KeyboardInterrupt):
    """The work was stopped from outside."""


def stopped() -> int | None:
    """Return the exit code of the signal that came, as shells count it, or None."""
    return 128 + _last[-1] if _last else None


@contextlib.contextmanager
def stops() -> Iterator[None]:
    """Raise `Stopped` at the first signal that asks to stop; those after it are not heard.

    A second Ctrl-C would end the clearing away of what the first one has broken off. When all is
    done none is heard: the process is about to end.
    """
    heard = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]  # nohup
    _listen(heard, _stop)
    before, sys.unraisablehook = sys.unraisablehook, _lost(heard, sys.unraisablehook)
    try:
        yield
    finally:
        _listen(heard, signal.SIG_IGN)
        sys.unraisablehook = before


def _stop(number: int, frame: FrameType | None) -> None:
    _listen(_SIGNALS, signal.SIG_IGN)
    _last.append(number)
    raise Stopped


def _send(number: int) -> None:
    """Send a signal to the main thread: one that waits hears no other's."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(int(threading.main_thread().ident or 0), number)
    else:
        signal.raise_signal(number)


def _listen(signals: list[Any], handler: Any) -> None:
    for each in signals:
        signal.signal(each, handler)


def _lost(heard: list[Any], otherwise: Any) -> Any:
    """Return a hook that stops again where the exception was raised in a callback, and dropped."""

    def again(dropped: Any) -> None:
        if not isinstance(dropped.exc_value, Stopped):
            otherwise(dropped)
            return
        _listen(heard, _stop)
        timer = threading.Timer(_AGAIN, _send, [_last[-1]])
        timer.daemon = True
        timer.start()

    return again
