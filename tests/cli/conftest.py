import json
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_iris

pytest.importorskip("pyarrow", reason="tables need pyarrow: mercer[files]")


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self):
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


@pytest.fixture
def mercer(capsys, monkeypatch, tmp_path):
    """Run a command line in this process, in a folder of its own."""
    from mercer.cli.app import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DEBUG", raising=False)

    def call(*arguments, code=0):
        capsys.readouterr()
        found = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        done = Done(found, captured.out, captured.err)
        assert done.code == code, done
        assert "Traceback" not in done.err
        return done

    return call


def write_csv(path, X, names, **others):
    """Write numbers with all their digits, and columns of text beside them."""
    lines = [",".join([*names, *others])]
    for i, row in enumerate(X):
        cells = ["" if np.isnan(x) else repr(float(x)) for x in row]
        lines.append(",".join([*cells, *(str(column[i]) for column in others.values())]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(name="X")
def rows():
    return load_iris().data


@pytest.fixture
def iris(tmp_path, X):
    """Iris as a CSV, with the species."""
    species = load_iris().target_names[load_iris().target]
    return write_csv(tmp_path / "iris.csv", X, ("sl", "sw", "pl", "pw"), species=species)
