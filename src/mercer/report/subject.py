"""What a report is about: the axes inside a pipeline, a detector, a classifier."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from mercer.estimators.base import Projecting
from mercer.estimators.denoiser import Denoiser
from mercer.estimators.inner import Around
from mercer.estimators.novelty import NoveltyDetector
from mercer.estimators.pipeline import parts
from mercer.estimators.subspace import SubspaceClassifier
from mercer.projection import LinearProjection


@dataclass(frozen=True)
class Subject:
    """A fitted model, taken apart.

    Attributes
    ----------
    given : estimator or Pipeline
        The model as it was given.
    steps : tuple of transformers
        What happens to rows before they reach the axes.
    around : estimator or None
        A detector, denoiser or classifier that the axes are inside of.
    model : PCA or KernelPCA
        The axes.
    """

    given: Any
    steps: tuple[Any, ...]
    around: Any
    model: Any

    @property
    def linear(self) -> bool:
        """Whether the axes are directions of the columns."""
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
    def threshold(self) -> float | None:
        """The squared distance beyond which rows are novel, where there is one."""
        return -float(self.around.offset_) if isinstance(self.around, NoveltyDetector) else None

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
        """What rows reach first."""
        return self.steps[0] if self.steps else self.model

    @property
    def names(self) -> list[str]:
        """Names of the columns that the axes see."""
        if self.strings or self.precomputed:
            return []
        given = getattr(self.first, "feature_names_in_", None)
        names = None if given is None else [str(name) for name in given]
        if self.steps and names is not None:
            with contextlib.suppress(Exception):  # not every step can tell
                for step in self.steps:
                    names = [str(name) for name in step.get_feature_names_out(names)]
        d = int(self.model.n_features_in_)
        if names is None or len(names) != d:
            return [f"column {j}" for j in range(d)]
        return names


def taken_apart(model: Any) -> Subject:
    """Return the axes inside a model, and what stands around them; refuse what has none."""
    steps, last = parts(model)
    around = None
    if isinstance(last, SubspaceClassifier):
        raise TypeError(
            "a SubspaceClassifier has components for every class, and a report is of one set of "
            "them: pass one of its estimators_ and the rows of that class."
        )
    if isinstance(last, (Around, Denoiser)):
        check_is_fitted(last)
        around, last = last, last.estimator_
    if not isinstance(last, Projecting):
        raise TypeError(
            f"a report is of a mercer.PCA or a mercer.KernelPCA, alone, in a NoveltyDetector, "
            f"Denoiser or NearestProjection, or at the end of a Pipeline; not of "
            f"{'a class' if isinstance(last, type) else type(last).__module__.split('.')[0]} "
            f"{last.__name__ if isinstance(last, type) else type(last).__name__}. The model comes "
            f"first: write_report(model, X, path)."
        )
    check_is_fitted(last)
    return Subject(model, tuple(steps), around, last)
