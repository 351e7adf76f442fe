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
    """The examples of figures, the report and AnnData need what these are made with."""
    for package, home, extra in (
        ("matplotlib", "mercer.plotting", "plot"),
        ("plotly", "mercer.report", "report"),
        ("anndata", "mercer.anndata", "anndata"),
        ("anndata", "mercer.data.anndata", "anndata"),
    ):
        if find_spec(package) is None:
            skip = pytest.mark.skip(reason=f"{home} needs {package}: mercer[{extra}]")
            for item in items:
                if item.name.startswith(home):
                    item.add_marker(skip)
