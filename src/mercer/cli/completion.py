"""Values that the shell completes for options with a fixed set of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import typer


def _methods() -> Iterable[str]:
    from mercer.planning import METHODS, NAMES

    return sorted({*METHODS, *NAMES})


def _kernels() -> Iterable[str]:
    from mercer.kernels.base import KERNELS

    return KERNELS


def _rules() -> Iterable[str]:
    from mercer.landmarks import RULES

    return RULES


def _preimages() -> Iterable[str]:
    from mercer.preimage import PREIMAGES

    return ("auto", *PREIMAGES)


def _counts() -> Iterable[str]:
    from mercer.cli.build import COUNTS

    return COUNTS


def _scales() -> Iterable[str]:
    from mercer.cli.build import SCALES

    return SCALES


def _formats() -> Iterable[str]:
    from mercer.data.files import READERS

    return [suffix[1:] for suffix in READERS]


VALUES: dict[str, Callable[[], Iterable[str]]] = {
    "components": _counts,
    "format": _formats,
    "gamma": lambda: ("median", "scale"),
    "impute": lambda: ("mean",),
    "kernel": _kernels,
    "method": _methods,
    "preimage": _preimages,
    "scale": _scales,
    "select": _rules,
}
"""Options of every command, and the values they take."""


def complete(name: str, annotation: Any) -> None:
    """Let an option that has a fixed set of values complete them."""
    if name not in VALUES:
        return
    for info in getattr(annotation, "__metadata__", ()):
        if isinstance(info, type(typer.Option())):
            info.autocompletion = _starting(VALUES[name])


def _starting(values: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    def found(incomplete: str) -> list[str]:
        return [value for value in values() if value.startswith(incomplete)]

    return found
