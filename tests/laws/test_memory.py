"""The memory budget is kept, and where it cannot be, the error says what to do."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from mercer import PCA, config_context

BUDGET, SLACK = 32, 28  # MiB; slack for what the allocator and LAPACK keep

CHILD = """
    import sys, warnings
    from pathlib import Path
    import numpy as np
    import scipy.linalg
    from mercer import PCA, config_context

    path, solver, k, budget = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    warnings.simplefilter("ignore")

    def peak():  # ru_maxrss would count the parent's pages, from before exec
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

    # Imports, thread pools and LAPACK's own buffers come first.
    rng = np.random.default_rng(0)
    for shape in ((300, 20), (20, 300)):
        PCA(2, svd_solver=solver, random_state=0).fit(rng.standard_normal(shape))
    scipy.linalg.svd(rng.standard_normal((200, 200)))
    before = peak()
    with config_context(memory=budget):
        pca = PCA(k, svd_solver=solver, random_state=0).fit(path)
        pca.transform(path).collect()
    print((peak() - before) / 1024)
"""


def growth(path, solver, k):
    """MiB by which the peak of a fresh process grows while it fits."""
    child = [
        sys.executable,
        "-c",
        textwrap.dedent(CHILD),
        str(path),
        solver,
        str(k),
        f"{BUDGET}MiB",
    ]
    run = subprocess.run(child, capture_output=True, text=True, timeout=1200)
    assert run.returncode == 0, run.stderr
    return float(run.stdout.split()[-1])


SHAPES = {"tall": (60_000, 125), "wide": (800, 10_000), "float32": (100_000, 150)}


def written(folder, name, order):
    """A file of 60 MB."""
    X = np.random.default_rng(51).standard_normal(SHAPES[name], dtype=np.float32)
    np.save(folder / "rows.npy", np.asarray(X, None if name == "float32" else float, order=order))
    return folder / "rows.npy"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("shape", "order", "solver"),
    [
        pytest.param("tall", "C", "krylov", marks=pytest.mark.slow),
        ("wide", "F", "auto"),
        ("float32", "C", "covariance_eigh"),
        pytest.param("tall", "C", "auto", marks=pytest.mark.slow),
        pytest.param("tall", "C", "full", marks=pytest.mark.slow),
        pytest.param("tall", "C", "covariance_eigh", marks=pytest.mark.slow),
        pytest.param("tall", "F", "auto", marks=pytest.mark.slow),
        pytest.param("wide", "C", "auto", marks=pytest.mark.slow),
        pytest.param("float32", "C", "full", marks=pytest.mark.slow),
    ],
)
def test_a_file_larger_than_the_budget(tmp_path, shape, order, solver):
    assert growth(written(tmp_path, shape, order), solver, 5) <= BUDGET + SLACK


def test_one_row_that_does_not_fit():
    X = np.random.default_rng(52).standard_normal((20, 4000))
    with config_context(memory="8KiB"), pytest.raises(MemoryError, match="config_context"):
        PCA(2, svd_solver="covariance_eigh").fit(X)
    with config_context(memory="8KiB"), pytest.raises(MemoryError, match=r"memory='32KiB'"):
        PCA(2, svd_solver="full").fit(X.T)


def test_a_small_budget_still_gives_the_right_answer():
    """A budget for some rows at a time: more blocks, the same axes."""
    rng = np.random.default_rng(53)
    X = rng.standard_normal((2000, 40)) * 0.9 ** np.arange(40)
    expected = np.linalg.eigvalsh(np.cov(X.T))[::-1][:5]
    for solver in ("auto", "full", "covariance_eigh", "krylov"):
        with config_context(memory="256KiB"):
            found = PCA(5, svd_solver=solver, random_state=0).fit(X).explained_variance_
        assert np.abs(found / expected - 1).max() <= 1e-12
