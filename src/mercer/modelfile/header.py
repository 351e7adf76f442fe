"""What a model file says about its model before any array is read."""

import contextlib
import datetime
import importlib.metadata
import json
import math
import platform
from dataclasses import dataclass
from types import UnionType
from typing import Any, get_args, get_origin

import numpy as np

from mercer import __version__
from mercer.arrays import to_numpy
from mercer.certificate import Certificate
from mercer.modelfile.container import ModelFileError

FORMAT = 2
"""Version of the format that this version of Mercer writes; it also reads all earlier ones."""
_LONGEST_TEXT, _MOST_VALUES = 1000, 100
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch")

Origin = dict[str, str | int | float | list[str] | None]


@dataclass(frozen=True)
class Header:
    """What a model file says about its model.

    Attributes
    ----------
    format, checksum : int, str
        Version of the format; SHA-256 of the file, see `mercer.modelfile.container`.
    estimator, method, kernel : str
        Class of the model (the last step of a pipeline), method that found the components, and
        kernel, as `mercer.kernels.parse` reads it; None for linear PCA.
    parameters, preprocessing : dict of str, list of str
        Parameters of the model; steps before it.
    feature_names, n_features : list of str, int
        Names and number of columns; None where there are none.
    certificate : dict
        "sentence", and the figures "captured", "optimum_upper" and "gap", each with its label.
        For a classifier, those of the class with the widest gap, which "of" names.
    spectrum : dict of list of float
        "eigenvalues", the first variances, and their "shares" of the total; None where a number
        is not finite.
    fingerprint, versions, created : str, dict of str, str
        Fingerprint of the rows of the fit; versions of the libraries; time of saving, UTC.
    origin : dict
        The `origin` passed to `save`.
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
    checksum: str = ""


def make_header(model: Any, origin: dict[str, Any] | None) -> Header:
    """Return the header of a fitted model."""
    for name, value in (origin or {}).items():
        finite = not isinstance(value, float) or math.isfinite(value)
        if not isinstance(name, str) or not finite or not _has_type({name: value}, Origin):
            raise ModelFileError(
                f"origin[{name!r}] is {value!r}; it may be text, a finite number, a list of texts "
                f"or None. Nothing was written."
            )
    steps = [step for _, step in getattr(model, "steps", [("model", model)])]  # of a pipeline
    first, last = steps[0], steps[-1]
    inner, label = getattr(last, "estimator_", last), None
    if hasattr(last, "estimators_"):  # one of every class
        gaps = [float(each.certificate_.gap) for each in last.estimators_]
        widest = int(np.argmax(np.nan_to_num(gaps, nan=np.inf)))
        inner = last.estimators_[widest]
        label = f"class {last.classes_[widest]}, the widest gap of {len(gaps)} classes"
    certificate = getattr(inner, "certificate_", None)
    names = getattr(first, "feature_names_in_", None)
    n_features = getattr(first, "n_features_in_", None)
    plan, kernel = getattr(inner, "plan_", None), getattr(inner, "kernel_", None)
    precomputed = getattr(inner, "kernel", None) == "precomputed"
    libraries = {}
    for name in _LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            libraries[name] = importlib.metadata.version(name)
    return Header(
        format=FORMAT,
        estimator=type(last).__name__,
        kernel="precomputed" if precomputed else None if kernel is None else _text(kernel),
        method=_text(last if plan is None else plan.method),
        parameters={name: _text(v) for name, v in last.get_params(deep=False).items()},
        preprocessing=[_text(step) for step in steps[:-1]],
        feature_names=None if names is None else [str(name) for name in names],
        n_features=None if n_features is None else int(n_features),
        certificate=None if certificate is None else _summary(certificate, label),
        spectrum={
            "eigenvalues": _values(inner, "explained_variance_"),
            "shares": _values(inner, "explained_variance_ratio_"),
        },
        versions={"mercer": __version__, "python": platform.python_version(), **libraries},
        fingerprint=getattr(last, "fingerprint_", None),
        origin=dict(origin or {}),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


def from_json(text: str, checksum: str) -> Header:
    """Return the header that JSON describes; refuse one with missing or mistyped parts."""
    parts = {**json.loads(text), "checksum": checksum}
    for name, annotation in Header.__annotations__.items():
        if not _has_type(parts[name], annotation):
            raise ValueError(f"its header says {str(parts[name])[:40]!r} for {name}")
    return Header(**{name: parts[name] for name in Header.__annotations__})


def _has_type(value: Any, annotation: Any) -> bool:
    """Tell whether plain JSON is of an annotated type."""
    inner = get_args(annotation)
    if isinstance(annotation, UnionType):
        return any(_has_type(value, each) for each in inner)
    if isinstance(value, (list, dict)) and inner:
        items = value.values() if isinstance(value, dict) else value
        return type(value) is get_origin(annotation) and all(_has_type(x, inner[-1]) for x in items)
    number = annotation is float and isinstance(value, int)
    return annotation is Any or number or (not inner and isinstance(value, annotation))


def _text(value: Any) -> str:
    """Return the repr, shortened where it would fill pages."""
    text = repr(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


def _summary(certificate: Certificate, label: str | None) -> dict[str, Any]:
    summary = {"sentence": certificate.sentence, "converged": bool(certificate.converged)}
    for name in ("captured", "optimum_upper", "gap"):
        figure = getattr(certificate, name)
        summary[name] = {"value": _finite(figure), "label": figure.label}
    summary["notes"] = list(certificate.notes)
    return summary if label is None else {**summary, "of": label}


def _values(model: Any, attribute: str) -> list[float | None]:
    return [_finite(x) for x in to_numpy(getattr(model, attribute, np.zeros(0)))[:_MOST_VALUES]]


def _finite(x: Any) -> float | None:
    """Return a number, or None where JSON does not have it."""
    return float(x) if np.isfinite(x) else None
