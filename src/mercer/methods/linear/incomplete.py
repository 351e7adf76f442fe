"""What incomplete rows show of their columns, and the components of a factor model of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mercer.arrays import Matrix, Vector, eigh, like, svd, to_numpy
from mercer.certificate import Axes, Evidence, Figure
from mercer.config import get_config
from mercer.data import ArraySource, Block, NonFiniteSearch, Source, SparseSource, not_finite
from mercer.data.errors import format_names
from mercer.linalg.incomplete import Expectation, FactorModel, ObservedMoments, observed
from mercer.linalg.maximization import Sums
from mercer.linalg.posterior import unpack_symmetric
from mercer.messages import counted
from mercer.methods.linear.direct import linear_axes
from mercer.methods.preparation import column_deviation
from mercer.problem import Problem
from mercer.projection import IncompleteProjection

# Rows that show about where the columns are.
_ROWS = 2000
# Shorter factors count as this share of the noise: scores divide by them.
_LEAST_FACTOR = 1e-4


def sample(source: Source, rows: int, rng: np.random.Generator) -> Source:
    """Return some rows in memory, in random order; all of a source that has no more."""
    n, d = source.shape
    rows = max(2, min(rows, get_config().budget // (64 * d)))
    if n <= rows:
        return source
    at = np.sort(rng.choice(n, rows, replace=False))
    some = source.gather(at)
    part: Source = (SparseSource if source.sparse else ArraySource)(some)
    return part.weighted(None if source.weights is None else source.weights[at])


@dataclass(frozen=True)
class Columns:
    """What is observed of the columns."""

    base: Vector  # mean of the observed entries
    deviation: Vector  # what entries are divided by
    variance: float  # sum of the variances of the columns, over n
    notes: tuple[str, ...]

    @property
    def scales(self) -> Vector:
        """What standardized entries are multiplied by: zero in constant columns."""
        return np.where(np.isfinite(self.deviation), self.deviation, 0.0)

    def filled(self, some: Source, model: FactorModel) -> tuple[float, Any]:
        """Return the share of the entries that some rows have, and the rows with means for others.

        Sparse rows stay sparse.
        """
        W, _, X = observed(Block(0, some.read(0, some.shape[0]), None), model)
        share = float(W.sum()) / (some.shape[0] * some.shape[1])
        return max(share, 1e-12), X if hasattr(X, "tocsr") else to_numpy(X)


def observed_columns(problem: Problem) -> Columns:
    """Return the statistics of the observed entries of every column, in a pass or two."""
    source = problem.source
    some, base = sample(source, _ROWS, problem.rng), np.zeros(source.shape[1])
    for rows in (some, source, source):
        fold = rows.fold(ObservedMoments(base, source.reference))
        sums = {name: to_numpy(value) for name, value in fold.sums.items()}
        if not np.all(np.isfinite(sums["square"])):
            raise not_finite(source.fold(NonFiniteSearch(missing=True)).found, source)
        weight, entry, square = (sums[name] for name in ("weight", "entry", "square"))
        offset = entry / np.maximum(weight, 1e-300)
        base = base + offset
        # About a base far from the mean, the variance would lose digits.
        if rows is source and not np.any(weight * offset**2 > 0.9 * square):
            break
    _, total, empty = sums["rows"]
    require_entries(source, sums["seen"] > 0.0)
    squares = np.maximum(square - weight * offset**2, 0.0)
    shares = squares * (problem.divisor / np.maximum(weight - 1.0, 1e-300))
    deviation = column_deviation(problem, shares, base)
    variance = float((squares / np.maximum(weight, 1e-300) / deviation**2).sum())
    missing = 1.0 - float(sums["seen"].sum()) / (total * len(base))
    notes = [f"{100.0 * missing:.3g} % of the entries are missing."]
    if empty:
        notes.append(f"{counted(int(empty), 'row has', 'rows have')} no entries: scores are zero.")
    return Columns(base, deviation, variance, tuple(notes))


def require_entries(source: Source, seen: np.ndarray[Any, Any]) -> None:
    """Raise if columns have no entries: `seen` tells which have some."""
    at, names = np.flatnonzero(~seen), source.names
    if len(at):
        shown = format_names(str(i) if names is None else names[i] for i in at.tolist())
        raise ValueError(
            f"{counted(len(at), 'column')} of X ({shown}) {'has' if len(at) == 1 else 'have'} no "
            f"entries, so nothing is known about {'it' if len(at) == 1 else 'them'}. Drop "
            f"{'it' if len(at) == 1 else 'them'}."
        )


@dataclass(frozen=True)
class Components:
    """Principal components of the rows as the model expects them, in decreasing order."""

    model: FactorModel
    vectors: Matrix
    values: Vector
    total: float

    @classmethod
    def of(cls, problem: Problem, columns: Columns, model: FactorModel) -> Self:
        r"""Return the components in the span of the factors, in one pass.

        With :math:`A = US`, the expected score of row i along the columns of U is
        :math:`S^{-1}(S^2 + \sigma^2)z_i`, and its covariance follows from that of z_i: where no
        entry is missing it is zero, and the variances are those of the rows.
        """
        U, lengths, _ = svd(model.factors)
        lengths = np.maximum(lengths, _LEAST_FACTOR * np.sqrt(model.noise))
        loadings = np.column_stack([U * lengths, model.mean])
        model = replace(model, loadings=loadings, spread=None)
        sums = Sums.of(problem.source.fold(Expectation(model, problem.source.reference)))
        second, noise = lengths**2 + model.noise, model.noise
        scatter = sums.row_factors - np.diag(sums.rows * noise / second)
        stretch = second / lengths
        scatter = scatter * np.outer(stretch, stretch) / problem.divisor
        values, rotation = eigh(scatter)
        total = _expected_total(model, sums) / problem.divisor
        return cls(model, U @ rotation, np.maximum(values, 0.0), total)

    def axes(
        self, problem: Problem, columns: Columns, notes: tuple[str, ...], *, converged: bool
    ) -> Axes:
        """Return the components in the user's units, with estimates as their evidence."""
        model, reference = self.model, problem.source.reference
        others, held = np.full(1, model.noise), float(self.values.sum())
        evidence = Evidence.of_estimates(
            self.values, others, self.total, " ".join(notes), converged=converged
        )
        bounds = {"the model of the missing entries": Figure(held, "estimate")}
        evidence = replace(evidence, bounds=bounds)
        axes = linear_axes(
            problem,
            columns.base + columns.scales * model.mean,
            columns.deviation,
            like(self.vectors, reference),
            self.values,
            evidence,
            total=self.total,
        )
        unit = 1.0 if problem.scale else float(np.ldexp(1.0, problem.exponent))
        projection = IncompleteProjection(
            **vars(axes.projection), factors=model.factors * unit, noise=model.noise * unit**2
        )
        return replace(axes, projection=projection)


def _expected_total(model: FactorModel, sums: Sums) -> float:
    """Return the expected sum of squares of all entries about the means of the model."""
    A, m = model.factors, model.mean
    known = sums.square - 2.0 * m * sums.entry + m**2 * sums.weight
    missing = sums.rows - sums.weight
    unseen = sums.row_factors - unpack_symmetric(sums.factors, model.k)
    expected = np.einsum("ja,jab,jb->j", A, unseen, A) + missing * model.noise
    return float((known + expected).sum())
