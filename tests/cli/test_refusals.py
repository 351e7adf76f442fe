"""What is refused: with a sentence, an exit code and no file."""

import json
import os
import sys

import numpy as np
import pytest

from mercer import PCA
from mercer.modelfile import container
from tests.cli.conftest import write_csv


@pytest.fixture(autouse=True)
def no_files(tmp_path):
    """A refusal leaves the folder as it was."""
    yield
    assert not [path for path in tmp_path.rglob("*") if ".part" in path.name]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["fti"], 2, "No such command 'fti'. Did you mean 'fit'? See mercer --help."),
        (["fit", "{iris}"], 2, "Missing option"),
        (["fit"], 2, "Missing argument"),
        (["fit", "{iris}", "-o", "m.mercer", "--kernl", "rbf"], 2, "--kernl"),
        (["fit", "{iris}", "-o", "m.mercer", "--memory", "much"], 2, "--memory much is not a size"),
        (["fit", "{iris}", "-o", "m.mercer", "--seed", "x"], 2, "'--seed'"),
        (
            ["fit", "{iris}", "-o", "m.mercer", "--checkpoint-seconds", "0"],
            2,
            "--checkpoint-seconds 0",
        ),
        (["fit", "{iris}", "-o", "m.mercer", "--components", "many"], 2, "broken-stick"),
        (["fit", "{iris}", "-o", "m.mercer", "--components", "1.5"], 2, "between 0 and 1"),
        (["fit", "{iris}", "-o", "m.mercer", "--components", "nan"], 2, "nan"),
        (
            ["fit", "{iris}", "-o", "m.mercer", "--components", "-1"],
            2,
            "--components -1 must be an integer",
        ),
        (
            ["fit", "{iris}", "-o", "m.mercer", "--components", "9"],
            1,
            "--components 9 must be between 1 and 4: the table has 150 rows and 4 columns.",
        ),
        (
            ["fit", "{iris}", "-o", "m.mercer", "--components", "2.0"],
            2,
            "--components 2.0 must be an integer such as 2, a share",
        ),
        (["fit", "{iris}", "-o", "m.mercer", "--components", "0"], 2, "--components 0 must be"),
        (
            ["fit", "{iris}", "-o", "m.mercer", "--gap", "2"],
            2,
            "--gap 2.0 must be at least 0 and below 1: 0.01 is one percent",
        ),
        (["fit", "{iris}", "-o", "m.mercer", "--scale", "z-score"], 2, "Did you mean zscore?"),
        (["fit", "{iris}", "-o", "m.mercer", "--impute", "median"], 2, "Choose from mean"),
        (["fit", "{iris}", "-o", "m.mercer", "--method", "krilov"], 2, "Did you mean krylov?"),
        (["fit", "{iris}", "-o", "m.mercer", "--method", "subset"], 2, "add a --kernel"),
        (["fit", "{iris}", "-o", "m.mercer", "--gamma", "1"], 2, "add a --kernel"),
        (["fit", "{iris}", "-o", "m.csv"], 2, "ends in .mercer"),
        (["fit", "{iris}", "-o", "no/m.mercer"], 1, "There is no folder no"),
        (["fit", "{iris}", "-o", "m.mercer", "--scores", "s.xls"], 2, "ends in .csv"),
        (["fit", "{iris}", "-o", "m.mercer", "--scores", "{iris}"], 1, "is an input"),
        (
            ["fit", "{iris}", "-o", "m.mercer", "--scores", "{iris}", "--force"],
            1,
            "is an input",
        ),
        (["fit", "{iris}", "-o", "m.mercer", "--label", "specie"], 1, "did you mean 'species'?"),
        (["fit", "{iris}", "-o", "m.mercer", "--columns", "sl,xx"], 1, "'xx'"),
        (["fit", "{iris}", "-o", "m.mercer", "--weights", "ww"], 1, "'ww'"),
        (["fit", "iris.cvs", "-o", "m.mercer"], 1, "Did you mean iris.csv?"),
        (["fit", "it.csv", "-o", "m.mercer"], 1, "it.csv: no such file.\n"),
        (
            ["plan", "{iris}", "--components", "9"],
            1,
            "--components 9 must be between 1 and 4: the table has 150 rows and 4 columns.",
        ),
        (
            ["compare", "{iris}", "--components", "9"],
            1,
            "--components 9 must be between 1 and 4: the table has 150 rows and 4 columns.",
        ),
        (
            ["novelty", "fit", "{iris}", "--linear", "--components", "9", "-o", "m.mercer"],
            1,
            "--components 9 must be between 1 and 4: the table has 150 rows and 4 columns.",
        ),
        (
            ["fit", "{iris}", "-o", "m.mercer", "--kernel", "rbf(a=3)"],
            2,
            "has no argument 'a'; it takes gamma",
        ),
        (["fit", "none/iris.csv", "-o", "m.mercer"], 1, "the folder none does not exist"),
        (["fit", ".", "--format", "npy", "-o", "m.mercer"], 1, "is a folder"),
        (["fit", "{iris}", "--kernel", "rfb(1)", "-o", "m.mercer"], 2, "'rfb' at character 1"),
        (
            ["fit", "{iris}", "--kernel", "rbf(1) + ", "-o", "m.mercer"],
            2,
            "invalid syntax at character",
        ),
        (
            ["fit", "{iris}", "--kernel", "rbf(1)", "--gamma", "2", "-o", "m.mercer"],
            2,
            "set gamma in it",
        ),
        (["fit", "{iris}", "--kernel", "rbf", "--gamma", "-2", "-o", "m.mercer"], 2, "above 0"),
        (
            ["fit", "{iris}", "--kernel", "rbf", "--method", "sbset", "-o", "m.mercer"],
            2,
            "Did you mean subset?",
        ),
        (
            ["fit", "{iris}", "--kernel", "rbf", "--select", "kmean", "-o", "m.mercer"],
            2,
            "Did you mean kmeans?",
        ),
        (
            [
                "fit",
                "{iris}",
                "--kernel",
                "rbf",
                "--method",
                "exact",
                "--basis",
                "9",
                "-o",
                "m.mercer",
            ],
            2,
            "is not supported by --method exact",
        ),
        (
            ["fit", "{iris}", "--kernel", "rbf", "--basis", "999", "-o", "m.mercer"],
            1,
            "--basis 999",
        ),
        (
            ["fit", "{iris}", "--kernel", "rbf", "--components", "mle", "-o", "m.mercer"],
            2,
            "or a rule: all, kaiser, broken-stick, parallel, gavish-donoho",
        ),
        (["fit", "{iris}", "--kernel", "precomputed", "-o", "m.mercer"], 2, "precomputed"),
        (
            ["fit", "{iris}", "--kernel", "rbf", "--preimage", "x", "-o", "m.mercer"],
            2,
            "fixed_point",
        ),
        (["fit", "{iris}", "--kernel", "substring(2)", "-o", "m.mercer"], 1, "strings"),
        (["transform", "m.mercer", "{iris}", "-o", "s.csv"], 1, "m.mercer: no such file"),
        (["transform", ".", "{iris}", "-o", "s.csv"], 1, "is a folder"),
        (["transform", "{iris}", "{iris}", "-o", "s.csv"], 1, "iris.csv"),
        (["inspect", "{iris}"], 1, "iris.csv"),
        (["report", "{iris}", "-o", "r.html"], 1, "iris.csv"),
        (["report", "{iris}", "-o", "r.pdf"], 2, "ends in .html"),
        (["report", "{iris}", "-o", "r.html", "--label", "species"], 2, "DATA, which is not given"),
        (["report", "{iris}", "-o", "r.html", "--keep", "sl"], 2, "DATA, which is not given"),
        (["report", "{iris}", "-o", "r.html", "--images", "8by8"], 2, "28x28"),
        (
            ["novelty", "fit", "{iris}", "--contamination", "0.7", "-o", "m.mercer"],
            2,
            "--contamination 0.7 must be a share of the rows, above 0 and at most 0.5",
        ),
        (["compare", "{iris}", "--method", "full,ful"], 2, "Did you mean full?"),
    ],
)
def test_refused(mercer, iris, tmp_path, arguments, code, said):
    before = sorted(tmp_path.iterdir())
    done = mercer(*(text.format(iris=iris) for text in arguments), code=code)
    assert said in done.err
    assert done.err.splitlines()[-1].startswith("error: mercer")
    assert done.out == ""
    assert len(done.err) < 1500
    assert sorted(tmp_path.iterdir()) == before
    told = mercer(*(text.format(iris=iris) for text in arguments), "--json", code=code).json
    assert told["exit_code"] == code
    assert said.strip() in told["error"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("a,b\n", "row"),
        ("a,b\n1,2\n3,oops\n5,6\n", "oops"),
        ("a,b\nx,y\nz,w\n", "number"),
        ("a,b\n1,2\n3\n", "line 3"),
        ("a,a\n1,2\n3,4\n", "more than once"),
        ("a,b\n1,2\n", "row"),
        ("a,b\n1,inf\n2,3\n3,4\n", "infinity"),
    ],
)
def test_bad_tables(mercer, tmp_path, text, said):
    (tmp_path / "bad.csv").write_text(text)
    done = mercer("fit", "bad.csv", "--columns", "a,b", "-o", "m.mercer", code=1)
    assert said in done.err, done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv"]


def test_missing_values_are_counted_by_column(mercer, tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    X[1, 2] = X[2, 2] = X[3, 0] = np.nan
    write_csv(tmp_path / "gaps.csv", X, "abc")
    done = mercer("fit", "gaps.csv", "-o", "m.mercer", code=1)
    assert "2 of 'c', 1 of 'a'" in done.err
    assert "Use --impute mean" in done.err
    assert "SimpleImputer" not in done.err


def test_infinity_is_not_filled_in(mercer, tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    X[2, 1], X[3, 0] = np.inf, np.nan
    np.save("x.npy", X)
    write_csv(tmp_path / "x.csv", np.nan_to_num(X, nan=0.0, posinf=np.inf), "abc")
    done = mercer("fit", "x.csv", "-o", "m.mercer", code=1)
    assert "infinity (inf): the first is in row 2, column 1 ('b')" in done.err
    assert "first replace infinity by NaN, then impute, for example with --impute" in done.err
    assert "of the total variance" not in done.err
    done = mercer("fit", "x.npy", "--impute", "mean", "-o", "m.mercer", code=1)
    assert "'1' has no mean: a value is infinite" in done.err


@pytest.mark.parametrize("seed", ["-1", 2**32])
def test_seeds_out_of_range(mercer, iris, seed):
    assert "--seed" in mercer("fit", iris, "--seed", seed, "-o", "m.mercer", code=2).err


def test_a_column_without_a_value_cannot_be_filled_in(mercer, tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.save("x.npy", np.where(np.arange(3) == 1, np.nan, X))
    done = mercer("fit", "x.npy", "--impute", "mean", "-o", "m.mercer", code=1)
    assert "No row has a value in '1'" in done.err


def test_files_are_not_replaced_unless_asked(mercer, iris, tmp_path):
    for name in ("m.mercer", "s.csv"):
        (tmp_path / name).write_text("precious")
    done = mercer("fit", iris, "-o", "m.mercer", code=1)
    assert "m.mercer already exists; use --force to overwrite." in done.err
    done = mercer("fit", iris, "-o", "n.mercer", "--scores", "s.csv", code=1)
    assert "s.csv already exists" in done.err
    assert not (tmp_path / "n.mercer").exists()
    assert (tmp_path / "m.mercer").read_text() == (tmp_path / "s.csv").read_text() == "precious"
    mercer("fit", iris, "-o", "m.mercer", "--scores", "s.csv", "--force")
    assert (tmp_path / "s.csv").read_text().startswith("pca0,")


def test_two_outputs_are_two_files(mercer, iris):
    done = mercer("fit", iris, "-o", "m.mercer", "--scores", "m.mercer", code=2)
    assert "ends in .csv" in done.err


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_is_read_only(mercer, iris, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o500)
    done = mercer("fit", iris, "-o", "locked/m.mercer", code=1)
    assert "is not writable" in done.err


def test_a_write_that_fails_is_a_sentence(mercer, iris, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "m.mercer")

    monkeypatch.setattr("mercer.save", full, raising=False)
    done = mercer("fit", iris, "-o", "m.mercer", code=1)
    assert "m.mercer: no space left on device." in done.err


def test_a_fault_of_ours_says_so_and_debug_shows_it(mercer, iris, monkeypatch, capsys):
    from mercer.cli import build
    from mercer.cli.app import run

    def broken(asked):
        raise KeyError("broken")

    monkeypatch.setattr(build, "build_estimator", broken)
    done = mercer("fit", iris, "-o", "m.mercer", code=1)
    assert "a bug in Mercer, KeyError" in done.err
    assert "--debug" in done.err
    assert run(["fit", str(iris), "-o", "m.mercer", "--debug"]) == 1
    assert 'raise KeyError("broken")' in capsys.readouterr().err
    monkeypatch.setenv("MERCER_DEBUG", "1")
    assert run(["fit", str(iris), "-o", "m.mercer"]) == 1
    assert 'raise KeyError("broken")' in capsys.readouterr().err


def test_data_with_other_columns_than_the_model(mercer, iris, X, tmp_path):
    mercer("fit", iris, "--label", "species", "--components", 2, "-o", "m.mercer")
    write_csv(tmp_path / "other.csv", X, ("sl", "width", "pl", "breadth"))
    done = mercer("transform", "m.mercer", "other.csv", "-o", "s.csv", code=1)
    assert "'sw'" in done.err
    assert "'pw'" in done.err
    np.save("three.npy", X[:, :3])
    done = mercer("transform", "m.mercer", "three.npy", "-o", "s.csv", code=1)
    assert "3" in done.err
    assert not (tmp_path / "s.csv").exists()


def test_columns_in_another_order_and_more_of_them(mercer, iris, X, tmp_path):
    mercer(
        "fit", iris, "--label", "species", "--components", 2, "-o", "m.mercer", "--scores", "s.npy"
    )
    mixed = np.column_stack([X[:, [3, 0]], X[:, 0] * 2, X[:, [2, 1]]])
    write_csv(tmp_path / "mixed.csv", mixed, ("pw", "sl", "new", "pl", "sw"))
    done = mercer("transform", "m.mercer", "mixed.csv", "-o", "t.npy")
    assert np.array_equal(np.load("t.npy"), np.load("s.npy"))
    assert "ignored, because the model has no such columns" in done.err
    assert "'new'" in done.err


def test_a_model_of_a_newer_version(mercer, iris, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr("mercer.modelfile.FORMAT", 99)
        mercer("fit", iris, "-o", "m.mercer")
    for arguments in (["inspect", "m.mercer"], ["transform", "m.mercer", iris, "-o", "s.csv"]):
        done = mercer(*arguments, code=1)
        assert "has format 99" in done.err


def test_a_model_that_is_cut_off(mercer, iris, tmp_path):
    mercer("fit", iris, "-o", "m.mercer")
    stored = (tmp_path / "m.mercer").read_bytes()
    (tmp_path / "m.mercer").write_bytes(stored[: len(stored) // 2])
    done = mercer("inspect", "m.mercer", code=1)
    assert "m.mercer" in done.err


def test_a_header_of_other_types(mercer, iris):
    mercer("fit", iris, "-o", "m.mercer")
    texts, arrays = container.read_contents("m.mercer")
    del texts["checksum"]
    whole = json.loads(texts["header"])
    for name, value in {
        "estimator": 1,
        "kernel": 1,
        "parameters": "tol",
        "preprocessing": [1],
        "spectrum": {"shares": ["x"]},
        "origin": "here",
        "versions": None,
        "certificate": "all of it",
    }.items():
        header = json.dumps({**whole, name: value})
        container.write_contents("m.mercer", {**texts, "header": header}, arrays)
        done = mercer("inspect", "m.mercer", code=1)
        assert "m.mercer is not a valid model file" in done.err, name
    for header in ({}, {**whole, "origin": "here"}, {**whole, "origin": 1}):
        container.write_contents("m.mercer", {**texts, "header": json.dumps(header)}, arrays)
        for arguments in (["inspect", "m.mercer"], ["transform", "m.mercer", iris, "-o", "s.csv"]):
            done = mercer(*arguments, code=1)
            assert "m.mercer is not a valid model file" in done.err, header


def test_names_that_would_move_the_cursor(mercer, tmp_path, X):
    evil = "\x1b[2J[red]evil"
    write_csv(tmp_path / "evil.csv", X[:9], ("a", "b", "c", "d"), **{evil: list("xyzxyzxyz")})
    done = mercer("fit", "evil.csv", "--components", 2, "-o", "m.mercer")
    assert "\x1b" not in done.out + done.err
    assert "[red]evil" in done.err


def test_a_page_without_what_makes_it_is_refused_before_the_fit(mercer, iris, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setattr(PCA, "fit", None)
    done = mercer("fit", iris, "-o", "m.mercer", "--report", "a.html", code=1)
    assert "mercer[report]" in done.err
