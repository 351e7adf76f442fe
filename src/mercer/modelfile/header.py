"""What a model file tells of its model before any array is read."""

from __future__ import annotations

import datetime
import importlib
import importlib.metadata
import json
import math
import platform
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from mercer.arrays import to_numpy
from mercer.certificate import Certificate
from mercer.modelfile.errors import ModelFileError

FORMAT = 1
"""Version of the format that this version of Mercer writes; it reads those before it too."""
_LONGEST, _SHOWN = 1000, 100
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch")

Origin = dict[str, Any]


@dataclass(frozen=True)
class Header:
    """What a model file tells of its model.

    Attributes
    ----------
    format : int
        Version of the format.
    estimator : str
        Class of the model; of a pipeline, of its last step.
    kernel : str or None
        The kernel, as `mercer.kernels.parse` reads it; None of linear PCA.
    method : str
        How the axes were found.
    parameters : dict of str
        Parameters of the model, by name.
    preprocessing : list of str
        Steps before the model.
    feature_names : list of str or None
        Names of the columns of the fit.
    n_features : int or None
        Number of columns; None of strings.
    certificate : dict or None
        "sentence", and the figures "captured", "optimum_upper" and "gap" with what each is. Of a
        classifier that of the class whose gap is widest, which is named under "of".
    spectrum : dict of list of float
        "eigenvalues", the variances along the first axes, and their "shares" of all variance.
        Here and in the certificate None stands for a number that is not finite.
    versions : dict of str
        Versions of Mercer and of the libraries that it was saved with.
    fingerprint : str or None
        Of the rows of the fit: `mercer.data.fingerprint`. Of a pipeline, of the rows that its
        steps made.
    origin : dict
        What was given to `save`.
    created : str
        When it was saved, UTC.
    checksum : str
        SHA-256 of the file, zeros in place of itself. Compared by `load`, not by `read_header`.
    """

    format: int
    estimator: str
    kernel: str | None
    method: str
    parameters: dict[str, str]
    preprocessing: list[str]
    feature_names: list[str] | None
    n_features: int | None
    certificate: dict[str, Any] | None
    spectrum: dict[str, list[float | None]]
    versions: dict[str, str]
    fingerprint: str | None
    origin: Origin
    created: str
    checksum: str = field(default="")


def header_of(model: Any, origin: Origin | None) -> Header:
    """Return what is told of a fitted model."""
    steps = getattr(model, "steps", [("model", model)])  # of a pipeline
    last = steps[-1][1]
    inner, of = _inside(last)
    certificate = getattr(inner, "certificate_", None)
    names = getattr(steps[0][1], "feature_names_in_", None)
    plan = getattr(inner, "plan_", None)
    kernel = getattr(inner, "kernel_", None)
    return Header(
        format=FORMAT,
        estimator=type(last).__name__,
        kernel="precomputed" if getattr(inner, "kernel", None) == "precomputed" else _text(kernel),
        method=_text(last if plan is None else plan.method) or "",
        parameters={k: _text(v) or "None" for k, v in last.get_params(deep=False).items()},
        preprocessing=[_text(step) or "" for _, step in steps[:-1]],
        feature_names=None if names is None else [str(name) for name in names],
        n_features=_columns(steps[0][1]),
        certificate=None if certificate is None else _told(certificate, of),
        spectrum=_spectrum(inner),
        versions=_versions(),
        fingerprint=getattr(last, "fingerprint_", None),
        origin=_checked(origin),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def header_text(header: Header) -> str:
    """Return a header as JSON, without its checksum: that stands beside it."""
    told = asdict(header)
    del told["checksum"]
    return json.dumps(told, allow_nan=False, separators=(",", ":"))


def header_from(told: Any, checksum: str) -> Header:
    """Return the header that JSON tells of; refuse one that lacks a part."""
    wanted = {part.name: part.type for part in fields(Header) if part.name != "checksum"}
    if not isinstance(told, dict) or not told.keys() >= wanted.keys():
        raise ValueError("its header lacks a part")
    for name, kind in _TYPES.items():
        if not isinstance(told[name], kind):
            raise ValueError(f"its header says {str(told[name])[:40]!r} of {name}")
    _check_inner(told)
    return Header(**{name: told[name] for name in wanted}, checksum=checksum)


_TYPES: dict[str, Any] = {
    "format": int,
    "estimator": str,
    "kernel": (str, type(None)),
    "method": str,
    "parameters": dict,
    "preprocessing": list,
    "feature_names": (list, type(None)),
    "n_features": (int, type(None)),
    "certificate": (dict, type(None)),
    "spectrum": dict,
    "versions": dict,
    "fingerprint": (str, type(None)),
    "origin": dict,
    "created": str,
}


def _check_inner(told: dict[str, Any]) -> None:
    """Refuse a header whose lists and tables hold something else than they should."""
    texts = [*told["parameters"].values(), *told["versions"].values(), *told["preprocessing"]]
    texts += told["feature_names"] or []
    certificate = told["certificate"] or {"sentence": "", "notes": []}
    texts += [certificate.get("sentence"), *certificate["notes"]]
    if told["certificate"] is not None:
        figures = [certificate[name] for name in ("captured", "optimum_upper", "gap")]
        texts += [figure["label"] for figure in figures]
        _check_numbers([figure["value"] for figure in figures])
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("its header holds something else than texts")
    if told["spectrum"].keys() != {"eigenvalues", "shares"}:
        raise ValueError("its header has no spectrum")
    for numbers in told["spectrum"].values():
        _check_numbers(numbers)
    _checked(told["origin"])


def _check_numbers(found: Any) -> None:
    if not (isinstance(found, list) and all(x is None or type(x) in (int, float) for x in found)):
        raise ValueError("its header holds something else than numbers")


def _inside(model: Any) -> tuple[Any, str | None]:
    """Return the PCA or KernelPCA of a model, and of which class it is where there are several."""
    if hasattr(model, "estimators_"):
        gaps = [float(each.certificate_.gap) for each in model.estimators_]
        at = int(np.argmax(np.nan_to_num(gaps, nan=np.inf)))
        label = model.classes_[at]
        return model.estimators_[at], f"class {label}, the widest gap of {len(gaps)} classes"
    return getattr(model, "estimator_", model), None


def _text(value: Any) -> str | None:
    """Return the repr, cut off where it would fill pages."""
    if value is None:
        return None
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _columns(first: Any) -> int | None:
    found = getattr(first, "n_features_in_", None)
    return None if found is None else int(found)


def _told(found: Certificate, of: str | None) -> dict[str, Any]:
    figures = {name: getattr(found, name) for name in ("captured", "optimum_upper", "gap")}
    told: dict[str, Any] = {"sentence": found.sentence, "converged": bool(found.converged)}
    for name, figure in figures.items():
        told[name] = {"value": _finite(figure), "label": figure.label}
    told["notes"] = list(found.notes)
    return told if of is None else {**told, "of": of}


def _spectrum(inner: Any) -> dict[str, list[float | None]]:
    names = {"eigenvalues": "explained_variance_", "shares": "explained_variance_ratio_"}
    return {
        name: [_finite(x) for x in to_numpy(getattr(inner, attribute, np.zeros(0)))[:_SHOWN]]
        for name, attribute in names.items()
    }


def _finite(x: Any) -> Any:
    """Return a number that JSON has; None for those that it has not."""
    return float(x) if np.isfinite(x) else None


def version() -> str:
    """Return the version of Mercer; the package itself is above all layers."""
    return str(importlib.import_module("mercer").__version__)


def _versions() -> dict[str, str]:
    found = {"mercer": version(), "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _checked(origin: Origin | None) -> Origin:
    """Return what is told of the origin; refuse what is no plain text, number or list of texts."""
    for name, value in (origin or {}).items():
        plain = value is None or isinstance(value, (str, int))
        plain |= isinstance(value, float) and math.isfinite(value)
        texts = isinstance(value, list) and all(isinstance(text, str) for text in value)
        if not isinstance(name, str) or not (plain or texts):
            raise ModelFileError(
                f"origin[{name!r}] is {value!r}; it may be text, a number, a list of texts or "
                f"None. Nothing was written."
            )
    return dict(origin or {})
