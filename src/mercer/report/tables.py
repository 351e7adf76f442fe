"""Tables: the certificate, the plan, what axes are made of, the furthest rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.arrays import to_numpy
from mercer.config import format_bytes
from mercer.report.spectrum import shares
from mercer.report.subject import Subject
from mercer.report.survey import Found
from mercer.report.text import fixed, number, percent, short

Values = npt.NDArray[np.float64]
AXES, COLUMNS, CERTIFIED = 8, 100, 500


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and what it is sorted by."""

    text: str
    value: float
    tint: float = 0.0


@dataclass(frozen=True)
class Makings:
    """What axes are made of: a row a column of the data, a column an axis."""

    rows: list[tuple[str, list[Cell]]]
    axes: int
    of: int
    """Columns there are."""
    correlations: bool
    strongest: list[list[str]]
    """Of the first two axes, the columns that each goes with."""


def certified(subject: Subject) -> list[list[str]]:
    """Return a row an axis: variance, share, sum of shares, residual, error, angle."""
    found = subject.model.certificate_
    share = shares(subject)
    columns = zip(
        found.eigenvalues,
        share,
        np.cumsum(share),
        found.residuals,
        found.eigenvalue_errors,
        np.degrees(found.angles),
        strict=True,
    )
    rows = []
    for i, (value, part, together, residual, error, angle) in enumerate(columns, start=1):
        if i > CERTIFIED:
            break
        figures = [number(value, 6), percent(part), percent(together)]
        figures += [_small(residual), _small(error), f"{_small(angle)}°"]
        rows.append([str(i), *figures])
    return rows


def _small(x: float) -> str:
    """Write an error: two digits and the power of ten."""
    return number(x) if x == 0 or not np.isfinite(x) else f"{x:.1e}".replace("-", "−")


def planned(subject: Subject) -> list[tuple[bool, list[str]]]:
    """Return a row a method that was considered, and whether it is the one chosen.

    Without seconds: they are of this machine, and of this moment.
    """
    plan = subject.model.plan_
    rows = []
    for candidate in plan.candidates:
        cost = candidate.cost
        work = cost.products + cost.sparse + cost.factor
        figures = [str(cost.passes), f"{work:.1e}", format_bytes(cost.memory)]
        figures.append("yes" if candidate.fits else "no")
        chosen = candidate.method is plan.method or candidate.method == plan.method
        rows.append((chosen, [candidate.method.label(plan.size), *figures]))
    return rows


def makings(subject: Subject, found: Found | None) -> Makings | None:
    """Return loadings, or for a kernel the correlations of scores and columns."""
    names = subject.names
    if not names or not subject.model.n_components_:
        return None
    if subject.linear:
        parts = to_numpy(subject.model.loadings_[:, :AXES]).astype(np.float64)
    elif found is None or found.relation is None:
        return None
    else:
        parts = found.relation.correlations
    size = np.nan_to_num(parts**2).sum(axis=1)
    order = np.argsort(-size, kind="stable")[:COLUMNS]
    most = float(np.max(np.abs(np.nan_to_num(parts)), initial=0.0)) or 1.0
    order = order[np.argsort(-np.nan_to_num(parts[order, 0], nan=-np.inf), kind="stable")]
    places = int(np.clip(2 - np.floor(np.log10(most)), 0, 4)) if 1e-3 < most < 1e6 else None
    rows = []
    for j in order.tolist():
        tints = np.nan_to_num(parts[j]) / most
        pairs = zip(parts[j].tolist(), tints.tolist(), strict=True)
        rows.append((names[j], [Cell(_fixed(x, places), x, tint) for x, tint in pairs]))
    strong = [_strongest(names, column) for column in parts.T[:2]]
    return Makings(rows, parts.shape[1], len(names), not subject.linear, strong)


def _fixed(x: float, places: int | None) -> str:
    """Write a number with as many decimals as the others beside it have."""
    if places is None or not np.isfinite(x):
        return number(x, 3)
    return fixed(x, places)


def _strongest(names: list[str], column: Values, least: float = 0.6, most: int = 3) -> list[str]:
    """Return the columns that an axis goes with, and the direction; none where many do."""
    size = np.abs(np.nan_to_num(column))
    top = float(size.max(initial=0.0))
    strong = np.flatnonzero(size >= least * top)
    if not top or len(strong) > 4 * most:
        return []
    strong = strong[np.argsort(-size[strong], kind="stable")][:most]
    return [f"{short(names[j], 40)} ({'+' if column[j] > 0 else '−'})" for j in strong]


def histogram(errors: Values, threshold: float | None) -> dict[str, Any]:
    """Count squared distances in bins; of logarithms where a few are far from the rest."""
    positive = errors[errors > 0]
    top = float(errors.max(initial=0.0))
    log = len(positive) > 1 and top > 50 * float(np.median(positive))
    values = np.log10(positive) if log else errors
    if log:  # Rounding alone would stretch the scale to its left.
        values = values[values > np.log10(top) - 8]
    bins = int(np.clip(np.sqrt(len(values)) * 1.5, 8, 60))
    low, high = float(values.min()), float(values.max())
    if not high - low > 1e-9 * max(abs(low), abs(high)):  # all of them are the same
        edge = 0.1 if log else 0.05 * abs(low) or 1e-300
        low, high, bins = low - edge, high + edge, 1
    counts, edges = np.histogram(values, bins=bins, range=(low, high))
    edges = 10**edges if log else edges
    return {
        "counts": counts.tolist(),
        "edges": [float(f"{edge:.6g}") for edge in edges],
        "log": bool(log),
        "left": int(len(errors) - len(values)),
        "threshold": threshold,
    }
