"""Whatever is drawn: no figure is left with pyplot, no setting is changed."""

import pytest

matplotlib = pytest.importorskip("matplotlib", reason="figures need matplotlib: mercer[plot]")
matplotlib.use("agg")


@pytest.fixture(name="X")
def rows(rng):
    return rng.normal(size=(40, 2)) * [3, 1] + [10, 0]


@pytest.fixture(autouse=True)
def _no_traces():
    from matplotlib import pyplot

    before = dict(matplotlib.rcParams)
    yield
    assert pyplot.get_fignums() == []
    assert dict(matplotlib.rcParams) == before
