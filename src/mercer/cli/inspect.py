"""``mercer inspect``: the header of a model file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from inspect import signature
from pathlib import Path
from typing import Any

from mercer.cli.console import Reporter, Result, pairs, spectrum_table
from mercer.cli.options import Common, argument


@dataclass(frozen=True, kw_only=True)
class InspectOptions(Common):
    """Options of inspect."""

    model: Path = argument("Model file.")


def inspect(options: InspectOptions, reporter: Reporter) -> Result:
    """Show what is in a model file: kernel, method, spectrum, certificate, data, versions.

    Reads only the header, not the arrays.

    Examples
    --------
    $ mercer inspect iris.mercer
    """
    from mercer.cli.rows import check_model
    from mercer.modelfile import read_header

    check_model(options.model)
    header = read_header(options.model)
    return Result({"file": str(options.model), **asdict(header)}, _shown(options.model, header))


def _shown(path: Path, header: Any) -> list[Any]:
    names, width = header.feature_names, header.n_features
    columns = "" if width is None else f"{width}: {_text(names)}" if names else str(width)
    lines = [
        ("file", str(path)),
        ("model", header.estimator),
        ("kernel", header.kernel),
        ("method", header.method),
        ("before it", ", ".join(header.preprocessing)),
        ("parameters", _parameters(header)),
        ("columns", columns),
    ]
    shown: list[Any] = [pairs((name, text) for name, text in lines if text)]
    shares = header.spectrum.get("shares", ()) if isinstance(header.spectrum, dict) else ()
    shares = [float(share) for share in shares if isinstance(share, int | float)]
    if shares:
        shown += ["", spectrum_table(shares)]
    sentence = (header.certificate or {}).get("sentence")
    if sentence:
        shown += ["", str(sentence).replace("\n", " ")]
    about = [
        *((key, _text(value, key == "notes")) for key, value in (header.origin or {}).items()),
        ("fingerprint", header.fingerprint),
        ("made", header.created),
        ("versions", ", ".join(f"{key} {text}" for key, text in header.versions.items())),
        ("format", str(header.format)),
        ("checksum", header.checksum),
    ]
    return [*shown, "", pairs((name, text) for name, text in about if text)]


def _parameters(header: Any) -> str:
    """Write the parameters that differ from their defaults."""
    import mercer

    kind = getattr(mercer, header.estimator, None) if header.estimator in mercer.__all__ else None
    defaults = {} if kind is None else signature(kind).parameters
    return ", ".join(
        f"{key}={text}"
        for key, text in header.parameters.items()
        if key not in defaults or repr(defaults[key].default) != text
    )


def _text(value: Any, lines: bool = False) -> str:
    from mercer.data.errors import format_names

    if isinstance(value, list):
        return "\n".join(value) if lines else format_names(value)
    return "" if value is None else str(value)
