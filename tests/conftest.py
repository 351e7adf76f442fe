from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import settings

# The same examples every time: a law that fails must fail again.
settings.register_profile("laws", deadline=None, derandomize=True, database=None)
settings.load_profile("laws")


@pytest.fixture
def rng():
    return np.random.default_rng(2024)


def pytest_collection_modifyitems(items):
    """The examples of figures need matplotlib, as their tests do."""
    if find_spec("matplotlib") is None:
        skip = pytest.mark.skip(reason="figures need matplotlib: mercer[plot]")
        for item in items:
            if item.name.startswith("mercer.plotting"):
                item.add_marker(skip)
