"""Kernel principal components as features: what is chosen, what is drawn, what is refused."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

pytest.importorskip("matplotlib", reason="the picture needs matplotlib: mercer[plot]")

from features import curves, main, searches


@pytest.mark.slow
def test_kernel_features_of_digits(tmp_path, capsys):
    picture = tmp_path / "out.png"
    main(["--rows", "300", "-o", str(picture)])
    out = capsys.readouterr().out
    assert "150 digits, tested with 150" in out
    errors = {line[:21].strip(): float(line.split()[-2]) for line in out.splitlines()[2:6]}
    assert list(errors) == ["pixels", "PCA", "kernel PCA", "kernel PCA on a basis"]
    assert max(errors.values()) < 20
    assert "n_basis=" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_search_reaches_into_the_method():
    X, y = load_digits(return_X_y=True)
    search = searches(100)["kernel PCA on a basis"]
    search.param_grid = {"kernelpca__method__n_basis": [20, 33], "kernelpca__n_components": [10]}
    search.fit(X[:100] / 16, y[:100])
    extractor = search.best_estimator_.named_steps["kernelpca"]
    assert len(extractor.X_fit_) == search.best_params_["kernelpca__method__n_basis"]
    assert len(set(search.cv_results_["mean_test_score"])) == 2


def test_curves_are_errors_of_first_axes(rng):
    X = np.concatenate([rng.normal(at, 0.1, (30, 3)) for at in (0, 1)])
    y = np.repeat([0, 1], 30)
    found = curves(X[::2], X[1::2], y[::2], y[1::2])
    assert [k for k, _ in found["linear"]] == [2, 3]
    assert found["linear"][-1][1] == 0
    assert max(k for k, _ in found["RBF, γ = 0.05"]) <= 30


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--rows", "10"], "--rows 10: from 200 to 1797"),
        (["--rows", "5000"], "--rows 5000: from 200 to 1797"),
        (["-o", "nowhere/out.png"], "there is no folder nowhere"),
    ],
)
def test_what_cannot_be_is_refused(arguments, match):
    with pytest.raises(SystemExit, match=match):
        main(arguments)
