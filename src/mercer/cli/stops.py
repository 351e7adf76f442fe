"""Ctrl-C and its like: an exception, once, so that what was begun is cleared away."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

# Of an ended process the shell tells 128 and the number of the signal.
_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]

_last: list[int] = []


class Stopped(KeyboardInterrupt):
    """The work was stopped from outside."""


def stopped() -> int | None:
    """Return the exit code of the signal that came, or None."""
    return 128 + _last[0] if _last else None


@contextlib.contextmanager
def stops() -> Iterator[None]:
    """Raise `Stopped` at the first signal that asks to stop; those after it are not heard.

    A second Ctrl-C would end the clearing away of what the first one has broken off.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        _last.append(number)
        raise Stopped

    before = {each: signal.getsignal(each) for each in _SIGNALS}
    for each, handler in before.items():
        if handler is not signal.SIG_IGN:  # as nohup has it
            signal.signal(each, stop)
    try:
        yield
    finally:
        if not _last:
            for each, handler in before.items():
                signal.signal(each, handler)
