"""What a certified gap costs, beside the cheapest route that would have done."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import mercer
from benchmarks import data
from benchmarks.harness import Race, Row, Side, say, skipped
from mercer.methods import Adaptive, Subset

_K, _GAP = 10, 0.01
_SIZES = (500, 1000, 2000, 4000)
# Files, and whether one repeat must do: exact kernel PCA takes minutes there.
_FILES = {"mnist.npz": True, "usps.npz": False, "satellite.npz": False, "letter.npz": False}


def run(repeats: int, quick: bool = False) -> list[Row]:
    """Try all routes, then race the choice against the cheapest that does, on every table."""
    rows = []
    for file, once in _FILES.items():
        try:
            X = rows_of(file, 300 if quick else None)
        except FileNotFoundError as absent:
            rows.append(skipped(f"gap={_GAP} on {file}", absent))
            continue
        name = file.removesuffix(".npz")
        rows += _routes(f"{name} {len(X)}×{X.shape[1]}", X, 1 if once else repeats, quick)
    return rows


def rows_of(file: str, n: int | None) -> data.Array:
    """Return the rows of a file: digits as float32, the others as float64."""
    if file == "mnist.npz":
        return data.digits(n or 60_000, np.float32)
    with np.load(data.find(file)) as archive:
        return archive["X"][:n].astype(np.float64)


def fitted(X: data.Array, method: Any = "auto") -> mercer.KernelPCA:
    """Fit within the gap; keep the warning, if there is one, with the model."""
    model = mercer.KernelPCA(
        _K, kernel="rbf", gamma="median", gap=_GAP, method=method, random_state=0
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X)
    model.told = "; ".join(str(warning.message) for warning in told)
    return model


def _routes(case: str, X: data.Array, repeats: int, quick: bool) -> list[Row]:
    case = f"{case}, RBF at the median width, {_K} axes, gap={_GAP}"
    others: dict[str, Any] = {"exact": "exact"}
    others |= {f"Subset({m})": Subset(m) for m in ((50, 100) if quick else _SIZES)}
    others |= {f"Adaptive({m})": Adaptive(m) for m in ((30, 60) if quick else (None, *_SIZES[:2]))}
    tried = Race(
        [Side("auto", lambda: fitted(X))],
        [Side(name, lambda method=method: fitted(X, method)) for name, method in others.items()],
        1,
    )
    model = tried.models["auto"]
    gap = float(model.certificate_.gap)
    # What was warned of is no promise broken.
    must = None if model.told and gap > _GAP else _GAP
    note = model.told or model.certificate_.sentence
    certified = Row(case, "certified gap", gap, unit="%", must=must, note=note)
    for side in tried.theirs:
        say(f"{side.name}: gap {100 * tried.models[side.name].certificate_.gap:.2f} %")
    would = [side for side in tried.theirs if tried.models[side.name].certificate_.gap <= _GAP]
    if not would:
        return [certified, skipped(case, "no route reaches the gap")]
    cheapest = tried.best(would)
    race = Race(tried.ours, [side for side in would if side.name == cheapest], repeats)
    row = race.row(case, must=1 / 3)
    row.note = f"{model.plan_.method!r}; {row.note}"
    return [certified, row]
