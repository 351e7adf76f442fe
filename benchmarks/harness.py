"""Timing of several sides, turn about, and the rows that come of it."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import psutil
from threadpoolctl import threadpool_info, threadpool_limits

MIB = 2**20


@dataclass
class Row:
    """One line of the table: a measure of both sides, and what is required of ours.

    For a time, `must` and `aim` are the least ratio peer/ours; for anything else they are
    the most that ours may be.
    """

    case: str
    measure: str
    ours: float | None = None
    peer: float | None = None
    unit: str = ""
    must: float | None = None
    aim: float | None = None
    note: str = ""
    times: dict[str, list[float]] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """How many times as long the peer takes."""
        if self.unit != "s" or self.ours is None or self.peer is None:
            return None
        return self.peer / self.ours

    @property
    def met(self) -> bool | None:
        """Whether what must be is so; None where nothing must, or nothing was measured."""
        if self.must is None or self.ours is None:
            return None
        # A plain bool: comparisons of NumPy numbers give theirs, which JSON does not know.
        return bool(self.ours <= self.must if self.ratio is None else self.ratio >= self.must)


def skipped(case: str, reason: object) -> Row:
    """Return the row of what could not be run."""
    return Row(case, "skipped", note=str(reason))


@dataclass(frozen=True)
class Side:
    """A fit to be timed, and how many threads BLAS may use: None is its default."""

    name: str
    fit: Callable[[], Any]
    threads: int | None = None


def peers(name: str, fit: Callable[[], Any]) -> list[Side]:
    """Return a peer with the threads we have, and with one: its better median counts."""
    return [Side(name, fit), Side(f"{name}, 1 thread", fit, threads=1)]


class Race:
    """Every side once a repeat, in alternating order; keeps all times and the last models.

    `others` is the share of the machine that other processes took meanwhile: where it is not
    near 0 the times tell little.
    """

    def __init__(self, ours: Iterable[Side], theirs: Iterable[Side], repeats: int) -> None:
        self.ours, self.theirs = list(ours), list(theirs)
        sides = [*self.ours, *self.theirs]
        self.times: dict[str, list[float]] = {side.name: [] for side in sides}
        self.models: dict[str, Any] = {}
        settings = blas_threads()
        meanwhile = Meanwhile()
        for repeat in range(repeats):
            for side in sides if repeat % 2 == 0 else reversed(sides):
                self.models.pop(side.name, None)
                seconds, self.models[side.name] = timed(side)
                self.times[side.name].append(seconds)
                say(f"repeat {repeat + 1} of {repeats}, {side.name}: {seconds:.2f} s")
                if not settings.items() <= blas_threads().items():
                    raise RuntimeError(f"{side.name} left BLAS with other threads than it found.")
        self.others = meanwhile.others

    def median(self, name: str) -> float:
        """Return the median time of a side."""
        return statistics.median(self.times[name])

    def best(self, sides: Iterable[Side] | None = None) -> str:
        """Return the name of the side with the least median: of the peers, unless given."""
        return min((side.name for side in sides or self.theirs), key=self.median)

    def row(
        self,
        case: str,
        must: float | None = None,
        aim: float | None = None,
        *,
        ours: Side | None = None,
        theirs: Iterable[Side] | None = None,
    ) -> Row:
        """Return the times of our side, the first unless given, and of the best of the peers."""
        rivals = list(theirs or self.theirs)
        name, peer = (ours or self.ours[0]).name, self.best(rivals)
        times = {side: self.times[side] for side in (name, *(rival.name for rival in rivals))}
        return Row(
            case,
            "time",
            self.median(name),
            self.median(peer),
            unit="s",
            must=must,
            aim=aim,
            note=f"peer: {peer}; other processes {self.others:.0%} of the machine",
            times=times,
        )

    def compare(
        self,
        case: str,
        measure: str,
        judge: Callable[[Any], float],
        *,
        ours: Side | None = None,
        theirs: Iterable[Side] | None = None,
        **row: Any,
    ) -> Row:
        """Return a figure of the models of the same two sides as `row`."""
        model, peer = self.models[(ours or self.ours[0]).name], self.models[self.best(theirs)]
        return Row(case, measure, judge(model), judge(peer), **row)


def timed(side: Side) -> tuple[float, Any]:
    """Run a side once; return its seconds and its model.

    The pause lets the BLAS threads of the side before fall asleep: they spin for a while, and
    would take a core from this one.
    """
    gc.collect()
    time.sleep(0.2)
    limits = threadpool_limits(side.threads, user_api="blas") if side.threads else nullcontext()
    with limits:
        start = time.perf_counter()
        model = side.fit()
        return time.perf_counter() - start, model


def blas_threads() -> dict[str, int]:
    """Return the number of threads of every BLAS that is loaded."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {pool["filepath"]: pool["num_threads"] for pool in pools}


class Meanwhile:
    """What other processes take of the machine from now on."""

    def __init__(self) -> None:
        self.start, self.before = time.perf_counter(), others_seconds()

    @property
    def others(self) -> float:
        """Their share of all cores until now."""
        available = (time.perf_counter() - self.start) * psutil.cpu_count()
        return max(0.0, others_seconds() - self.before) / available


def others_seconds() -> float:
    """Return the seconds of all cores that were neither idle nor ours."""
    cores = psutil.cpu_times()._asdict()
    # A guest's time is in the user's already.
    idle = ("idle", "iowait", "guest", "guest_nice")
    busy = sum(cores.values()) - sum(cores.get(key, 0.0) for key in idle)
    return float(busy - time.process_time())


def warm_up() -> None:
    """Fit a small table on every side, so that no timing pays for imports."""
    import numpy as np
    from sklearn import decomposition

    import mercer

    X = np.random.default_rng(0).standard_normal((600, 30))
    for estimator in (mercer.PCA(3), decomposition.PCA(3), decomposition.IncrementalPCA(3)):
        estimator.fit(X)


def say(text: str) -> None:
    """Tell how far it is."""
    print(f"  {text}", file=sys.stderr, flush=True)
