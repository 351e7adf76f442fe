"""The page: templates, styles, scripts and data in one file that asks for nothing else."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import extras
from mercer.report import text

_SCRIPTS = ("base.js", "theme.js", "tables.js", "scree.js", "scatter.js", "errors.js", "start.js")


def extra(module: str) -> Any:
    """Import what the report is made with, or say how to get it."""
    return extras.extra(module, "report", "mercer.report makes its page with")


def ready() -> None:
    """Refuse to begin where what a page is made with is not installed."""
    for module in ("jinja2", "plotly"):
        extra(module)


def packed(values: npt.NDArray[Any]) -> dict[str, str]:
    """Return numbers as JSON can hold them: their bytes, and how to read them."""
    kind = {"f4": "<f4", "f8": "<f8", "i4": "<i4", "u1": "|u1"}[values.dtype.str[1:]]
    data = np.ascontiguousarray(values).astype(kind, copy=False).tobytes()
    return {"kind": kind[1:], "data": base64.b64encode(data).decode("ascii")}


def floats(values: npt.NDArray[np.float64]) -> dict[str, str]:
    """Return numbers in single precision, or in double where that cannot hold them."""
    size = np.abs(values[np.isfinite(values) & (values != 0)])
    fits = not len(size) or (float(size.max()) < 1e37 and float(size.max()) > 1e-30)
    return packed(values.astype(np.float32 if fits else np.float64))


def embedded(data: Any) -> str:
    """Return JSON that ends no script, begins no comment and holds no line separator."""
    written = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":  # these stand in strings only
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written


def page(context: Mapping[str, Any], data: Any) -> str:
    """Return the page."""
    jinja2 = extra("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _file(name)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"counted": text.counted, "count": text.count}
    environment.filters |= {
        "short": text.short,
        "clean": text.clean,
        "number": text.number,
        "percent": text.percent,
        "unbroken": text.unbroken,
    }
    library = _library()
    own = "\n".join(_file(name) for name in _SCRIPTS)
    early = _file("early.js")
    markup = jinja2.utils.markupsafe.Markup
    scripts = {"early": early, "library": library, "own": own}
    written: str = environment.get_template("page.html").render(
        **context,
        style=markup(_file("style.css")),
        scripts={name: markup(script) for name, script in scripts.items()},
        policy=_policy(scripts.values(), compiles=bool((data["points"] or {}).get("many"))),
        data=markup(embedded(data)),
    )
    return written


def _policy(scripts: Any, *, compiles: bool) -> str:
    """Return what the page may do: run these scripts, and nothing over a network.

    Plotly compiles its WebGL programs from text, which takes 'unsafe-eval' where there are any;
    a text that was smuggled into the page is not among the scripts all the same.
    """
    marks = [hashlib.sha256(script.encode()).digest() for script in scripts]
    allowed = " ".join(f"'sha256-{base64.b64encode(mark).decode('ascii')}'" for mark in marks)
    allowed += " 'unsafe-eval'" if compiles else ""
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _file(name: str) -> str:
    return (importlib.resources.files("mercer.report") / "page" / name).read_text("utf-8")


def _library() -> str:
    """Return plotly.js as the Python package ships it."""
    script: str = extra("plotly.offline").get_plotlyjs()
    script = script.replace("\r\n", "\n").replace("\r", "\n")  # as a browser reads, and hashes, it
    if "</script" in script.lower() or "<!--" in script:
        script = script.replace("</", "<\\/").replace("<!--", "<\\!--")
    return script
