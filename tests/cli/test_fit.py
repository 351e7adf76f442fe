"""mercer fit and plan: what is fitted, said and written is what Python's is."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, KernelPCA, load
from mercer.data.files import read_table
from mercer.methods import Subset
from tests.cli.conftest import write_csv


def table(path):
    found = read_table(path)
    return found.source.collect(), list(found.source.names)


def test_scores_are_those_of_python_bit_for_bit(mercer, iris, X):
    mercer(
        "fit", iris, "--label", "species", "--components", 2, "-o", "m.mercer", "--scores", "s.csv"
    )
    mercer("transform", "m.mercer", iris, "-o", "t.csv")
    pca = PCA(2, random_state=0).fit(X)
    scores, names = table("s.csv")
    assert names == ["pca0", "pca1"]
    assert np.array_equal(scores, pca.transform(X))
    assert np.array_equal(table("t.csv")[0], scores)
    assert list(load("m.mercer").feature_names_in_) == ["sl", "sw", "pl", "pw"]


def test_the_page_is_that_of_report(mercer, iris):
    asked = ("--label", "species", "-o", "m.mercer")
    done = mercer("fit", iris, *asked, "--report", "a.html", "--json").json
    mercer("report", "m.mercer", iris, "-o", "b.html")
    assert done["report"] == "a.html"
    assert Path("a.html").read_bytes() == Path("b.html").read_bytes()
    assert "setosa" in Path("a.html").read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_leaves_no_model(mercer, iris, monkeypatch):
    def broken(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr("mercer.report.write_report", broken)
    outputs = ("-o", "m.mercer", "--scores", "s.csv", "--report", "a.html")
    assert "no space left" in mercer("fit", iris, *outputs, code=1).err
    assert {path.name for path in Path().iterdir()} == {"iris.csv"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), PCA(0.95)),
        (("--components", "0.6", "--scale", "zscore"), PCA(0.6, scale=True)),
        (("--components", "mle"), PCA("mle")),
        (("--components", "all", "--method", "full"), PCA("all", svd_solver="full")),
        (("--kernel", "rbf(0.1)"), KernelPCA(10, kernel="rbf(0.1)")),
        (
            ("--kernel", "rbf", "--gamma", "median", "--components", "3"),
            KernelPCA(3, kernel="rbf", gamma="median"),
        ),
        (("--kernel", "rbf"), KernelPCA(10, kernel="rbf", gamma="median")),
        (("--kernel", "gaussian"), KernelPCA(10, kernel="gaussian", gamma="median")),
        (("--kernel", "poly", "--components", "3"), KernelPCA(3, kernel="poly", gamma="median")),
        (("--kernel", "cosine", "--components", "3"), KernelPCA(3, kernel="cosine")),
        (
            ("--kernel", "rbf", "--gamma", "0.2", "--components", "3"),
            KernelPCA(3, kernel="rbf", gamma=0.2),
        ),
        (
            (
                "--kernel",
                "rbf(0.01) + 2*poly(3)",
                "--components",
                "3",
                "--method",
                "subset",
                "--basis",
                "40",
            ),
            KernelPCA(3, kernel="rbf(0.01) + 2*poly(3)", method=Subset(40)),
        ),
        (
            ("--kernel", "rbf(0.1)", "--components", "3", "--basis", "0.2", "--select", "kmeans"),
            KernelPCA(3, kernel="rbf(0.1)", method=Subset(0.2, select="kmeans")),
        ),
    ],
)
def test_options_are_the_parameters_of_python(mercer, iris, X, options, expected):
    mercer("fit", iris, "-o", "m.mercer", "--scores", "s.npy", *options)
    expected.set_params(random_state=0)
    model = expected.fit(X)
    found = load("m.mercer")
    assert {k: repr(v) for k, v in found.get_params().items()} == {
        k: repr(v) for k, v in model.get_params().items()
    }
    assert np.allclose(np.load("s.npy"), model.transform(X), atol=1e-12, rtol=1e-12)


def test_steps_before_a_kernel_are_those_of_scikit_learn(mercer, tmp_path, rng):
    X = rng.normal(size=(70, 4)) * [1, 100, 3, 1] + [0, 1e4, 0, 5]
    X[:, 3] = 5.0  # a constant column
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:2] = [[0.1, 1e4, 0.5, 5], [0.2, 1e4 + 50, 1, 5]]
    path = write_csv(tmp_path / "gaps.csv", X, "abcd")
    options = ("--kernel", "rbf(0.1)", "--components", 5, "--impute", "mean", "--scale", "zscore")
    done = mercer("fit", path, *options, "-o", "m.mercer", "--scores", "s.npy")
    assert f"{np.isnan(X).sum()} missing values" in done.out
    same = make_pipeline(
        SimpleImputer(), StandardScaler(), KernelPCA(5, kernel="rbf(0.1)", random_state=0)
    ).fit(X)
    # Deviations with divisor n − 1, as PCA(scale=True) has them.
    same[1].var_ = same[1].var_ * len(X) / (len(X) - 1)
    same[1].scale_ = np.where(same[1].var_ > 0, np.sqrt(same[1].var_), 1.0)
    same[-1].fit(same[:-1].transform(X))
    assert np.allclose(np.load("s.npy"), same.transform(X), atol=1e-10)
    found = load("m.mercer")
    assert np.allclose(found.transform(X), same.transform(X), atol=1e-10)
    assert np.allclose(found[0].statistics_, same[0].statistics_, rtol=1e-14)
    for name in ("mean_", "var_", "scale_"):
        assert np.allclose(getattr(found[1], name), getattr(same[1], name), rtol=1e-12, atol=1e-12)
    assert found[1].n_samples_seen_ == 70
    assert list(found.feature_names_in_) == list("abcd")


def test_a_weight_of_two_is_the_row_twice(mercer, tmp_path, rng):
    X, w = rng.normal(size=(40, 3)), rng.integers(0, 3, size=40)
    X[3, 1] = np.nan
    path = write_csv(tmp_path / "w.csv", X, "abc", w=w)
    again = write_csv(tmp_path / "again.csv", np.repeat(X, w, axis=0), "abc")
    options = ("--impute", "mean", "--scale", "zscore", "--components", 2)
    for kernel in ((), ("--kernel", "poly(2)")):
        mercer("fit", path, "--weights", "w", *options, *kernel, "-o", "a.mercer", "--force")
        mercer("fit", again, *options, *kernel, "-o", "b.mercer", "--force")
        found, other = (load(name)[-1] for name in ("a.mercer", "b.mercer"))
        assert np.allclose(found.explained_variance_, other.explained_variance_, rtol=1e-10)
    assert load("a.mercer").steps[0][1].n_features_in_ == 3


def test_files_of_every_kind_give_the_same_model(mercer, iris, X, tmp_path):
    np.save("x.npy", X)
    np.savez("x.npz", X=X)
    mercer("fit", iris, "--label", "species", "--components", 4, "-o", "m.mercer")
    mercer("inverse", "m.mercer", _scores(mercer, iris), "-o", "x.parquet")
    first = load("m.mercer").explained_variance_
    for name in ("x.npy", "x.npz", "x.parquet"):
        mercer("fit", name, "--components", 4, "-o", "n.mercer", "--force")
        assert np.allclose(load("n.mercer").explained_variance_, first, rtol=1e-12)


def _scores(mercer, path):
    mercer("transform", "m.mercer", path, "-o", "s.arrow")
    return "s.arrow"


def test_strings(mercer, tmp_path):
    words = ["mercer", "kernel", "kernels", "component", "components", "axis", "axes"] * 3
    (tmp_path / "words.txt").write_text("\n".join(words) + "\n")
    mercer(
        "fit",
        "words.txt",
        "--kernel",
        "substring(2)",
        "--components",
        2,
        "-o",
        "w.mercer",
        "--scores",
        "s.npy",
    )
    same = KernelPCA(2, kernel="substring(2)", random_state=0).fit(words)
    assert np.allclose(np.load("s.npy"), same.transform(words), atol=1e-12)
    mercer("transform", "w.mercer", "words.txt", "-o", "t.npy")
    assert np.array_equal(np.load("t.npy"), np.load("s.npy"))


def test_columns_are_those_asked_for(mercer, iris, X):
    mercer("fit", iris, "--columns", "pw,sl", "--components", 2, "-o", "m.mercer")
    found = load("m.mercer")
    assert list(found.feature_names_in_) == ["pw", "sl"]
    assert np.allclose(found.explained_variance_, PCA(2).fit(X[:, [3, 0]]).explained_variance_)


def test_what_is_said(mercer, iris):
    done = mercer("fit", iris, "--components", 2, "-o", "m.mercer")
    assert "note: left out: 'species' (text)." in done.err
    for text in ("150 rows × 4 columns", "SVD()", "within 0.0001 % of optimal", "m.mercer"):
        assert text in done.out
    assert "\x1b" not in done.out + done.err


def test_json_is_one_object(mercer, iris, X):
    done = mercer("fit", iris, "--components", 2, "-o", "m.mercer", "--json")
    facts, pca = done.json, PCA(2).fit(X)
    assert (facts["rows"], facts["columns"]) == (150, 4)
    assert facts["dropped"] == ["species"]
    assert np.allclose(facts["explained_variance_ratio"], pca.explained_variance_ratio_)
    assert facts["certificate"]["captured"] == pytest.approx(float(pca.certificate_.captured))
    assert facts["model"] == "m.mercer"
    assert any("species" in note for note in facts["notes"])


def test_the_seed_and_the_command_are_kept(mercer, iris):
    from mercer.modelfile import read_header

    mercer("fit", iris, "--label", "species", "--seed", 7, "--components", 2, "-o", "m.mercer")
    header = read_header("m.mercer")
    assert header["origin"]["command"] == (
        f"mercer fit {iris} -o m.mercer --label species --components 2 --seed 7"
    ) or set(header["origin"]["command"].split()) >= {"fit", "--seed", "7", "--label", "species"}
    assert (header["origin"]["label"], header["origin"]["seed"]) == ("species", 7)
    assert load("m.mercer").random_state == 7


def test_memory_bounds_the_fit(mercer, tmp_path, rng):
    np.save("x.npy", rng.normal(size=(3000, 20)))
    done = mercer(
        "fit",
        "x.npy",
        "--kernel",
        "rbf(0.1)",
        "--method",
        "exact",
        "--memory",
        "1MiB",
        "-o",
        "m.mercer",
        code=1,
    )
    assert "memory" in done.err
    assert "config_context" not in done.err
    assert not (tmp_path / "m.mercer").exists()


def test_plan_takes_what_fit_takes_and_writes_nothing(mercer, iris, tmp_path, X):
    before = sorted(tmp_path.iterdir())
    options = ("--kernel", "rbf", "--gamma", "median", "--components", 3, "--impute", "mean")
    done = mercer("plan", iris, *options, "-o", "m.mercer", "--scores", "s.csv")
    assert "Plan for 150 × 4" in done.out
    assert "→ " in done.out
    facts = mercer("plan", iris, *options, "--json").json
    assert facts["method"] == repr(KernelPCA(3, kernel="rbf").plan(X).method)
    assert sum(one["chosen"] for one in facts["candidates"]) == 1
    assert sorted(tmp_path.iterdir()) == before


def test_the_gap_is_asked_for(mercer, rng, tmp_path):
    np.save("x.npy", rng.normal(size=(300, 5)))
    facts = mercer(
        "fit",
        "x.npy",
        "--kernel",
        "rbf(0.1)",
        "--components",
        3,
        "--gap",
        "0.05",
        "-o",
        "m.mercer",
        "--json",
    ).json
    assert facts["certificate"]["gap"] <= 0.05


def test_weights_count_rows_in_the_steps(mercer, X, rng, tmp_path):
    gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    weights = rng.integers(0, 4, len(X))
    write_csv(tmp_path / "w.csv", gaps, "abcd", w=weights)
    write_csv(tmp_path / "r.csv", np.repeat(gaps, weights, axis=0), "abcd")
    options = (
        "--impute",
        "mean",
        "--scale",
        "zscore",
        "--kernel",
        "rbf(0.1)",
        "--preimage",
        "auto",
    )
    mercer("fit", "w.csv", "--weights", "w", *options, "-o", "w.mercer", "--scores", "s.csv")
    mercer("fit", "r.csv", *options, "-o", "r.mercer")
    found, expected = load("w.mercer"), load("r.mercer")
    for name in ("statistics_", "mean_", "scale_"):
        step = 0 if name == "statistics_" else 1
        assert np.allclose(getattr(found[step], name), getattr(expected[step], name), rtol=1e-12)
    ratios = [model[-1].explained_variance_ratio_ for model in (found, expected)]
    assert np.allclose(*ratios, atol=1e-8)
    # The way back that scikit-learn's imputer has not: what load says of it.
    mercer("inverse", "w.mercer", "s.csv", "-o", "i.npy")
    scores = found.transform(pd.DataFrame(gaps, columns=list("abcd")))
    assert np.allclose(found[1:].inverse_transform(scores), np.load("i.npy"), atol=1e-6)


def test_weights_count_sparse_rows(mercer, rng):
    rows = np.where(rng.random((60, 6)) < 0.5, 0.0, rng.normal(size=(60, 6)))
    weights = rng.integers(1, 4, 60).astype(float)
    scipy.io.mmwrite("w.mtx", scipy.sparse.csr_array(np.column_stack([rows, weights])))
    scipy.io.mmwrite("r.mtx", scipy.sparse.csr_array(np.repeat(rows, weights.astype(int), axis=0)))
    options = ("--scale", "zscore", "--kernel", "rbf(0.1)", "--components", 4)
    mercer("fit", "w.mtx", "--weights", "6", *options, "-o", "w.mercer")
    mercer("fit", "r.mtx", *options, "-o", "r.mercer")
    ratios = [load(name)[-1].explained_variance_ratio_ for name in ("w.mercer", "r.mercer")]
    assert np.allclose(*ratios, atol=1e-8)
