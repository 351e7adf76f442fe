"""--feature-weight: files of column weights."""

from pathlib import Path

import numpy as np
import pytest

from mercer import PCA, load
from tests.cli.conftest import write_csv

W = np.array([2.0, 1.0, 0.5, 0.0])
BY_NAME = "name,weight\npl,0.5\nsl,2\n\nsw,1\n pw ,0\n"


def write(path, text):
    Path(path).write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "w.npy", W)
    write(tmp_path / "w.csv", BY_NAME)
    write(tmp_path / "plain.csv", BY_NAME.partition("\n")[2])
    write(tmp_path / "w.txt", "2\n1\n0.5\n0\n")
    write(tmp_path / "head.txt", "\ufeffweight\n2\n1\n5e-1\n0\n")


@pytest.mark.parametrize("name", ["w.npy", "w.csv", "plain.csv", "w.txt", "head.txt"])
def test_forms(mercer, iris, X, files, name):
    fit = ("fit", iris, "--label", "species", "--components", 2, "-o", "m.mercer")
    done = mercer(*fit, "--feature-weight", name, "--json").json
    model, expected = load("m.mercer"), PCA(2, feature_weight=W, random_state=0).fit(X)
    assert np.array_equal(model.transform(X), expected.transform(X))
    assert done["certificate"]["sentence"] == expected.certificate_.sentence


def test_names_go_through_an_imputer_and_a_scaler(mercer, tmp_path, X, files):
    rows = X.copy()
    rows[3, 1] = np.nan
    data = write_csv(tmp_path / "holes.csv", rows, ["sl", "sw", "pl", "pw"])
    asked = ("--impute", "mean", "--scale", "zscore", "--components", 2, "--feature-weight")
    mercer("fit", data, *asked, "w.csv", "-o", "m.mercer")
    rows[3, 1] = np.nanmean(rows[:, 1])
    expected = PCA(2, scale=True, feature_weight=W, random_state=0).fit(rows)
    assert np.array_equal(load("m.mercer")[-1].transform(rows), expected.transform(rows))
    mercer("plan", data, *asked, "w.csv")


def test_novelty(mercer, iris, X, files):
    asked = ("--label", "species", "--linear", "--components", 2, "-o", "m.mercer")
    mercer("novelty", "fit", iris, *asked, "--feature-weight", "w.csv")
    expected = PCA(2, feature_weight=W, random_state=0).fit(X).reconstruction_error(X)
    assert np.array_equal(-load("m.mercer").score_samples(X), expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pl,0.5\nsl,2\nsw,1\n", "--feature-weight has no weight for 'pw'"),
        (BY_NAME + "x,1\n", "weights for 'x', which X does not have"),
        (BY_NAME + "pl,1\n", "column 'pl' has two weights"),
        ("pl,0.5\nsl,much\n", "line 2: expected a weight, or the name of a column and its weight"),
        ("a,b,1\n", "line 1: expected a weight"),
        ("1\n2\n3\n", "has shape (3,), but X has 4 columns"),
        ("1\n2\n3\n-4\n", "--feature-weight[3] is -4.0"),
        ("", "has shape (0,), but X has 4 columns"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "plan"])
def test_refusals(mercer, iris, text, message, command):
    asked = ("--feature-weight", write("w.csv", text), "--label", "species", "-o", "m.mercer")
    assert message in mercer(command, iris, *asked, code=1).err
    assert not Path("m.mercer").exists()


def test_files_that_cannot_be_read(mercer, iris):
    asked = ("--label", "species", "-o", "m.mercer", "--feature-weight")
    assert "none.csv" in mercer("fit", iris, *asked, "none.csv", code=1).err
    write("w.npy", "no array")
    assert "could not be read" in mercer("fit", iris, *asked, "w.npy", code=1).err
    Path("w.csv").write_bytes(b"\xff\xfe\x00")
    assert "could not be read" in mercer("fit", iris, *asked, "w.csv", code=1).err


def test_a_kernel_takes_no_weights(mercer, iris, files):
    asked = ("--kernel", "rbf", "-o", "m.mercer", "--feature-weight", "w.csv")
    assert "--feature-weight is for linear PCA" in mercer("fit", iris, *asked, code=2).err
