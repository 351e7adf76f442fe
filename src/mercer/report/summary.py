"""The texts of a report: the summary in sentences, tables, and how to reproduce the model."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shlex
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import mercer
from mercer import kernels, landmarks, methods, preimage, rules, sketches
from mercer.arrays import to_numpy
from mercer.config import format_bytes
from mercer.estimators.inspection import rule_name
from mercer.report import html
from mercer.report.html import format_number, format_percent, short_text
from mercer.report.subject import FURTHEST, MAX_CORRELATED, ReportRows, Subject, furthest_rows

_IMPUTED = {
    "mean": "column means",
    "median": "column medians",
    "most_frequent": "the most frequent value of each column",
}
_OUTER = {
    "NoveltyDetector": "novelty detector",
    "Denoiser": "denoiser",
    "NearestProjection": "nearest-neighbor classifier",
}
_MODULES = (mercer, kernels, methods, landmarks, sketches, preimage, rules)
_SKLEARN = (
    *(("pipeline", "Pipeline"), ("impute", "SimpleImputer")),
    ("preprocessing", "StandardScaler"),
)
Values = npt.NDArray[np.float64]
MAX_COLUMNS, MAX_CERTIFIED = 100, 500


def summary_paragraphs(
    subject: Subject, shown: ReportRows | None, loadings: LoadingsTable | None
) -> list[str]:
    """Return the summary: data and model, certificate, components, outliers."""
    rows = [] if shown is None else _rows(subject, shown)
    first = " ".join([_data(subject), _model(subject), *rows])
    paragraphs = [first, *_certificate(subject), *_components(subject, loadings)]
    return paragraphs if shown is None else [*paragraphs, _outliers(subject, shown)]


def _data(subject: Subject) -> str:
    n, model = subject.model.plan_.size.n, subject.model
    if subject.precomputed:
        what = f"a kernel matrix of {html.format_count(n)} × {html.format_count(n)} entries"
    elif subject.strings:
        what = html.format_quantity(n, "string")
    else:
        columns = html.format_quantity(int(model.n_features_in_), "column")
        what = f"{html.format_quantity(n, 'row')} of {columns}"
    scaled = getattr(model, "scale", False)
    scaling = ["Each column was divided by its standard deviation."] if scaled else []
    if subject.weighted:
        scaling.append(_weights(np.asarray(model.projection_.weights)))
    return " ".join([f"The model was fitted to {what}.", *map(_step, subject.steps), *scaling])


def _weights(weights: Values) -> str:
    least, most = (html.format_number(x, 3) for x in (weights.min(), weights.max()))
    text = f"Columns have weights from {least} to {most} in variances and squared distances."
    return text if weights.all() else f"{text} Those of weight 0 have no share in the components."


def _step(step: Any) -> str:
    kind = type(step).__name__
    if kind == "SimpleImputer" and step.strategy in _IMPUTED:
        return f"Missing values were imputed with {_IMPUTED[step.strategy]}."
    if kind == "StandardScaler" and step.with_std:
        what = "standardized" if step.with_mean else "divided by their standard deviations"
        return f"The columns were {what}."
    return f"The rows were preprocessed by {kind}."


def _rows(subject: Subject, shown: ReportRows) -> list[str]:
    raw, label, sentences = shown.rows.raw, shown.label, []
    if raw.shape[0] != subject.model.plan_.size.n:
        sentences.append(
            f"The {html.format_count(raw.shape[0])} rows in this report are not the training data."
        )
    if raw.weights is not None:
        sentences.append(f"Row weights sum to {html.format_number(raw.count, 6)}.")
    if label is not None and label.classes:
        count = len(label.classes)
        codes = range(count) if count <= 10 else label.largest(6)
        names = [html.short_text(label.classes[code], 24) for code in codes]
        names += [f"{html.format_count(count - 6)} others"] if count > 10 else []
        kinds = html.format_quantity(count, "class", "classes")
        sentences.append(f"The labels have {kinds}: {html.join_names(names)}.")
    return sentences


def _model(subject: Subject) -> str:
    model, k = subject.model, subject.model.n_components_
    text = f"The model is {subject.kind}"
    if subject.outer is not None:
        text = f"The model is a {_OUTER[type(subject.outer).__name__]} based on {subject.kind}"
    if not subject.linear and not subject.precomputed:
        number = r"\d+\.\d+(e[+-]?\d+)?"
        kernel = re.sub(number, lambda m: f"{float(m.group()):.4g}", repr(model.kernel_))
        text += f" with the kernel {html.clean_text(kernel, 200)} and"
    else:
        text += " with"
    return f"{text} {html.format_quantity(k, 'component')}{_reason(model.n_components, k)}."


def _reason(n_components: Any, k: int) -> str:
    if n_components is None or n_components == "all":
        return ", the maximum"
    if isinstance(n_components, Integral):
        requested = int(n_components)
        return "" if requested == k else f" of the {html.format_count(requested)} requested"
    if isinstance(n_components, Real):
        share = f"{100 * float(n_components):g}\u202f%"
        return f", the fewest that explain {share} of the variance"
    rule = n_components if isinstance(n_components, rules.Rule) else rules.NAMED[n_components]()
    return f", chosen by the rule “{html.clean_text(rule_name(rule), 80)}”"


def _certificate(subject: Subject) -> list[str]:
    certificate = subject.model.certificate_
    paragraphs = [html.unbroken(certificate.sentence)]
    if not certificate.converged:
        paragraphs.append("The solver stopped before it met its tolerance.")
    if len(certificate.negative):
        paragraphs.append(
            f"The kernel is not positive semi-definite: {len(certificate.negative)} of the "
            f"eigenvalues computed are negative, the smallest is "
            f"{html.format_number(certificate.negative[0], 3)}."
        )
    return [*paragraphs, *(html.clean_text(note) for note in certificate.notes)]


def _components(subject: Subject, loadings: LoadingsTable | None) -> list[str]:
    shares = subject.shares
    if not len(shares):
        return []
    text = f"Component 1 explains {html.format_percent(shares[0])} of the variance"
    if len(shares) > 1:
        text += f", component 2 explains {html.format_percent(shares[1])}"
    strongest = enumerate([] if loadings is None else loadings.strongest, start=1)
    related = [
        f"component {j} is related to {html.join_names(names)}" for j, names in strongest if names
    ]
    sentence = "; ".join(related)
    return [f"{text}. {sentence[:1].upper()}{sentence[1:]}." if related else f"{text}."]


def _outliers(subject: Subject, shown: ReportRows) -> str:
    errors, threshold = shown.errors, subject.threshold
    if errors is None:
        return "Distances from the components cannot be computed from a kernel matrix."
    if fully_reconstructed(subject, shown):
        return "The components reconstruct every row: there are no outliers."
    row, median = int(furthest_rows(errors, 1)[0]), float(np.median(errors))
    text = f"Row {html.short_text(shown.name(row), 40)} is the furthest from the components"
    if median > 0 and len(errors) > 2:
        ratio = html.format_number(errors[row] / median, 3)
        text += f": its squared distance is {ratio} times the median"
    if threshold is not None:
        beyond = int((errors > threshold).sum())
        rows, lie = html.format_quantity(beyond, "row"), "lies" if beyond == 1 else "lie"
        share = html.format_percent(beyond / len(errors))
        text += f". {rows} ({share}) {lie} beyond the threshold of {html.format_number(threshold)}"
    return f"{text}."


def command_line(origin: Mapping[str, Any]) -> str | None:
    """Return the command that created the model, if one did."""
    command = origin.get("command")
    if command is None:
        return None
    text = command if isinstance(command, str) else shlex.join(map(str, command))
    return html.clean_text(text, 10_000)


def python_lines(subject: Subject, arguments: list[str], path: str) -> str:
    """Return the lines of Python that fit such a model and write its report."""
    model = re.sub(r"\s*\n\s*", " ", subject.passed.__repr__(N_CHAR_MAX=10_000))
    names = set(re.findall(r"\b([A-Z]\w+)\(", model))
    public = {module.__name__: names & set(module.__all__) for module in _MODULES}
    for module, name in _SKLEARN:
        public[f"sklearn.{module}"] = names & {name}
    imports = [
        f"from {name} import {', '.join(sorted(own))}" for name, own in public.items() if own
    ]
    rows, *others = arguments
    call = ", ".join(["model", rows, repr(path), *(f"{one}={one}" for one in others)])
    lines = [*imports, "from mercer.report import write_report", ""]
    lines += [f"model = {model}.fit(X)", f"write_report({call})"]
    return "\n".join(html.clean_text(line, 10_000) for line in lines)


def provenance(subject: Subject, origin: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return origin, seed and versions."""
    facts = []
    for name, value in origin.items():
        if name not in ("command", "notes") and value is not None:
            text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
            facts.append((html.clean_text(name, 60), html.clean_text(text, 2000)))
    if "seed" not in origin:
        seed = repr(getattr(subject.model, "random_state", None))
        facts.append(("seed (random_state)", html.clean_text(seed, 200)))
    versions = [f"Mercer {mercer.__version__}", f"Python {platform.python_version()}"]
    packages = ("numpy", "scipy", "scikit-learn")
    versions += [f"{name} {importlib.metadata.version(name)}" for name in packages]
    return [*facts, ("versions", " · ".join(versions))]


class LoadingsTable(NamedTuple):
    """Loadings, or correlations of columns and scores; one row per column of the data.

    A cell is a value and its tint from −1 to 1. `places` is the number of decimals of all values,
    None if they are too large or too small. `strongest` names the columns most related to each of
    the first two components.
    """

    rows: list[tuple[str, list[tuple[float, float]]]]
    components: int
    columns: int
    correlations: bool
    places: int | None
    strongest: list[list[str]]


def certificate_columns(subject: Subject) -> list[tuple[str, str, list[str]]]:
    """Return title, evidence and texts, one per component, of each column that is known."""
    certificate, shares = subject.model.certificate_, subject.shares
    angles = np.degrees(certificate.angles)
    columns: list[tuple[str, str, Any, Callable[[float], str]]] = [
        ("variance", "", certificate.eigenvalues, lambda x: format_number(x, 6)),
        ("share", "", shares, format_percent),
        ("cumulative", "", np.cumsum(shares), format_percent),
        ("residual", certificate.residuals_label, certificate.residuals, _format_error),
        ("variance error", "estimated", certificate.eigenvalue_errors, _format_error),
        ("angle", "estimated", angles, lambda x: f"{_format_error(x)}°".replace("–°", "–")),
    ]
    return [
        (title, evidence, [write(x) for x in values[:MAX_CERTIFIED]])
        for title, evidence, values, write in columns
        if not (evidence and np.all(np.isnan(values)))
    ]


def _format_error(x: float) -> str:
    return format_number(x) if x == 0 or not np.isfinite(x) else f"{x:.1e}".replace("-", "−")


def plan_rows(subject: Subject) -> list[tuple[bool, list[str]]]:
    """Return one row per method considered, without seconds, and whether it was chosen."""
    plan = subject.model.plan_
    rows = []
    for candidate in plan.candidates:
        cost = candidate.cost
        operations = cost.products + cost.sparse + cost.factor
        texts = [cost.passes_range, f"{operations:.1e}", format_bytes(cost.memory)]
        texts.append("yes" if candidate.fits else "no")
        chosen = candidate.method is plan.method or candidate.method == plan.method
        rows.append((chosen, [candidate.method.label(plan.size), *texts]))
    return rows


def loadings_table(subject: Subject, shown: ReportRows | None) -> LoadingsTable | None:
    """Return loadings, or for a kernel the correlations of columns and scores."""
    names = subject.names
    if not names or not subject.model.n_components_:
        return None
    if subject.linear:
        values = to_numpy(subject.model.loadings_[:, :MAX_CORRELATED]).astype(np.float64)
    elif shown is not None and shown.correlations is not None:
        values = shown.correlations
    else:
        return None
    known = np.nan_to_num(values)
    order = np.argsort(-(known**2).sum(axis=1), kind="stable")[:MAX_COLUMNS]
    first = np.nan_to_num(values[order, 0], nan=-np.inf)
    order = order[np.argsort(-first, kind="stable")]
    largest = float(np.max(np.abs(known), initial=0.0)) or 1.0
    tints = known / largest
    rows = [(names[j], list(zip(values[j].tolist(), tints[j], strict=True))) for j in order]
    # As many decimals for all as the largest needs for three digits.
    plain = 1e-3 < largest < 1e6
    places = int(np.clip(2 - np.floor(np.log10(largest)), 0, 4)) if plain else None
    strongest = [_strongest(names, column) for column in known.T[:2]]
    return LoadingsTable(rows, values.shape[1], len(names), not subject.linear, places, strongest)


def _strongest(names: list[str], column: Values, most: int = 3) -> list[str]:
    """Return the columns most related to a component, with the sign; none where many are."""
    size = np.abs(column)
    strong = np.flatnonzero(size >= 0.6 * size.max(initial=0.0))
    if not size.any() or len(strong) > 4 * most:
        return []
    strong = strong[np.argsort(-size[strong], kind="stable")][:most]
    return [f"{short_text(names[j], 40)} ({'+' if column[j] > 0 else '−'})" for j in strong]


def outlier_rows(subject: Subject, shown: ReportRows | None) -> list[dict[str, Any]]:
    """Return the furthest rows; none where all are reconstructed."""
    if shown is None or shown.errors is None or fully_reconstructed(subject, shown):
        return []
    median = float(np.median(shown.errors)) or float("nan")
    return [
        {
            "id": shown.name(i),
            "error": float(shown.errors[i]),
            "ratio": float(shown.errors[i]) / median,
            "label": None if shown.label is None else shown.label.text(i),
            "text": shown.rows.raw.take([i])[0] if subject.strings else None,
            "beyond": subject.threshold is not None and shown.errors[i] > subject.threshold,
        }
        for i in furthest_rows(shown.errors, FURTHEST).tolist()
    ]


def fully_reconstructed(subject: Subject, shown: ReportRows) -> bool:
    """Return whether all errors are no more than rounding."""
    if shown.errors is None:
        return False
    projection = subject.model.projection_
    eps = float(np.finfo(shown.rows.preprocessed.dtype).eps)
    length = projection.total_variance + getattr(projection, "mean_sq", 0.0)
    return bool(np.max(shown.errors, initial=0.0) <= 1000 * eps * length)
