"""Files of format 1 and what their models compute: later versions must read them alike.

``python -m tests.modelfile.frozen`` adds the files of models that have none yet, and writes
what all of them compute. Files that exist are never written again: they are what older versions
of Mercer left behind.
"""

from pathlib import Path

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import (
    PCA,
    Denoiser,
    KernelPCA,
    NearestProjection,
    NoveltyDetector,
    SaltAndPepper,
    SubspaceClassifier,
)
from mercer.kernels import RBF, Polynomial
from mercer.methods import (
    Adaptive,
    Covariance,
    FrequentDirections,
    Hebbian,
    RandomFeatures,
    Sparse,
    Subset,
)
from mercer.sketches import FeatureGrouping, Gaussian, Hadamard, Hashing, Resize, SparseSign

FOLDER = Path(__file__).parent / "format1"
ORIGIN = {"command": "tests.modelfile.frozen"}
STRINGS = ["ab", "bab"]


def rows():
    """Twelve rows that need no generator."""
    i = np.arange(36.0).reshape(12, 3)
    return np.sin(i) + 0.1 * i


def models():
    """Return the models of the files by name; streams have seen the first eight rows."""
    X, y = rows(), np.repeat(["a", "b"], 6)
    rbf = {"kernel": "rbf", "gamma": 0.1, "random_state": 0}
    kernel = RBF(0.2) + 0.5 * Polynomial(2).normalized()
    streams = {
        "triangle": PCA(2),
        "moments": PCA(2, svd_solver=Covariance()),
        "directions": PCA(1, svd_solver=FrequentDirections(3)),
        "basis": KernelPCA(2, method=Subset(5), **rbf),
        "hebbian": KernelPCA(2, method=Hebbian(n_basis=5), **rbf),
        "features": KernelPCA(2, method=RandomFeatures(4), **rbf),
    }
    sketches = {
        "gaussian": Gaussian(2),
        "hadamard": Hadamard(2),
        "hashing": Hashing(2, hashes=2),
        "sparse_sign": SparseSign(2, 2),
        "grouping": FeatureGrouping(2),
        "resize": Resize((3, 1), (2, 1)),
        "identity": Gaussian(9, identity=True),
    }
    denoiser = Denoiser(PCA(), n_components=[1, 2], noise=SaltAndPepper(0.1), random_state=0)
    return {
        "pca": PCA(2, whiten=True, scale=True).fit(X),
        "pipeline": make_pipeline(SimpleImputer(), StandardScaler(), PCA(1)).fit(X),
        "kernel": KernelPCA(2, kernel=kernel, method=Subset(select=X[:5])).fit(X),
        "strings": KernelPCA(1, kernel="substring").fit(["abab", "ab", "ba", "b"]),
        "novelty": NoveltyDetector(KernelPCA(2, method=Adaptive(5), **rbf)).fit(X),
        "classifier": SubspaceClassifier(KernelPCA(1, method=Sparse(3), **rbf)).fit(X, y),
        "nearest": NearestProjection(PCA(2), 3).fit(X, y),
        "preimage": KernelPCA(2, preimage="ridge", **rbf).fit(X),
        "denoiser": denoiser.fit(X),
        **{name: model.partial_fit(X[:8]) for name, model in streams.items()},
        **{name: model.fit(X) for name, model in sketches.items()},
    }


def computed(model):
    """Return what a model makes of rows, by name; of a stream, also after one more batch."""
    X = STRINGS if isinstance(getattr(model, "X_fit_", None), list) else rows()
    names = ("transform", "predict", "decision_function", "reconstruction_error")
    results = {name: getattr(model, name)(X) for name in names if hasattr(model, name)}
    if hasattr(model, "certificate_") and hasattr(model, "inverse_transform"):
        results["inverse_transform"] = model.inverse_transform(results["transform"])
    if hasattr(model, "n_samples_seen_"):
        results["partial_fit"] = model.partial_fit(X[8:]).transform(X)
    return results


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, model in models().items():
        path = FOLDER / f"{name}.mercer"
        if not path.exists():
            mercer.save(model, path, origin=ORIGIN)
    expected = {
        f"{path.stem}.{name}": result
        for path in sorted(FOLDER.glob("*.mercer"))
        for name, result in computed(mercer.load(path)).items()
    }
    np.savez_compressed(FOLDER / "expected.npz", **expected)


if __name__ == "__main__":
    main()
