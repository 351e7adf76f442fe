"""HTML of results, as notebooks show them: without scripts, readable in light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from mercer.messages import percent

# Colors that differ for every kind of color vision; the last one is transparent.
_COLORS = ("#0072b2", "#e69f00", "rgba(128, 128, 128, 0.25)")
_BAR = "display:flex;height:1.1em;max-width:40em;border-radius:0.3em;overflow:hidden"
_BOX = "display:inline-block;width:0.8em;height:0.8em;border-radius:0.2em;margin-right:0.3em"


def share_bar(parts: Mapping[str, float]) -> str:
    """Return a bar of up to three parts, shares of 1, with its key."""
    bars, keys = [], []
    for (name, share), color in zip(parts.items(), _COLORS, strict=False):
        title = f"{name}: {percent(share)}"
        width = f"width:{100.0 * share:.4f}%"
        bars.append(f'<div title="{title}" style="{width};background:{color}"></div>')
        box = f'<span style="{_BOX};background:{color}"></span>'
        keys.append(f'<span style="margin-right:1.2em;white-space:nowrap">{box}{title}</span>')
    label = escape(", ".join(f"{name} {percent(share)}" for name, share in parts.items()))
    bar = f'<div role="img" aria-label="{label}" style="{_BAR}">{"".join(bars)}</div>'
    return f'{bar}<div style="font-size:0.85em;margin:0.3em 0">{"".join(keys)}</div>'


def as_html(sentence: str, others: Sequence[str] = (), table: str = "") -> str:
    """Return a sentence, further lines below it, and a table that can be opened."""
    html = [f'<p style="max-width:40em;margin:0.3em 0">{escape(sentence)}</p>']
    html += [
        f'<p style="max-width:40em;margin:0.2em 0;opacity:0.75">{escape(line)}</p>'
        for line in others
    ]
    if table:
        html.append(f"<details><summary>Components</summary><pre>{escape(table)}</pre></details>")
    return f"<div>{''.join(html)}</div>"
