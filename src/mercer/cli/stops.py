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
# Seconds between two looks at whether a stop was lost; so many in a row say that it was.
_LOOK, _LOOKS = 0.1, 3

_last: list[int] = []
_lost = threading.Event()


class Stopped(KeyboardInterrupt):
    """The work was stopped from outside."""


def stopped() -> int | None:
    """Return the exit code of the signal that came, as shells count it, or None."""
    return 128 + _last[-1] if _last else None


@contextlib.contextmanager
def stops() -> Iterator[None]:
    """Raise `Stopped` at the first signal that asks to stop; those after it do nothing.

    A second Ctrl-C would end the clearing away of what the first one has broken off. When all is
    done none is heard: the process is about to end.
    """
    heard = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]  # nohup
    over = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if _last and not _lost.is_set():
            return
        if not _last:
            threading.Thread(target=_watch, args=(over,), daemon=True).start()
        _lost.clear()
        _last.append(number)
        raise Stopped

    def dropped(what: Any) -> None:  # in a callback; it comes again
        if not isinstance(what.exc_value, Stopped):
            before(what)

    _listen(heard, stop)
    before, sys.unraisablehook = sys.unraisablehook, dropped
    try:
        yield
    finally:
        over.set()
        _listen(heard, signal.SIG_IGN)
        sys.unraisablehook = before


def _watch(over: threading.Event) -> None:
    """Stop again where the exception was dropped: by a callback, or by an import's `except:`.

    While what was begun is cleared away the main thread handles it.
    """
    main, missed = int(threading.main_thread().ident or 0), 0
    while not over.wait(_LOOK):
        missed = 0 if _stopping(sys._current_exceptions().get(main)) else missed + 1
        if missed == _LOOKS:
            missed = 0
            _lost.set()
            _send(main, _last[-1])


def _stopping(found: Any) -> bool:
    """Tell whether the exception that a thread handles is `Stopped`, or came of one."""
    handled: BaseException | None = found[1] if isinstance(found, tuple) else found  # Python 3.11
    while handled is not None and not isinstance(handled, Stopped):
        handled = handled.__context__
    return handled is not None


def _send(thread: int, number: int) -> None:
    """Send a signal to a thread: one that waits hears no other's."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(thread, number)
    else:
        signal.raise_signal(number)


def _listen(signals: list[Any], handler: Any) -> None:
    for each in signals:
        signal.signal(each, handler)
