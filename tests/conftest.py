import numpy as np
import pytest
from hypothesis import settings

# The same examples every time: a law that fails must fail again.
settings.register_profile("laws", deadline=None, derandomize=True, database=None)
settings.load_profile("laws")


@pytest.fixture
def rng():
    return np.random.default_rng(2024)
