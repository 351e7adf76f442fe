"""Compiled sums over columns against their formulas in extended precision."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from mercer.kernels.loops import column_sum


def quotient(top, bottom):
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom != 0)


def entropy(x, y):
    # -x log2(x / (x + y)), with no digits lost where y is far below x.
    return x * np.log1p(quotient(y, x)) / np.log(np.longdouble(2))


FORMULAS = {
    "minimum": np.minimum,
    "city_block": lambda x, y: np.abs(x - y),
    "harmonic": lambda x, y: quotient(x * y, x + y),
    "chi_square": lambda x, y: quotient((x - y) ** 2, x + y),
    "jensen_shannon": lambda x, y: entropy(x, y) + entropy(y, x),
}
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-5}
every = pytest.mark.parametrize("name", FORMULAS)
both = pytest.mark.parametrize("dtype", TOLERANCE)


def plain(name, x, y):
    x, y = x.astype(np.longdouble), y.astype(np.longdouble)
    a, b = np.broadcast_arrays(x[:, None, :], y[None, :, :])
    return FORMULAS[name](a, b).sum(axis=2)


def agree(name, x, y, out=None):
    if out is None:
        out = np.full((len(x), len(y)), 7, dtype=x.dtype)
    column_sum(name, x, y, out)
    truth = plain(name, x, y)
    np.testing.assert_allclose(out, truth, rtol=TOLERANCE[out.dtype.type], atol=0)


def histograms(rng, n, d, dtype=np.float64):
    rows = rng.random((n, d)) * (rng.random((n, d)) < 0.7)
    return rows.astype(dtype)


@both
@every
@pytest.mark.parametrize(
    ("n", "m", "d"), [(1, 1, 1), (5, 1, 4), (1, 37, 33), (7, 300, 70), (3, 128, 32), (2, 3, 0)]
)
def test_formula(name, dtype, n, m, d):
    rng = np.random.default_rng(n + m + d)
    agree(name, histograms(rng, n, d, dtype), histograms(rng, m, d, dtype))


@both
@every
def test_zeros(name, dtype):
    x = np.zeros((3, 9), dtype)
    out = np.full((3, 3), 7, dtype)
    column_sum(name, x, x, out)
    assert not out.any()


@both
@every
def test_no_rows(name, dtype):
    for n, m in [(0, 3), (3, 0)]:
        out = np.empty((n, m), dtype)
        column_sum(name, np.ones((n, 5), dtype), np.ones((m, 5), dtype), out)


@pytest.mark.parametrize("name", ["city_block", "jensen_shannon"])
def test_any_strides(name):
    rng = np.random.default_rng(0)
    x = histograms(rng, 14, 90)[::2, ::-3]
    y = np.asfortranarray(histograms(rng, 300, 30))[::2]
    agree(name, x, y, np.empty((2 * len(x), 2 * len(y)))[::2, ::2])


@both
@every
@pytest.mark.parametrize("side", [0, 1])
def test_nan_stays(name, dtype, side):
    rng = np.random.default_rng(0)
    pair = [histograms(rng, 5, 40, dtype), histograms(rng, 140, 40, dtype)]
    pair[side][3, 35] = np.nan
    out = np.empty((5, 140), dtype)
    column_sum(name, *pair, out)
    lost = np.isnan(out if side == 0 else out.T)
    assert lost[3].all()
    assert lost.sum() == lost[3].size


@both
@every
@pytest.mark.parametrize("power", [-0.45, -0.3, 0.3, 0.45])
def test_far_from_one(name, dtype, power):
    # Products of two sums leave the range of the numbers; the sums and their squares do not.
    rng = np.random.default_rng(0)
    scale = np.finfo(dtype).max ** power
    x, y = histograms(rng, 4, 10), histograms(rng, 20, 10)
    x[:2] *= scale
    y[:, ::2] *= scale
    agree(name, x.astype(dtype), y.astype(dtype))


@both
def test_subnormal(dtype):
    x = np.full((2, 3), np.finfo(dtype).tiny / 8, dtype)
    for name in FORMULAS:
        out = np.empty((2, 2), dtype)
        column_sum(name, x, x, out)
        assert np.isfinite(out).all()
        assert (out <= 8 * x[0, 0]).all()


@both
def test_jensen_shannon_does_not_cancel(dtype):
    x = np.array([[0.5, 0.3, 1e-7]], dtype)
    y = np.array([[1e-10, 1e-30, 0.7], [0.5, 0.3, 1e-7]], dtype)
    agree("jensen_shannon", x, y)


def test_sums_in_the_precision_of_out():
    rng = np.random.default_rng(0)
    x, y = histograms(rng, 3, 5000, np.float32), histograms(rng, 4, 5000, np.float32)
    agree("city_block", x, y, np.empty((3, 4)))


def test_rows_that_may_not_be_written():
    x = histograms(np.random.default_rng(0), 3, 5)
    x.setflags(write=False)
    agree("city_block", x, x)
