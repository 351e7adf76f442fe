"""Results of the sources are made again, on little."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the pictures need matplotlib: mercer[plot]")
pytest.importorskip("psutil", reason="what is run on is told by psutil: mercer[bench]")


def made(name):
    """The result of a quick run; skipped where the data set is not at hand."""
    import importlib

    try:
        return importlib.import_module(f"papers.{name}").run(True)
    except FileNotFoundError as absent:
        pytest.skip(str(absent))


@pytest.mark.slow
def test_usps(capsys):
    result = made("usps")
    errors = {line.what: line.ours for line in result.lines}
    assert errors["kernel CLAFIC (c), all rows"] < 15
    few, more = "SubKp (c), 10%, random", "SubKp (c), 10%, k-means centres"
    assert errors["kernel CLAFIC (c), all rows"] < errors[more] < errors[few]
    assert all(np.isfinite(line.ours) for line in result.lines)
    assert "2007" in result.text
    assert len(result.figure.subfigs) == 2


def test_fewer_axes_from_one_fit():
    from sklearn.datasets import load_digits

    from mercer import KernelPCA, SubspaceClassifier
    from mercer.kernels import RBF
    from papers.usps import AXES, all_residuals

    X, y = load_digits(return_X_y=True)
    left = all_residuals(_fitted(SubspaceClassifier(KernelPCA(40, kernel=RBF(1e-3))), X, y), X[:50])
    for r in (10, 30):
        fewer = _fitted(SubspaceClassifier(KernelPCA(r, kernel=RBF(1e-3))), X, y)
        found = left[:, :, AXES.index(r)]
        np.testing.assert_allclose(found, fewer.reconstruction_error(X[:50]), atol=1e-7)


def _fitted(model, X, y):
    return model.fit(X[:600], y[:600])
