"""Mutated model files, thousands of them: python fuzz.py SEED COUNT prints what came of them.

In a process of its own, so that an audit hook can see whatever a file might set off, and so that
a crash of compiled code is seen as one.
"""

import collections
import contextlib
import copy
import hashlib
import json
import random
import re
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import joblib
import numpy as np
import scipy.sparse as sp
from safetensors.numpy import save
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import PCA, Denoiser, KernelPCA, NearestProjection, NoveltyDetector, SubspaceClassifier
from mercer.kernels import RBF, Linear, Subsequence
from mercer.methods import Hebbian, RandomFeatures, Subset
from mercer.modelfile import ModelFileError, container
from mercer.sketches import FeatureGrouping, Hadamard, Hashing, Resize, SparseSign

FORMAT_1 = Path(__file__).parent / "format1"
# What a file must never set off, when it is loaded and later.
FORBIDDEN = (
    *("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "os.fork"),
    *("ctypes.dlopen", "socket.connect", "os.remove", "shutil.rmtree", "urllib.Request"),
)
# Nor when it is loaded; libraries that a model uses import, and compile, things of their own.
WHILE_LOADED = (
    *FORBIDDEN,
    *("exec", "compile", "import", "marshal.loads", "pickle.find_class", "code.__new__"),
)
NAMES = (
    *("__class__", "__dict__", "__init__", "fit", "transform", "_validate_params", "get_params"),
    *("__reduce__", "_scores", "projection_", "components_", "os.system", "", "kernel", "n" * 300),
)
VALUES = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308, 1e-320),
    *("", "rbf", "precomputed", "__import__('os').system('true')", "\ud800", "nan", [], {}, [[]]),
    *({"float": "nan"}, {"float": "inf"}, {"float": "os"}, {"tuple": []}, {"dict": [[[], 1]]}),
    *({"range": [0, 2**62, 1]}, {"scalar": ["<f8", 1]}, {"scalar": ["|b1", 3]}, {"dtype": "O"}),
    *({"same": 0}, {"same": 1}, {"same": -1}, {"same": 10**9}, {"solver": "dense"}, {"arpack": 1}),
    *({"random": ["RandomState", {"dict": []}]}, {"objects": [[1], ["x"]]}, {"words": ["U9", [0]]}),
    *({"class": "kernels.RBF", "parts": {"gamma": 1.0}}, {"class": "builtins.eval", "parts": {}}),
    *({"class": "kernels.FromFunction", "parts": {"f": "print"}}, {"class": "os.system"}),
    *({"class": "kernels.Linear", "parts": {"__class__": "x"}}, {"sparse": ["coo_array"]}),
    {"class": "kernels.Power", "parts": {"kernel": {"same": 0}, "power": 10**9}},
)
# Too deep for Python's own tools: text in place of a mark.
DEEP = {
    f"deep {depth} {first}": first * depth + "1" + last * depth
    for depth in (3, 90, 400, 3000, 100_000)
    for first, last in (("[", "]"), ('{"tuple":[', "]}"))
}


def models():
    """A few tiny models, and rows for each."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 3))
    y = np.repeat(["a", "b"], 4)
    words = ["ab", "ba", "abc", "b"]
    named = {"kernel": "rbf", "random_state": 0}
    sparse = sp.csr_array(X)
    return [
        (PCA(2, whiten=True).fit(X), X),
        (PCA(1, random_state=np.random.RandomState(0)).fit(X.astype("f4")), X),
        (PCA(1).partial_fit(X), X),
        (
            KernelPCA(2, kernel=RBF(0.5) + 2 * Linear() ** 2).fit(X).set_output(transform="pandas"),
            X,
        ),
        (KernelPCA(1, preimage="ridge", method=Subset(4), **named).fit(X), X),
        (KernelPCA(1, kernel="chi2").fit(abs(X)), abs(X)),
        (KernelPCA(1, kernel="rbf", fit_inverse_transform=True).fit(X), X),
        (KernelPCA(1, kernel="rbf").fit(sparse), sparse),
        (KernelPCA(1, method=Subset(4), **named).partial_fit(sparse), sparse),
        (KernelPCA(1, method=RandomFeatures(3), **named).fit(X), X),
        (KernelPCA(1, method=Hebbian(n_basis=4), **named).partial_fit(X), X),
        (KernelPCA(1, kernel=Subsequence(1, 0.5)).fit(words), words),
        (KernelPCA(1, kernel="precomputed").fit(X @ X.T), X @ X.T),
        (NoveltyDetector(PCA(1)).fit(X), X),
        (SubspaceClassifier(KernelPCA(1, kernel="rbf")).fit(X, y), X),
        (NearestProjection(PCA(2)).fit(X, y), X),
        (Denoiser(PCA(), n_components=[1, 2], noise=0.1, random_state=0).fit(X), X),
        (make_pipeline(SimpleImputer(), StandardScaler(), PCA(1)).fit(X), X),
        (Hashing(2, hashes=2).fit(X), X),
        (Hadamard(2).fit(X), X),
        (SparseSign(2, 1).fit(sparse), sparse),
        (FeatureGrouping(2).fit(X), X),
        (Resize((3, 1), (2, 1)).fit(X), X),
    ]


def use(model, X, rnd):
    """Do two of the things a model is for; any error is fine but a want of memory or of stack."""
    uses = [
        lambda: model.predict(X) if hasattr(model, "predict") else model.transform(X),
        lambda: model.partial_fit(X) if hasattr(model, "n_samples_seen_") else None,
        lambda: model.inverse_transform(model.transform(X)),
        lambda: model.get_feature_names_out(),
        lambda: (repr(model), str(model.certificate_), repr(model.plan_)),
    ]
    for each in rnd.sample(uses, 2):
        try:
            each()
        except (MemoryError, RecursionError):
            raise
        except Exception:  # a model that makes no sense
            continue


def resealed(raw):
    """The same bytes with a checksum that is right; as they are where there is none."""
    seal = re.search(rb'"checksum":"([^"]{64})"', raw)
    if seal is None:
        return raw
    blank = raw[: seal.start(1)] + b"0" * 64 + raw[seal.end(1) :]
    return raw[: seal.start(1)] + hashlib.sha256(blank).hexdigest().encode() + raw[seal.end(1) :]


def bent(raw, rnd):
    """Bytes of a file, changed somewhere."""
    raw = bytearray(raw)
    at = rnd.randrange(len(raw))
    if rnd.random() < 0.5:  # near the beginning, where the sizes are
        at = rnd.randrange(min(len(raw), 120))
    how = rnd.randrange(7)
    if how == 0:
        raw[at] ^= 1 << rnd.randrange(8)
    elif how == 1:
        raw[at] = rnd.randrange(256)
    elif how == 2:
        del raw[at:]
    elif how == 3:
        raw[at:at] = rnd.randbytes(rnd.randrange(1, 20))
    elif how == 4:
        del raw[at : at + rnd.randrange(1, 40)]
    elif how == 5:
        raw[at : at + 8] = rnd.choice([b"\xff" * 8, b"\0" * 8, b"\x80\0\0\0\0\0\0\0"])
    else:
        raw += rnd.randbytes(rnd.randrange(1, 64))
    return bytes(raw)


def places(node, found=None):
    """Every list and dict of a tree, with each of its keys."""
    found = [] if found is None else found
    if isinstance(node, dict):
        found += [(node, key) for key in node]
        for inner in list(node.values()):
            places(inner, found)
    elif isinstance(node, list):
        found += [(node, i) for i in range(len(node))]
        for inner in node:
            places(inner, found)
    return found


def turned(tree, rnd):
    """Change one thing of a tree, where it stands; return it."""
    tree = {"root": tree}
    there = places(tree)
    owner, key = rnd.choice(there)
    how = rnd.randrange(8)
    if how <= 2:
        owner[key] = copy.deepcopy(rnd.choice(VALUES))
    elif how == 3:
        other, name = rnd.choice(there)
        owner[key] = copy.deepcopy(other[name])
    elif how == 4 and isinstance(owner, dict):
        owner[rnd.choice(NAMES)] = owner.pop(key)
    elif how == 5 and isinstance(owner, dict):
        owner[rnd.choice(NAMES)] = copy.deepcopy(rnd.choice(VALUES))
    elif how == 6:
        if isinstance(owner, list):
            del owner[key]
        else:
            owner.pop(key)
    else:
        owner[key] = rnd.choice(list(DEEP))
    return tree.get("root")


def other_array(array, rnd):
    """An array with another dtype, shape or entries."""
    how = rnd.randrange(7)
    if how == 0:
        with np.errstate(all="ignore"):
            return array.astype(rnd.choice(["f4", "f8", "i8", "u1", "?", "i4", "f2"]))
    if how == 1:
        return array.reshape(-1)[: rnd.randrange(array.size + 1)]
    if how == 2:
        return array[None]
    if how == 3:
        return array.T.copy()
    if how == 4:
        return np.zeros((0, rnd.choice([1, 3, 1000, 2**40])), array.dtype)
    array = array.copy()
    if array.size:
        values = [0, 1, -1, 127, 2**31 - 1, -(2**31), np.nan, np.inf, -1e300]
        with np.errstate(all="ignore"):
            value = np.array(rnd.choice(values)).astype(array.dtype)
            array.reshape(-1)[rnd.randrange(array.size)] = value
    return np.concatenate([array.reshape(-1), array.reshape(-1)]) if how == 5 else array


def rewritten(path, texts, arrays, rnd):
    """Write a file whose checksum is right, and whose contents are not."""
    texts, arrays = dict(texts), dict(arrays)
    how = rnd.random()
    if how < 0.7:
        tree = json.loads(texts["tree"])
        for _ in range(rnd.choice([1, 1, 1, 2, 4])):
            tree = turned(tree, rnd)
        texts["tree"] = json.dumps(tree)
        for mark, deep in DEEP.items():
            texts["tree"] = texts["tree"].replace(f'"{mark}"', deep)
    elif how < 0.9 and arrays:
        name = rnd.choice(sorted(arrays))
        arrays[name] = other_array(arrays[name], rnd)
        if rnd.random() < 0.1:
            arrays[rnd.choice(NAMES)] = arrays.pop(name)
    elif how < 0.95:
        texts["header"] = json.dumps(turned(json.loads(texts["header"]), rnd))
    else:
        texts[rnd.choice(["version", "format", "tree", "header"])] = rnd.choice(
            ["", "0", "1", "2", "3", "-1", "1e3", "[" * 5000, "null", "{}", "9" * 5000, "NaN"]
        )
    texts["checksum"] = "0" * 64
    path.write_bytes(resealed(save(arrays, texts)))


def mutate(path, case, rnd):
    """Write a mutated file; return how it was made."""
    raw, texts, arrays, _ = case
    path.unlink(missing_ok=True)  # a new file is not flushed to the disk, one replaced may be
    way = rnd.randrange(10)
    if way < 5:
        made = bent(raw, rnd)
        path.write_bytes(made if way < 3 else resealed(made))
        return "sealed again" if way >= 3 else "changed" if made != raw else "same"
    rewritten(path, texts, arrays, rnd)
    return "written anew"


def case(path, X):
    """The contents of a file, and rows for its model."""
    texts, arrays = container.read_contents(path)
    del texts["checksum"]
    return path.read_bytes(), texts, arrays, X


def outcomes(path, seed, count):
    """Load and use so many mutated files; return what came of them."""
    rnd, cases = random.Random(seed), []
    for model, X in models():
        mercer.save(model, path)
        cases.append(case(path, X))
    for older in sorted(FORMAT_1.glob("*.mercer")):
        cases.append(case(older, ["ab", "b"] if older.stem == "strings" else np.eye(4, 3)))
    for raw, _, _, X in cases:  # imports and compiles whatever loading and use need
        path.write_bytes(raw)
        use(mercer.load(path), X, rnd)
    mercer.modelfile.read_header(path)
    joblib.cpu_count(only_physical_cores=True)  # runs lscpu the first time that n_jobs is not 1
    events, watching = [], [()]

    def watch(event, args):
        if event in watching[0]:
            events.append((event, repr(args)[:200]))

    sys.addaudithook(watch)
    tally, errors, slowest = collections.Counter(), {}, 0.0
    for i in range(count):
        chosen = cases[i % len(cases)]
        how = mutate(path, chosen, rnd)
        start = time.process_time()
        watching[0] = WHILE_LOADED
        try:
            if i % 4 == 0:
                with contextlib.suppress(ModelFileError):
                    mercer.modelfile.read_header(path)
            try:
                model = mercer.load(path)
            except ModelFileError as error:
                tally[f"{how}: refused" if str(path) in str(error) else "not named"] += 1
            else:
                watching[0] = FORBIDDEN
                use(model, chosen[-1], rnd)
                tally[f"{how}: loaded"] += 1
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{last.filename}:{last.lineno}"
            errors.setdefault(f"{type(error).__name__} at {where}: {error}"[:300], (how, i))
        finally:
            watching[0] = ()
        slowest = max(slowest, time.process_time() - start)
    return {"tally": tally, "errors": errors, "events": events[:20], "slowest": slowest}


def main(seed, count):
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        print(json.dumps(outcomes(Path(folder) / "model.mercer", seed, count)))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
