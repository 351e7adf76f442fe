"""Missing entries of every column."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.data.fold import Block, Fold


class Missing(Fold):
    """Counts the missing entries of every column."""

    label = "missing values"

    def __init__(self, width: int) -> None:
        self.count = np.zeros(width, np.int64)

    def add(self, block: Block) -> None:
        rows = block.rows
        if hasattr(rows, "tocsr"):
            at = rows.indices[np.isnan(rows.data)]
            if len(at):
                self.count += np.bincount(at, minlength=len(self.count))
        else:
            self.count += np.isnan(rows).sum(axis=0)

    def merge(self, other: Self) -> None:
        self.count += other.count

    def spawn(self) -> Self:
        return type(self)(len(self.count))

    def arrays(self) -> dict[str, Any]:
        return {"count": self.count}

    def restore(self, arrays: dict[str, Any]) -> None:
        self.count[:] = arrays["count"]
