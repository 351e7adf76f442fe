"""The number of components by cross-validation over entries."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import Array, entry_rows, like, namespace, to_numpy, with_data
from mercer.data import Block, Source, SumFold
from mercer.data.derived import Entrywise
from mercer.linalg.incomplete import FactorModel, observed
from mercer.linalg.posterior import solve_posteriors
from mercer.methods.linear.expectation_maximization import EM
from mercer.methods.linear.incomplete import observed_columns, sample
from mercer.problem import Problem
from mercer.rules import Count, CrossValidation

# Numbers of components grow by this factor until the error has grown twice.
_GROWTH = 1.5
# The fewest components whose error is within this share of the least are chosen.
_TIE = 1e-3


def choose_components(problem: Problem, method: EM, rule: CrossValidation) -> int:
    """Return the number of components that predict held-out entries best."""
    some = sample(problem.source, int(rule.rows), problem.rng)
    problem = replace(problem, source=some)
    seed, most = int(problem.rng.integers(2**63)), min(some.shape) - 1
    most = max(1, most if rule.most is None else min(most, int(rule.most)))

    @functools.cache
    def error(k: int) -> float:
        return sum(
            _error(problem, method, k, (part, int(rule.folds), seed)) for part in range(rule.folds)
        )

    tried, k = [1], 1
    while k < most and not _rises([error(each) for each in tried[-3:]]):
        k = min(most, max(k + 1, round(_GROWTH * k)))
        tried.append(k)
    while True:  # between the neighbors of the best
        best = min(tried, key=error)
        at = tried.index(best)
        near = [best, *tried[max(0, at - 1) : at], *tried[at + 1 : at + 2]]
        new = [(best + other) // 2 for other in near if abs(best - other) > 1]
        if not new:
            break
        tried = sorted({*tried, *new})
    return next(k for k in tried if error(k) <= (1.0 + _TIE) * error(best))


def _rises(errors: list[float]) -> bool:
    return len(errors) == 3 and errors[0] < errors[1] < errors[2]


def _error(problem: Problem, method: EM, k: int, part: tuple[int, int, int]) -> float:
    """Return the squared error of the entries of one part, predicted from the others."""
    source = problem.source
    training = HeldOut(source, part).weighted(source.weights)
    problem = replace(problem, source=training, rule=Count(k))
    run = method.run(problem, observed_columns(problem), k)
    return float(source.fold(PredictionError(run.model, part, source.reference)).result)


def part_of(start: int, shape: tuple[int, ...], parts: tuple[int, int, int]) -> Any:
    """Return whether entries belong to a part: a hash of row, column and seed decides."""
    _, count, seed = parts
    rows = np.arange(start, start + shape[0], dtype=np.uint64)[:, None]
    with np.errstate(over="ignore"):
        x: Any = rows * np.uint64(shape[1]) + np.arange(shape[1], dtype=np.uint64)
        x = (x + np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return (x ^ (x >> np.uint64(31))) % np.uint64(count) == np.uint64(parts[0])


class HeldOut(Entrywise):
    """Rows in which the entries of one part are missing."""

    def __init__(self, source: Source, part: tuple[int, int, int]) -> None:
        self.part = part
        super().__init__(source, source.dtype)

    def changed(self, block: Block) -> Array:
        return without(block, self.part)


def without(block: Block, part: tuple[int, int, int], *, others: bool = False) -> Array:
    """Return rows without the entries of one part, or without the others."""
    rows = block.rows
    held = part_of(block.start, tuple(rows.shape), part) ^ others
    if hasattr(rows, "tocsr"):
        at = to_numpy(entry_rows(rows)), to_numpy(rows.indices)
        missing = like(held[at], rows.data)
        return with_data(rows, namespace(rows.data).where(missing, np.nan, rows.data))
    xp = namespace(rows)
    return xp.where(like(held, rows), np.nan, rows)


class PredictionError(SumFold):
    """The squared error of the entries of one part, predicted from the others of their rows."""

    label = "cross-validation"

    def __init__(self, model: FactorModel, part: tuple[int, int, int], reference: Array) -> None:
        self.model, self.part = replace(model, spread=None), part
        self.sums = {"result": like(np.zeros(()), reference)}
        self.row_bytes = 8 * (8 * len(model.base) + model.k * (model.k + 1))

    def add(self, block: Block) -> None:
        model = self.model
        W, R, _ = observed(Block(0, without(block, self.part), None), model)
        H, _, X = observed(Block(0, without(block, self.part, others=True), None), model)
        squares, means = (like(x, self.sums["result"]) for x in model.products())
        linear = R @ like(model.factors, squares) - W @ means
        Z, *_ = solve_posteriors(W @ squares, linear, model.noise)
        expected = Z @ like(model.factors, Z).T + like(model.mean, Z)
        if hasattr(H, "tocsr"):
            at = entry_rows(H), H.indices
            X, H, weights = X.data, H.data, like(block.count, Z)[at[0]]
            self.sums["result"] += weights @ (X - H * expected[at]) ** 2
            return
        errors = namespace(Z).sum((X - H * expected) ** 2, axis=1)
        self.sums["result"] += like(block.count, Z) @ errors
