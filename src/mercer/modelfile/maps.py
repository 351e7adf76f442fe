"""The maps that sketches draw, taken apart and put together; what they keep for speed is not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.config import get_config
from mercer.modelfile.kinds import Kind, Translated
from mercer.sketches import drawn, gaussian, grouping, hadamard, hashing, scattered, sparse_sign


def maps() -> list[Kind]:
    """Return how every class of maps is saved."""
    plain = ("d", "q", "seed")
    return [
        Translated("drawn.Same", drawn.Same, ("d",), lambda x: {"d": x.d}, drawn.Same),
        Translated(
            "drawn.Gaussian", gaussian.Projection, plain, _taken(*plain), gaussian.Projection
        ),
        Translated(
            "drawn.Hadamard",
            hadamard.Transform,
            ("up", "sample"),
            lambda x: {"up": x.signs[: x.d] > 0, "sample": x.sample},
            _transform,
        ),
        Translated(
            "drawn.SparseSign",
            sparse_sign.Signs,
            ("d", "q", "each", "seed"),
            _taken("d", "q", "each", "seed"),
            sparse_sign.Signs,
        ),
        Translated(
            "drawn.Hashing",
            hashing.Buckets,
            ("d", "q", "hashes", "signed", "scale", "seed"),
            lambda x: {"hashes": x.each, **_taken("d", "q", "signed", "scale", "seed")(x)},
            hashing.Buckets,
        ),
        Translated("drawn.Fixed", scattered.Fixed, ("matrix",), _matrix, scattered.Fixed),
        Translated(
            "drawn.Grouped",
            grouping.Grouped,
            ("d", "groups", "bound"),
            _taken("d", "groups", "bound"),
            _grouped,
        ),
    ]


def _taken(*names: str) -> Any:
    return lambda obj: {name: getattr(obj, name) for name in names}


def _matrix(fixed: scattered.Fixed) -> dict[str, Any]:
    begin, places, values = fixed.given
    return {"matrix": sp.csr_array((values, places, begin), (fixed.d, fixed.q))}


def _transform(up: Any, sample: Any) -> hadamard.Transform:
    """Return the map; loops trust the coordinates to be there."""
    signs = isinstance(up, np.ndarray) and up.dtype == bool and up.ndim == 1 and len(up) > 0
    places = isinstance(sample, np.ndarray) and sample.dtype == np.int64 and sample.ndim == 1
    if not signs or not places or not len(sample) or len(sample) > 2 * len(up):
        raise ValueError("a map has no signs, or no coordinates")
    room = 1 << (len(up) - 1).bit_length()
    if (sample < 0).any() or (sample >= room).any():
        raise ValueError("a map has coordinates that are not there")
    if len(sample) * 4 * math.isqrt(2 * room) > get_config().budget:
        raise ValueError("a map takes more than the memory budget")
    return hadamard.Transform(up, sample)


def _grouped(d: Any, groups: Any, bound: Any) -> grouping.Grouped:
    """Return the map of groups; every feature is in one of them."""
    there = isinstance(groups, list) and all(
        isinstance(group, np.ndarray) and group.dtype == np.int64 and group.size for group in groups
    )
    together = np.concatenate(groups) if there and groups else np.zeros(0, np.int64)
    if type(d) is not int or not np.array_equal(np.sort(together), np.arange(len(together))):
        raise ValueError("groups do not hold every feature once")
    if d != len(together) or not d:
        raise ValueError("groups are of other features")
    return grouping.Grouped(d, groups, float(bound))
