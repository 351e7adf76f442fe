"""The rows of a report: one pass over all of them, and the sample that is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.arrays import Array, to_numpy
from mercer.data import Block, Fold, Source
from mercer.estimators.coloring import Coloring
from mercer.estimators.inspection import EvaluatedRows
from mercer.report.html import format_count
from mercer.report.subject import Subject

Values = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
FURTHEST = 20
# At least this many of every class are drawn, as long as they are a small part of the sample.
MIN_PER_CLASS = 50
# Scores on the page, and numbers of the sampled rows that are kept for images and colors.
MAX_SCORES, MAX_VALUES = 1_000_000, 2_000_000
MAX_CORRELATED = 8


@dataclass(frozen=True)
class Sample:
    """Rows that are drawn, in order, and how they were chosen.

    `spare` are some that make way for the furthest rows, which are known only after the pass.
    """

    at: Indices
    of: int
    seed: Any
    per_class: int = 0
    furthest: int = 0
    spare: Indices = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def sentence(self) -> str:
        """Say which rows are drawn."""
        if len(self.at) == self.of:
            return f"All {format_count(self.of)} rows are drawn." if self.of > 1 else ""
        how = ["a random sample" + ("" if self.seed is None else f" (seed {self.seed})")]
        if self.per_class:
            how.append(f"with at least {self.per_class} rows of every class, or all if fewer")
        if self.furthest:
            how.append(f"including the {self.furthest} rows furthest from the components")
        drawn, rows = format_count(len(self.at)), format_count(self.of)
        return f"{drawn} of {rows} rows are drawn: {', '.join(how)}."

    def with_furthest(self, errors: Values) -> Sample:
        """Return a sample with the furthest rows in place of as many spare ones."""
        top = furthest_rows(errors, len(self.spare))
        new = np.setdiff1d(top, self.at)
        replaced = np.setdiff1d(self.spare, top, assume_unique=True)[: len(new)]
        at = np.union1d(np.setdiff1d(self.at, replaced), new)
        return replace(self, at=at, furthest=len(top))


def draw_sample(n: int, most: int, classes: Indices | None, seed: Any) -> Sample:
    """Return at most `most` of n rows, drawn at random with some of every class.

    `classes` holds the class of each row, negative where it has none.
    """
    shown = int(seed) if isinstance(seed, (int, np.integer)) else None
    if n <= most:
        return Sample(np.arange(n), n, shown)
    rng = np.random.default_rng(seed)
    n_spare = min(FURTHEST, most // 2)
    certain, per_class = np.zeros(0, np.int64), 0
    if classes is not None and classes.max(initial=-1) >= 0:
        per_class = min(MIN_PER_CLASS, (most - n_spare) // 10 // (int(classes.max()) + 1))
    if classes is not None and per_class:
        order = rng.permutation(n)
        order = order[np.argsort(classes[order], kind="stable")]
        place = np.arange(n) - np.searchsorted(classes[order], classes[order])  # within its class
        certain = order[(place < per_class) & (classes[order] >= 0)]
    others = np.setdiff1d(np.arange(n), certain)
    rest = rng.choice(others, most - len(certain), replace=False)
    at = np.sort(np.concatenate([certain, rest]))
    return Sample(at, n, shown, per_class, spare=rest[len(rest) - n_spare :])


def furthest_rows(errors: Values, count: int) -> Indices:
    """Return the rows with the largest errors, largest first; equal ones in their order."""
    count = min(count, len(errors))
    if count < 1:
        return np.zeros(0, np.int64)
    cut = np.partition(errors, len(errors) - count)[len(errors) - count]
    above = np.flatnonzero(errors >= cut)
    return above[np.argsort(-errors[above], kind="stable")][:count]


class CrossMoments:
    """Weighted sums of columns, scores and their products."""

    def __init__(self, source: Source, count: int, shift: Any = None) -> None:
        d = source.shape[1]
        self.source, self.count = source, count
        # Squares of rows far from zero would lose digits; a shift would make sparse rows dense.
        if shift is None:
            few = np.unique(np.linspace(0, source.shape[0] - 1, 8).astype(int))
            shift = np.zeros(d) if source.sparse else to_numpy(source.take(few)).mean(axis=0)
        self.shift = np.asarray(shift, np.float64)
        self.weight, self.x, self.xx = 0.0, np.zeros(d), np.zeros(d)
        self.y, self.yy, self.xy = np.zeros(count), np.zeros(count), np.zeros((d, count))

    def add(self, rows: Any, scores: Any, weights: Values) -> None:
        """Add rows and their scores."""
        y = np.asarray(scores[:, : self.count], np.float64)
        x: Any = rows.astype(np.float64)
        if not hasattr(rows, "tocsr"):
            x = to_numpy(x) - self.shift
        self.weight += float(weights.sum())
        self.x += x.T @ weights
        self.xx += (x.multiply(x) if hasattr(x, "tocsr") else x * x).T @ weights
        self.xy += x.T @ (weights[:, None] * y)
        self.y += weights @ y
        self.yy += weights @ (y * y)

    def merge(self, other: Self) -> None:
        """Add the sums of another."""
        for name in ("weight", "x", "xx", "y", "yy", "xy"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def spawn(self) -> Self:
        """Return empty sums."""
        return type(self)(self.source, self.count, self.shift)

    @property
    def correlations(self) -> Values:
        """Pearson's r of each column and each score; NaN where one of them is constant."""
        w = self.weight
        covariance = self.xy / w - np.outer(self.x / w, self.y / w)
        vx, vy = self.xx / w - (self.x / w) ** 2, self.yy / w - (self.y / w) ** 2
        constant = vx <= 1e-13 * (self.xx / w)
        with np.errstate(all="ignore"):
            r = covariance / np.sqrt(np.outer(np.where(constant, np.nan, vx), vy))
        return np.asarray(np.clip(r, -1.0, 1.0))


class Survey(Fold):
    """Errors of all rows; scores and values of those in the sample; sums for correlations."""

    label = "report"
    resumable = False

    def __init__(
        self, rows: EvaluatedRows, sample: Sample, count: int, keep: bool, moments: Any
    ) -> None:
        n, drawn = rows.raw.shape[0], len(sample.at)
        self.rows, self.sample, self.moments = rows, sample, moments
        self.errors = np.zeros(n) if rows.errors is not None else None
        self.scores = np.zeros((drawn, count))
        self.values = np.zeros((drawn, rows.raw.shape[1])) if keep else None
        self.row_bytes = max(
            part.row_bytes for part in (rows.scores, rows.errors) if part is not None
        )

    def add(self, block: Block) -> None:
        start, stop = block.start, block.stop
        scores = to_numpy(self.rows.scores.read(start, stop))
        if self.errors is not None and self.rows.errors is not None:
            self.errors[start:stop] = to_numpy(self.rows.errors.read(start, stop))[:, 0]
        first, last = np.searchsorted(self.sample.at, [start, stop])
        at = self.sample.at[first:last] - start
        self.scores[first:last] = scores[at, : self.scores.shape[1]]
        if self.values is not None and len(at):
            rows = block.rows[at] if hasattr(block.rows, "tocsr") else to_numpy(block.rows)[at]
            self.values[first:last] = rows.toarray() if hasattr(rows, "toarray") else rows
        if self.moments is not None:
            self.moments.add(self.rows.preprocessed.read(start, stop), scores, block.count)

    def merge(self, other: Self) -> None:
        if self.moments is not None:  # the arrays are shared
            self.moments.merge(other.moments)

    def spawn(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.moments = None if self.moments is None else self.moments.spawn()
        return other

    def arrays(self) -> dict[str, Array]:
        raise NotImplementedError("The pass of a report is not resumable.")

    def restore(self, arrays: dict[str, Array]) -> None:
        raise NotImplementedError("The pass of a report is not resumable.")


@dataclass(frozen=True)
class ReportRows:
    """Rows of a report: squared distances and correlations of all, scores and values of a sample.

    `label` is the first of the colorings, if labels were passed.
    """

    rows: EvaluatedRows
    colorings: list[Coloring]
    label: Coloring | None
    ids: npt.NDArray[Any] | None
    sample: Sample
    scores: Values
    errors: Values | None
    values: Values | None
    correlations: Values | None

    def name(self, row: int) -> Any:
        """Return the name of a row, or its number."""
        return row if self.ids is None else self.ids[row]


def survey_rows(
    subject: Subject,
    rows: EvaluatedRows,
    colorings: list[Coloring],
    *,
    labeled: bool,
    ids: Any,
    most: int,
    seed: Any,
) -> ReportRows:
    """Pass over the rows once, then fetch the furthest ones into the sample."""
    (n, *d), k = rows.raw.shape, int(subject.model.n_components_)
    label = colorings[0] if labeled else None
    sample = draw_sample(n, most, None if label is None else label.codes, seed)
    count = min(k, max(2, MAX_SCORES // max(1, min(n, most))))
    keep = bool(d) and min(most, n) * d[0] <= MAX_VALUES
    # Loadings answer the same question; the columns of a kernel matrix are not features.
    correlate = bool(d) and not subject.linear and not subject.precomputed and k > 0
    moments = CrossMoments(rows.preprocessed, min(MAX_CORRELATED, k)) if correlate else None
    with progress.session():
        state = rows.raw.fold(Survey(rows, sample, count, keep, moments))
    scores, values, errors = state.scores, state.values, state.errors
    if errors is not None and len(sample.spare):
        wider = sample.with_furthest(errors)
        new, stay = np.setdiff1d(wider.at, sample.at), np.isin(sample.at, wider.at)
        order = np.argsort(np.concatenate([sample.at[stay], new]))
        late = [to_numpy(rows.scores.read(i, i + 1))[:, :count] for i in new.tolist()]
        scores = np.concatenate([scores[stay], *late])[order]
        if values is not None:
            values = np.concatenate([values[stay], to_numpy(rows.raw.take(new))])[order]
        sample = wider
    correlations = None if state.moments is None else state.moments.correlations
    return ReportRows(rows, colorings, label, ids, sample, scores, errors, values, correlations)
