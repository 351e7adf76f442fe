"""Ten thousand mutated model files."""

import json
import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).with_name("fuzz.py")


def test_ten_thousand_mutated_files():
    """Refused with the file's name, or a model; nothing run, no crash, no hang."""
    made = subprocess.run(
        [sys.executable, str(FUZZ), "0", "10000"], capture_output=True, text=True, timeout=3000
    )
    assert made.returncode == 0, made.stderr[-3000:]
    found = json.loads(made.stdout)
    assert found["errors"] == {}
    assert found["events"] == []
    assert sum(found["tally"].values()) == 10_000
    assert "changed: loaded" not in found["tally"]
    assert found["tally"]["written anew: loaded"] > 100  # some changes leave a model
    assert found["tally"]["written anew: refused"] > 1000
    assert found["slowest"] < 60  # seconds of the processor, to load and use one
