"""Three hundred random cases; `make truth` runs some ten thousand."""

import inspect

import numpy as np
import pytest

from mercer import kernels, landmarks, methods
from mercer.linalg import solvers
from tests.truth import case, families, models
from tests.truth.__main__ import line

SEED, CASES, CHUNK = 0, 300, 15


@pytest.mark.parametrize("first", range(0, CASES, CHUNK))
def test_no_promise_is_false(first):
    results = [case.run(SEED, index) for index in range(first, first + CHUNK)]
    wrong = [line(result, look) for result in results for look in result.violations if look.sure]
    assert not wrong, "\n".join(wrong)


def test_a_case_is_made_of_its_numbers_alone():
    first, second = (case.run(SEED, 7) for _ in range(2))
    assert first.text == second.text
    assert first.looks == second.looks


def classes(module, base):
    found = (getattr(module, name) for name in module.__all__)
    found = [one for one in found if inspect.isclass(one) and issubclass(one, base)]
    return {one.__name__ for one in found if not inspect.isabstract(one) and one is not base}


def test_every_method_solver_and_rule_is_drawn():
    rng, size = np.random.default_rng(0), models.Size(20, 5, 2)
    drawn = [repr(way.make(rng, size)) for way in models.WAYS.values() for _ in range(40)]
    text = " ".join(drawn)
    wanted = classes(methods, methods.Method) | classes(landmarks, landmarks.Landmarks)
    wanted -= {"EM"}  # of incomplete rows: it makes no statement that is proven
    assert {name for name in wanted if f"{name}(" not in text} == set()
    assert {name for name in solvers.SOLVERS if name not in text} == set()


def test_every_kernel_is_drawn():
    rng, rows = np.random.default_rng(0), np.random.default_rng(1).random((12, 3))
    text = " ".join(repr(families.draw(rng, rows).settings) for _ in range(800))
    text += " ".join(repr(families.draw_strings(rng)[0].settings) for _ in range(20))
    written = {"Sum", "Product", "Scaled", "Power", "Normalized", "InSpace", "OnColumns"}
    apart = {"Constant", "Precomputed"}  # within sums; drawn by the case
    wanted = classes(kernels, kernels.Kernel) - written - apart
    assert {name for name in wanted if f"{name}(" not in text} == set()
    for sign in (" + ", " * ", "** 2", "normalized()", ".rbf(", "on_columns"):
        assert sign in text


def test_a_backward_search_that_finds_fewer_independent_rows_than_its_step():
    assert not case.run(3, 7886).violations
