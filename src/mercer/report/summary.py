"""The summary: what the data are, what was kept, how good that is, what stands out."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.report.sample import furthest
from mercer.report.spectrum import shares
from mercer.report.subject import Subject
from mercer.report.survey import Found
from mercer.report.tables import Makings
from mercer.report.text import clean, count, counted, listed, number, percent, short, unbroken


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
    done = [type(step).__name__ for step in subject.steps]
    if done:
        text += f" They went through {listed(done)} first."
    if getattr(model, "scale", False):
        text += " Every column was divided by its standard deviation."
    return text


def _kept(subject: Subject) -> str:
    model = subject.model
    if subject.around is not None:
        lead = f"Inside a {type(subject.around).__name__} stands {subject.kind}"
    else:
        lead = f"This is {subject.kind}"
    if not subject.linear and not subject.precomputed:
        lead += f" with the kernel {clean(repr(model.kernel_), 200)}"
    asked = clean(repr(model.n_components), 80)
    asked = "every axis there is" if model.n_components is None else f"n_components={asked}"
    kept = counted(model.n_components_, "axis was", "axes were")
    return f"{lead}; {asked} was asked for, and {kept} kept."


def _quality(subject: Subject) -> list[str]:
    found = subject.model.certificate_
    lines = [unbroken(found.sentence)]
    if found.gap.kind == "bound":
        sure = "" if found.gap.confidence >= 1 else f" with probability {found.gap.confidence:g}"
        lines[0] += f" That is proved{sure}, not estimated."
    else:
        lines[0] += " That is an estimate, not a bound."
    if not found.converged:
        lines.append("The solver stopped before it met its tolerance.")
    if len(found.negative):
        lines.append(
            f"The kernel is not positive semi-definite: {len(found.negative)} eigenvalues found "
            f"are negative, the least {number(found.negative[0], 3)}."
        )
    return [*lines, *(clean(note) for note in found.notes)]


def _axes(subject: Subject, parts: Makings | None) -> list[str]:
    share = shares(subject)
    if not len(share):
        return []
    text = f"Axis 1 alone holds {percent(share[0], 1)} of the variance"
    if len(share) > 1:
        text += f", axis 2 holds {percent(share[1], 1)}"
    lines = [f"{text}."]
    if parts is None:
        return lines
    said = []
    for axis, names in enumerate(parts.strongest, start=1):
        if names:
            said.append(f"axis {axis} goes with {listed(names)}")
    if said:
        text = "; ".join(said)
        lines[0] += f" {text[0].upper()}{text[1:]}."
    return lines


def _given(subject: Subject, found: Found, label: Any) -> list[str]:
    """Say what was given to be drawn."""
    n, size = found.rows.raw.shape[0], subject.model.plan_.size
    lines = []
    if n != size.n:
        lines.append(f"The {count(n)} rows shown here are not those of the fit.")
    if found.rows.weights is not None:
        lines.append(f"Rows have weights: they count as {number(found.rows.raw.count, 6)}.")
    if label is not None and label.codes is not None and label.names:
        named = [short(name, 24) for name in label.names[:10]]
        if len(label.names) > 10:
            named = [*named[:6], f"{count(len(label.names) - 6)} others"]
        kinds = counted(len(label.names), "class", "classes")
        lines.append(f"Labels are of {kinds}: {listed(named)}.")
    return lines


def _standing_out(subject: Subject, found: Found, ids: Any) -> str:
    """Say which row is the furthest from the axes, and how far."""
    errors = found.errors
    if errors is None:
        return "A kernel matrix does not tell how far its rows are from the axes."
    if whole(subject, errors, found):
        return "The axes keep every row whole: none stands out."
    row, middle = int(furthest(errors, 1)[0]), float(np.median(errors))
    text = f"Row {short(ids(row), 40)} is the furthest from the axes"
    if middle > 0 and len(errors) > 2:
        text += f": its squared distance is {number(errors[row] / middle, 3)} times the median"
    limit = subject.threshold
    if limit is not None:
        beyond = int((errors > limit).sum())
        share = percent(beyond / len(errors), 1)
        text += f". Beyond the threshold of {number(limit)} lie {counted(beyond, 'row')}, {share}"
    return f"{text}."


def whole(subject: Subject, errors: Any, found: Found) -> bool:
    """Tell whether what is left of the rows is no more than rounding."""
    fitted = subject.model.projection_
    eps = float(np.finfo(found.rows.treated.dtype).eps)
    length = fitted.total_variance + getattr(fitted, "height", 0.0)
    return bool(np.max(errors, initial=0.0) <= 1000 * eps * length)
