"""The pieces of a report."""

import json
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.report.colours import MANY, coloured
from mercer.report.html import embedded
from mercer.report.sample import chosen, furthest, with_furthest
from mercer.report.tables import histogram
from mercer.report.text import clean, count, listed, number
from tests.report.pages import NASTY


@given(st.text())
def test_clean_texts_can_be_written(text):
    said = clean(text)
    assert len(said) <= 1000
    assert said.encode("utf-8").decode("utf-8") == said
    assert not any(ord(c) < 32 or c in "\u2028\u2029\u202e" for c in said)


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_embedded_data_come_back_and_end_nothing(data):
    written = embedded(data)
    assert json.loads(written) == data
    assert not set("<>&\u2028\u2029") & set(written)
    assert written.isascii()


@pytest.mark.parametrize("text", NASTY)
def test_embedded_nasty_texts(text):
    assert json.loads(embedded([text])) == [text]


def test_numbers():
    assert [number(x) for x in (0.00012345, -3, np.nan, np.inf)] == ["0.0001234", "−3", "–", "∞"]
    assert count(1234567) == "1\u202f234\u202f567"
    assert [listed(x) for x in ([], ["a"], list("ab"), list("abc"))] == [
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
    sample = chosen(n, most, classes, seed)
    assert len(np.unique(sample.at)) == len(sample.at)
    errors = rng.integers(0, 5, n).astype(float)
    wider = with_furthest(sample, errors)
    assert len(wider.at) == min(n, most)
    assert np.all(np.diff(wider.at) > 0)
    if n <= most:
        assert len(wider.at) == n
    else:
        assert set(furthest(errors, wider.furthest)) <= set(wider.at.tolist())
        assert np.array_equal(chosen(n, most, classes, seed).at, sample.at)
    if classes is not None and sample.least:
        for kind in np.unique(classes[classes >= 0]):
            there = np.flatnonzero(classes == kind)
            assert len(np.intersect1d(there, sample.at)) >= min(sample.least, len(there))


def test_samples_are_even():
    hits = np.zeros(50)
    for seed in range(2000):
        hits[chosen(50, 10, None, seed).at] += 1
    assert hits.min() > 0.8 * hits.mean()
    assert hits.max() < 1.2 * hits.mean()


@given(st.lists(st.integers(0, 6), min_size=1), st.integers(0, 30))
def test_furthest(values, k):
    errors = np.array(values, float)
    found = furthest(errors, k)
    assert found.tolist() == sorted(range(len(errors)), key=lambda i: (-errors[i], i))[:k]


def test_colours():
    codes = coloured("c", np.array(["b", "a", None, "b", np.nan], object))
    assert codes.names == ["a", "b"]
    assert codes.codes.tolist() == [1, 0, -1, 1, -1]
    assert [codes.text(i) for i in (0, 2)] == ["b", "missing"]
    assert coloured("c", np.arange(100)).numbers is not None
    assert coloured("c", np.arange(100), label=True).codes is not None
    assert coloured("c", np.arange(100.0), label=True).numbers is not None
    assert coloured("c", np.array([2.0, np.nan, 1.0])).names == ["1", "2"]
    assert coloured("c", np.array([True, False])).names == ["False", "True"]
    assert coloured("c", np.array([3, None, 12], object)).names == ["3", "12"]
    everywhere = coloured("c", np.array([np.inf, -np.inf, np.nan, *range(30)]))
    assert np.isnan(everywhere.numbers[:3]).all()
    assert coloured("c", np.array([None, np.nan], object)).names == []


def test_dates_are_a_scale_or_classes():
    days = np.arange("2020-01-01", "2020-03-01", dtype="datetime64[D]").astype("datetime64[ns]")
    days[3] = "NaT"
    found = coloured("c", days)
    assert found.dates
    assert found.numbers[1] - found.numbers[0] == 86_400_000
    assert [found.text(i) for i in (0, 3)] == ["2020-01-01", "missing"]
    few = coloured("c", days[:5])
    assert few.names == ["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-05"]
    assert few.codes.tolist() == [0, 1, 2, -1, 3]
    zone = timezone(timedelta(hours=2))
    given = [datetime(2020, 1, 1, 2, tzinfo=zone), date(2020, 1, 2), None, datetime(2020, 1, 3, 4)]
    said = coloured("c", np.array(given, object))
    assert said.names == ["2020-01-01 00:00:00", "2020-01-02 00:00:00", "2020-01-03 04:00:00"]
    spans = coloured("c", np.array([60, "NaT"], "timedelta64[m]"))
    assert spans.names == ["3600"]
    assert spans.codes.tolist() == [0, -1]


def test_many_classes_come_by_their_size():
    names = np.array([f"k{i}" for i in range(50) for _ in range(i + 1)])
    found = coloured("c", names)
    assert len(found.names) == 50 > MANY
    assert found.names[0] == "k49"
    assert all(found.names[code] == name for code, name in zip(found.codes, names, strict=True))


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
    found = histogram(errors, None)
    assert sum(found["counts"]) + found["left"] == len(errors)
    assert len(found["edges"]) == len(found["counts"]) + 1
    assert np.isfinite(found["edges"]).all()
    json.dumps(found, allow_nan=False)
