"""Rows in a Matrix Market file, `.mtx`: sparse, or dense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from mercer.sources.base import Source
from mercer.sources.errors import FileError, decoding
from mercer.sources.files.arrays import numbered, real_sparse, require_room
from mercer.sources.files.roles import Ask
from mercer.sources.files.table import Table
from mercer.sources.memory import ArraySource
from mercer.sources.sparse import SparseSource


def read(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read a Matrix Market file; the sizes in its header are checked first."""
    import scipy.io

    with decoding(ask.path, "Matrix Market"):
        rows, columns, entries, layout, field, symmetry = scipy.io.mminfo(path)
        there = path.stat().st_size
        # An entry takes a digit and a space at least; of coordinates, two of each.
        each = 2 if layout == "array" else 4
        stored = entries // 2 if symmetry != "general" and layout == "array" else entries
        if min(rows, columns, entries) < 0 or each * stored > there + 2 * each:
            raise FileError(
                f"{ask.path} says that it holds {entries} entries, and has {there} bytes. "
                f"It was cut short: write it again."
            )
        if field == "complex":
            raise FileError(f"{ask.path} holds complex numbers, not real ones.")
        require_room(ask, 48 * entries + 8 * max(rows, columns))
        matrix = scipy.io.mmread(path, spmatrix=False)
        source: Source
        if hasattr(matrix, "tocsr"):
            source = SparseSource(real_sparse(ask, matrix))
        else:
            source = ArraySource(np.asarray(matrix))
        tick(there)
        return numbered(ask, source)
