"""The recorder of a fit that can be resumed: every pass over the rows reports to it.

Below the estimators nothing knows what it does with the passes.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any


class PassRecord(ABC):
    """The record of one pass over the rows."""

    finished = False
    """Whether the pass was recorded to its end: its state is restored."""

    @abstractmethod
    def begin(self, parts: Sequence[Any]) -> list[int]:
        """Restore the state of each worker; return the number of steps that each had done."""

    @abstractmethod
    def step(self, worker: int) -> AbstractContextManager[None]:
        """Return the context of one step of a worker: the state is saved between steps only."""


class Recorder(ABC):
    """Records the passes of a fit."""

    @abstractmethod
    def record(self, state: Any, layout: str) -> AbstractContextManager[PassRecord | None]:
        """Record a pass, unless it is a part of another.

        `layout` says how the rows are divided: a pass is resumed with the same layout only.
        """

    @abstractmethod
    def seed(self, drawn: int) -> int:
        """Return the seed that the fit was begun with; `drawn` if it begins now."""


_recorder: ContextVar[Recorder | None] = ContextVar("mercer_recorder", default=None)


def recorder() -> Recorder | None:
    """Return the recorder of the current fit; None if it is not recorded."""
    return _recorder.get()


@contextlib.contextmanager
def recorded_by(new: Recorder | None) -> Iterator[None]:
    """Record the passes made inside; None records nothing."""
    token = _recorder.set(new)
    try:
        yield
    finally:
        _recorder.reset(token)


def record_pass(state: Any, layout: str) -> AbstractContextManager[PassRecord | None]:
    """Record a pass over the rows, if the fit has a recorder."""
    current = _recorder.get()
    return contextlib.nullcontext() if current is None else current.record(state, layout)


def seed(drawn: int) -> int:
    """Return the seed of the fit that is resumed; `drawn` if none is."""
    current = _recorder.get()
    return drawn if current is None else current.seed(drawn)
