"""Numbers of things in messages: one component, not 1 components."""

import re

import numpy as np
import pandas as pd
import pytest

from mercer import PCA, KernelPCA
from mercer.methods import Hebbian, Nystrom, RandomFeatures, Sketch, Subset
from mercer.sketches import Gaussian

ONE_OF_MANY = re.compile(r"(?<![\d.,])1 (\w+ )?(\w+s)\b|\(s\)")
SINGULAR = ("is", "has", "explains", "was", "pass", "this", "its", "axis")
X = np.random.default_rng(0).normal(size=(60, 3))


def wrong(text):
    """Return where one thing is spoken of as if it were many."""
    found = ONE_OF_MANY.finditer(text)
    return [match[0] for match in found if not (match[2] or "(s)").endswith(SINGULAR)]


def said(model):
    certificate = model.certificate_
    return "\n".join([str(model.plan_), str(certificate), *certificate.notes])


def test_the_law_finds_what_it_looks_for():
    assert wrong("1 components") == ["1 components"]
    assert wrong("1 missing values in 1 column name(s)") == ["1 missing values", "(s)"]
    assert wrong("1 component explains, 11 points, 2.1 rows, 1 row has") == []


@pytest.mark.parametrize(
    "model",
    [
        PCA(1),
        KernelPCA(1, kernel="rbf"),
        *(KernelPCA(1, kernel="rbf", method=one) for one in (Subset(1), Nystrom(1))),
        KernelPCA(1, kernel="rbf", method=RandomFeatures(1)),
        KernelPCA(1, kernel="rbf", method=Sketch(Gaussian(1))),
        KernelPCA(1, kernel="rbf", method=Hebbian(n_basis=1, max_passes=1)),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore")
def test_one_of_everything(model):
    assert wrong(said(model.fit(X))) == []
    if not isinstance(model, KernelPCA):
        with pytest.raises(ValueError, match=r"has 1 component\. Pass the output of transform"):
            model.inverse_transform(X)


def test_one_column_of_a_file(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,a,b\n1,2,3\n4,5,6\n")
    with pytest.raises(ValueError, match="1 column name occurs more than once: 'a'") as refused:
        PCA(1).fit(path)
    assert wrong(str(refused.value)) == []
    pd.DataFrame({"a": X[:, 0], "t": "x"}).to_csv(path, index=False)
    with pytest.warns(UserWarning, match="1 column is not used") as caught:
        PCA(1).fit(path)
    assert wrong(" ".join(str(one.message) for one in caught)) == []


@pytest.mark.parametrize("kernel", ["matern", "rbf(0.1)", "2*rbf(0.1)"])
@pytest.mark.parametrize("gamma", ["median", "scale"])
def test_a_gamma_for_a_kernel_without_one(kernel, gamma):
    with pytest.raises(ValueError, match=r"given by name that have a gamma: .*'rbf'") as refused:
        KernelPCA(1, kernel=kernel, gamma=gamma).fit(X)
    text = str(refused.value)
    assert ("has no gamma" in text) == (kernel == "matern")
    for name in re.findall(r"'(\w+)'", text.split("gamma: ")[1].split(". kernel")[0]):
        KernelPCA(1, kernel=name, gamma=gamma).fit(np.abs(X))
