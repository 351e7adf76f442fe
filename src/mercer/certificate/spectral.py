"""Evidence from the eigenpairs of an operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import Array
from mercer.arrays.rounding import FEW, summed
from mercer.certificate.evidence import Evidence, spacing_of
from mercer.linalg.bounds import (
    Figure,
    pinching_bound,
    schur_bound,
    split_bound,
    unseen_frobenius,
)
from mercer.linalg.operator import Operator
from mercer.linalg.solvers import Spectrum, unseen_norm
from mercer.linalg.solvers.spectrum import column_norms
from mercer.threads import serial_blas

# A bound this close to the explained variance, as a share of it, needs no better one.
_CLOSE = 1e-6


def spectral_evidence(
    operator: Operator, spectrum: Spectrum, k: int, rng: np.random.Generator, *, probe: bool = True
) -> Evidence:
    """Return what the first k eigenpairs explain, and what no k components can exceed.

    A dense decomposition misses nothing, so only rounding counts. Otherwise the bounds of
    `mercer.linalg.bounds` apply: those that always hold and, where they leave something open and
    `probe` allows it, the one at 99.9 % confidence that six to sixteen more products of four
    vectors buy.
    """
    total, rounding = operator.trace, operator.rounding
    values, residuals = spectrum.values[:k], spectrum.residuals[:k]
    slack = rounding * k**0.5
    if spectrum.complete:
        # Residuals include the rounding of the matrix, which is in the slack already.
        errors = np.maximum(residuals - rounding, 0.0)
        error = float(column_norms(errors[:, None])[0]) * k**0.5
        upper = Figure(float(values.sum()) + error, "bound", operator.confidence)
    else:
        with serial_blas():
            upper = _optimum(operator, spectrum, k, rng if probe else None)
    others = spectrum.values[k:] if spectrum.ritz is None else spectrum.ritz[k:]
    return Evidence(
        explained=operator.figure(max(0.0, float(values.sum()) - slack)),
        bounds=(upper.like(upper + slack),),
        total=(operator.figure(max(total - rounding, 0.0)), operator.figure(total + rounding)),
        eigenvalues=values,
        residuals=residuals,
        spacing=spacing_of(values, others),
        converged=spectrum.converged,
        psd=operator.psd,
    )


def lifted_evidence(
    evidence: Evidence, total: float, n: int, products: Any = np.float64
) -> Evidence:
    """Return the evidence for v = Xᵀu/σ, given that for eigenvectors u of the dot-product matrix.

    Cv − λv = Xᵀ(Gu − λu)/σ is longer by √(λ₁/λ) at most, and a product of n terms rounds v by
    n u ‖X‖_F/σ. No unit vector has a residual above λ₁.
    """
    values = evidence.eigenvalues
    largest = float(np.max(values + evidence.residuals, initial=0.0))
    unit = (summed(n, products) + FEW) * float(np.finfo(products).eps) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = evidence.residuals * np.sqrt(largest / values)
        residuals += unit * largest * np.sqrt(total / values)
    return replace(evidence, residuals=np.fmin(residuals, largest))


def _optimum(
    operator: Operator, spectrum: Spectrum, k: int, rng: np.random.Generator | None
) -> Figure:
    """Return the best bound on the sum of the k largest eigenvalues of an iterative solver."""
    ritz, coupling = spectrum.ritz, spectrum.coupling
    assert ritz is not None  # every solver that is not complete returns them
    assert coupling is not None
    explained = float(ritz[:k].sum())

    def bound(unseen: float) -> float:
        both = schur_bound(ritz, coupling, unseen, k), split_bound(ritz, coupling, unseen, k)
        return min(both)

    # The part of the trace that rounding hides may be unseen, too.
    trace = operator.trace + operator.rounding
    unseen = max(0.0, trace - float(ritz.sum())) if operator.psd else np.inf
    best = bound(unseen)
    if operator.psd:
        best = min(best, pinching_bound(ritz, trace, k))
    optimum = operator.figure(best)
    if operator.square is not None:
        product = float(ritz @ ritz) + float(np.trace(coupling))
        unseen = min(unseen, unseen_frobenius(operator.square, product, ritz))
        tighter = bound(unseen)
        if tighter < optimum:
            certain = min(operator.confidence, operator.square.confidence)
            optimum = Figure(tighter, "bound", certain)
    if operator.unseen_bound is not None and spectrum.products <= len(ritz):  # nothing was dropped
        likely = bound(min(unseen, operator.unseen_bound))
        if likely < optimum:
            optimum = Figure(likely, "bound", 0.999)
    cheap = operator.psd and operator.probe_dtype is not None
    if rng is None or not cheap or optimum <= explained * (1 + _CLOSE):
        return optimum

    def probed(norm: float) -> float:
        return split_bound(ritz, coupling, min(norm, unseen), k)

    basis: Array = spectrum.basis
    if basis is None:
        basis = spectrum.state.rows[: len(ritz), :].T
    norm = unseen_norm(operator, basis, rng, lambda norm: probed(norm) <= explained * (1 + _CLOSE))
    likely = probed(norm)
    return min(optimum, norm.like(likely), key=float)
