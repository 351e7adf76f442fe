"""String kernels against the enumeration of all tuples of places."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("numba")

from mercer.kernels.string_loops import subsequence, substring
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


@pytest.mark.parametrize("length", [1, 2, 3, 5])
@pytest.mark.parametrize("decay", [0.3, 1.0])
@pytest.mark.parametrize("letters", ["ab", "añ😀z"])
@pytest.mark.parametrize("features", [substrings, subsequences])
def test_enumeration(features, letters, decay, length):
    kernel = {substrings: substring, subsequences: subsequence}[features]
    x, y = STRINGS, random_strings(letters) + STRINGS
    out = np.full((len(x), len(y)), 7.0)
    kernel(encode_strings(x), encode_strings(y), length, decay, out)
    left, right = ([features(s, length, decay) for s in group] for group in (x, y))
    truth = [[inner(a, b) for b in right] for a in left]
    np.testing.assert_allclose(out, truth, rtol=1e-12, atol=0)


def test_lodhi_example():
    out = np.empty((2, 2))
    subsequence(encode_strings(["cat", "car"]), encode_strings(["cat", "car"]), 2, 0.5, out)
    same, other = 2 * 0.5**4 + 0.5**6, 0.5**4
    np.testing.assert_allclose(out, [[same, other], [other, same]], rtol=1e-15)


def test_strided_result():
    x = random_strings("abc", 5)
    for kernel in (substring, subsequence):
        out, part = np.empty((5, 5)), np.empty((10, 10))[::2, ::2]
        kernel(encode_strings(x), encode_strings(x), 2, 0.5, out)
        kernel(encode_strings(x), encode_strings(x), 2, 0.5, part)
        np.testing.assert_array_equal(out, part)


@pytest.mark.parametrize("kernel", [substring, subsequence])
def test_no_strings(kernel):
    for x, y in [([], ["ab"]), (["ab"], []), ([""], ["", ""])]:
        out = np.full((len(x), len(y)), 7.0)
        kernel(encode_strings(x), encode_strings(y), 2, 0.5, out)
        assert not out.any()


def test_encode():
    codes, offsets = encode_strings(STRINGS)
    assert codes.dtype == np.int32
    assert offsets.dtype == np.int64
    for i, string in enumerate(STRINGS):
        assert codes[offsets[i] : offsets[i + 1]].tolist() == [ord(c) for c in string]
    assert encode_strings([])[1].tolist() == [0]


def test_tiles_by_slices_of_the_offsets():
    codes, offsets = encode_strings(random_strings("abc", 7))
    for kernel in (substring, subsequence):
        whole, tile = np.empty((7, 7)), np.empty((3, 4))
        kernel((codes, offsets), (codes, offsets), 2, 0.5, whole)
        kernel((codes, offsets[2:6]), (codes, offsets[3:]), 2, 0.5, tile)
        np.testing.assert_allclose(tile, whole[2:5, 3:], rtol=1e-14)
