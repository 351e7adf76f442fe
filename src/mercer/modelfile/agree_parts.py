"""Whether projections, certificates, plans, kernels and maps fit together."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from mercer.certificate import Certificate, Figure
from mercer.config import get_config
from mercer.kernels import Frequencies, Kernel, Subsequence, Substring
from mercer.linalg import Moments
from mercer.linalg.span import Span
from mercer.methods import Cost, Method, Size
from mercer.modelfile.shapes import columns, count, floats, host, need, number, rows_of, shape
from mercer.planning.base import Candidate, Plan
from mercer.preimage.ridge import Learnt
from mercer.projection import KernelProjection, LinearProjection, Projection
from mercer.projection.fourier import FourierMap, FourierProjection
from mercer.sketches.drawn import Drawn
from mercer.sketches.transformer import Transformer


def _figure(figure: Figure) -> None:
    need(figure.kind in ("bound", "estimate"), "a figure is of no kind")
    number(figure.confidence, "confidence")


def _certificate(found: Certificate) -> None:
    need(isinstance(found.captured, Figure), "captured is no figure")
    need(isinstance(found.optimum_upper, Figure), "optimum_upper is no figure")
    need(found.ratio is None or isinstance(found.ratio, Figure), "ratio is no figure")
    need(isinstance(found.quotients, (bool, np.bool_)), "quotients is not true or false")
    k = (shape(found.eigenvalues) or (0,))[0]
    for name in ("eigenvalues", "residuals", "spacing"):
        need(host(getattr(found, name), k), f"{name} of the certificate: not one a component")
    need(isinstance(found.negative, np.ndarray) and found.negative.ndim == 1, "negative is none")
    need(isinstance(found.notes, tuple) and all(isinstance(x, str) for x in found.notes), "notes")
    need(found.likely is None or isinstance(found.likely, Real), "likely is not a number")
    need(isinstance(found.converged, (bool, np.bool_)), "converged is not true or false")


def _projection(found: Projection) -> None:
    need(isinstance(found.certificate, Certificate), "a projection has no certificate")
    m, k = shape(found.components) or (0, 0)
    floats(found.components, (m, k), "components")
    need(not hasattr(found.components, "tocsr"), "components are sparse")
    need(host(found.mean, m) and host(found.eigenvalues, k), "mean or eigenvalues do not fit")
    for name in ("total_variance", "rest"):
        number(getattr(found, name), name)
    if isinstance(found, LinearProjection):
        need(host(found.deviation, m), "deviations do not fit")
    if isinstance(found, KernelProjection):
        _kernel_projection(found, m, k)
    if isinstance(found, FourierProjection):
        need(isinstance(found.map, FourierMap) and isinstance(found.kernel, Kernel), "no features")
        need(found.map.width == m, "features do not fit")


def _kernel_projection(found: KernelProjection, m: int, k: int) -> None:
    need(found.kernel is None or isinstance(found.kernel, Kernel), "the kernel is none")
    need(host(found.shares, m), "shares do not fit")
    need(found.overlaps is None or host(found.overlaps, k, k), "overlaps do not fit")
    number(found.height, "height")
    if found.kernel is None:
        return
    points = rows_of(found.basis, "the basis")
    need(points[0] == m, "the basis does not fit")
    if found.shift is not None:
        need(len(points) == 2 and host(found.shift, points[1]), "the shift does not fit")


def _features(found: FourierMap) -> None:
    drawn = found.frequencies
    need(isinstance(drawn, Frequencies), "there are no frequencies")
    d, q = shape(drawn.omega) or (0, 0)
    need(host(drawn.omega, d, q) and host(drawn.amplitude, q), "frequencies do not fit")
    need(found.shift is None or host(found.shift, d), "the shift does not fit")


def _plan(found: Plan) -> None:
    there = isinstance(found.candidates, tuple)
    need(there and all(isinstance(x, Candidate) for x in found.candidates), "a plan of nothing")
    need(isinstance(found.method, Method) and isinstance(found.size, Size), "a plan of nothing")
    need(isinstance(found.reason, str), "a plan without a reason")
    count(found.budget, "budget")
    for candidate in found.candidates:
        need(isinstance(candidate.method.label(found.size), str), "a method has no name")


def _candidate(found: Candidate) -> None:
    need(isinstance(found.method, Method) and isinstance(found.cost, Cost), "no candidate")
    need(isinstance(found.fits, bool), "a candidate fits, or not")


def _size(found: Size) -> None:
    for name in ("n", "d", "itemsize"):
        count(getattr(found, name), name)
    for name in ("k", "nnz"):
        if getattr(found, name) is not None:
            count(getattr(found, name), name)


def _cost(found: Cost) -> None:
    for name in ("passes", "products", "factor", "memory", "sparse"):
        number(getattr(found, name), name)


def _learnt(found: Learnt) -> None:
    n, k = shape(found.scores) or (0, 0)
    d = (shape(found.mean) or (0,))[0]
    need(isinstance(found.kernel, Kernel), "the way back has no kernel")
    fits = host(found.scores, n, k) and host(found.dual, n, d) and host(found.mean, d)
    need(fits and found.kernel.takes != "strings", "the way back does not fit")


def _imputer(found: SimpleImputer) -> None:
    columns(found)
    need(found.n_features_in_ == len(found.statistics_), "an imputer has not a mean a column")


def _moments(found: Moments) -> None:
    kinds = (found.diagonal, found.center)
    need(all(isinstance(kind, bool) for kind in kinds), "moments are of no kind")
    need(isinstance(found.products, np.dtype) and found.products.kind == "f", "no precision")


def _span(found: Span) -> None:
    m = len(found.basis)
    need(found.kernel is None or isinstance(found.kernel, Kernel), "a span has no kernel")
    need(isinstance(found.dtype, np.dtype) and found.dtype.kind == "f", "a span has no precision")
    p = (shape(found.white) or (0, 0))[-1]
    need(host(found.matrix, m, m) and host(found.white, m, p), "a span does not fit")
    need(found.kernel is None or rows_of(found.basis.points, "the basis")[0] == m, "no points")
    at = found.parts
    named = isinstance(at, np.ndarray) and at.dtype == np.int64 and at.ndim == 1
    need(named and bool(((at >= 1) & (at <= p)).all()), "parts of a span are not there")
    need(host(found.longest, len(at)) and host(found.spread, len(at)), "a span does not fit")


def _kernel(found: Kernel) -> None:
    found.check()
    if isinstance(found, (Subsequence, Substring)):
        need(found.length < 2**31, "letters are more than any string has")


def _map(found: Transformer) -> None:
    if "drawn_" not in vars(found):
        return
    need(isinstance(found.drawn_, Drawn), "there is no map")
    columns(found)
    need(found.drawn_.d == found.n_features_in_, "the map is of other columns")


def _drawn(found: Drawn) -> None:
    count(found.d, "d", 1)
    count(found.q, "q", 1)
    need(
        8 * max(found.d, found.q) <= get_config().budget, "a row takes more than the memory budget"
    )
    if hasattr(found, "seed"):
        count(found.seed, "seed")
        each = getattr(found, "each", 1)
        count(each, "each", 1)
        need(each <= found.q, "each feature goes to more places than there are")
        number(getattr(found, "scale", 1.0), "scale")


def _scaler(found: StandardScaler) -> None:
    found._validate_params()
    columns(found)
    d = vars(found).get("n_features_in_")
    for name in ("mean_", "var_", "scale_"):
        part = vars(found).get(name)
        need(part is None or (shape(part) == (d,) and part.dtype.kind == "f"), f"{name} is none")
    need(not found.with_mean or found.mean_ is not None, "a scaler without means")
    need(not found.with_std or found.scale_ is not None, "a scaler without deviations")


PARTS: tuple[tuple[type, Callable[[Any], None]], ...] = (
    (Figure, _figure),
    (Certificate, _certificate),
    (FourierMap, _features),
    (Projection, _projection),
    (Size, _size),
    (Cost, _cost),
    (Candidate, _candidate),
    (Plan, _plan),
    (Kernel, _kernel),
    (Learnt, _learnt),
    (Drawn, _drawn),
    (Transformer, _map),
    (StandardScaler, _scaler),
    (SimpleImputer, _imputer),
    (Moments, _moments),
    (Span, _span),
)
"""What is checked of each class."""
