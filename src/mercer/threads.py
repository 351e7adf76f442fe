"""Threads over blocks: as many workers as BLAS may use threads, each with BLAS at one.

Two workers, each with its own blocks and a single-threaded BLAS, beat one loop over
blocks with a threaded BLAS, whose calls are too small to share well.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any, TypeVar

from mercer import progress

S = TypeVar("S")
T = TypeVar("T")
# Fewer rows for a worker cost more to hand over than to compute.
_FEWEST = 1024
_lock = threading.Lock()
_worker = threading.local()
_depth = 0
_limits: Any = None
_allowed = 1


@functools.cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def workers() -> int:
    """Return the number of threads to use: as many as BLAS, at most one per core.

    One inside a worker; inside `serial_blas`, as many as before it.
    """
    if getattr(_worker, "busy", False):
        return 1
    if _depth:
        return _allowed
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    for library in _controller().lib_controllers:
        count = min(count, int(library.num_threads))
    return max(1, count)


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """Return the worker threads, which are reused: starting one takes a millisecond."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="mercer")


def shares(n: int) -> list[slice]:
    """Cut n rows into consecutive parts, one for each worker."""
    count = max(1, min(workers(), n // _FEWEST))
    ends = [n * i // count for i in range(count + 1)]
    return [slice(start, stop) for start, stop in pairwise(ends)]


def in_threads(work: Callable[[S], T], parts: Sequence[S]) -> list[T]:
    """Return the results of some work for each part, one part to a thread, BLAS at one thread."""
    if len(parts) == 1:
        return [work(parts[0])]

    run = working()(work)
    with serial_blas():
        others = []
        for part in parts[1:]:  # with the caller's settings
            others.append(_pool().submit(contextvars.copy_context().run, run, part))
        try:
            return [run(parts[0]), *map(Future.result, others)]
        finally:
            wait(others)


def _forked() -> None:
    """Reset in a forked process, which has no threads of its parent."""
    global _lock, _depth
    _pool.cache_clear()
    _lock, _worker.busy = threading.Lock(), False
    if _depth:
        _depth = 0
        _limits.restore_original_limits()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@contextlib.contextmanager
def working() -> Iterator[None]:
    """Mark this thread as a worker: what runs in it starts no others, and reports no progress."""
    before, _worker.busy = getattr(_worker, "busy", False), True
    try:
        with progress.context(progress.listening, ()):  # the task as a whole was announced
            yield
    finally:
        _worker.busy = before


@contextlib.contextmanager
def serial_blas() -> Iterator[None]:
    """Keep BLAS at one thread; may nest, and may be entered from several threads.

    Worth holding over a whole iteration: the threads of BLAS spin for 25 ms after every call.
    """
    global _depth, _limits, _allowed
    with _lock:
        if _depth == 0:
            _allowed = workers()
            _limits = _controller().limit(limits=1)
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _limits.restore_original_limits()
