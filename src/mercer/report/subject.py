"""The subject of a report: the model, its preprocessing steps and its wrapper."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
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


def _decision(spectrum: FittedSpectrum, rule: Rule) -> tuple[int | None, str]:
    try:
        components = spectrum.cut(rule)
    except ValueError:  # Minka's evidence
        return None, "does not apply: fewer rows than columns"
    if components is not None:
        return components, ""
    return None, "needs all eigenvalues" if rule.needs_all else f"more than {len(spectrum.values)}"


class Subject:
    """A model, its parts, and facts about it.

    Attributes
    ----------
    passed, model, outer : estimator
        The model as it was passed; the PCA or KernelPCA with the components; the detector,
        denoiser or classifier built on it, or None.
    steps, first : list of estimators, estimator
        Preprocessing steps; the first estimator that rows reach.
    linear : bool
        Whether the components are directions in the space of the columns.
    strings, precomputed, has_columns : bool
        Whether rows are strings, rows of a kernel matrix, or neither.
    threshold : float or None
        Squared distance beyond which rows are novel.
    shares, cuts : array, list of Cut
        The components' shares of the variance; how many each rule keeps.
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
