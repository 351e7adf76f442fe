"""String kernels against the enumeration of all tuples of places."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("numba")

from mercer.kernels import Subsequence, Substring
from mercer.kernels.loops import subsequence
from mercer.kernels.pair import TilePair
from mercer.kernels.points import Points
from mercer.kernels.strings import encode_strings

STRINGS = ["", "a", "aa", "aaaaaa", "cat", "cart", "cat", "abcabc", "añb😀añ", "😀\0a", "\ud800a"]


def random_strings(letters, count=40):
    rng = np.random.default_rng(len(letters))
    return ["".join(rng.choice(list(letters), rng.integers(0, 9))) for _ in range(count)]


def subsequences(s, length, decay):
    weights = defaultdict(float)
    for places in combinations(range(len(s)), length):
        weights[tuple(s[i] for i in places)] += decay ** (places[-1] - places[0] + 1)
    return weights


def substrings(s, length, decay):
    weights = defaultdict(float)
    for i in range(len(s) - length + 1):
        weights[s[i : i + length]] += decay**length
    return weights


def inner(a, b):
    return sum(weight * b[u] for u, weight in a.items() if u in b)


FEATURES = {Substring: substrings, Subsequence: subsequences}
both = pytest.mark.parametrize("kernel", FEATURES)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
@pytest.mark.parametrize("decay", [0.3, 1.0])
@pytest.mark.parametrize("letters", ["ab", "añ😀z"])
@both
def test_enumeration(kernel, letters, decay, length):
    x, y = STRINGS, random_strings(letters) + STRINGS
    left, right = ([FEATURES[kernel](s, length, decay) for s in group] for group in (x, y))
    truth = [[inner(a, b) for b in right] for a in left]
    np.testing.assert_allclose(kernel(length, decay)(x, y), truth, rtol=1e-12, atol=0)
    diagonal = [inner(a, a) for a in right]
    np.testing.assert_allclose(kernel(length, decay).diag(y), diagonal, rtol=1e-12, atol=0)


def test_lodhi_example():
    same, other = 2 * 0.5**4 + 0.5**6, 0.5**4
    K = Subsequence(2, 0.5)(["cat", "car"])
    np.testing.assert_allclose(K, [[same, other], [other, same]], rtol=1e-15)


@both
def test_no_strings(kernel):
    for x, y in [([], ["ab"]), (["ab"], []), ([""], ["", ""]), ([], [])]:
        K = kernel(2, 0.5)(x, y)
        assert K.shape == (len(x), len(y))
        assert not K.any()
        assert kernel(2, 0.5).diag(x).shape == (len(x),)


def test_encode():
    codes, offsets = encode_strings(STRINGS)
    assert codes.dtype == np.int32
    assert offsets.dtype == np.int64
    for i, string in enumerate(STRINGS):
        assert codes[offsets[i] : offsets[i + 1]].tolist() == [ord(c) for c in string]
    assert encode_strings([])[1].tolist() == [0]


@both
def test_tiles(kernel):
    x = Points(random_strings("abc", 7))
    whole = kernel(2, 0.5)(x.rows)
    tile = TilePair(x, x, slice(2, 5), slice(3, 7), {"out": []})
    np.testing.assert_allclose(kernel(2, 0.5).on(tile), whole[2:5, 3:], rtol=1e-14)


def test_strided_result():
    codes = encode_strings(random_strings("abc", 5))
    out, part = np.empty((5, 5)), np.empty((10, 10))[::2, ::2]
    subsequence(codes, codes, 2, 0.5, out)
    subsequence(codes, codes, 2, 0.5, part)
    np.testing.assert_array_equal(out, part)
