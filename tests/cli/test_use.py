"""What models are used for: scores, rows, noise, novelty, reports, comparisons."""

import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_digits

from mercer import PCA, Denoiser, KernelPCA, NoveltyDetector, load, save
from mercer.data.files import read_table
from mercer.rules import Fraction
from tests.cli.conftest import write_csv


def table(path):
    return np.asarray(read_table(path).source.collect())


def test_there_and_back(mercer, iris, X):
    mercer(
        "fit", iris, "--label", "species", "--components", 4, "--scale", "zscore", "-o", "m.mercer"
    )
    mercer("transform", "m.mercer", iris, "--keep", "species", "-o", "s.parquet")
    found = read_table("s.parquet", label="species")
    assert list(found.extra["species"][:1]) == ["setosa"]
    done = mercer("inverse", "m.mercer", "s.parquet", "-o", "x.csv")
    assert "'species'" in done.err or done.err == ""
    assert np.allclose(table("x.csv"), X, atol=1e-12)
    assert read_table("x.csv").source.names == ["sl", "sw", "pl", "pw"]
    mercer("denoise", "m.mercer", iris, "-o", "d.npy")
    assert np.allclose(np.load("d.npy"), X, atol=1e-12)


def test_inverse_of_a_few_axes_is_python_s(mercer, iris, X):
    mercer("fit", iris, "--components", 2, "-o", "m.mercer", "--scores", "s.csv")
    mercer("inverse", "m.mercer", "s.csv", "-o", "x.npy")
    pca = PCA(2).fit(X)
    assert np.allclose(np.load("x.npy"), pca.reconstruct(X), atol=1e-12)


def test_a_kernel_s_way_back_goes_through_the_steps(mercer, iris, X):
    options = ("--kernel", "rbf(0.1)", "--components", 8, "--scale", "zscore", "--preimage", "auto")
    mercer("fit", iris, *options, "-o", "m.mercer", "--scores", "s.csv")
    mercer("denoise", "m.mercer", iris, "-o", "d.npy")
    mercer("inverse", "m.mercer", "s.csv", "-o", "i.npy")
    pipe = load("m.mercer")
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    same = KernelPCA(8, kernel="rbf(0.1)", preimage="fixed_point", random_state=0).fit(Z)
    assert pipe[-1].preimage == "auto"
    expected = same.reconstruct(Z) * X.std(axis=0, ddof=1) + X.mean(axis=0)
    assert np.allclose(np.load("d.npy"), expected, atol=1e-8)
    assert np.allclose(np.load("i.npy"), expected, atol=1e-8)


def test_a_kernel_without_a_way_back(mercer, iris, tmp_path):
    mercer("fit", iris, "--kernel", "rbf(0.1)", "-o", "m.mercer", "--scores", "s.csv")
    for command, data in (("inverse", "s.csv"), ("denoise", iris)):
        done = mercer(command, "m.mercer", data, "-o", "x.csv", code=1)
        assert "Fit it again with --preimage auto" in done.err
    assert not (tmp_path / "x.csv").exists()


def test_a_denoiser_made_in_python(mercer, tmp_path):
    X = load_digits().data[:300]
    noisy = X[:40] + np.random.default_rng(0).normal(size=(40, 64)) * 3
    np.save("noisy.npy", noisy)
    for model in (
        Denoiser(PCA(20), limits=(0, 16)),
        Denoiser(KernelPCA(40, kernel="rbf", gamma=1e-3), limits=(0, 16)),
    ):
        save(model.fit(X), "d.mercer")
        mercer("denoise", "d.mercer", "noisy.npy", "-o", "clean.npy", "--force")
        assert np.allclose(np.load("clean.npy"), model.transform(noisy), atol=1e-8)


def test_novelty(mercer, iris, X, tmp_path):
    mercer("novelty", "fit", iris, "--contamination", "0.05", "-o", "n.mercer")
    same = NoveltyDetector(
        KernelPCA(Fraction(0.95, most=100), kernel="rbf", gamma="median", random_state=0),
        contamination=0.05,
    ).fit(X)
    facts = mercer("novelty", "score", "n.mercer", iris, "--json").json
    assert facts["novel_rows"] == np.flatnonzero(same.predict(X) == -1).tolist()
    assert np.allclose(facts["novelty"], -same.score_samples(X), atol=1e-10)
    mercer("novelty", "score", "n.mercer", iris, "--keep", "species", "-o", "n.csv")
    found = read_table("n.csv", label="species")
    assert list(found.source.names) == ["novelty", "novel"]
    assert found.source.collect()[:, 1].sum() == facts["novel"]
    done = mercer("novelty", "score", "n.mercer", iris, "--keep", "species")
    assert f"{facts['novel']} of 150 rows" in done.out
    assert "virginica" in done.out or "setosa" in done.out or "versicolor" in done.out


def test_novelty_defaults_are_those_of_python_and_of_its_help(mercer, iris, X):
    mercer("novelty", "fit", iris, "-o", "n.mercer")
    found, usual = load("n.mercer").estimator, NoveltyDetector().fit(X).estimator_
    for name in ("n_components", "kernel", "gamma", "method"):
        assert getattr(found, name) == getattr(usual, name), name
    shown = " ".join(mercer("novelty", "fit", "--help").out.replace("│", " ").split())
    assert "Default: 0.95, at most 100 components" in shown
    assert "Default: rbf" in shown
    assert "Default: median" in shown
    for kernel in ("laplacian", "rbf(0.1)"):
        mercer("novelty", "fit", iris, "--kernel", kernel, "-o", "k.mercer", "--force")
        assert load("k.mercer").estimator.n_components == usual.n_components


def test_linear_novelty_of_scaled_rows(mercer, iris, X):
    mercer(
        "novelty", "fit", iris, "--linear", "--components", 2, "--scale", "zscore", "-o", "n.mercer"
    )
    facts = mercer("novelty", "score", "n.mercer", iris, "--json").json
    same = NoveltyDetector(PCA(2, scale=True)).fit(X)
    assert np.allclose(facts["novelty"], -same.score_samples(X), atol=1e-12)


def test_scores_need_a_detector(mercer, iris):
    mercer("fit", iris, "-o", "m.mercer")
    done = mercer("novelty", "score", "m.mercer", iris, code=1)
    assert "mercer novelty fit" in done.err


def test_inspect(mercer, iris, tmp_path):
    options = ("--kernel", "rbf(0.5)", "--components", 3, "--scale", "zscore", "--label", "species")
    mercer("fit", iris, *options, "-o", "m.mercer")
    done = mercer("inspect", "m.mercer")
    for text in (
        "RBF(0.5)",
        "KernelPCA",
        "StandardScaler",
        "3 components explain",
        "'sl', 'sw', 'pl', 'pw'",
        "species",
        "numpy",
        "mercer fit",
    ):
        assert text in done.out, text
    facts = mercer("inspect", "m.mercer", "--json").json
    assert facts["n_features"] == 4


def test_report(mercer, iris, tmp_path):
    pytest.importorskip("plotly", reason="the report needs plotly: mercer[report]")
    mercer("fit", iris, "--label", "species", "-o", "m.mercer")
    mercer("report", "m.mercer", iris, "-o", "r.html", "--title", "Iris & co")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "Iris &amp; co" in page
    assert "virginica" in page  # the label of the fit
    mercer("report", "m.mercer", "-o", "alone.html", "--json")
    assert "virginica" not in (tmp_path / "alone.html").read_text("utf-8")
    done = mercer("report", "m.mercer", iris, "-o", "r.html", code=1)
    assert "--force" in done.err
    np.save("d.npy", load_digits().data[:200])
    mercer("fit", "d.npy", "--components", 5, "-o", "d.mercer")
    mercer("report", "d.mercer", "d.npy", "--images", "8x8", "-o", "d.html")
    done = mercer("report", "d.mercer", "d.npy", "--images", "8x9", "-o", "e.html", code=1)
    assert "72" in done.err or "(8, 9)" in done.err


def test_a_missing_extra_is_named(mercer, iris, monkeypatch):
    mercer("fit", iris, "-o", "m.mercer")
    monkeypatch.setitem(__import__("sys").modules, "plotly", None)
    done = mercer("report", "m.mercer", iris, "-o", "r.html", code=1)
    assert "mercer[report]" in done.err


def test_compare_linear(mercer, iris, X):
    facts = mercer("compare", iris, "--components", 2, "--json").json
    assert (facts["rows"], facts["columns"]) == (150, 4)
    runs = {run["method"]: run for run in facts["methods"]}
    captured = float(PCA(2).fit(X).certificate_.captured)
    for name in ("covariance_eigh", "full", "krylov"):
        assert runs[name]["captured"] == pytest.approx(captured, rel=1e-9)
        assert runs[name]["seconds"] > 0
    done = mercer("compare", iris, "--method", "full,krylov")
    assert [line.split()[0] for line in done.out.splitlines()[3:]] == ["full", "krylov"]


def test_compare_kernels_says_what_does_not_fit(mercer, rng):
    np.save("x.npy", rng.normal(size=(1500, 5)))
    options = ("--kernel", "rbf", "--gamma", "median", "--components", 3, "--basis", 50)
    facts = mercer("compare", "x.npy", *options, "--method", "exact,subset,nystrom", "--json").json
    runs = {run["method"]: run for run in facts["methods"]}
    assert runs["exact"]["captured"] >= runs["subset"]["captured"] - 1e-9
    assert runs["subset"]["optimum_upper"] >= runs["exact"]["captured"] - 1e-9
    assert runs["exact"]["memory"] is None or runs["exact"]["memory"] >= 0
    done = mercer(
        "compare", "x.npy", *options, "--method", "exact,subset", "--patience", "0.000001", code=1
    )
    assert "would take about" in done.err


def test_a_file_larger_than_the_memory(mercer, rng, tmp_path):
    X = rng.normal(size=(60_000, 20)) @ np.diag(np.arange(1, 21.0))
    X[5, 3] = np.nan
    np.save("big.npy", X)
    options = ("--memory", "4MiB", "--components", 3, "--impute", "mean", "--scale", "zscore")
    mercer("fit", "big.npy", *options, "-o", "m.mercer", "--scores", "s.npy")
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    same = PCA(3, scale=True).fit(filled)
    assert np.allclose(
        load("m.mercer")[-1].explained_variance_, same.explained_variance_, rtol=1e-9
    )
    assert np.allclose(np.abs(np.load("s.npy")), np.abs(same.transform(filled)), atol=1e-8)


def test_demo(mercer, tmp_path, monkeypatch):
    pytest.importorskip("plotly", reason="the report needs plotly: mercer[report]")
    done = mercer("demo")
    for text in (
        "Plan for 1797 × 64",
        "pca.certificate_",
        "scikit-learn",
        "after denoising",
        "report.html",
    ):
        assert text in done.out, text
    assert re.search(r"10000 +[1-9]\d\d+ %", done.out)  # how wrong depends on the BLAS
    page = tmp_path / "mercer-demo" / "report.html"
    assert str(page) in done.out.splitlines()[-1]
    assert "Handwritten digits" in page.read_text("utf-8")
    assert load(tmp_path / "mercer-demo" / "digits.mercer").n_components_ == 21
    monkeypatch.setitem(__import__("sys").modules, "plotly", None)
    facts = json.loads(mercer("demo", "-o", "again", "--json").out)
    assert facts["report"] is None


def test_write_csv_writes_every_digit(tmp_path, rng):
    X = rng.normal(size=(5, 2))
    assert np.array_equal(table(write_csv(tmp_path / "x.csv", X, "ab")), X)
