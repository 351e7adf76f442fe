"""Scores and errors of many rows: nothing as large as the rows is made."""

import tracemalloc

import pytest
import sklearn.decomposition as peers
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, config_context
from mercer.plotting import (
    BiplotDisplay,
    PairsDisplay,
    ReconstructionErrorDisplay,
    ScoresDisplay,
)

MODELS = {
    "ours": lambda: PCA(),
    "pipeline": lambda: make_pipeline(StandardScaler(), PCA()),
    "theirs": lambda: peers.PCA(),
}
KINDS = (ScoresDisplay, PairsDisplay, BiplotDisplay, ReconstructionErrorDisplay)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_copy_of_the_rows(rng, model, kind):
    X = rng.standard_normal((20_000, 200))
    fitted = MODELS[model]().fit(X)
    kind.from_estimator(fitted, X[:100])  # what is imported at first is not counted
    tracemalloc.start()
    with config_context(block_rows=300):
        display = kind.from_estimator(fitted, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    display.figure_.clear()
    assert peak < 0.4 * X.nbytes
