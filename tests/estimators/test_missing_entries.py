"""Masked entries and dates are refused, wherever rows come in."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mercer import (
    PCA,
    Denoiser,
    KernelPCA,
    NearestProjection,
    NoveltyDetector,
    SubspaceClassifier,
    as_source,
)
from mercer.kernels import RBF
from mercer.methods import Subset
from mercer.sketches import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
Y = np.arange(12) % 2
MASKED = np.ma.masked_array(X.copy(), mask=np.zeros(X.shape, bool))
MASKED[4, 1] = MASKED[7, 0] = np.ma.masked
DATES = np.full((12, 3), np.datetime64("2020-01-01"))
DATES[4, 1] = DATES[7, 0] = "NaT"
DAY = datetime.date(2020, 1, 1)

ROWS = {
    "masked": (MASKED, "2 masked entries, the first in row 4, column 1"),
    "rows masked": (list(MASKED), "2 masked entries, the first in row 4, column 1"),
    "objects": (
        np.array([[1.0, np.datetime64("NaT"), 0.0]] + [[2.0, 3.0, 1.0]] * 11, object),
        "1 date, the first in row 0, column 1. Convert them to numbers",
    ),
    "dates": (DATES, r"Dates are not numbers: the array has dtype datetime64\[D\]"),
    "no missing dates": (DATES[:1].repeat(12, axis=0), "Dates are not numbers"),
    "differences": (DATES - DATES[0], r"Not numbers: the array has dtype timedelta64\[D\]"),
    "pandas": (
        pd.DataFrame(DATES.astype("M8[ns]"), columns=list("abc")),
        r"X has 3 columns that are not numeric: 'a', 'b', 'c' \(dates, .* in row 0",
    ),
    "polars": (
        pl.DataFrame({name: [DAY] * 4 + [None] + [DAY] * 7 for name in "abc"}),
        r"X has 3 columns that are not numeric: 'a', 'b', 'c' \(dates\)",
    ),
}
MODELS = [
    PCA(2),
    KernelPCA(2, kernel="rbf"),
    KernelPCA(2, kernel="rbf", method=Subset(5), preimage="fixed_point"),
    NoveltyDetector(PCA(2)),
    SubspaceClassifier(PCA(1)),
    NearestProjection(PCA(2)),
    Denoiser(PCA(2)),
    Gaussian(2),
]


def refuses(call, message):
    with pytest.raises(ValueError, match=message) as told:
        call()
    days = "Convert it to float64, for example to days: (X - X.min()) / numpy.timedelta64(1, 'D')."
    if "not numeric" not in (text := str(told.value)):
        assert text.endswith(days if "dtype" in text else "or drop those rows.")


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_estimator_refuses_them(model, kind):
    bad, message = ROWS[kind]
    refuses(lambda: model.fit(bad, Y), message)
    model.fit(X, Y)
    for name in ("transform", "predict", "score_samples", "reconstruct", "reconstruction_error"):
        back = name != "reconstruct" or hasattr(model, "inverse_transform")
        if hasattr(model, name) and back:
            refuses(lambda name=name: getattr(model, name)(bad), message)
    if hasattr(model, "partial_fit"):
        refuses(lambda: model.partial_fit(bad), message)


def test_scores_weights_labels_images_sources_and_kernels_too():
    masked = MASKED[:, :2]
    refuses(lambda: PCA(2).fit(X).inverse_transform(masked), "2 masked entries")
    weights = np.ma.masked_array(np.ones(12), mask=Y)
    refuses(lambda: PCA(2).fit(X, sample_weight=weights), "sample_weight has 6 masked.* in row 1")
    for model in (SubspaceClassifier(PCA(1)), NearestProjection(PCA(1))):
        refuses(lambda model=model: model.fit(X, np.ma.masked_equal(Y, 1)), "y has 6 masked")
        with pytest.raises(ValueError, match=r"y has missing dates \(NaT\)\. Drop those rows"):
            model.fit(X, DATES[:, 0])
    images = np.ma.masked_array(X.reshape(12, 1, 3), mask=MASKED.mask.reshape(12, 1, 3))
    denoiser = Denoiser(PCA(2), image_shape=(1, 3))
    refuses(lambda: denoiser.fit(images), "masked entries, the first in row 4, column 0, 1")
    refuses(lambda: as_source(MASKED), "masked entries")
    refuses(lambda: as_source(DATES), "Dates are not numbers")
    refuses(lambda: PCA(2).fit(X).inverse_transform(DATES[:, :2]), "Dates are not numbers")
    refuses(lambda: RBF(1.0)(X, MASKED), "masked entries")
    given = KernelPCA(1, kernel="precomputed")
    refuses(lambda: given.fit(MASKED[3:6]), "1 masked entry, the first in row 1, column 1")


def test_a_mask_that_hides_nothing_is_no_matter():
    plain = np.ma.masked_array(X, mask=False)
    assert np.array_equal(PCA(2).fit(plain).components_, PCA(2).fit(X).components_)
