"""What a refusal for memory advises does help."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer.methods
import mercer.sketches
from mercer import KernelPCA, config_context
from mercer.cli.console import as_option
from mercer.config import parse_bytes, rounded_up
from mercer.kernels import RBF, Polynomial
from mercer.messages import parameter_format
from mercer.methods import (
    Cholesky,
    Exact,
    Greedy,
    Hebbian,
    Nystrom,
    RandomFeatures,
    Sketch,
    Sparse,
    SparseL1,
    Subset,
)

METHODS = [
    "auto",
    "exact",
    Exact("dense"),
    Subset(30),
    Subset(900, select="kmeans"),
    Nystrom(300),
    Cholesky(),
    Greedy(100),
    Sparse(40),
    Sparse(40, pool=600),
    SparseL1(),
    Hebbian(),
    RandomFeatures(),
    Sketch(),
]
NAMES = vars(mercer.methods) | vars(mercer.sketches)


def planned(n, d, **params):
    """Plan a fit, and refuse it as a fit does; nothing is computed."""
    model = KernelPCA(**params)
    rows = np.broadcast_to(np.float64(0.0), (n, d))
    plan = model.plan(rows)
    plan.require_fit(model._problem(mercer.data.as_source(rows)))


def remedies(text):
    """Return what an error advises, as changes of rows, budget and parameters."""
    for memory in re.findall(r"config_context\(memory='(\w+)'\) is enough", text):
        yield "memory", memory
    for rows in re.findall(r"a sample of (\d+) rows fits", text):
        yield "n", int(rows)
    for name in re.findall(r"method='(\w+)' fits", text):
        yield "method", name
    for made in re.findall(r"method=(\w+\(\d*\)) fits", text):
        yield "method", eval(made, NAMES)


@given(
    st.sampled_from(METHODS),
    st.sampled_from([RBF(0.1), Polynomial(2)]),
    st.integers(1200, 60_000),
    st.integers(1, 300),
    st.integers(1, 30),
    st.floats(5.0, 9.0),
)
@settings(max_examples=300, deadline=None)
def test_every_remedy_of_a_refusal_helps(method, kernel, n, d, k, digits):
    params = {"n_components": k, "kernel": kernel, "method": method}
    if isinstance(method, RandomFeatures) and not isinstance(kernel, RBF):
        return
    memory = int(10**digits)
    with config_context(memory=memory):
        try:
            planned(n, d, **params)
            return
        except MemoryError as error:
            text = str(error)
        found = list(remedies(text))
        assert found[0][0] == "memory", text
        assert text.count(" fits") + text.count("which fit") <= len(found) + 1
        for what, value in found:
            if what == "memory":
                with config_context(memory=value):
                    planned(n, d, **params)
            elif what == "n":
                planned(value, d, **params)
            else:
                planned(n, d, **params | {what: value})


def test_a_basis_of_any_size_that_does_not_fit():
    X = np.random.default_rng(0).normal(size=(5000, 50))
    for points in (5, 20):
        model = KernelPCA(2, kernel="rbf", method=Subset(points))
        with config_context(memory="1MB"), pytest.raises(MemoryError) as refused:
            model.fit(X)
        text = str(refused.value)
        assert "Subset" not in text
        assert dict(remedies(text)).keys() == {"memory", "method"}
        for what, value in remedies(text):
            with config_context(memory=value if what == "memory" else "1MB"):
                model.set_params(**({} if what == "memory" else {what: value})).fit(X)
    with config_context(memory="1MB"), pytest.raises(MemoryError) as refused:
        KernelPCA(2, kernel="rbf").fit(X)
    assert re.search(r"method=RandomFeatures\(\d+\) fits all rows", str(refused.value))


def test_random_features_where_no_basis_fits():
    rows = np.broadcast_to(np.float64(0.0), (7000, 40))
    with config_context(memory="60MiB"):
        for kernel, said in ((RBF(0.1), "method='features' fits all rows."), (Polynomial(2), "")):
            with pytest.raises(MemoryError, match=r"a sample of \d+ rows fits") as refused:
                KernelPCA(8, kernel=kernel).plan(rows)
            assert str(refused.value).endswith(said or "rows fits.")
            with parameter_format(as_option), pytest.raises(MemoryError) as refused:
                KernelPCA(8, kernel=kernel).plan(rows)
            assert ("; --method features fits all rows" in str(refused.value)) == bool(said)
        KernelPCA(8, kernel=RBF(0.1), method="features").plan(rows)
    with config_context(memory="2MiB"), pytest.raises(MemoryError) as refused:
        planned(1500, 30, n_components=8, kernel=RBF(0.1), method="features")
    assert re.search(r"method=RandomFeatures\(\d+\) fits\.", str(refused.value))


@given(st.floats(1, 1e14))
def test_a_size_that_holds_what_is_needed(size):
    assert size <= parse_bytes(rounded_up(size)) <= max(1024, 2.1 * size)
