"""Tables: the certificate, the plan, loadings or correlations, and the furthest rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mercer.arrays import to_numpy
from mercer.config import format_bytes
from mercer.report.html import format_fixed, format_number, format_percent, short_text
from mercer.report.rows import FURTHEST, MAX_CORRELATED, ReportRows, furthest_rows
from mercer.report.subject import Subject

Values = npt.NDArray[np.float64]
MAX_COLUMNS, MAX_CERTIFIED = 100, 500


class Cell(NamedTuple):
    """Text of a cell, the number it is sorted by, and its tint from −1 to 1."""

    text: str
    value: float
    tint: float


class LoadingsTable(NamedTuple):
    """Loadings, or correlations of columns and scores; one row per column of the data.

    `strongest` names the columns most related to each of the first two components.
    """

    rows: list[tuple[str, list[Cell]]]
    components: int
    columns: int
    correlations: bool
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
    """Return one row per method considered, and whether it was chosen.

    Without seconds, which depend on the machine and the moment.
    """
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
    # As many decimals for all as the largest needs for three digits.
    plain = 1e-3 < largest < 1e6
    places = int(np.clip(2 - np.floor(np.log10(largest)), 0, 4)) if plain else None
    rows = []
    for j in order.tolist():
        cells = [
            Cell(_format_cell(x, places), x, tint)
            for x, tint in zip(values[j].tolist(), (known[j] / largest).tolist(), strict=True)
        ]
        rows.append((names[j], cells))
    strongest = [_strongest(names, column) for column in known.T[:2]]
    return LoadingsTable(rows, values.shape[1], len(names), not subject.linear, strongest)


def _format_cell(x: float, places: int | None) -> str:
    if places is None or not np.isfinite(x):
        return format_number(x, 3)
    return format_fixed(x, places)


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
    median = float(np.median(shown.errors))
    rows = []
    for i in furthest_rows(shown.errors, FURTHEST).tolist():
        error = float(shown.errors[i])
        row = {"id": shown.name(i), "error": error}
        row["ratio"] = error / median if median > 0 else float("nan")
        row["label"] = None if shown.label is None else shown.label.text(i)
        row["text"] = shown.rows.raw.take([i])[0] if subject.strings else None
        row["beyond"] = subject.threshold is not None and error > subject.threshold
        rows.append(row)
    return rows


def fully_reconstructed(subject: Subject, shown: ReportRows) -> bool:
    """Return whether all errors are no more than rounding."""
    if shown.errors is None:
        return False
    projection = subject.model.projection_
    eps = float(np.finfo(shown.rows.preprocessed.dtype).eps)
    length = projection.total_variance + getattr(projection, "mean_sq", 0.0)
    return bool(np.max(shown.errors, initial=0.0) <= 1000 * eps * length)
