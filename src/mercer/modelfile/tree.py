"""A model as plain JSON, and arrays beside it.

Numbers, strings, None and lists stand for themselves. All else is an object with one name that
says what it is::

    {"float": "nan"}                     what JSON has no number for
    {"tuple": [...]}, {"dict": [[key, value], ...]}, {"range": [start, stop, step]}
    {"scalar": ["<f8", value]}, {"dtype": "<f4"}
    {"array": name}, {"columns": name}   an array of the file, or its transpose
    {"torch": node}                      the same as a tensor
    {"strings": [bytes, ends]}           a list of str
    {"words": [dtype, shape, strings]}   an array of str
    {"objects": [shape, [...]]}          an array of str, numbers and None
    {"sparse": [class, shape, data, indices, indptr]}
    {"random": [class, state]}, {"solver": name}, {"arpack": steps}
    {"class": name, "parts": {...}}      an object of a class that `registry` knows
    {"same": number}                     an object that stood before: the number-th of them
"""

from __future__ import annotations

MOST_DEPTH = 100
"""Objects within objects."""
MOST_REPEATED = 64
"""How many times as large a tree may be as the file says it is, all objects written out."""
LEAST_REPEATED = 10_000

MOST_STEPS = 1_000_000
"""Of a range, which stands for as many numbers."""

SPARSE = ("csr_array", "csr_matrix", "csc_array", "csc_matrix")
"""Sparse classes of SciPy that are saved."""
BITS = ("MT19937", "PCG64", "PCG64DXSM", "SFC64")
"""Bit generators of NumPy that are saved."""
