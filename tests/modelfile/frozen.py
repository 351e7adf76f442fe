"""Files of format 1, kept so that later versions are tried on them.

``python -m tests.modelfile.frozen`` writes them anew: only when they are of a new format, beside
those of the old ones.
"""

from pathlib import Path

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import PCA, KernelPCA
from mercer.kernels import RBF, Polynomial
from mercer.methods import Subset

FOLDER = Path(__file__).parent / "format1"


def rows():
    """Twelve rows that need no generator."""
    i = np.arange(36.0).reshape(12, 3)
    return np.sin(i) + 0.1 * i


def models():
    """What is in the files, by name."""
    X = rows()
    kernel = RBF(0.2) + 0.5 * Polynomial(2).normalized()
    return {
        "pca": PCA(2, whiten=True, scale=True).fit(X),
        "pipeline": make_pipeline(SimpleImputer(), StandardScaler(), PCA(1)).fit(X),
        "kernel": KernelPCA(2, kernel=kernel, method=Subset(select=X[:5])).fit(X),
        "strings": KernelPCA(1, kernel="substring").fit(["abab", "ab", "ba", "b"]),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, model in models().items():
        mercer.save(model, FOLDER / f"{name}.mercer", origin={"command": "tests.modelfile.frozen"})
