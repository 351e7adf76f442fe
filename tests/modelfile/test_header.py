"""What a file says about its model, and files of older formats."""

import builtins
import importlib.metadata
import json
import re

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import PCA, Denoiser, KernelPCA, NearestProjection, NoveltyDetector, SubspaceClassifier
from mercer.arrays import to_numpy
from mercer.certificate import Figure
from mercer.kernels import RBF, Laplacian, Linear, parse
from mercer.modelfile import ModelFileError, container, format1, read_header
from tests.modelfile import frozen

pytestmark = pytest.mark.filterwarnings("ignore")

X = np.random.default_rng(0).standard_normal((50, 4))
Y = np.repeat([0, 1], 25)


def header_of(model, folder, **how):
    mercer.save(model, folder / "model.mercer", **how)
    return read_header(folder / "model.mercer")


def test_all_fields(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"))
    model = KernelPCA(3, kernel=RBF(0.1) + 2 * Linear(), random_state=7).fit(table)
    header = header_of(model, tmp_path, origin={"command": "mercer fit"})
    assert header["format"] == 2
    assert header["estimator"] == "KernelPCA"
    assert parse(header["kernel"]) == model.kernel_
    assert header["method"] == repr(model.plan_.method)
    assert header["parameters"].keys() == model.get_params(deep=False).keys()
    assert header["parameters"]["random_state"] == "7"
    assert header["preprocessing"] == []
    assert header["feature_names"] == list("abcd")
    assert header["n_features"] == 4
    assert header["certificate"]["sentence"] == model.certificate_.sentence
    assert header["certificate"]["gap"]["value"] == float(model.certificate_.gap)
    assert header["spectrum"]["eigenvalues"] == model.explained_variance_.tolist()
    assert header["spectrum"]["shares"] == model.explained_variance_ratio_.tolist()
    assert header["versions"]["mercer"] == mercer.__version__
    assert header["versions"]["numpy"] == importlib.metadata.version("numpy")
    assert header["origin"] == {"command": "mercer fit"}
    assert header["created"].endswith("+00:00")
    assert header["checksum"] == container.read_texts(tmp_path / "model.mercer")["checksum"]
    json.dumps(header)  # plain


def test_models_around_others(tmp_path):
    for model in (NoveltyDetector(PCA(2)), Denoiser(PCA(2))):
        header = header_of(model.fit(X), tmp_path)
        assert header["estimator"] == type(model).__name__
        assert header["certificate"]["sentence"] == model.estimator_.certificate_.sentence
    for model in (SubspaceClassifier(PCA(2)), NearestProjection(PCA(2))):
        header = header_of(model.fit(X, Y), tmp_path)
        assert header["estimator"] == type(model).__name__
        assert header["certificate"]["sentence"]
    header = header_of(make_pipeline(StandardScaler(), PCA(2)).fit(X), tmp_path)
    assert (header["estimator"], header["preprocessing"]) == ("PCA", ["StandardScaler()"])
    header = header_of(KernelPCA(1, kernel="substring").fit(["ab", "b", "ba"]), tmp_path)
    assert (header["n_features"], header["feature_names"]) == (None, None)
    header = header_of(KernelPCA(1, kernel="precomputed").fit(X @ X.T), tmp_path)
    assert header["kernel"] == "precomputed"
    header = header_of(mercer.sketches.Gaussian(2).fit(X), tmp_path)
    assert (header["estimator"], header["certificate"]) == ("Gaussian", None)


def test_no_array_is_read(tmp_path):
    path = tmp_path / "model.mercer"
    mercer.save(KernelPCA(2, kernel="rbf").fit(np.random.default_rng(0).random((300, 200))), path)
    size, header = path.stat().st_size, 8 + int.from_bytes(path.read_bytes()[:8], "little")
    with path.open("r+b") as file:  # arrays gone, the file as long as before
        file.truncate(header)
        file.truncate(size)
    assert read_header(path)["n_features"] == 200
    with pytest.raises(ModelFileError, match="was changed"):
        mercer.load(path)


@pytest.mark.parametrize("header", ["", "null", "[]", '"all of it"', "{", "[" * 10**5])
def test_a_header_that_is_no_object_is_refused(header, tmp_path):
    path = tmp_path / "model.mercer"
    mercer.save(PCA(2).fit(X), path)
    texts, arrays = container.read_contents(path)
    del texts["checksum"]
    container.write_contents(path, {**texts, "header": header}, arrays)
    with pytest.raises(ModelFileError, match=f"{re.escape(str(path))} is not a valid model"):
        read_header(path)


def test_loading_does_not_open_anything_else(tmp_path, monkeypatch):
    path = tmp_path / "model.mercer"
    mercer.save(PCA(2).fit(X), path)
    mercer.load(path)
    monkeypatch.setattr(builtins, "__import__", forbidden(builtins.__import__))
    mercer.load(path)


def forbidden(real):
    def look(name, *rest, **more):
        assert name.split(".")[0] not in ("pickle", "marshal", "dill", "cloudpickle", "subprocess")
        return real(name, *rest, **more)

    return look


# Files of format 1.

EXPECTED = np.load(frozen.FOLDER / "expected.npz")


@pytest.mark.parametrize("path", sorted(frozen.FOLDER.glob("*.mercer")), ids=lambda path: path.stem)
def test_files_of_format_1_are_read(path):
    """Whatever kind of state a file holds, its model computes what it did when it was saved."""
    assert read_header(path)["format"] == 1
    assert read_header(path)["origin"] == frozen.ORIGIN
    results = frozen.computed(mercer.load(path))
    wanted = {name: EXPECTED[name] for name in EXPECTED if name.startswith(f"{path.stem}.")}
    assert {f"{path.stem}.{name}" for name in results} == wanted.keys()
    for name, result in results.items():
        then = wanted[f"{path.stem}.{name}"]
        if then.dtype.kind == "f":
            np.testing.assert_allclose(result, then, rtol=1e-9, atol=1e-11, err_msg=name)
        else:
            np.testing.assert_array_equal(result, then, err_msg=name)


@pytest.mark.parametrize("name", ["pca", "strings", "triangle", "basis", "classifier", "hebbian"])
def test_certificates_of_format_1_have_the_same_figures(name):
    """They are in shares of the total variance, with a ratio where it is known within bounds."""
    path = frozen.FOLDER / f"{name}.mercer"
    model, then = mercer.load(path), read_header(path)["certificate"]
    certificates = [each.certificate_ for each in getattr(model, "estimators_", [model])]
    certificate = max(certificates, key=lambda each: each.gap)
    words = {"bound": "proven"}  # labels of the oldest files
    now, before = (re.findall(r"[\d.]+ %", s) for s in (certificate.sentence, then["sentence"]))
    assert (now[0], now[-1]) == (before[0], before[-1])
    for figure in ("captured", "optimum_upper", "gap"):
        value, label = getattr(certificate, figure), then[figure]["label"]
        assert value.label == words.get(label, label)
        assert value == pytest.approx(then[figure]["value"], rel=1e-12, abs=1e-14)
    variance = to_numpy(getattr(model, "estimators_", [model])[0].explained_variance_).sum()
    assert certificates[0].explained == pytest.approx(variance, rel=0.02)


def test_certificates_of_format_1_are_as_certain_as_they_were():
    """An uncertain total makes shares uncertain, but not their ratio."""
    guess, sure = Figure(0.5, "estimate"), Figure(0.6, "bound", 0.999)
    shares = format1.Shares(guess, sure, *np.ones((3, 2)), True, (), np.zeros(0), 0.7)
    for ratio, gap in ((None, 1 - 0.5 / 0.6), (Figure(0.8), 0.2)):
        certificate = shares._replace(ratio=ratio).certificate(3.0)
        assert repr(certificate.captured) == repr(guess)
        assert certificate.optimum_upper == pytest.approx(0.6)
        assert certificate.optimum_upper.label == sure.label
        assert certificate.gap == pytest.approx(gap)
        assert certificate.gap.label == ("estimated" if ratio is None else "proven")
        assert certificate.likely == pytest.approx(2.1)


def test_every_name_of_format_1_is_known():
    """Classes and their parts may be renamed if `format1` says so."""
    names = json.loads((frozen.FOLDER / "names.json").read_text())
    assert len(names) == 119
    for name, parts in names.items():
        try:
            format1.build_format_1(name, dict.fromkeys(parts))
        except Exception as error:  # of parts that are None
            assert not re.search("is not a class|has no '", str(error)), error  # noqa: PT017
    for name, parts in {"kernels.Gone": [], "kernels.RBF": ["width"]}.items():
        with pytest.raises(ValueError, match=r"is not a class|has no 'width'"):
            format1.build_format_1(name, dict.fromkeys(parts))


def test_renamed_parts(monkeypatch):
    """What `format1` can say of a class; a constructor argument that is missing has its default."""
    monkeypatch.setitem(format1.CLASSES, "kernels.Exponential", "kernels.Laplacian")
    monkeypatch.setitem(format1.PARTS, "kernels.Exponential", {"scale": "gamma"})
    old = {"scale": 0.5}
    assert format1.build_format_1("kernels.Exponential", old) == Laplacian(0.5)
    old["norm"] = "l1"
    assert format1.build_format_1("kernels.Exponential", old) == Laplacian(0.5, norm="l1")


def test_renamed_methods_of_format_1():
    model = format1.build_format_1("estimators.KernelPCA", {"method": "within"})
    assert model.method == "adaptive"


def test_the_scale_of_a_file_is_the_one_in_it():
    """Older files divided by n where it is n − 1 now: their scores stay what they were."""
    then, X = mercer.load(frozen.FOLDER / "pca.mercer"), frozen.rows()
    np.testing.assert_allclose(then.scale_, X.std(axis=0))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    scores = Z @ then.components_.T / np.sqrt(then.explained_variance_)
    np.testing.assert_allclose(then.transform(X), scores, atol=1e-12)
    np.testing.assert_allclose(then.inverse_transform(then.transform(X)), then.reconstruct(X))
