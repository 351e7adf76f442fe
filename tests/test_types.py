"""What type checkers and editors see of the estimators."""

import inspect
import re
import textwrap

import pytest

import mercer
from mercer import (
    PCA,
    Denoiser,
    KernelPCA,
    NearestProjection,
    NoveltyDetector,
    SubspaceClassifier,
)

ESTIMATORS = (PCA, KernelPCA, NoveltyDetector, SubspaceClassifier, NearestProjection, Denoiser)
LEARNT_BY_SCIKIT_LEARN = {"feature_names_in_", "n_features_in_", "classes_"}


def documented(estimator):
    """Names in the section "Attributes" of a docstring."""
    text = inspect.cleandoc(estimator.__doc__)
    section = re.search(r"\nAttributes\n-+\n(.*?)\n\n", text, re.DOTALL).group(1)
    heads = [line.split(" : ")[0] for line in section.splitlines() if not line.startswith(" ")]
    return [name for head in heads for name in re.findall(r"\w+_\b", head)]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fitted_attributes_are_declared_so_that_editors_complete_them(estimator):
    names = documented(estimator)
    assert names
    declared = {
        name for kind in estimator.__mro__ for name in vars(kind).get("__annotations__", ())
    }
    declared |= {name for name in dir(estimator) if isinstance(getattr(estimator, name), property)}
    assert set(names) <= declared | LEARNT_BY_SCIKIT_LEARN


@pytest.mark.slow
def test_fit_returns_the_estimator_itself(tmp_path):
    api = pytest.importorskip("mypy.api", reason="types are checked with mypy: mercer[lint]")
    lines = ["import mercer", "X = [[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]]"]
    for kind in ESTIMATORS:
        fit = f"mercer.{kind.__name__}().fit(X, [0, 1, 1])"
        lines.append(f"reveal_type({fit})")
    for kind in (PCA, KernelPCA):
        lines.append(f"reveal_type(mercer.{kind.__name__}().partial_fit(X))")
    lines.append("reveal_type(mercer.PCA().fit(X).certificate_)")
    snippet = tmp_path / "snippet.py"
    snippet.write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = tmp_path / "mypy.ini"
    source = inspect.getfile(mercer).rsplit("mercer", 1)[0].rstrip("/\\")
    config.write_text(
        textwrap.dedent(f"""\
            [mypy]
            mypy_path = {source}
            ignore_missing_imports = True
            follow_imports = silent
            cache_dir = {tmp_path / "cache"}
            """),
        encoding="utf-8",
    )
    out, errors, _ = api.run(["--config-file", str(config), str(snippet)])
    seen = [kind.rsplit(".", 1)[1] for kind in re.findall(r'type is "([\w.]+)"', out)]
    assert seen == [*(kind.__name__ for kind in ESTIMATORS), "PCA", "KernelPCA", "Certificate"], (
        out + errors
    )
