"""Conversion of model files of format 1 to the names and units of this version."""

from __future__ import annotations

from typing import Any, NamedTuple

from mercer.certificate import Certificate, Figure
from mercer.modelfile.registry import Parts, build

CLASSES = {
    "drawn.Fixed": "sketches.FixedMatrix",
    "drawn.Gaussian": "sketches.GaussianMatrix",
    "drawn.Grouped": "sketches.GroupingMatrix",
    "drawn.Hadamard": "sketches.HadamardMatrix",
    "drawn.Hashing": "sketches.HashingMatrix",
    "drawn.Same": "sketches.IdentityMatrix",
    "drawn.SparseSign": "sketches.SignMatrix",
    "folds.Directions": "folds.DirectionsSketch",
    "folds.Learning": "folds.HebbianFold",
    "folds.OfFeatures": "folds.FeatureFold",
    "folds.Seen": "folds.PastRows",
    "folds.Triangle": "folds.TriangularFactor",
    "methods.Within": "methods.Adaptive",
    "parts.Learnt": "parts.RidgeState",
}
"""New names of classes."""
_EXPANSION = {"shares": "mean_coef", "height": "mean_sq"}
_SKETCHES = (
    *("FeatureGrouping", "Gaussian", "Hadamard", "Hashing"),
    *("PixelGrouping", "Resize", "SparseSign"),
)
PARTS = {
    "drawn.Hashing": {"hashes": "each"},
    "folds.Seen": {"_reference": "reference"},
    "folds.Span": {
        "white": "whitener",
        "parts": "ranks",
        "longest": "norm2",
        "spread": "norm_fro",
    },
    "parts.KernelProjection": _EXPANSION,
    "parts.Size": {"square": "kernel", "elsewhere": "remote"},
    "parts.SparseProjection": _EXPANSION,
    **{f"sketches.{name}": {"drawn_": "matrix_"} for name in _SKETCHES},
}
"""New names of the parts of a class, by its old name."""
METHODS = {"within": "adaptive"}
"""New values of KernelPCA(method=)."""


def build_format_1(name: str, parts: Parts) -> Any:
    """Return the object that a file of format 1 describes."""
    if name == "parts.Certificate":
        return Shares(**parts)
    renamed = PARTS.get(name, {})
    parts = {renamed.get(old, old): value for old, value in parts.items()}
    parts.pop("certificate", None)  # of a projection: its estimator has it too
    if isinstance(parts.get("certificate_"), Shares):
        shares, projection = parts["certificate_"], parts["projection_"]
        parts["certificate_"] = shares.certificate(float(projection.total_variance))
    if name == "estimators.KernelPCA" and isinstance(parts.get("method"), str):
        parts["method"] = METHODS.get(parts["method"], parts["method"])
    return build(CLASSES.get(name, name), parts)


class Shares(NamedTuple):
    """A certificate of format 1, whose figures are shares of the total variance.

    `ratio` is the explained variance over the largest that is possible, where the total is known
    only to lie between two bounds; `captured` is a share of the upper one, and `optimum_upper` of
    the lower.
    """

    captured: Figure
    optimum_upper: Figure
    residuals: Any
    eigenvalues: Any
    spacing: Any
    converged: bool
    notes: tuple[str, ...]
    negative: Any
    likely: float | None
    ratio: Figure | None = None
    quotients: bool = True

    def certificate(self, total: float) -> Certificate:
        """Return the certificate in units of variance, with the same figures."""
        high = low = total if total > 0.0 else 1.0
        explained, optimum = self.captured * high, self.optimum_upper * low
        if self.ratio is not None and self.ratio > 0.0 and self.optimum_upper > 0.0:
            optimum = explained / self.ratio
            low = optimum / self.optimum_upper
        return Certificate(
            explained=_surer(self.captured, self.ratio).like(explained),
            bounds={"": _surer(self.optimum_upper, self.ratio).like(optimum)},
            total=(self.optimum_upper.like(low), self.captured.like(high)),
            eigenvalues=self.eigenvalues,
            residuals=self.residuals,
            spacing=self.spacing,
            converged=self.converged,
            notes=self.notes,
            negative=self.negative,
            likely=None if self.likely is None else self.likely * high,
            rayleigh=self.quotients,
            psd=not len(self.negative) and max(self.captured, self.optimum_upper) <= 1.0,
        )


def _surer(share: Figure, ratio: Figure | None) -> Figure:
    """Return the figure that is more certain: an uncertain total makes a share uncertain."""
    figures = [share] if ratio is None else [share, ratio]
    return max(figures, key=lambda figure: (figure.kind == "bound", figure.confidence))
