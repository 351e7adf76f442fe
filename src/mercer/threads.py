"""Threads over blocks: as many workers as BLAS may use threads, each with BLAS at one.

Two workers, each with its own blocks and a single-threaded BLAS, beat one loop over
blocks with a threaded BLAS, whose calls are too small to share well.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator
from typing import Any

_lock = threading.Lock()
_depth = 0
_limits: Any = None


@functools.cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def workers() -> int:
    """How many threads a computation may use: what BLAS may, at most one a core."""
    if _depth:  # inside `serial_blas` BLAS says 1, which is our own doing
        return 1
    available = getattr(os, "sched_getaffinity", None)
    cores = len(available(0)) if available else os.cpu_count() or 1
    pools = [pool.num_threads for pool in _controller().lib_controllers]
    return max(1, min([int(cores), *(int(pool) for pool in pools)]))


@contextlib.contextmanager
def serial_blas() -> Iterator[None]:
    """Keep BLAS at one thread; may nest, and may be entered from several threads."""
    global _depth, _limits
    with _lock:
        if _depth == 0:
            _limits = _controller().limit(limits=1)
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _limits.restore_original_limits()
