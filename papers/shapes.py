"""Points of the plane on which the sources show kernel PCA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def clusters(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return Gaussian clusters of deviation 0.8 around three points of a circle of radius 4.

    Aguilera & Antoñanzas (2019), Fig. 1.
    """
    which = np.arange(n) % 3
    angle = np.pi / 2 + 2 * np.pi / 3 * which
    centres = 4 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return centres + rng.normal(0, 0.8, (n, 2)), which


def beans(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Return points of the Cassini problem of R's package mlbench: 2/5, 2/5 and 1/5 of them.

    Uniform in three bodies. The upper bean is bounded by two ovals of Cassini around (0, 1.1),
    that is by curves y = 1.1 ± h(x; a, c) with

        h(x; a, c)² = √(a⁴ + 4 c² x²) − x² − c²:

    from below by the lower half of the waisted one, a = 1, c = 0.97; from above by the upper
    half of the one of equal width without a waist, c² = (1 + 0.97²)/3, a² = 2c². The lower
    bean is its mirror image; the disc between them has radius 0.6.
    """
    flat = np.sqrt((1 + 0.97**2) / 3)
    width = np.sqrt(1 + 0.97**2)
    counts = (2 * n // 5, 2 * n // 5, n - 4 * n // 5)

    def height(x: Array, a: float, c: float) -> Array:
        return np.sqrt(np.maximum(np.sqrt(a**4 + 4 * c**2 * x**2) - x**2 - c**2, 0))

    def bean(p: Array) -> Array:
        x, y = p.T
        return (y > -height(x, 1, 0.97)) & (y < height(x, np.sqrt(2) * flat, flat))

    def uniform(inside: Callable, low: tuple, high: tuple, count: int) -> Array:
        # The bodies fill more than a third of their boxes.
        p = rng.uniform(low, high, (10 * count + 100, 2))
        return p[inside(p)][:count]

    upper, lower = (uniform(bean, (-width, -0.6), (width, 1), count) for count in counts[:2])
    disc = uniform(lambda p: (p**2).sum(axis=1) < 0.6**2, (-0.6, -0.6), (0.6, 0.6), counts[2])
    up = np.array([0, 1.1])
    X = np.concatenate([upper + up, lower * [1, -1] - up, disc])
    return X, np.repeat(["upper bean", "lower bean", "disc"], counts)


def waves(rng: np.random.Generator, n: int, noise: float) -> tuple[Array, Array]:
    """Return two half moons, y = sin x for x from 0 to π and y = cos x from π/2 to 3π/2.

    Half the points each, uniform in x, then normal noise of that deviation.
    """
    second = np.arange(n) % 2 == 1
    x = rng.uniform(0, np.pi, n) + np.where(second, np.pi / 2, 0)
    y = np.where(second, np.cos(x), np.sin(x))
    moon = np.where(second, "cosine", "sine")
    return np.stack([x, y], axis=1) + rng.normal(0, noise, (n, 2)), moon


def rings(
    rng: np.random.Generator, n: int, radii: tuple[float, ...], noise: float, even: bool = True
) -> tuple[Array, Array]:
    """Return points around circles about the origin, and their circles.

    As many on each, evenly or at random angles; noise of that deviation is in the radius.
    """
    ring = np.arange(n) % len(radii)
    radius = np.take(radii, ring) + rng.normal(0, noise, n)
    turn = rng.uniform(0, 2 * np.pi, len(radii))[ring] if even else rng.uniform(0, 2 * np.pi, n)
    angle = 2 * np.pi * np.arange(n) / n + turn
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), ring


def one_cut(scores: Array, inside: Array) -> float:
    """Return the share of points told apart by the best single cut of a score."""
    gain = np.where(inside[np.argsort(scores)], 1, -1).cumsum()
    best = max(gain.max(), gain[-1] - gain.min(), gain[-1], 0)
    return float(np.sum(~inside) + best) / len(scores)
