"""``mercer inspect``: what a model file says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from mercer.cli import say
from mercer.cli.options import Common


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What inspect takes."""

    model: Annotated[Path, typer.Argument(help="Model file.", show_default=False)]


EXAMPLES = ("mercer inspect iris.mercer",)


def inspect(asked: Options, voice: say.Voice) -> say.Result:
    """Show what is in a model file: kernel, method, spectrum, certificate, data, versions.

    Reads only the header, not the arrays.
    """
    from dataclasses import asdict

    from mercer.cli import outputs
    from mercer.modelfile import read_header

    outputs.there(asked.model)
    header = read_header(asked.model)
    return say.Result({"file": str(asked.model), **asdict(header)}, _shown(asked.model, header))


def _shown(path: Path, header: Any) -> list[Any]:
    names = header.feature_names
    lines = [
        ("file", str(path)),
        ("model", header.estimator),
        ("kernel", header.kernel),
        ("method", header.method),
        ("before it", ", ".join(header.preprocessing)),
        ("parameters", _parameters(header)),
        ("columns", _columns(header.n_features, names)),
    ]
    shown: list[Any] = [say.pairs((name, text) for name, text in lines if text)]
    shares = _shares(header.spectrum)
    if shares:
        shown += ["", say.spectrum(shares)]
    sentence = (header.certificate or {}).get("sentence")
    if sentence:
        shown += ["", str(sentence).replace("\n", " ")]
    about = [
        *((key, _told(key, value)) for key, value in (header.origin or {}).items()),
        ("fingerprint", header.fingerprint),
        ("made", header.created),
        ("versions", ", ".join(f"{key} {text}" for key, text in header.versions.items())),
        ("format", str(header.format)),
        ("checksum", header.checksum),
    ]
    return [*shown, "", say.pairs((name, text) for name, text in about if text)]


def _parameters(header: Any) -> str:
    """Return the parameters that are not what they are by default."""
    import mercer

    kind = getattr(mercer, header.estimator, None) if header.estimator in mercer.__all__ else None
    usual = {} if kind is None else signature(kind).parameters
    return ", ".join(
        f"{key}={text}"
        for key, text in header.parameters.items()
        if key not in usual or repr(usual[key].default) != text
    )


def _columns(d: int | None, names: list[str] | None) -> str:
    if d is None:
        return ""
    return f"{d}: {_text(names)}" if names else str(d)


def _shares(spectrum: Any) -> list[float]:
    found = spectrum.get("shares", ()) if isinstance(spectrum, dict) else ()
    return [float(share) for share in found if isinstance(share, int | float)]


def _told(key: str, value: Any) -> str:
    if value is None:
        return ""
    return "\n".join(value) if key == "notes" and isinstance(value, list) else _text(value)


def _text(value: Any) -> str:
    from mercer.data.errors import format_names

    return format_names(value) if isinstance(value, list) else str(value)
