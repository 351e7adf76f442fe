"""The summary: what the data are, what was kept, how good that is, what stands out."""

from __future__ import annotations

import re
from numbers import Integral, Real
from typing import Any

import numpy as np

from mercer.plotting.spectrum import rule_name
from mercer.report.sample import furthest
from mercer.report.spectrum import shares
from mercer.report.subject import Subject
from mercer.report.survey import Found
from mercer.report.tables import Makings
from mercer.report.text import clean, count, counted, listed, number, percent, short, unbroken
from mercer.rules import NAMED, Rule

_FILLED = {
    "mean": "column means",
    "median": "column medians",
    "most_frequent": "the most frequent value of each column",
}
_AROUND = {
    "NoveltyDetector": "novelty detector",
    "Denoiser": "denoiser",
    "NearestProjection": "nearest-neighbour classifier",
}


def sentences(
    subject: Subject, found: Found | None, parts: Makings | None, label: Any, ids: Any
) -> list[str]:
    """Return the summary, in paragraphs."""
    first = [_data(subject), *(_given(subject, found, label) if found else []), _kept(subject)]
    lines = [" ".join(first), *_quality(subject), *_axes(subject, parts)]
    return [*lines, _standing_out(subject, found, ids)] if found else lines


def _data(subject: Subject) -> str:
    size, model = subject.model.plan_.size, subject.model
    rows = count(size.n)
    if subject.precomputed:
        text = f"The model was fitted to a kernel matrix of {rows} × {rows} entries."
    elif subject.strings:
        text = f"The model was fitted to {counted(size.n, 'string')}."
    else:
        columns = counted(int(model.n_features_in_), "column")
        text = f"The model was fitted to {counted(size.n, 'row')} of {columns}."
    text += "".join(f" {_prepared(step)}" for step in subject.steps)
    if getattr(model, "scale", False):
        text += " Each column was divided by its standard deviation."
    return text


def _prepared(step: Any) -> str:
    """Say what a step of a pipeline did before the fit."""
    kind = type(step).__name__
    if kind == "SimpleImputer" and step.strategy in _FILLED:
        return f"Missing values were filled with {_FILLED[step.strategy]}."
    if kind == "StandardScaler" and step.with_std:
        what = "standardized" if step.with_mean else "divided by their standard deviations"
        return f"The columns were {what}."
    return f"The rows were preprocessed by {kind}."


def _kept(subject: Subject) -> str:
    model, k = subject.model, subject.model.n_components_
    lead = f"This is {subject.kind}"
    if subject.around is not None:
        lead = f"This is a {_AROUND[type(subject.around).__name__]} based on {subject.kind}"
    if not subject.linear and not subject.precomputed:
        lead += f" with the kernel {_kernel(model.kernel_)}"
    return f"{lead}, with {counted(k, 'component')}{_asked(model, k)}."


def _kernel(kernel: Any) -> str:
    """Write a kernel; its numbers with four digits."""
    said = re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda m: f"{float(m.group()):.4g}", repr(kernel))
    return clean(said, 200)


def _asked(model: Any, k: int) -> str:
    """Say how the number of components came about."""
    asked = model.n_components
    if asked is None or asked == "all":
        return ", all there are"
    if isinstance(asked, Integral):
        return "" if int(asked) == k else f" of the {count(int(asked))} requested"
    if isinstance(asked, Real):
        return f", as many as it takes to explain {100 * float(asked):g}\u202f% of the variance"
    rule = asked if isinstance(asked, Rule) else NAMED[asked]()
    return f", chosen by this rule: {clean(rule_name(rule), 80)}"


def _quality(subject: Subject) -> list[str]:
    found = subject.model.certificate_
    lines = [unbroken(found.sentence)]
    if not found.converged:
        lines.append("The solver stopped before it met its tolerance.")
    if len(found.negative):
        lines.append(
            f"The kernel is not positive semi-definite: {len(found.negative)} of the eigenvalues "
            f"found are negative, the smallest is {number(found.negative[0], 3)}."
        )
    return [*lines, *(clean(note) for note in found.notes)]


def _axes(subject: Subject, parts: Makings | None) -> list[str]:
    share = shares(subject)
    if not len(share):
        return []
    text = f"Component 1 explains {percent(share[0])} of the variance"
    if len(share) > 1:
        text += f", component 2 explains {percent(share[1])}"
    lines = [f"{text}."]
    if parts is None:
        return lines
    said = []
    for axis, names in enumerate(parts.strongest, start=1):
        if names:
            said.append(f"component {axis} is related to {listed(names)}")
    if said:
        text = "; ".join(said)
        lines[0] += f" {text[0].upper()}{text[1:]}."
    return lines


def _given(subject: Subject, found: Found, label: Any) -> list[str]:
    """Say what was given to be drawn."""
    n, size = found.rows.raw.shape[0], subject.model.plan_.size
    lines = []
    if n != size.n:
        lines.append(f"The {count(n)} rows shown here are not the rows of the fit.")
    if found.rows.weights is not None:
        lines.append(f"Rows have weights: they count as {number(found.rows.raw.count, 6)}.")
    if label is not None and label.codes is not None and label.names:
        named = [short(name, 24) for name in label.names[:10]]
        if len(label.names) > 10:
            named = [*named[:6], f"{count(len(label.names) - 6)} others"]
        kinds = counted(len(label.names), "class", "classes")
        lines.append(f"The labels have {kinds}: {listed(named)}.")
    return lines


def _standing_out(subject: Subject, found: Found, ids: Any) -> str:
    """Say which row is the furthest from the axes, and how far."""
    errors = found.errors
    if errors is None:
        return "The distances from the components cannot be computed from a kernel matrix."
    if whole(subject, errors, found):
        return "The components reconstruct every row: there are no outliers."
    row, middle = int(furthest(errors, 1)[0]), float(np.median(errors))
    text = f"Row {short(ids(row), 40)} is furthest from the components"
    if middle > 0 and len(errors) > 2:
        text += f": its squared distance is {number(errors[row] / middle, 3)} times the median"
    limit = subject.threshold
    if limit is not None:
        beyond = int((errors > limit).sum())
        share = percent(beyond / len(errors))
        lie = "lies" if beyond == 1 else "lie"
        text += (
            f". {counted(beyond, 'row')} ({share}) {lie} beyond the threshold of {number(limit)}"
        )
    return f"{text}."


def whole(subject: Subject, errors: Any, found: Found) -> bool:
    """Tell whether what is left of the rows is no more than rounding."""
    fitted = subject.model.projection_
    eps = float(np.finfo(found.rows.treated.dtype).eps)
    length = fitted.total_variance + getattr(fitted, "height", 0.0)
    return bool(np.max(errors, initial=0.0) <= 1000 * eps * length)
