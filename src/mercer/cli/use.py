"""A model, used on rows: what transform, inverse and denoise share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from mercer import load
from mercer.cli import facts, outputs, rows, say, tables
from mercer.cli.errors import UsageError
from mercer.data import Source
from mercer.modelfile import read_header


def written(
    asked: Any,
    voice: say.Voice,
    make: Callable[[Any, Source], tables.Made],
    *,
    scores: bool = False,
) -> say.Result:
    """Write what a model makes of rows, and tell of it."""
    start = time.perf_counter()
    outputs.there(asked.model)
    stdout = str(asked.output) == outputs.STDOUT
    if stdout and asked.json:
        raise UsageError("--json and -o - both want stdout: name a file for one of them.")
    plain = asked.output.suffix.lower() == ".npy"
    for option, wanted in (("--keep", asked.kept), ("--id", asked.id)):
        if wanted and plain:
            raise UsageError(f"{option} is for tables, and a .npy file holds numbers alone.")
    tables.claim(asked.output, force=asked.force, inputs=(asked.data, asked.model))
    origin = read_header(asked.model).origin or {}
    model = load(asked.model)
    if scores:
        table = rows.scored(model, asked, voice, origin)
    else:
        table = rows.fitted(model, asked, voice, origin, keep=asked.kept)
    made, names = make(model, table.source)
    tables.write((made, names), asked.output, {} if plain else rows.beside(table, asked.kept))
    if stdout:
        return say.Result({})
    seconds = time.perf_counter() - start
    result = {
        "model": str(asked.model),
        "rows": made.shape[0],
        "columns": made.shape[1],
        "names": names,
        "id": table.id,
        "seconds": seconds,
        "output": str(asked.output),
    }
    lines = [
        ("read", rows.described(asked.data, table.source)),
        ("written", f"{facts.written(asked.output)}: {made.shape[0]} × {made.shape[1]}"),
        ("time", say.seconds(seconds)),
    ]
    return say.Result(result, [say.pairs(lines)])
