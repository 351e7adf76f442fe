"""The page: templates, style, scripts and data in one file, and how texts and numbers look."""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.extras import extra
from mercer.messages import percent

_SCRIPTS = ("base.js", "theme.js", "tables.js", "scree.js", "scatter.js", "errors.js", "start.js")
# Control characters, marks that change the direction of the text, surrogates, and no characters.
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def require_packages(*modules: str) -> Any:
    """Return the last of these packages; an error says how to install what a report needs."""
    for module in modules or ("jinja2", "plotly"):
        package = extra(module, "report", "mercer.report requires")
    return package


def clean_text(value: Any, most: int = 1000) -> str:
    """Return a text that can stand anywhere on a page: bounded, without control characters."""
    text = str(value)[: most + 1]
    text = _INVISIBLE.sub("\ufffd", "".join(" " if c.isspace() else c for c in text))
    return text if len(text) <= most else text[: most - 1] + "…"


def short_text(value: Any, most: int = 60) -> str:
    """Return a text for a table or a legend; an empty one is marked."""
    text = clean_text(value, most)
    return text if text.strip() else "(empty)"


def format_count(n: float) -> str:
    """Write an integer: ``100 000``."""
    return f"{round(n):,}".replace(",", "\u202f")


def format_quantity(n: int, one: str, many: str | None = None) -> str:
    """Write a number of things: ``1 row``, ``2 rows``."""
    return f"{format_count(n)} {one if n == 1 else many or one + 's'}"


def format_number(x: float, digits: int = 4) -> str:
    """Write a number with significant digits; a dash for NaN."""
    if not math.isfinite(x):
        return "–" if math.isnan(x) else ("∞" if x > 0 else "−∞")
    return f"{float(x):.{digits}g}".replace("-", "−")


def format_fixed(x: float, places: int | None) -> str:
    """Write a number with decimals, or with three digits if places is None; zero has no sign."""
    if places is None or not math.isfinite(x):
        return format_number(x + 0.0, 3)
    return f"{round(float(x), places) + 0.0:.{places}f}".replace("-", "−")


def format_percent(share: float, digits: int = 2, *, up: bool = False) -> str:
    """Write a share, rounded down, or up for a limit: ``95.13 %``."""
    return "–" if not math.isfinite(share) else unbroken(percent(share, digits, up=up))


def unbroken(sentence: str) -> str:
    """Return a sentence in which no line ends between a number and its %."""
    return sentence.replace(" %", "\u202f%")


def join_names(names: list[str]) -> str:
    """Write names one after another: ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def pack(values: npt.NDArray[Any]) -> dict[str, str]:
    """Return numbers for JSON: their bytes in base64, and their dtype."""
    dtype = {"f4": "<f4", "f8": "<f8", "i4": "<i4", "u1": "|u1"}[values.dtype.str[1:]]
    data = np.ascontiguousarray(values).astype(dtype, copy=False).tobytes()
    return {"dtype": dtype[1:], "data": base64.b64encode(data).decode("ascii")}


def pack_floats(values: npt.NDArray[np.float64]) -> dict[str, str]:
    """Return numbers for JSON in single precision, or in double where their range needs it."""
    largest = float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))
    single = largest == 0.0 or 1e-30 < largest < 1e37
    return pack(values.astype(np.float32 if single else np.float64))


def script_json(data: Any) -> str:
    """Return JSON that ends no script, begins no comment and has no line separator."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":  # they occur in strings only
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@functools.cache
def _environment() -> Any:
    jinja2 = require_packages("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"quantity": format_quantity, "count": format_count}
    environment.filters |= {"short": short_text, "clean": clean_text, "unbroken": unbroken}
    environment.filters |= {"number": format_number, "percent": format_percent}
    environment.filters["fixed"] = format_fixed
    return environment


def render_page(context: Mapping[str, Any], data: Any) -> str:
    """Return the page as one HTML document."""
    markup = require_packages("jinja2").utils.markupsafe.Markup
    own = "\n".join(_read(name) for name in _SCRIPTS)
    scripts = {"early": _read("early.js"), "library": _plotly(), "own": own}
    compiles = bool((data["points"] or {}).get("webgl"))
    page: str = (
        _environment()
        .get_template("page.html")
        .render(
            **context,
            style=markup(_read("style.css")),
            scripts={name: markup(script) for name, script in scripts.items()},
            policy=_content_policy(scripts.values(), compiles=compiles),
            data=markup(script_json(data)),
        )
    )
    return page


def _content_policy(scripts: Iterable[str], *, compiles: bool) -> str:
    """Return what the page may do: run these scripts, and nothing over a network.

    Plotly compiles its WebGL programs from text, which needs 'unsafe-eval'; a script that was
    smuggled into the page is still refused.
    """
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    allowed = " ".join(f"'sha256-{base64.b64encode(one).decode('ascii')}'" for one in digests)
    allowed += " 'unsafe-eval'" if compiles else ""
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _read(name: str) -> str:
    return (importlib.resources.files("mercer.report") / "page" / name).read_text("utf-8")


def _plotly() -> str:
    script: str = require_packages("plotly.offline").get_plotlyjs()
    script = script.replace("\r\n", "\n").replace("\r", "\n")  # a browser hashes it like this
    if "</script" in script.lower() or "<!--" in script:
        script = script.replace("</", "<\\/").replace("<!--", "<\\!--")
    return script
