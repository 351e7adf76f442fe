"""One pass over the rows: their errors, the scores of those drawn, correlations."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.arrays import Array, to_numpy
from mercer.data import Block, Fold, Source
from mercer.estimators.images import as_rows
from mercer.estimators.pipeline import through
from mercer.estimators.validation import check_rows
from mercer.report.relation import Relation
from mercer.report.sample import Sample, with_furthest
from mercer.report.subject import Subject

Values = npt.NDArray[np.float64]
# Numbers of the rows themselves that are kept, for pictures and colours.
KEPT = 2_000_000


class Remembered(Source):
    """Rows of a source; a block that is read again is not computed again."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.shape, self.dtype, self.names = source.shape, source.dtype, source.names
        self.weights, self.sparse = source.weights, source.sparse
        self.parallel, self.uneven = source.parallel, source.uneven
        self.last = threading.local()

    @property
    def reference(self) -> Array:
        return self.source.reference

    @property
    def row_bytes(self) -> int:
        return self.source.row_bytes

    def read(self, start: int, stop: int) -> Array:
        if getattr(self.last, "place", None) != (start, stop):
            self.last.place, self.last.rows = None, None
            self.last.rows = self.source.read(start, stop)
            self.last.place = (start, stop)
        return self.last.rows

    def whole(self) -> Any:
        return self.source.whole()

    def _take(self, at: npt.NDArray[Any]) -> Array:
        return self.source.take(at)


@dataclass(frozen=True)
class Rows:
    """Rows as they were given, as the axes see them, and what the axes make of them."""

    raw: Source
    treated: Source
    scores: Source
    residuals: Source | None

    @property
    def weights(self) -> Any:
        """How often each row counts, or None."""
        return self.raw.weights


def rows_of(subject: Subject, X: Any, image_shape: tuple[int, ...] | None) -> Rows:
    """Return rows of X, nothing computed yet."""
    model = subject.model
    X = X if image_shape is None else as_rows(X, image_shape)
    if subject.steps:
        raw: Source = Remembered(check_rows(subject.steps[0], X, reset=False))
        treated: Source = Remembered(through(subject.steps, raw, int(model.n_features_in_)))
        model._rows(treated, reset=False)
    else:
        raw = treated = Remembered(model._rows(X, reset=False))
    # A kernel matrix does not tell k(x, x) of its rows.
    known = getattr(model, "kernel_", 1) is not None
    return Rows(
        raw,
        treated,
        model._scores(treated),
        model._residuals(treated) if known else None,
    )


class Survey(Fold):
    """Errors of all rows; of those drawn, scores and the rows themselves."""

    label = "report"
    resumable = False

    def __init__(self, rows: Rows, sample: Sample, axes: int, keep: bool, relation: Any) -> None:
        n, drawn = rows.raw.shape[0], len(sample.at)
        self.rows, self.sample, self.relation = rows, sample, relation
        self.errors = np.zeros(n) if rows.residuals is not None else None
        self.scores = np.zeros((drawn, axes))
        self.kept = np.zeros((drawn, rows.raw.shape[1])) if keep else None
        parts = [rows.scores, *([] if rows.residuals is None else [rows.residuals])]
        self.row_bytes = max(part.row_bytes for part in parts)

    def add(self, block: Block) -> None:
        start, stop = block.start, block.stop
        scores = to_numpy(self.rows.scores.read(start, stop))
        if self.errors is not None and self.rows.residuals is not None:
            self.errors[start:stop] = to_numpy(self.rows.residuals.read(start, stop))[:, 0]
        first, last = np.searchsorted(self.sample.at, [start, stop])
        at = self.sample.at[first:last] - start
        self.scores[first:last] = scores[at, : self.scores.shape[1]]
        if self.kept is not None and len(at):
            rows = block.rows[at] if hasattr(block.rows, "tocsr") else to_numpy(block.rows)[at]
            self.kept[first:last] = rows.toarray() if hasattr(rows, "toarray") else rows
        if self.relation is not None:
            self.relation.add(self.rows.treated.read(start, stop), scores, block.count)

    def merge(self, other: Self) -> None:
        if self.relation is not None:  # the arrays are shared
            self.relation.merge(other.relation)

    def spawn(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.relation = None if self.relation is None else self.relation.spawn()
        return other

    def arrays(self) -> dict[str, Array]:
        raise NotImplementedError("a report is not begun in one place and ended in another.")

    def restore(self, arrays: dict[str, Array]) -> None:
        raise NotImplementedError("a report is not begun in one place and ended in another.")


@dataclass(frozen=True)
class Found:
    """What a pass over the rows has found.

    Attributes
    ----------
    sample : Sample
        The rows drawn.
    scores : ndarray of shape (drawn, axes)
    errors : ndarray of shape (n,) or None
        Squared distances from the axes, of all rows.
    kept : ndarray of shape (drawn, d) or None
        The rows drawn, as they were given.
    relation : Relation or None
        Correlations of columns and scores, over all rows.
    """

    rows: Rows
    sample: Sample
    scores: Values
    errors: Values | None
    kept: Values | None
    relation: Relation | None


def surveyed(rows: Rows, sample: Sample, *, most: int, axes: int, related: int) -> Found:
    """Pass over the rows once, and fetch the furthest, which are known only then."""
    vectors = len(rows.raw.shape) > 1
    keep = vectors and min(most, rows.raw.shape[0]) * rows.raw.shape[1] <= KEPT
    # The columns of a kernel matrix are rows, and not what is correlated.
    related = related if vectors and rows.residuals is not None else 0
    relation = Relation(rows.treated, related) if related else None
    with progress.session():
        state = rows.raw.fold(Survey(rows, sample, axes, keep, relation))
    scores, kept, errors = state.scores, state.kept, state.errors
    if errors is not None and len(sample.spare):
        wider = with_furthest(sample, errors)
        new = np.setdiff1d(wider.at, sample.at)
        stay = np.isin(sample.at, wider.at)
        order = np.argsort(np.concatenate([sample.at[stay], new]))
        late = [to_numpy(rows.scores.read(i, i + 1))[:, :axes] for i in new.tolist()]
        scores = np.concatenate([scores[stay], *late])[order]
        if kept is not None:
            kept = np.concatenate([kept[stay], to_numpy(rows.raw.take(new))])[order]
        sample = wider
    return Found(rows, sample, scores, errors, kept, state.relation)
