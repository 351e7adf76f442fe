"""Tables of text."""

from __future__ import annotations

from collections.abc import Sequence


def table(lines: Sequence[Sequence[str]], markdown: bool = False) -> str:
    """Return lines of cells, the heading first, in columns: plain or Markdown."""
    if markdown:  # a bar within a cell would begin another
        lines = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [
        [cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines
    ]
    if not markdown:
        return "\n".join("  ".join(line).rstrip() for line in padded)
    padded.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)
