"""The subject of a report: the model, and its rows, of which a sample is drawn."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from mercer import progress
from mercer.arrays import Array, to_device_of, to_numpy
from mercer.data import Block, Fold
from mercer.estimators.base import ProjectionEstimator
from mercer.estimators.coloring import Coloring
from mercer.estimators.inspection import (
    EvaluatedRows,
    FittedSpectrum,
    fitted_feature_names,
    parts,
)
from mercer.estimators.novelty import NoveltyDetector
from mercer.estimators.subspace import SubspaceClassifier
from mercer.estimators.wrapper import Wrapper
from mercer.projection import LinearProjection
from mercer.report.html import format_count
from mercer.rules import MLE, BrokenStick, Fraction, GavishDonoho, Kaiser, ParallelAnalysis, Rule

Values = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
FURTHEST = 20
# At least this many of every class are drawn, as long as they are a small part of the sample.
MIN_PER_CLASS = 50
# Scores on the page, and numbers of the sampled rows that are kept for images and colors.
MAX_SCORES, MAX_VALUES = 1_000_000, 2_000_000
MAX_CORRELATED = 8

_SHARES: dict[str, Rule] = {
    "90 % of the variance": Fraction(0.9),
    "95 % of the variance": Fraction(0.95),
}
# These assume columns, which the feature space of a kernel does not have.
_LINEAR: dict[str, Rule] = {
    "eigenvalues above the mean (Kaiser)": Kaiser(),
    "broken stick (Jackson)": BrokenStick(),
    "parallel analysis (Horn)": ParallelAnalysis(20),
    "maximum likelihood (Minka)": MLE(),
    "optimal hard threshold (Gavish & Donoho)": GavishDonoho(),
}


class Cut(NamedTuple):
    """How many components a rule keeps; None and the reason where it cannot decide."""

    letter: str
    rule: str
    components: int | None
    reason: str


def _decision(spectrum: FittedSpectrum, rule: Rule) -> tuple[int | None, str]:
    try:
        components = spectrum.cut(rule)
    except ValueError:  # Minka's evidence
        return None, "does not apply: fewer rows than columns"
    if components is not None:
        return components, ""
    return None, "needs all eigenvalues" if rule.needs_all else f"more than {len(spectrum.values)}"


class Subject:
    """A model as it was passed, its steps, the PCA or KernelPCA in it, and facts about them.

    `outer` is a detector, denoiser or classifier around `model`, and `first` the estimator that
    rows reach first. Rows beyond the squared distance `threshold` are novel.
    """

    def __init__(self, model: Any) -> None:
        self.passed = model
        self.steps, last = parts(model)
        if isinstance(last, SubspaceClassifier):
            raise TypeError(
                "A SubspaceClassifier has components for every class, but a report describes one "
                "set of components: pass one of its estimators_ and the rows of that class."
            )
        self.outer = last if isinstance(last, Wrapper) else None
        if self.outer is not None:
            check_is_fitted(last)
            last = last.estimator_
        if not isinstance(last, ProjectionEstimator):
            raise TypeError(
                f"A report describes a mercer.PCA or mercer.KernelPCA, alone, in a "
                f"NoveltyDetector, Denoiser or NearestProjection, or at the end of a Pipeline; not "
                f"{last if isinstance(last, type) else type(last)}. The order is "
                f"write_report(model, X, path)."
            )
        check_is_fitted(last)
        self.model: Any = last
        self.first: Any = self.steps[0] if self.steps else last
        self.linear = isinstance(last.projection_, LinearProjection)
        self.kind = "linear PCA" if self.linear else "kernel PCA"
        self.strings = not hasattr(last, "n_features_in_")
        self.precomputed = getattr(last, "kernel", None) == "precomputed"
        self.has_columns = not (self.strings or self.precomputed)
        scalers = [step for step in self.steps if type(step).__name__ == "StandardScaler"]
        self.weighted = self.linear and last.projection_.weights is not None
        self.scaled = bool(scalers) or getattr(last, "scale", False)
        self.names = fitted_feature_names(model) if self.has_columns else []
        detector = self.outer if isinstance(self.outer, NoveltyDetector) else None
        self.threshold = None if detector is None else -float(detector.offset_)
        spectrum = FittedSpectrum(last)
        self.shares = np.asarray(spectrum.shares)
        rules = _SHARES | _LINEAR if self.linear else _SHARES
        self.cuts = [
            Cut(letter, name, *_decision(spectrum, rule))
            for letter, (name, rule) in zip("ABCDEFG", rules.items(), strict=False)
            if spectrum.total
        ]


@dataclass(frozen=True)
class Sample:
    """Rows that are drawn, in order; `spare` places are left for the furthest, not known yet."""

    at: Indices
    of: int
    seed: Any
    per_class: int = 0
    spare: int = 0

    @property
    def sentence(self) -> str:
        if len(self.at) == self.of:
            return f"All {format_count(self.of)} rows are drawn." if self.of > 1 else ""
        how = ["a random sample" + ("" if self.seed is None else f" (seed {self.seed})")]
        if self.per_class:
            how.append(f"with at least {self.per_class} rows of every class, or all if fewer")
        if self.spare:
            how.append(f"including the {self.spare} rows furthest from the components")
        drawn, rows = format_count(len(self.at)), format_count(self.of)
        return f"{drawn} of {rows} rows are drawn: {', '.join(how)}."

    def with_furthest(self, errors: Values) -> Sample:
        order = furthest_rows(errors, len(errors))
        new = order[~np.isin(order, self.at)][: self.spare]
        return replace(self, at=np.union1d(self.at, new))


def draw_sample(n: int, most: int, classes: Indices | None, seed: Any, spare: int) -> Sample:
    """Return at most `most` of n rows, drawn at random with some of every class.

    `classes` holds the class of each row, negative where it has none.
    """
    shown = int(seed) if isinstance(seed, (int, np.integer)) else None
    if n <= most:
        return Sample(np.arange(n), n, shown)
    rng = np.random.default_rng(seed)
    spare = min(spare, most // 2)
    certain, per_class = np.zeros(0, np.int64), 0
    if classes is not None and classes.max(initial=-1) >= 0:
        per_class = min(MIN_PER_CLASS, (most - spare) // 10 // (int(classes.max()) + 1))
        order = rng.permutation(n)
        order = order[np.argsort(classes[order], kind="stable")]
        place = np.arange(n) - np.searchsorted(classes[order], classes[order])  # within its class
        certain = order[(place < per_class) & (classes[order] >= 0)]
    others = np.setdiff1d(np.arange(n), certain)
    rest = rng.choice(others, most - spare - len(certain), replace=False)
    return Sample(np.sort(np.concatenate([certain, rest])), n, shown, per_class, spare)


def furthest_rows(errors: Values, count: int) -> Indices:
    """Return the rows with the largest errors, largest first; equal ones in their order."""
    return np.argsort(-errors, kind="stable")[:count]


class Survey(Fold):
    """Errors of all rows; scores and values of those in the sample; sums for correlations.

    `sums` are those of the weights, of columns x and scores y, their squares and their products.
    """

    label = "report"
    resumable = False

    def __init__(
        self, rows: EvaluatedRows, sample: Sample, count: int, keep: bool, correlated: int
    ) -> None:
        (n, *d), drawn, source = rows.raw.shape, len(sample.at), rows.preprocessed
        self.rows, self.sample, self.correlated = rows, sample, correlated
        self.errors = np.zeros(n) if rows.errors is not None else None
        self.scores = np.zeros((drawn, count))
        self.values = np.zeros((drawn, *d)) if keep else None
        self.row_bytes = max(
            part.row_bytes for part in (rows.scores, rows.errors) if part is not None
        )
        self.sums: tuple[Any, ...] = (0.0,) * 6
        self.shift: Any = 0.0
        # Squares of rows far from zero would lose digits; a shift would make sparse rows dense.
        if correlated and not source.sparse:
            few = np.unique(np.linspace(0, n - 1, 8).astype(int))
            self.shift = to_numpy(source.take(few)).mean(axis=0, dtype=np.float64)

    def add(self, block: Block) -> None:
        start, stop = block.start, block.stop
        scores = to_numpy(self.rows.scores.read(start, stop))
        if self.errors is not None and self.rows.errors is not None:
            self.errors[start:stop] = to_numpy(self.rows.errors.read(start, stop))[:, 0]
        first, last = np.searchsorted(self.sample.at, [start, stop])
        at = self.sample.at[first:last] - start
        self.scores[first:last] = scores[at, : self.scores.shape[1]]
        if self.values is not None and len(at):
            rows = to_device_of(block.rows, np.empty(0))[at]
            self.values[first:last] = rows.toarray() if hasattr(rows, "tocsr") else rows
        if self.correlated:
            self._correlate(self.rows.preprocessed.read(start, stop), scores, block.count)

    def _correlate(self, x: Any, scores: Any, w: Values) -> None:
        y, sparse = np.asarray(scores[:, : self.correlated], np.float64), hasattr(x, "tocsr")
        x = to_device_of(x, np.empty(0)).astype(np.float64)
        x = x if sparse else x - self.shift
        squares = x.multiply(x) if sparse else x * x
        new = (w.sum(), x.T @ w, squares.T @ w, w @ y, w @ (y * y), x.T @ (w[:, None] * y))
        self.sums = tuple(a + b for a, b in zip(self.sums, new, strict=True))

    def merge(self, other: Self) -> None:  # the arrays are shared
        self.sums = tuple(a + b for a, b in zip(self.sums, other.sums, strict=True))

    def spawn(self) -> Self:
        other = copy.copy(self)
        other.sums = (0.0,) * 6
        return other

    def arrays(self) -> dict[str, Array]:
        raise NotImplementedError("The pass of a report is not resumable.")

    def restore(self, arrays: dict[str, Array]) -> None:
        raise NotImplementedError("The pass of a report is not resumable.")

    @property
    def correlations(self) -> Values | None:
        """Pearson's r of each column and each score; NaN where one of them is constant."""
        if not self.correlated:
            return None
        x, xx, y, yy, xy = (part / self.sums[0] for part in self.sums[1:])
        vx = np.where(xx - x**2 <= 1e-13 * xx, np.nan, xx - x**2)
        with np.errstate(all="ignore"):
            r = (xy - np.outer(x, y)) / np.sqrt(np.outer(vx, yy - y**2))
        return np.asarray(np.clip(r, -1.0, 1.0))


@dataclass(frozen=True)
class ReportRows:
    """Squared distances and correlations of all rows, scores and values of a sample."""

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
    spare = 0 if rows.errors is None else FURTHEST
    sample = draw_sample(n, most, None if label is None else label.codes, seed, spare)
    count = min(k, max(2, MAX_SCORES // max(1, min(n, most))))
    keep = bool(d) and min(most, n) * d[0] <= MAX_VALUES
    # Loadings answer the same question; the columns of a kernel matrix are not features.
    correlate = bool(d) and not subject.linear and not subject.precomputed
    with progress.session():
        state = Survey(rows, sample, count, keep, min(MAX_CORRELATED, k) if correlate else 0)
        rows.raw.fold(state)
    scores, values, errors = state.scores, state.values, state.errors
    if errors is not None and sample.spare:
        wider = sample.with_furthest(errors)
        new = np.setdiff1d(wider.at, sample.at)
        order = np.argsort(np.concatenate([sample.at, new]))
        late = to_numpy(rows.scores.take(new))[:, :count]
        scores = np.concatenate([scores, late])[order]
        if values is not None:
            values = np.concatenate([values, to_numpy(rows.raw.take(new))])[order]
        sample = wider
    return ReportRows(
        rows, colorings, label, ids, sample, scores, errors, values, state.correlations
    )
