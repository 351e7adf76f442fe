"""What points are colored by: classes, numbers or dates."""

from datetime import date, datetime, timedelta, timezone

import numpy as np
import pytest

from mercer.estimators.coloring import coloring


def by(values, **options):
    return coloring(values, len(values), **options)


def test_classes_and_missing_values():
    classes = by(np.array(["b", "a", None, "b", np.nan], object))
    assert classes.classes == ["a", "b"]
    assert classes.codes.tolist() == [1, 0, -1, 1, -1]
    assert classes.missing.tolist() == [False, False, True, False, True]
    assert [classes.text(i) for i in (0, 2)] == ["b", "missing"]
    assert by(np.array([None, np.nan], object)).classes == []


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([2.0, np.nan, 1.0], ["1", "2"]),
        ([0.5, 0.25], ["0.25", "0.5"]),
        (np.array([0.1], np.float32), ["0.1"]),
        ([True, False], ["False", "True"]),
        ([10**17 + 1, 3], ["3", "100000000000000001"]),
        (np.array([3, None, 12], object), ["3", "12"]),
        (np.array([1, "a", 10], object), ["1", "10", "a"]),
    ],
)
def test_names_of_classes(values, classes):
    assert by(values).classes == classes


def test_numbers_are_a_scale_or_classes():
    assert by(np.arange(61)).numbers is not None
    assert by(np.arange(60)).classes[:3] == ["0", "1", "2"]
    assert by(np.arange(100), max_integers=100).numbers is None
    assert by(np.arange(21), max_integers=20).numbers is not None
    assert by(np.arange(21.0)).numbers is not None
    assert by(np.arange(20.0)).numbers is None
    numbers = by(np.array([np.nan, None, *range(30)], object))
    assert numbers.missing.tolist() == [True] * 2 + [False] * 30
    assert [numbers.text(i) for i in (0, 4)] == ["missing", "2"]


def test_dates_are_a_scale_or_classes():
    days = np.arange("2020-01-01", "2020-03-01", dtype="datetime64[D]").astype("datetime64[ns]")
    days[3] = "NaT"
    scale = by(days)
    assert scale.dates
    assert scale.numbers[1] - scale.numbers[0] == 86_400_000
    assert [scale.text(i) for i in (0, 3)] == ["2020-01-01", "missing"]
    few = by(days[:5])
    assert few.classes == ["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-05"]
    assert few.codes.tolist() == [0, 1, 2, -1, 3]
    zone = timezone(timedelta(hours=2))
    moments = [
        datetime(2020, 1, 1, 2, tzinfo=zone),
        date(2020, 1, 2),
        None,
        datetime(2020, 1, 3, 4),
    ]
    assert by(np.array(moments, object)).classes == [
        "2020-01-01 00:00:00",
        "2020-01-02 00:00:00",
        "2020-01-03 04:00:00",
    ]


def test_durations_are_seconds():
    spans = by(np.array([60, "NaT"], "timedelta64[m]"), name="wait")
    assert spans.name == "wait (s)"
    assert spans.classes == ["3600"]
    assert spans.codes.tolist() == [0, -1]


def test_small_classes_share_a_group():
    names = np.array([f"k{i:02}" for i in range(50) for _ in range(i + 1)])
    many = by(names)
    assert [many.classes[code] for code in many.largest(3)] == ["k49", "k48", "k47"]
    assert all(many.classes[code] == name for code, name in zip(many.codes, names, strict=True))
    groups = many.groups(20)
    assert groups.tolist() == [19] * 31 + list(range(19))
    assert many.groups(50).tolist() == list(range(50))


def test_one_value_per_row():
    with pytest.raises(ValueError, match=r"columns\['a'\] has shape \(1,\), but there are 3 rows"):
        coloring([1], 3, argument="columns['a']")
