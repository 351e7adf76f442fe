"""What a report says, compared with the model and NumPy."""

import itertools
import re
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn import decomposition
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    PCA,
    Denoiser,
    KernelPCA,
    NearestProjection,
    NoveltyDetector,
    SubspaceClassifier,
    as_source,
    config_context,
)
from mercer.kernels import RBF, Substring
from mercer.report import write_report
from mercer.rules import Fraction
from tests.report.pages import Page, numbers

IRIS = load_iris(as_frame=True)
X = IRIS.data.to_numpy()


@pytest.fixture
def written(tmp_path):
    def write(model, X=None, **given):
        path = tmp_path / "report.html"
        write_report(model, X, path, **given)
        assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
        return Page(path)

    return write


def points(page):
    components = page.data["points"]["components"]
    return np.stack([numbers(one["values"]) for one in components], axis=1)


def furthest_row(page):
    return re.search(r"Row (\S+) is the furthest", page.text).group(1)


def test_wine(written):
    wine = load_wine(as_frame=True)
    pca = PCA(0.8, scale=True).fit(wine.data)
    page = written(pca, wine.data, labels=wine.target, ids=[f"w{i}" for i in range(178)])
    errors = pca.reconstruction_error(wine.data)
    assert pca.certificate_.sentence in page.text
    assert "178 rows of 13 columns" in page.text
    assert furthest_row(page) == f"w{errors.argmax()}"
    assert f"{errors.max() / np.median(errors):.3g} times the median" in page.text
    np.testing.assert_allclose(points(page), pca.transform(wine.data), atol=1e-5)
    np.testing.assert_allclose(numbers(page.data["points"]["errors"]), errors, rtol=1e-5)
    assert page.data["spectrum"]["shares"] == pytest.approx(
        pca.explained_variance_ratio_.tolist(), rel=1e-5
    )
    assert sum(page.data["errors"]["counts"]) == 178
    for j in range(pca.n_components_):
        assert f"{pca.explained_variance_[j]:.6g}" in page.text
    loadings = [float(a["data-value"]) for tag, a in page.tags if tag == "td" and "style" in a]
    np.testing.assert_allclose(
        np.sort(loadings), np.sort(np.asarray(pca.loadings_).ravel()), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("factor", "text"),
    [(0.01, r"0\.\d{4}"), (1.0, r"\d\.\d\d"), (100.0, r"\d+"), (1e4, r"\d+"), (1e5, r"\d+")],
)
def test_loadings_have_common_decimals(written, factor, text):
    data = factor * np.column_stack([X, np.zeros(len(X))])
    page = written(PCA(2).fit(-data))
    cells = re.findall(r"--t:[^>]*>([^<]*)</td>", page.source)
    assert len(cells) == 10
    assert all(re.fullmatch("−?" + text, cell) for cell in cells), cells
    assert not {"−0", "−0.00", "−0.0000"} & set(cells)


def test_cuts_are_those_of_the_rules(written):
    page = written(PCA(scale=True).fit(load_wine().data))
    cuts = {cut["letter"]: cut["components"] for cut in page.data["spectrum"]["cuts"]}
    share = np.cumsum(PCA(scale=True).fit(load_wine().data).explained_variance_ratio_)
    assert cuts["A"] == 1 + np.argmax(share > 0.9)
    assert cuts["B"] == 1 + np.argmax(share > 0.95)
    assert cuts["C"] == 3  # eigenvalues above one
    assert (
        cuts["F"]
        == decomposition.PCA("mle")
        .fit(StandardScaler().fit_transform(load_wine().data))
        .n_components_
    )
    part = written(PCA(2, scale=True).fit(load_wine().data))
    assert "more than 2" in part.text
    assert "needs all eigenvalues" in part.text


@pytest.mark.parametrize("weights", [None, [1, 2, 0.5, 4], [1, 2, 0, 4]])
@pytest.mark.parametrize("scale", [False, True])
def test_column_weights_are_mentioned(written, weights, scale):
    page = written(PCA(2, scale=scale, feature_weight=weights).fit(IRIS.data), IRIS.data)
    least = "0" if weights and not all(weights) else "0.5"
    text = f"Columns have weights from {least} to 4 in variances and squared distances."
    assert (text in page.text) == (weights is not None)
    assert ("Those of weight 0 have no share" in page.text) == (least == "0")
    assert ("times the root of the weight of the column" in page.text) == (weights is not None)
    assert ("loadings are the correlations" in page.text) == (scale and weights is None)


def test_without_rows(written):
    page = written(PCA(2).fit(IRIS.data))
    assert page.data["points"] is None
    assert page.data["errors"] is None
    assert "petal length (cm)" in page.text
    assert "Outliers" not in page.text


def test_kernels_have_correlations(written):
    kpca = KernelPCA(4, kernel="rbf", gamma=0.1).fit(IRIS.data)
    page = written(kpca, IRIS.data)
    cells = [float(a["data-value"]) for tag, a in page.tags if tag == "td" and "style" in a]
    scores = kpca.transform(IRIS.data)
    truth = np.corrcoef(np.hstack([X + 1e6, scores]).T)[:4, 4:]
    order = np.argsort(-truth[:, 0])
    np.testing.assert_allclose(np.reshape(cells, (4, 4)), truth[order], atol=1e-6)
    assert "correlation of each column" in page.text


def test_correlations_of_sparse_and_weighted_rows(written):
    rows = scipy.sparse.random(80, 12, 0.3, random_state=0, format="csr")
    weights = np.arange(80) % 3 + 0.0
    kpca = KernelPCA(2, kernel="rbf").fit(rows, sample_weight=weights)
    page = written(kpca, as_source(rows).weighted(weights))
    cells = [float(a["data-value"]) for tag, a in page.tags if tag == "td" and "style" in a]
    twice = np.repeat(rows.toarray(), weights.astype(int), axis=0)
    truth = np.corrcoef(np.hstack([twice, kpca.transform(twice)]).T)[:12, 12:]
    order = np.argsort(-truth[:, 0])
    np.testing.assert_allclose(np.reshape(cells, (12, 2)), truth[order], atol=1e-9)
    assert "Row weights sum to 79" in page.text


def test_pipeline(written):
    rows = pd.DataFrame(X.copy(), columns=list("abcd"))  # pandas 2 would share X
    rows.loc[::7, "b"] = np.nan
    model = make_pipeline(SimpleImputer(), StandardScaler(), PCA(2)).fit(rows)
    page = written(model, rows)
    np.testing.assert_allclose(points(page), model.transform(rows), atol=1e-5)
    assert "Missing values were imputed with column means. The columns were standar" in page.text
    assert "from sklearn.impute import SimpleImputer" in page.text
    colors = page.data["points"]["colors"]
    assert [color["name"] for color in colors] == list("abcd")
    np.testing.assert_array_equal(np.isnan(numbers(colors[1]["values"])), rows["b"].isna())


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (SimpleImputer(strategy="median"), "Missing values were imputed with column medians."),
        (SimpleImputer(strategy="constant"), "The rows were preprocessed by SimpleImputer."),
        (StandardScaler(with_mean=False), "The columns were divided by their standard deviations."),
        (StandardScaler(with_std=False), "The rows were preprocessed by StandardScaler."),
    ],
)
def test_what_a_step_did(written, step, said):
    assert said in written(make_pipeline(step, PCA(2)).fit(X), X).text


def test_novelty(written):
    detector = NoveltyDetector(PCA(2), contamination=0.1).fit(X)
    page = written(detector, X)
    beyond = int((detector.predict(X) == -1).sum())
    assert f"{beyond} rows (" in page.text
    assert page.data["errors"]["threshold"] == -detector.offset_
    assert sum(a.get("class") == "beyond" for tag, a in page.tags if tag == "tr") == min(20, beyond)


def test_models_built_on_components(written):
    near = NearestProjection(PCA(2)).fit(X, IRIS.target)
    np.testing.assert_allclose(points(written(near, X)), near.estimator_.transform(X), atol=1e-5)
    digits = load_digits().data[:120] / 16
    inside = Denoiser(KernelPCA(5, kernel="rbf", gamma=0.05)).fit(digits)
    page = written(inside, digits, image_shape=(8, 8))
    assert "The model is a denoiser based on kernel PCA" in page.text
    assert page.count("img") == 2 * 18


def test_strings(written):
    words = ["abba", "abab", "baba", "bbbb", "aaaa", "abc", "cab"] * 2
    page = written(KernelPCA(2, kernel=Substring(2)).fit(words), words)
    assert page.data["points"]["texts"] == words
    assert "fitted to 14 strings" in page.text
    assert "data-value" in page.source


def test_kernel_matrix(written):
    K = RBF(0.3)(X)
    kpca = KernelPCA(1, kernel="precomputed").fit(K)
    page = written(kpca, K)
    assert page.data["errors"] is None
    assert "cannot be computed from a kernel matrix" in page.text
    np.testing.assert_allclose(points(page), kpca.transform(K), atol=1e-5)


def test_images(written):
    digits = load_digits()
    pca = PCA(10).fit(digits.data)
    page = written(pca, digits.images, image_shape=(8, 8))
    assert page.count("img") == 1 + 10 + 2 * 18
    pixels = numbers(page.data["points"]["pixels"]).reshape(-1, 64)
    np.testing.assert_array_equal(pixels, np.round(digits.data / 16 * 255))
    assert all(
        a["alt"] and a["src"].startswith("data:image/png;base64,")
        for tag, a in page.tags
        if tag == "img"
    )


def test_color_images_and_a_way_back_that_is_missing(written):
    rows = np.random.default_rng(0).random((30, 48))
    assert written(PCA(2).fit(rows), rows, image_shape=(4, 4, 3)).count("img") == 1 + 2 + 36
    page = written(KernelPCA(2, kernel="rbf").fit(rows), rows, image_shape=(4, 4, 3))
    assert page.count("img") == 0
    assert "To show reconstructions, fit the model with preimage=" in page.text


def test_few_components(written):
    none = written(PCA(0).fit(X), X)
    assert none.data["points"] is None
    assert "No components were kept" in none.text
    assert points(written(PCA(1).fit(X), X)).shape == (150, 1)
    assert "reconstruct every row" in written(PCA().fit(X), X).text
    # The rounding errors of a kernel are those of Φ(x), which is far longer than its variance.
    far = X[:30, :2] + 1000
    assert "reconstruct every row" in written(KernelPCA(kernel="poly").fit(far), far).text


def test_many_columns_and_components(written):
    rows = np.random.default_rng(0).normal(size=(250, 3000))
    page = written(PCA(200).fit(rows), rows)
    assert "the 100 strongest of 3 000 columns and the first 8 of 200 components".replace(
        "3 000", "3\u202f000"
    ) in page.text.replace("3 000", "3\u202f000")
    assert len(page.data["points"]["components"]) == 200
    assert page.source.count('class="right tint"') == 800


def test_other_rows_than_those_of_the_fit(written):
    assert "not the training data" in written(PCA(2).fit(X), X[:40]).text
    assert "not the training data" not in written(PCA(2).fit(X), X).text


def test_the_sample_is_stated(written):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 5))
    rows[1234] += 50
    kind = np.where(np.arange(3000) % 1000 == 7, "rare", "common")
    pca = PCA(2).fit(rows[:1000])
    page = written(pca, rows, labels=kind, sample=500, random_state=3)
    data = page.data["points"]
    at = numbers(data["rows"])
    errors = pca.reconstruction_error(rows)
    assert len(set(at.tolist())) == len(at) == 500
    assert "500 of 3 000 rows are drawn: a random sample (seed 3)" in page.text.replace(
        "\u202f", " "
    )
    assert "the 20 rows furthest" in page.text
    assert set(np.argsort(errors)[-20:]) <= set(at.tolist())
    assert {7, 1007, 2007} <= set(at.tolist())
    np.testing.assert_allclose(points(page), pca.transform(rows)[at], atol=1e-4)
    assert sum(page.data["errors"]["counts"]) + page.data["errors"]["left"] == 3000


def test_blocks_change_nothing(tmp_path):
    kpca = KernelPCA(3, kernel="rbf", gamma=0.1).fit(X)
    for name, rows in (("a", 150), ("b", 7)):
        with config_context(block_rows=rows):
            write_report(kpca, X, tmp_path / name, labels=IRIS.target, sample=100)
    a, b = (Page(tmp_path / name) for name in "ab")
    np.testing.assert_allclose(points(a), points(b), rtol=1e-5, atol=1e-6)
    assert a.data["points"]["rows"] == b.data["points"]["rows"]
    assert a.text.replace(" 'a'", "") == b.text.replace(" 'b'", "") or furthest_row(
        a
    ) == furthest_row(b)


def test_the_same_bytes_twice(tmp_path):
    model = PCA(2, random_state=0).fit(X)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_report(model, X, tmp_path / folder / "r.html", labels=IRIS.target, sample=50)
    assert (tmp_path / "a/r.html").read_bytes() == (tmp_path / "b/r.html").read_bytes()


def test_lines_make_the_model_again(written):
    page = written(KernelPCA(3, kernel=RBF(0.25), method="subset", random_state=1).fit(X), X)
    code = re.search(r"where X is the data: (.*?) Copy", page.text).group(1)
    first, rest = re.search(r"(from .*?) (model = .*)", code).groups()
    names = {"X": X, "write_report": lambda *args: None}
    exec(re.sub(r" from ", "\nfrom ", first), names)
    exec(re.search(r"model = .*?\.fit\(X\)", rest).group(), names)
    assert names["model"].kernel == RBF(0.25)
    assert names["model"].random_state == 1


def test_origin(written):
    command = ["mercer", "fit", "my rows.csv", "-o", "a.mercer"]
    origin = {"command": command, "file": "my rows.csv", "seed": 4, "label": None}
    page = written(PCA(2).fit(X), origin=origin)
    assert "mercer fit 'my rows.csv' -o a.mercer" in page.text
    assert "Linear PCA of my rows.csv" in page.text
    assert "seed 4" in page.text


@pytest.mark.parametrize("order", list(itertools.permutations(range(3)))[1:])
def test_arguments_in_another_order_are_refused_with_the_right_one(tmp_path, order):
    given = [PCA(2).fit(X), X, tmp_path / "r.html"]
    with pytest.raises(TypeError, match=r"write_report\(model, X, path\)"):
        write_report(*(given[i] for i in order))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("model", "given", "error", "says"),
    [
        (lambda: PCA(2), {}, NotFittedError, "not fitted"),
        (lambda: decomposition.PCA(2).fit(X), {}, TypeError, "not <class 'sklearn"),
        (lambda: PCA, {}, TypeError, "not <class 'mercer"),
        (lambda: SubspaceClassifier().fit(X, IRIS.target), {}, TypeError, "estimators_"),
        (lambda: PCA(2).fit(X), {"labels": [1, 2]}, ValueError, r"shape \(2,\), but there are 150"),
        (lambda: PCA(2).fit(X), {"ids": [1]}, ValueError, "ids has shape"),
        (lambda: PCA(2).fit(X), {"columns": {"a": [1]}}, ValueError, "columns\\['a'\\]"),
        (lambda: PCA(2).fit(X), {"columns": [1]}, TypeError, "mapping"),
        (lambda: PCA(2).fit(X), {"image_shape": (3, 3)}, ValueError, "4 numbers"),
        (lambda: PCA(2).fit(X), {"X": None, "labels": [1]}, ValueError, "X is None"),
        (lambda: PCA(2).fit(X), {"sample": 0}, ValueError, "sample=0"),
        (lambda: PCA(2).fit(X), {"X": X[:, :3]}, ValueError, "3 features"),
        (lambda: PCA(2).fit(X), {"X": np.where(X == 7.9, np.nan, X)}, ValueError, "row 131"),
    ],
)
def test_refused(tmp_path, model, given, error, says):
    with pytest.raises(error, match=says):
        write_report(model(), path=tmp_path / "r.html", **{"X": X, **given})
    assert not list(tmp_path.iterdir())


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder"):
        write_report(PCA(2).fit(X), None, tmp_path / "nowhere" / "r.html")


def test_an_extra_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ImportError, match=r"pip install 'mercer\[report\]'"):
        write_report(PCA(2).fit(X), None, tmp_path / "r.html")


def test_rows_are_named_by_the_index_or_the_id_column(tmp_path):
    wine = load_wine(as_frame=True).data.iloc[:40]
    ids = [10**17 + 3 * i * i for i in range(40)]
    named = wine.set_index(pd.Index(ids, name="bottle"))
    named.to_csv(tmp_path / "wine.csv", index_label="id")
    named.to_parquet(tmp_path / "wine.parquet")
    model = PCA(2).fit(wine)
    for X in (named, tmp_path / "wine.csv", tmp_path / "wine.parquet"):
        write_report(model, X, tmp_path / "r.html")
        assert Page(tmp_path / "r.html").data["points"]["ids"] == [str(i) for i in ids]
    write_report(model, wine, tmp_path / "r.html")
    assert Page(tmp_path / "r.html").data["points"]["ids"] is None


def tiles(page):
    """The figures at the top of a page."""
    return page.text.split("Summary")[0]


def test_headline_figures_say_what_differs_from_report_to_report(written):
    wine = load_wine(as_frame=True).data
    for scale, first in ((False, "99.8"), (True, "36.1")):
        head = tiles(written(PCA(2, scale=scale).fit(wine), wine))
        assert f"by component 1 {first}" in head
        assert f"columns scaled {'yes' if scale else 'no'}" in head
        assert "0.0001" not in head
    scaled = make_pipeline(StandardScaler(), KernelPCA(2, kernel="rbf")).fit(wine)
    assert "columns scaled yes" in tiles(written(scaled, wine))


@pytest.mark.parametrize(
    "model",
    [
        PCA(2),
        KernelPCA(2, kernel="rbf"),
        make_pipeline(StandardScaler(), PCA(2)),
        NoveltyDetector(PCA(2)),
        KernelPCA(2, kernel=Substring(2)),
    ],
    ids=repr,
)
def test_headline_figures_are_even_in_number(written, model):
    """On a phone they stand in two columns."""
    rows = ["ab", "abc", "bca", "cab"] if "Substring" in repr(model) else X
    page = written(model.fit(rows), rows)
    shown = re.search(r'<dl class="key">.*?</dl>', page.source, re.DOTALL).group()
    assert shown.count("<dt>") % 2 == 0


def test_shares_are_rounded_down(written):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100, 3)) * [100, 1, 1]
    pca = PCA(1).fit(rows)
    assert 0.9995 < pca.explained_variance_ratio_[0] < 1
    page = written(pca, rows)
    assert not re.search(r"\b100(\.0+)? %", page.text)
    assert "variance explained 99.98 %" in page.text


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (2, "with 2 components."),
        (0.95, "the fewest that explain 95 % of the variance."),
        (None, "with 4 components, the maximum."),
        ("kaiser", "chosen by the rule “Kaiser”."),
        (Fraction(0.9, most=3), "chosen by the rule “90 % of the variance”."),
    ],
)
def test_the_number_of_components_is_explained(written, asked, says):
    text = written(PCA(asked).fit(X), X).text
    assert says in text
    assert "n_components=" not in text.split("How to reproduce")[0]


def test_prose_of_a_detector_of_a_kernel(written):
    detector = NoveltyDetector(KernelPCA(3, kernel="rbf", gamma="median")).fit(X)
    text = written(detector, X).text.split("How to reproduce")[0]
    assert (
        "The model is a novelty detector based on kernel PCA with the kernel RBF(0.08977)" in text
    )
    assert not re.search(r"\d\.\d{7}", text)


def test_colors_are_named_by_their_columns_each_once(written):
    frame = IRIS.data
    given = {"labels": np.asarray(IRIS.target_names)[IRIS.target], "origin": {"label": "species"}}
    columns = {"species": IRIS.target, frame.columns[1]: frame.iloc[:, 1], "year": np.arange(150)}
    page = written(PCA(2).fit(frame), frame, columns=columns, **given)
    names = [color["name"] for color in page.data["points"]["colors"]]
    assert names[0] == "species"
    assert len(names) == len(set(names)) == 6
