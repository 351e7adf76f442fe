"""The pieces of a report."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.report.charts import error_histogram
from mercer.report.html import (
    clean_text,
    format_count,
    format_fixed,
    format_number,
    join_names,
    script_json,
)
from mercer.report.subject import draw_sample, furthest_rows
from tests.report.pages import NASTY


@given(st.text())
def test_clean_texts_can_be_written(text):
    clean = clean_text(text)
    assert len(clean) <= 1000
    assert clean.encode("utf-8").decode("utf-8") == clean
    assert not any(ord(c) < 32 or c in "\u2028\u2029\u202e" for c in clean)


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_embedded_data_come_back_and_end_nothing(data):
    text = script_json(data)
    assert json.loads(text) == data
    assert not set("<>&\u2028\u2029") & set(text)
    assert text.isascii()


def test_nasty_texts_in_json():
    assert json.loads(script_json(NASTY)) == NASTY


def test_zeros_have_no_sign():
    for x in (-0.0, -1e-9, -0.0004, 0.0004, -0.49):
        assert format_fixed(x, 0) == "0"
    assert format_fixed(-0.0004, 3) == "0.000"
    assert format_fixed(-0.0006, 3) == "−0.001"
    assert format_fixed(-0.0, None) == "0"


def test_numbers():
    assert [format_number(x) for x in (0.00012345, -3, np.nan, np.inf)] == [
        "0.0001234",
        "−3",
        "–",
        "∞",
    ]
    assert format_count(1234567) == "1\u202f234\u202f567"
    assert [join_names(x) for x in ([], ["a"], list("ab"), list("abc"))] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


@given(
    n=st.integers(1, 300),
    most=st.integers(1, 300),
    kinds=st.integers(0, 40),
    seed=st.integers(0, 9),
)
def test_samples(n, most, kinds, seed):
    rng = np.random.default_rng(seed)
    classes = rng.integers(-1, kinds, n) if kinds else None
    sample = draw_sample(n, most, classes, seed, 20)
    assert len(np.unique(sample.at)) == len(sample.at)
    errors = rng.integers(0, 5, n).astype(float)
    wider = sample.with_furthest(errors)
    assert len(wider.at) == min(n, most)
    assert np.all(np.diff(wider.at) > 0)
    if n <= most:
        assert len(wider.at) == n
    else:
        assert set(furthest_rows(errors, wider.spare)) <= set(wider.at.tolist())
        assert np.array_equal(draw_sample(n, most, classes, seed, 20).at, sample.at)
    if classes is not None and sample.per_class:
        for kind in np.unique(classes[classes >= 0]):
            members = np.flatnonzero(classes == kind)
            drawn = len(np.intersect1d(members, sample.at))
            assert drawn >= min(sample.per_class, len(members))


def test_samples_are_even():
    hits = np.zeros(50)
    for seed in range(2000):
        hits[draw_sample(50, 10, None, seed, 0).at] += 1
    assert hits.min() > 0.8 * hits.mean()
    assert hits.max() < 1.2 * hits.mean()


@given(st.lists(st.integers(0, 6), min_size=1), st.integers(0, 30))
def test_furthest(values, k):
    errors = np.array(values, float)
    assert (
        furthest_rows(errors, k).tolist()
        == sorted(range(len(errors)), key=lambda i: (-errors[i], i))[:k]
    )


@pytest.mark.parametrize(
    "errors",
    [
        np.array([1.0]),
        np.zeros(5),
        np.full(7, 3.0),
        np.array([1.0, 1.0 + 1e-15]),
        np.array([1e-300, 1.0, 1e300]),
        np.random.default_rng(0).chisquare(3, 1000),
        np.append(np.ones(100) * 1e-3, 1e3),
        np.append(np.zeros(50), [1e-20, 1.0]),
    ],
)
def test_histograms_hold_every_row(errors):
    histogram = error_histogram(errors, None)
    assert sum(histogram["counts"]) + histogram["left"] == len(errors)
    assert len(histogram["edges"]) == len(histogram["counts"]) + 1
    assert np.isfinite(histogram["edges"]).all()
    json.dumps(histogram, allow_nan=False)
