"""The column that has nearly all of the variance."""

import numpy as np
import pytest

from mercer.data import as_source
from mercer.data.files.table import dominant_feature


@pytest.mark.parametrize("factor", [1, 4, 6, 1e3, 1e8])
@pytest.mark.parametrize("gaps", [0, 3])
def test_the_column_that_dominates(factor, gaps):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) * [1, factor, 1] + 1e4
    X[:gaps] = np.nan
    variances = np.nanvar(X, axis=0)
    said = dominant_feature(as_source(X), ["a", "b", "c"])
    assert (said != "") == (variances[1] > 0.95 * variances.sum())
    if said:
        assert said.startswith("'b' has about 9")
        assert "100" not in said
