"""Files of format 1: the names and units of their parts, in the terms of this version."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from mercer.certificate import Certificate
from mercer.linalg.bounds import Figure
from mercer.modelfile.registry import Parts, build


class Change(NamedTuple):
    """How a class differs from the one in files of format 1.

    Its name now; parts that were renamed, or dropped where the new name is None; parts that
    such files do not have, and their values.
    """

    name: str
    renamed: Mapping[str, str | None] = MappingProxyType({})
    added: Mapping[str, Any] = MappingProxyType({})


_PROJECTION = {"certificate": None, "shares": "mean_coef", "height": "mean_sq"}
CHANGES = {
    "drawn.Gaussian": Change("drawn.Projection"),
    "drawn.Hadamard": Change("drawn.Transform"),
    "drawn.Hashing": Change("drawn.Buckets", {"hashes": "each"}),
    "drawn.SparseSign": Change("drawn.Signs"),
    "folds.Directions": Change("folds.DirectionsSketch"),
    "folds.OfFeatures": Change("folds.FeatureFold"),
    "folds.Span": Change(
        "folds.Span",
        {"white": "whitener", "parts": "ranks", "longest": "norm2", "spread": "norm_fro"},
    ),
    "folds.Triangle": Change("folds.TriangularFactor"),
    "methods.Within": Change("methods.Adaptive"),
    "parts.FourierProjection": Change("parts.FourierProjection", _PROJECTION),
    "parts.KernelProjection": Change("parts.KernelProjection", _PROJECTION),
    "parts.LinearProjection": Change("parts.LinearProjection", _PROJECTION),
    "parts.Size": Change("parts.Size", {"square": "kernel", "elsewhere": "remote"}),
    "parts.SparseProjection": Change("parts.SparseProjection", _PROJECTION),
}
"""The classes that have changed since, by their names in files of format 1."""
METHODS = {"within": "adaptive"}
"""Values of KernelPCA(method=) that were renamed."""


def build_format_1(name: str, parts: Parts) -> Any:
    """Return the object that a file of format 1 describes."""
    if name == "parts.Certificate":
        return Shares(**parts)
    change = CHANGES.get(name, Change(name))
    renamed = {change.renamed.get(part, part): value for part, value in parts.items()}
    parts = {**change.added, **{part: value for part, value in renamed.items() if part}}
    if isinstance(parts.get("certificate_"), Shares):
        shares, projection = parts["certificate_"], parts["projection_"]
        parts["certificate_"] = shares.certificate(float(projection.total_variance))
    if name == "estimators.KernelPCA" and isinstance(parts.get("method"), str):
        parts["method"] = METHODS.get(parts["method"], parts["method"])
    return build(change.name, parts)


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
            bounds=(_surer(self.optimum_upper, self.ratio).like(optimum),),
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
