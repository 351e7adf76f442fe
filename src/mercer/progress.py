"""Progress of a fit: every pass over the rows is a task, shown as a bar or to a listener.

A recorder keeps the passes of a fit that can be resumed; below the estimators nothing knows what
it does with them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from mercer.config import get_config

Tick = Callable[[int], None]

# Seconds without progress that people accept.
PATIENCE = 1.0


class Listener(ABC):
    """Receives the progress of every task: a bar, or a bridge to another library's callbacks."""

    @abstractmethod
    def begin(self, label: str, total: int) -> Any:
        """Begin a task of `total` steps; return its handle."""

    def advance(self, handle: Any, steps: int) -> None:  # noqa: B027
        """Report `steps` more steps; not every listener follows them."""

    @abstractmethod
    def end(self, handle: Any) -> None:
        """End a task."""


listening: ContextVar[tuple[Listener, ...]] = ContextVar("mercer_listeners", default=())
"""The listeners of the current session."""


class Bars(Listener):
    """Bars in the terminal, with the time left.

    Tasks of one name get a bar after `patience` seconds; `transient` bars go at the end.
    """

    def __init__(self, patience: float = 0.0, *, transient: bool = False) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        class Late(Progress):
            """A display of tasks that have taken longer than the patience."""

            def get_renderables(self) -> Any:
                now = time.monotonic()
                shown = [task for task in self.tasks if now - starts.get(task.id, now) >= patience]
                return [self.make_tasks_table(shown)] if shown else []

        self.bars: dict[str, tuple[Any, int]] = {}
        self.starts = starts = {}  # type: dict[Any, float]
        self.patience = patience
        self.display = Late(
            TextColumn("{task.description:<28}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(stderr=True),
            transient=transient,
        )

    def begin(self, label: str, total: int) -> Any:
        """Begin a bar; tasks of the same name share one, which shows their number."""
        handle, times = self.bars.get(label, (None, 0))
        if handle is None:
            handle = self.display.add_task(label, total=total)
        else:
            text = f"{label} {times + 1}"
            self.display.reset(handle, total=total, description=text, visible=True)
        self.bars[label] = handle, times + 1
        self.starts.setdefault(handle, time.monotonic())
        return handle

    def advance(self, handle: Any, steps: int) -> None:
        self.display.advance(handle, steps)

    def end(self, handle: Any) -> None:
        """Fill the bar; hide it if the task was quick."""
        task = next(task for task in self.display.tasks if task.id == handle)
        slow = time.monotonic() - self.starts[handle] >= self.patience
        self.display.update(handle, completed=task.total, visible=slow)


class Line(Listener):
    """One line of text, overwritten every few `seconds`, for notebooks that cannot draw bars."""

    def __init__(self, seconds: float = 0.2) -> None:
        self.seconds = seconds
        self.display: Any = contextlib.nullcontext()
        self.done: dict[str, list[int]] = {}
        self.written = 0.0

    def begin(self, label: str, total: int) -> Any:
        self.done[label] = [0, total]
        self._write(label)
        return label

    def advance(self, handle: Any, steps: int) -> None:
        self.done[handle][0] += steps
        if time.monotonic() - self.written >= self.seconds:
            self._write(handle)

    def end(self, handle: Any) -> None:
        self.done[handle][0] = self.done[handle][1]
        self._write(handle, "\n")

    def _write(self, label: str, last: str = "") -> None:
        steps, total = self.done[label]
        share = 100 * min(steps, total) // max(total, 1)
        sys.stderr.write(f"\r{label:<28} {share:>3} %{last}")
        sys.stderr.flush()
        self.written = time.monotonic()


@contextlib.contextmanager
def session(*listeners: Listener) -> Iterator[None]:
    """Show the tasks begun inside; the outermost session owns the display."""
    outer = listening.get()
    bars: Bars | Line | None = None
    if get_config().progress and not outer:
        from rich.console import Console

        # Bars in a notebook need ipywidgets.
        notebook = Console(stderr=True).is_jupyter
        bars = Line() if notebook and importlib.util.find_spec("ipywidgets") is None else Bars()
    shown = bars.display if bars else contextlib.nullcontext()
    with context(listening, (*outer, *listeners, *([bars] if bars else []))), shown:
        yield


@contextlib.contextmanager
def patient() -> Iterator[None]:
    """Show the tasks begun inside while they run, if slow and if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    bars = Bars(PATIENCE, transient=True)
    with bars.display, session(bars):
        yield


@contextlib.contextmanager
def context(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Set a context variable inside."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def quiet() -> AbstractContextManager[None]:
    """Report no progress inside: it is part of another task."""
    return context(listening, ())


@contextlib.contextmanager
def task(label: str, total: int) -> Iterator[Tick]:
    """Announce a task of `total` steps; yields a function to call with the number of steps done.

    Steps may be reported from several threads: listeners hear one at a time.
    """
    lock, handles = threading.Lock(), []
    for listener in listening.get():
        handles.append((listener, listener.begin(label, total)))

    def tick(steps: int) -> None:
        if handles:
            with lock:
                for listener, handle in handles:
                    listener.advance(handle, steps)

    try:
        yield tick
    finally:
        for listener, handle in handles:
            listener.end(handle)


recorder: ContextVar[Any] = ContextVar("mercer_recorder", default=None)
"""The recorder of the current fit, a `Checkpoint`; None if it is not recorded."""


def recorded_by(new: Any) -> AbstractContextManager[None]:
    """Record the passes made inside; None records nothing."""
    return context(recorder, new)


def record(state: Any, layout: str) -> AbstractContextManager[Any]:
    """Record a pass over the rows, if the fit has a recorder."""
    current = recorder.get()
    return contextlib.nullcontext() if current is None else current.record(state, layout)


def seed(drawn: int) -> int:
    """Return the seed of the fit that is resumed; `drawn` if none is."""
    current = recorder.get()
    return drawn if current is None else int(current.seed(drawn))
