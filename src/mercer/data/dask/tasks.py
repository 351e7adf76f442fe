"""Tasks on the current scheduler: how they are made, computed, and heard of."""

from __future__ import annotations

import contextlib
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dask
import dask.callbacks
import dask.local
from dask.system import CPU_COUNT

from mercer import progress
from mercer.config import get_config


def task(function: Any) -> Any:
    """Return a function whose call is a task."""
    return dask.delayed(function, pure=False)


def sent(thing: Any) -> Any:
    """Return a thing as a task of its own: workers get it once, and again if they are lost."""
    return dask.delayed(thing, name=f"mercer-errand-{uuid.uuid4().hex}", traverse=False)


def reduced(parts: Sequence[Any], join: Callable[[list[Any]], Any], fan: int) -> Any:
    """Return the task that joins all parts, neighbours first, so many at a time."""
    parts = list(parts)
    while len(parts) > 1:
        some = (parts[i : i + fan] for i in range(0, len(parts), fan))
        parts = [join(group) if len(group) > 1 else group[0] for group in some]
    return parts[0]


def compute(tasks: Sequence[Any]) -> tuple[Any, ...]:
    """Return what tasks give, computed on the current scheduler."""
    with quiet():
        return tuple(dask.compute(*tasks))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Leave out the warning that an errand is large: a basis may be."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        yield


def worker() -> tuple[int, int]:
    """Return the bytes that may be held where tasks run, and how many tasks share them."""
    room, client = get_config().budget, _client()
    if client is None:
        return room, int(dask.config.get("num_workers", None) or CPU_COUNT)
    workers = client.scheduler_info()["workers"].values()
    limits = [int(each["memory_limit"]) // 2 for each in workers if each.get("memory_limit")]
    return min([room, *limits]), max([1, *(int(each["nthreads"]) for each in workers)])


def everywhere() -> int:
    """Return the bytes that may be held by all workers together; where there are none, here."""
    client = _client()
    return worker()[0] * (1 if client is None else max(1, len(client.nthreads())))


def at_once() -> int:
    """Return how many tasks run at a time, on all workers together."""
    client = _client()
    if client is not None:
        return max(1, sum(int(count) for count in client.nthreads().values()))
    return 1 if dask.base.get_scheduler() is dask.local.get_sync else worker()[1]


def _client() -> Any:
    """Return the client of a cluster; None where tasks run in this process, or its children."""
    client: Any = getattr(dask.base.get_scheduler(), "__self__", None)
    return client if hasattr(client, "scheduler_info") else None


class Ticks(dask.callbacks.Callback):  # type: ignore[misc]
    """Tells of tasks that are done; a cluster tells nothing before all are."""

    def __init__(self, tick: progress.Tick, sizes: dict[str, int]) -> None:
        super().__init__()
        self.tick, self.left = tick, dict(sizes)

    def _posttask(self, key: Any, *_: Any) -> None:
        self.tick(self.left.pop(key, 0))

    def __exit__(self, kind: Any, *error: Any) -> None:
        super().__exit__(kind, *error)
        if kind is None:
            self.tick(sum(self.left.values()))
