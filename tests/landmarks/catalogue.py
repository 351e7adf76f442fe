"""One row per landmark rule: the laws run over all of them."""

from typing import Any, NamedTuple

import numpy as np

from mercer import as_source, landmarks
from mercer.kernels import RBF
from mercer.problem import KernelProblem
from mercer.rules import Count


class Row(NamedTuple):
    name: str
    rule: Any
    vectors: bool = False
    """Whether rows must be numbers."""
    greedy: bool = False
    """Whether it returns fewer points where those span all rows; other rules raise an error."""
    drawn: bool = False
    """Whether each point says how many rows it stands for."""
    random: bool = True
    """Whether the choice depends on the generator."""


ROWS = [
    Row("uniform", landmarks.Uniform(), drawn=True),
    Row("diagonal", landmarks.Diagonal(), drawn=True),
    Row("column_norm", landmarks.ColumnNorm(), drawn=True),
    Row("leverage", landmarks.Leverage(), drawn=True),
    Row("kmeans", landmarks.KMeans(), vectors=True),
    Row("kernel_kmeans", landmarks.KernelKMeans()),
    Row("forward", landmarks.Forward(), greedy=True, random=False),
    Row("forward by three", landmarks.Forward(step=3), greedy=True, random=False),
    Row("forward among 40", landmarks.Forward(candidates=40), greedy=True),
    Row("backward", landmarks.Backward(), greedy=True, random=False),
    Row("backward by five", landmarks.Backward(step=5), greedy=True, random=False),
    Row("forward_backward", landmarks.ForwardBackward(), greedy=True, random=False),
    Row("ransac", landmarks.Ransac(trials=3)),
    Row("pivoted_cholesky", landmarks.PivotedCholesky(), greedy=True, random=False),
    Row("rp_cholesky", landmarks.RPCholesky(), greedy=True),
    Row("rp_cholesky by three", landmarks.RPCholesky(block=3), greedy=True),
]
_without = set(landmarks.RULES) - {row.name for row in ROWS}
assert not _without, f"Rules without a row in tests/landmarks/catalogue.py: {sorted(_without)}."


def problem(X, r=3, *, kernel=RBF(0.3), weights=None, center=True, seed=0):  # noqa: B008
    """What a rule is given."""
    source = as_source(X).weighted(None if weights is None else np.asarray(weights, float))
    rng = np.random.default_rng(seed)
    return KernelProblem(source, Count(r), center=center, rng=rng, kernel=kernel)


def points(n=80, d=3, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)
