"""Which rows are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.report.text import count

Numbers = npt.NDArray[np.int64]
FURTHEST = 20
# Of every class this many are drawn at least, as long as that is a small part of all.
LEAST = 50


@dataclass(frozen=True)
class Sample:
    """Rows that are drawn, in order, and how they were chosen.

    `spare` are some of them that make way for the furthest, which are known later.
    """

    at: Numbers
    of: int
    seed: Any
    least: int = 0
    furthest: int = 0
    spare: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def sentence(self) -> str:
        """Say which rows are drawn."""
        if len(self.at) == self.of:
            return f"All {count(self.of)} rows are drawn." if self.of > 1 else ""
        how = [f"chosen at random with seed {self.seed}" if self.seed is not None else ""]
        how[0] = how[0] or "chosen at random"
        if self.least:
            how.append(f"at least {self.least} of every class that has as many")
        if self.furthest:
            how.append(f"and the {self.furthest} furthest from the components")
        return f"{count(len(self.at))} of {count(self.of)} rows are drawn, {', '.join(how)}."


def chosen(n: int, most: int, classes: Numbers | None, seed: Any) -> Sample:
    """Choose rows at random, some of every class.

    Parameters
    ----------
    n, most : int
        Rows there are, and rows that may be drawn.
    classes : ndarray of shape (n,) or None
        The number of each row's class; below zero where it has none.
    seed : int, Generator or None
    """
    shown = int(seed) if isinstance(seed, (int, np.integer)) else None
    if n <= most:
        return Sample(np.arange(n), n, shown)
    rng = np.random.default_rng(seed)
    late = min(FURTHEST, most // 2)
    room = most - late
    sure, least = np.zeros(0, np.int64), 0
    if classes is not None and classes.max(initial=-1) >= 0:
        least = min(LEAST, room // 10 // (int(classes.max()) + 1))
        sure = _of_every(classes, least, rng) if least else sure
    others = np.ones(n, bool)
    others[sure] = False
    rest = rng.choice(np.flatnonzero(others), most - len(sure), replace=False)
    at = np.sort(np.concatenate([sure, rest]))
    return Sample(at, n, shown, least, spare=rest[len(rest) - late :])


def with_furthest(sample: Sample, errors: npt.NDArray[np.float64]) -> Sample:
    """Draw the rows that are furthest from the axes, in place of as many others."""
    top = furthest(errors, len(sample.spare))
    new = np.setdiff1d(top, sample.at)
    way = np.setdiff1d(sample.spare, top, assume_unique=True)[: len(new)]
    at = np.union1d(np.setdiff1d(sample.at, way), new)
    return replace(sample, at=at, furthest=len(top))


def furthest(errors: npt.NDArray[np.float64], k: int) -> Numbers:
    """Return the rows of the largest errors, largest first; equal ones in their order."""
    k = min(k, len(errors))
    if k < 1:
        return np.zeros(0, np.int64)
    cut = np.partition(errors, len(errors) - k)[len(errors) - k]
    above = np.flatnonzero(errors >= cut)
    return above[np.argsort(-errors[above], kind="stable")][:k]


def _of_every(classes: Numbers, least: int, rng: np.random.Generator) -> Numbers:
    """Return up to `least` rows of every class."""
    order = rng.permutation(len(classes))
    order = order[np.argsort(classes[order], kind="stable")]
    sizes = np.bincount(classes[classes >= 0])
    starts = int((classes < 0).sum()) + np.concatenate([[0], np.cumsum(sizes)[:-1]])
    parts = [order[s : s + min(least, z)] for s, z in zip(starts, sizes, strict=True)]
    return np.concatenate(parts).astype(np.int64)
