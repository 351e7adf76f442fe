"""What tests of the papers' results share."""

import importlib
import re

import numpy as np
import pytest

from papers import openml


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """No test downloads anything: what is not in MERCER_DATA is absent."""

    def refuse(number):
        raise OSError("no network in tests")

    monkeypatch.setattr(openml, "_table", refuse)


def quick(name):
    """Return the lines of a quick run by what they are of; skip where data are absent."""
    try:
        result = importlib.import_module(f"papers.{name}").run(quick=True)
    except FileNotFoundError as absent:
        pytest.skip(str(absent))
    result.figure.draw_without_rendering()  # what cannot be drawn raises
    assert not re.search(r"\{\w*[:}]", result.text), "a figure was not filled in"
    assert all(np.isfinite(line.ours) for line in result.lines)
    return {line.what: line for line in result.lines}
