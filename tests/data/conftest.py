"""Settings that tests of files share."""

import pytest

from mercer import config_context


@pytest.fixture
def small_pieces():
    """Lower the memory budget until a few thousand rows of text take several pieces."""
    with config_context(memory="2MiB"):
        yield
