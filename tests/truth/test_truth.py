"""Some hundred random cases; `make truth` runs some ten thousand."""

import pytest

from tests.truth import case
from tests.truth.__main__ import line

SEED, CASES, CHUNK = 0, 300, 15


@pytest.mark.parametrize("first", range(0, CASES, CHUNK))
def test_no_promise_is_false(first):
    results = [case.run(SEED, index) for index in range(first, first + CHUNK)]
    wrong = [line(result, look) for result in results for look in result.violations if look.sure]
    assert not wrong, "\n".join(wrong)
