"""Kernel values are no farther from the truth than their `roundings`, which certificates count."""

import math

import numpy as np
import pytest

from mercer import KernelPCA, config_context
from mercer.arrays.linear import confidence
from mercer.data import as_source
from mercer.estimators.kernel_parameters import resolve_kernel
from mercer.kernels import RBF, Laplacian, Linear, Matern, RationalQuadratic
from mercer.kernels.points import Points
from mercer.linalg import Moments
from tests.kernel_catalogue import KERNELS
from tests.truth import data, families

LD = np.longdouble
# The values of a function are taken as they are given.
GIVEN = ("separable", "function")


def error(kernel, X, formula, allowed=64.0):
    """The largest error of a kernel value, as a share of what `roundings` admits."""
    u = float(np.finfo(X.dtype).eps) / 2
    with np.errstate(all="ignore"):
        values, truth = np.asarray(kernel(X), LD), np.asarray(formula(X.astype(LD), X.astype(LD)))
        each = np.asarray(kernel.roundings(Points(X), Points(X), X.dtype), np.float64)
        each = np.broadcast_to(each, len(X))[:, None]
        own = np.sqrt(np.abs(np.diag(truth)))
        own = own[:, None] * own[None, :]
        bound = (each * u + allowed * float(np.finfo(LD).eps)) * own
        known = (
            np.isfinite(truth) & np.isfinite(own) & (own < np.finfo(X.dtype).max) & (own > 1e-30)
        )
        apart = np.abs(values - truth)
        return float(np.max(np.where(known & (apart > 0), apart / bound, 0), initial=0.0))


@pytest.mark.parametrize("generator", list(data.GENERATORS))
def test_no_value_is_farther_off_than_its_roundings(generator):
    for seed in range(25):
        rng = np.random.default_rng([seed, 7])
        found = data.draw(rng, generator, 60)
        rows = found.rows.astype(np.result_type(found.rows, np.float32), copy=False)
        if rows.dtype.kind != "f" or len(rows) < 2:
            continue
        family = families.draw(rng, rows)
        kernel, _ = resolve_kernel(KernelPCA(**family.settings), as_source(rows))
        if kernel is None or kernel.psd is not True or family.name in GIVEN:
            continue
        assert error(kernel, rows, family.formula, family.roundings) <= 1.0, (seed, kernel)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("gamma", [1e-6, 1.0, 1e4])
def test_close_rows_far_from_the_others(gamma, dtype):
    """A shift rounds every row: the distance of two that are close must not come from it."""
    rng = np.random.default_rng(0)
    for offset, width in ((1e4, 0.02), (1e6, 1e-3), (1.7e9, 3.0)):
        x = offset + 0.03 * offset * rng.standard_normal(300)
        x[:20] = width * rng.random(20)
        x[20:22] = 100.0 * offset, -100.0 * offset
        X = x.astype(dtype)[:, None]
        length = gamma**-0.5
        for kernel, formula in (
            (RBF(gamma), lambda A, B: np.exp(-LD(gamma) * families.sqdist(A, B))),
            (Laplacian(gamma), lambda A, B: np.exp(-LD(gamma) * families.block(A, B))),
            (Matern(length), lambda A, B, length=length: families.matern(A, B, 1.5, length)),
            (
                RationalQuadratic(length),
                lambda A, B, s=length: 1 / (1 + families.sqdist(A, B) / (2 * LD(s) ** 2)),
            ),
        ):
            assert error(kernel, X, formula) <= 1.0, (kernel, offset)


@pytest.mark.parametrize(
    "row", [row for row in KERNELS if row.kernel.shift_invariant], ids=lambda row: row.name
)
def test_no_slope_is_above_the_lipschitz_constant(row):
    kernel = row.kernel
    if kernel.offset_sensitive or kernel.takes == "strings" or not math.isfinite(kernel.lipschitz):
        return
    apart = np.geomspace(1e-3, 1e6, 200_001)[:, None]
    values = kernel(np.zeros((1, 1)), apart)[0]
    slopes = np.abs(np.diff(values)) / np.diff(apart[:, 0])
    assert np.max(slopes) <= kernel.lipschitz * kernel.diag([[0.0]])[0] * (1 + 1e-6)


@pytest.mark.parametrize("rough", [RBF(1e4), Laplacian(), Laplacian(norm="l1"), Matern(0.1, 0.5)])
def test_a_nested_sum_rounds_and_moves_as_a_flat_one(rough):
    """A shift for the linear kernel rounds the rows of the other term, however deep it is."""
    flat, nested = 2.0 * rough + 2.0 + Linear(), 2.0 * (rough + 1.0) + Linear()
    X = np.float32(1e4) + np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    assert nested.offset_sensitive == flat.offset_sensitive
    first, second = (k.roundings(Points(X), Points(X), X.dtype) for k in (flat, nested))
    np.testing.assert_allclose(second, first, rtol=0.02)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("block_rows", [64, 512, 2048, None])
def test_float32_moments_of_equal_terms(center, block_rows):
    """Equal products round alike, in every block: their roundings add up, not in quadrature."""
    rng = np.random.default_rng(7)
    for n in (5_000, 60_000):
        size = np.float32(rng.uniform(0.1, 1.0))
        X = np.full((n, 4), size)
        if center:
            X *= np.sign(rng.standard_normal((n, 4))).astype(np.float32)
        with config_context(block_rows=block_rows):
            moments = as_source(X).fold(Moments(4, np.empty(0), np.float32, center=center))
        A = X.astype(np.float64)
        A -= A.mean(axis=0) if center else 0.0
        share, _ = moments.rounding
        assert np.linalg.norm(np.asarray(moments.scatter) - A.T @ A) <= share * np.sum(A * A)
        assert share < 1e-4


def test_the_promise_is_not_empty():
    """A few roundings for a kernel as wide as its data; no more than a share of them ever."""
    X = np.random.default_rng(1).standard_normal((100, 10))
    points = Points(X)
    assert np.max(RBF(0.05).roundings(points, points, np.float64)) < 500
    far = Points(X * 1e8)
    assert np.max(RBF(0.05).roundings(far, far, np.float64)) < 2e4
    assert confidence(np.float64) == 1.0
    assert confidence(np.float32) == 0.999
