"""What a report is about: the model with the components, its steps and what is built on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.base import Projecting
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
    """A model as it was passed, and its parts.

    `steps` preprocess the rows, `model` is the PCA or KernelPCA with the components, and `outer`
    is a detector, denoiser or classifier built on it.
    """

    passed: Any
    steps: tuple[Any, ...]
    outer: Any
    model: Any

    @property
    def linear(self) -> bool:
        """Whether the components are directions in the space of the columns."""
        return isinstance(self.model.projection_, LinearProjection)

    @property
    def precomputed(self) -> bool:
        """Whether rows are those of a kernel matrix."""
        return getattr(self.model, "kernel", None) == "precomputed"

    @property
    def strings(self) -> bool:
        """Whether rows are strings."""
        return not hasattr(self.model, "n_features_in_")

    @property
    def has_columns(self) -> bool:
        """Whether rows are vectors of features."""
        return not (self.strings or self.precomputed)

    @property
    def threshold(self) -> float | None:
        """Squared distance beyond which rows are novel."""
        return -float(self.outer.offset_) if isinstance(self.outer, NoveltyDetector) else None

    @property
    def scaled(self) -> bool:
        """Whether columns were divided by their standard deviations."""
        own = bool(getattr(self.model, "scale", False))
        return own or any(type(step).__name__ == "StandardScaler" for step in self.steps)

    @property
    def kind(self) -> str:
        """The model in words."""
        return "linear PCA" if self.linear else "kernel PCA"

    @property
    def first(self) -> Any:
        """The first estimator that rows reach."""
        return self.steps[0] if self.steps else self.model

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns that the components see."""
        return fitted_feature_names(self.passed) if self.has_columns else []

    @cached_property
    def shares(self) -> npt.NDArray[np.float64]:
        """Share of each component in the variance."""
        return np.asarray(FittedSpectrum(self.model).shares)

    @cached_property
    def cuts(self) -> list[Cut]:
        """How many components each rule keeps that applies."""
        spectrum = FittedSpectrum(self.model)
        rules = _SHARES | _LINEAR if self.linear else _SHARES
        if not spectrum.total:
            return []
        return [
            Cut(letter, name, *_decision(spectrum, rule))
            for letter, (name, rule) in zip("ABCDEFG", rules.items(), strict=False)
        ]


def _decision(spectrum: FittedSpectrum, rule: Rule) -> tuple[int | None, str]:
    try:
        components = spectrum.cut(rule)
    except ValueError:  # Minka's evidence
        return None, "does not apply: fewer rows than columns"
    if components is not None:
        return components, ""
    return None, "needs all eigenvalues" if rule.whole else f"more than {len(spectrum.values)}"


def find_subject(model: Any) -> Subject:
    """Return a model and its parts, or raise an error where it has no components."""
    steps, last = parts(model)
    outer = None
    if isinstance(last, SubspaceClassifier):
        raise TypeError(
            "A SubspaceClassifier has components for every class, and a report describes one set "
            "of components: pass one of its estimators_ and the rows of that class."
        )
    if isinstance(last, Wrapper):
        check_is_fitted(last)
        outer, last = last, last.estimator_
    if not isinstance(last, Projecting):
        raise TypeError(
            f"A report describes a mercer.PCA or mercer.KernelPCA, alone, in a NoveltyDetector, "
            f"Denoiser or NearestProjection, or at the end of a Pipeline; not "
            f"{'a class' if isinstance(last, type) else type(last).__module__.split('.')[0]} "
            f"{last.__name__ if isinstance(last, type) else type(last).__name__}. The model comes "
            f"first: write_report(model, X, path)."
        )
    check_is_fitted(last)
    return Subject(model, tuple(steps), outer, last)
