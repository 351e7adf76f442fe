"""Blocks read ahead: while one is worked on, a thread reads the next."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Span = tuple[int, int]


def ahead(read: Callable[[int, int], Any], spans: Sequence[Span]) -> Iterator[Any]:
    """Yield read(start, stop) for every span, in order; one is read while another is used.

    At most one span is read ahead, so two are in memory. What a read raises is raised where its
    rows are due. The thread ends with the iteration, however that ends: a read under way is
    waited for, the next is not begun.
    """
    if len(spans) < 2:
        yield from (read(*span) for span in spans)
        return
    # Settings hold in the thread, too; a read that could not be told the budget would break it.
    context = contextvars.copy_context()

    def fetch(span: Span) -> Any:
        return context.run(read, *span)

    with ThreadPoolExecutor(1, thread_name_prefix="mercer-read") as reader:
        coming = reader.submit(fetch, spans[0])
        for span in spans[1:]:
            rows = coming.result()
            coming = reader.submit(fetch, span)
            yield rows
            del rows  # or it would live on while the next is waited for
        yield coming.result()
