"""How to make the report again: the command, or the lines of Python; versions; the seed."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shlex
from collections.abc import Mapping
from typing import Any

import mercer
from mercer import kernels, landmarks, methods, preimage, rules, sketches
from mercer.report.subject import Subject
from mercer.report.text import clean

_PACKAGES = ("numpy", "scipy", "scikit-learn")
_HOMES = (kernels, methods, landmarks, sketches, preimage, rules)


def command(origin: Mapping[str, Any] | None) -> str | None:
    """Return the command that made the model, where one did."""
    given = None if origin is None else origin.get("command")
    if given is None:
        return None
    return clean(given if isinstance(given, str) else shlex.join(map(str, given)), 10_000)


def lines(subject: Subject, given: Mapping[str, bool], path: str) -> str:
    """Return the lines of Python that make a model like this, and its report."""
    text = _said(subject.given)
    names = set(re.findall(r"\b([A-Z]\w+)\(", text))
    imports = [f"from mercer import {', '.join(sorted(names & set(mercer.__all__)))}"]
    for home in _HOMES:
        here = sorted(n for n in names - set(mercer.__all__) if n in getattr(home, "__all__", ()))
        names -= set(here)
        imports += [f"from {home.__name__} import {', '.join(here)}"] if here else []
    homes = {"Pipeline": "pipeline", "SimpleImputer": "impute", "StandardScaler": "preprocessing"}
    imports += [f"from sklearn.{homes[n]} import {n}" for n in sorted(names & set(homes))]
    imports.append("from mercer.report import write_report")
    fitted = f"model = {text}.fit(X)"
    arguments = ["model", "X" if given["X"] else "None", repr(path)]
    arguments += [f"{name}={name}" for name, there in given.items() if there and name != "X"]
    imports.sort()
    last = f"write_report({', '.join(arguments)})"
    return "\n".join(clean(line, 10_000) for line in [*imports, "", fitted, last])


def _said(estimator: Any) -> str:
    """Return an estimator as it was written, on one line where that is short."""
    text: str = estimator.__repr__(N_CHAR_MAX=10_000)
    return re.sub(r"\s*\n\s*", " ", text)


def facts(subject: Subject, origin: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return the seed, the fingerprint of the data, versions, and where all came from."""
    found: list[tuple[str, str]] = []
    for name, value in (origin or {}).items():
        if name in ("command", "notes") or value is None:
            continue
        text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        found.append((clean(name, 60), clean(text, 2000)))
    seed = getattr(subject.model, "random_state", None)
    if "seed" not in (origin or {}):
        found.append(("seed (random_state)", clean(repr(seed), 200)))
    mark = getattr(subject.model, "fingerprint_", None)
    if mark is not None:
        found.append(("fingerprint of the data", clean(mark, 200)))
    versions = [f"Mercer {mercer.__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES]
    return [*found, ("versions", " · ".join(versions))]
