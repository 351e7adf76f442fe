"""The maps that every law runs over."""

import numpy as np

from mercer.sketches import (
    FeatureGrouping,
    Gaussian,
    Hadamard,
    Hashing,
    PixelGrouping,
    Resize,
    SparseSign,
)

D = 2400  # 40 × 60 pixels, or 40 × 20 of three colours

UNBIASED = {
    "gaussian": lambda q, **rest: Gaussian(q, **rest),
    "hashing": lambda q, **rest: Hashing(q, **rest),
    "three hashes": lambda q, **rest: Hashing(q, hashes=3, **rest),
    "sparse signs": lambda q, **rest: SparseSign(q, **rest),
    "hadamard": lambda q, **rest: Hadamard(q, **rest),
}

MAPS = {
    **{name: make(50) for name, make in UNBIASED.items()},
    "unsigned": Hashing(50, signed=False),
    "as printed": Hashing(50, hashes=5, scaling="paper"),
    "identity": Gaussian(5000, identity=True),
    "resize": Resize((40, 60), (13, 17)),
    "resize colour": Resize((40, 20, 3), (13, 7)),
    "resize planes": Resize((40, 20, 3), (20, 10), channels="first"),
    "pixels": PixelGrouping((40, 60), 7),
    "corners": PixelGrouping((40, 20, 3), (3, 4), by="corner"),
    "groups": FeatureGrouping(50),
}


def rows(n=30, seed=0):
    """Rows with a third of their entries."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, D)) * (rng.random((n, D)) < 0.3)
