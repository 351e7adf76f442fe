"""Tasks on the current Dask scheduler, and its workers."""

from __future__ import annotations

import contextlib
import functools
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import dask
import dask.callbacks
import dask.local
from dask.system import CPU_COUNT

from mercer import progress
from mercer.config import get_config

task = functools.partial(dask.delayed, pure=False)
"""Makes a function whose call is a task."""


def constant(value: Any) -> Any:
    """Return a task for a value: every worker receives it once."""
    return dask.delayed(value, name=f"mercer-constant-{uuid.uuid4().hex}", traverse=False)


def tree_reduce(parts: Sequence[Any], combine: Callable[[list[Any]], Any], fan: int) -> Any:
    """Return the task that combines all parts, `fan` neighbors at a time."""
    while len(parts) > 1:
        groups = [parts[i : i + fan] for i in range(0, len(parts), fan)]
        parts = [combine([*group]) if len(group) > 1 else group[0] for group in groups]
    return parts[0]


def compute(
    tasks: Sequence[Any],
    tick: progress.Tick = lambda steps: None,
    steps: Mapping[str, int] | None = None,
) -> tuple[Any, ...]:
    """Return the results of tasks; report the steps of each key, on a cluster at the end."""
    left = dict(steps or {})
    callback = dask.callbacks.Callback(posttask=lambda key, *_: tick(left.pop(key, 0)))
    with no_size_warning(), callback:
        results = tuple(dask.compute(*tasks))
    tick(sum(left.values()))
    return results


@contextlib.contextmanager
def no_size_warning() -> Iterator[None]:
    """Silence the warning about a large graph: a basis may be large."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        yield


class Workers(NamedTuple):
    """The workers of the scheduler; the current process counts as one."""

    memory: int
    """Memory limit of all workers together, in bytes."""
    worker_memory: int
    """Memory limit of one worker."""
    worker_tasks: int
    """Number of tasks that share it."""
    tasks: int
    """Number of tasks that run at a time on all workers."""


def current_workers() -> Workers:
    """Return the workers of the current scheduler."""
    scheduler, memory = dask.base.get_scheduler(), get_config().budget
    client: Any = getattr(scheduler, "__self__", None)
    if not hasattr(client, "scheduler_info"):
        tasks = int(dask.config.get("num_workers", None) or CPU_COUNT)
        return Workers(memory, memory, tasks, 1 if scheduler is dask.local.get_sync else tasks)
    each = client.scheduler_info()["workers"].values()
    memory = min([memory, *(int(w["memory_limit"]) // 2 for w in each if w.get("memory_limit"))])
    threads = [int(count) for count in client.nthreads().values()] or [1]
    return Workers(memory * len(threads), memory, max(threads), sum(threads))
