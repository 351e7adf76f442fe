"""Texts and numbers as a page shows them."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

from mercer import messages

SHORT, LONG = 60, 1000
# Marks that turn the direction of what stands around them.
_TURNING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_LOST = "\ufffd"


def clean(value: Any, most: int = LONG) -> str:
    """Return a text that can stand anywhere on a page: bounded, and without control characters.

    Lone surrogates have no UTF-8, NUL ends a page for some readers, and marks that turn the
    direction of text would turn what stands around it.
    """
    text = value if isinstance(value, str) else str(value)
    text = "".join(map(_plain, text[: most + 1]))
    return text if len(text) <= most else text[: most - 1] + "…"


def _plain(character: str) -> str:
    code = ord(character)
    if character.isspace():
        return " "
    if code in _TURNING or unicodedata.category(character) in ("Cc", "Cs", "Cn"):
        return _LOST
    return character


def short(value: Any, most: int = SHORT) -> str:
    """Return a text for a table or a legend; one that cannot be seen is named."""
    text = clean(value, most)
    return text if text.strip() else "(empty)"


def count(n: float) -> str:
    """Write a whole number: ``100 000``."""
    return f"{round(n):,}".replace(",", "\u202f")


def counted(n: int, one: str, many: str | None = None) -> str:
    """Write a number of things: ``1 row``, ``2 rows``."""
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def number(x: float, digits: int = 4) -> str:
    """Write a number of so many digits; a dash where it is not known."""
    if not math.isfinite(x):
        return "–" if math.isnan(x) else ("∞" if x > 0 else "−∞")
    return f"{float(x):.{digits}g}".replace("-", "−")


def fixed(x: float, places: int) -> str:
    """Write a number with so many decimals; what they round to zero has no sign."""
    return f"{round(float(x), places) + 0.0:.{places}f}".replace("-", "−")


def percent(share: float, digits: int = 2) -> str:
    """Write a share, rounded down: ``95.13 %``."""
    return "–" if not math.isfinite(share) else unbroken(messages.percent(share, digits))


def unbroken(sentence: str) -> str:
    """Return a sentence in which no line ends between a number and its %."""
    return sentence.replace(" %", "\u202f%")


def listed(names: list[str]) -> str:
    """Write names one after another: ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
