"""The subject of a report: the model, its preprocessing steps and its wrapper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.base import ProjectionEstimator
from mercer.estimators.inspection import FittedSpectrum, fitted_feature_names, parts
from mercer.estimators.novelty import NoveltyDetector
from mercer.estimators.subspace import SubspaceClassifier
from mercer.estimators.wrapper import Wrapper
from mercer.projection import LinearProjection
from mercer.rules import MLE, BrokenStick, Fraction, GavishDonoho, Kaiser, ParallelAnalysis, Rule

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


@dataclass(frozen=True)
class Subject:
    """A model as it was passed, its parts, and facts about it.

    `steps` preprocess the rows, `model` is the PCA or KernelPCA with the components, and `outer`
    is a detector, denoiser or classifier built on it. `first` is the first estimator that rows
    reach. `linear` components are directions in the space of the columns; rows have columns unless
    they are `strings` or rows of a `precomputed` kernel matrix. `threshold` is the squared distance
    beyond which rows are novel, and `shares` are the components' shares of the variance.
    """

    passed: Any
    steps: tuple[Any, ...]
    outer: Any
    model: Any
    first: Any
    linear: bool
    precomputed: bool
    strings: bool
    has_columns: bool
    scaled: bool
    kind: str
    names: list[str]
    threshold: float | None
    shares: npt.NDArray[np.float64]
    cuts: list[Cut]


def _decision(spectrum: FittedSpectrum, rule: Rule) -> tuple[int | None, str]:
    try:
        components = spectrum.cut(rule)
    except ValueError:  # Minka's evidence
        return None, "does not apply: fewer rows than columns"
    if components is not None:
        return components, ""
    return None, "needs all eigenvalues" if rule.needs_all else f"more than {len(spectrum.values)}"


def find_subject(model: Any) -> Subject:
    """Return a model and its parts, or raise an error where it has no components."""
    steps, last = parts(model)
    outer = None
    if isinstance(last, SubspaceClassifier):
        raise TypeError(
            "A SubspaceClassifier has components for every class, but a report describes one set "
            "of components: pass one of its estimators_ and the rows of that class."
        )
    if isinstance(last, Wrapper):
        check_is_fitted(last)
        outer, last = last, last.estimator_
    if not isinstance(last, ProjectionEstimator):
        raise TypeError(
            f"A report describes a mercer.PCA or mercer.KernelPCA, alone, in a NoveltyDetector, "
            f"Denoiser or NearestProjection, or at the end of a Pipeline; not "
            f"{'a class' if isinstance(last, type) else type(last).__module__.split('.')[0]} "
            f"{last.__name__ if isinstance(last, type) else type(last).__name__}. The order is "
            f"write_report(model, X, path)."
        )
    check_is_fitted(last)
    spectrum, linear = FittedSpectrum(last), isinstance(last.projection_, LinearProjection)
    strings = not hasattr(last, "n_features_in_")
    precomputed = getattr(last, "kernel", None) == "precomputed"
    rules = _SHARES | _LINEAR if linear else _SHARES
    cuts = zip("ABCDEFG", rules.items() if spectrum.total else (), strict=False)
    return Subject(
        passed=model,
        steps=tuple(steps),
        outer=outer,
        model=last,
        first=steps[0] if steps else last,
        linear=linear,
        precomputed=precomputed,
        strings=strings,
        has_columns=not (strings or precomputed),
        scaled=getattr(last, "scale", False)
        or any(type(step).__name__ == "StandardScaler" for step in steps),
        kind="linear PCA" if linear else "kernel PCA",
        names=[] if strings or precomputed else fitted_feature_names(model),
        threshold=-float(outer.offset_) if isinstance(outer, NoveltyDetector) else None,
        shares=np.asarray(spectrum.shares),
        cuts=[Cut(letter, name, *_decision(spectrum, rule)) for letter, (name, rule) in cuts],
    )
