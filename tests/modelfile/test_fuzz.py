"""Mutated model files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).with_name("fuzz.py")


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_files(count):
    """Refused with the file's name, or a model; nothing run, no crash, no hang."""
    run = subprocess.run(
        [sys.executable, str(FUZZ), "0", str(count)], capture_output=True, text=True, timeout=3000
    )
    assert run.returncode == 0, run.stderr[-3000:]
    outcome = json.loads(run.stdout)
    assert outcome["errors"] == {}
    assert outcome["events"] == []
    assert sum(outcome["tally"].values()) == count
    assert "changed: loaded" not in outcome["tally"]
    assert outcome["tally"]["written anew: loaded"] > count / 100  # some changes leave a model
    assert outcome["tally"]["written anew: refused"] > count / 10
    assert outcome["slowest"] < 60  # seconds of the processor, to load and use one
