"""Time this code against another commit: ``python tools/against.py COMMIT [--only WORD]``.

Each case runs in two processes, one for each commit, which take turns: a machine that is shared
slows both alike. The table gives the ratio of the least times and of the medians, new to old.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

WORKER = """
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, scipy.sparse
from mercer import PCA, KernelPCA, NoveltyDetector, SubspaceClassifier
from mercer.kernels import RBF, Matern, Polynomial
from mercer.methods import *
from mercer.sketches import Gaussian, Hashing
import inspect
# The fit without its certificate, which commits before the partition bound do not have.
ALONE = {"certificate": False} if "certificate" in inspect.signature(PCA).parameters else {}
def rows(n, d, dtype="f8", seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((n, 30)) * 2.0 ** -np.arange(30)
    X = scores @ rng.standard_normal((30, d)) + 0.05 * rng.standard_normal((n, d))
    return (X / X.std() / d**0.5).astype(dtype)
setup, call = sys.argv[1:3]
exec(setup)
code = compile(call, "case", "eval")
eval(code)
print("ready", flush=True)
for line in sys.stdin:
    loops = int(line)
    started = time.perf_counter()
    for _ in range(loops):
        eval(code)
    print((time.perf_counter() - started) / loops, flush=True)
"""

# name: (what is made before, what is timed, calls in one turn, turns)
CASES = {
    "PCA 150×4": ("X = rows(150, 4)", "PCA(2).fit(X)", 200, 9),
    "KernelPCA 150×4": ("X = rows(150, 4)", "KernelPCA(2, kernel='rbf', gamma=1.0).fit(X)", 200, 9),
    "PCA 1797×64": ("X = rows(1797, 64)", "PCA(10).fit(X)", 20, 9),
    "PCA 5000×500": ("X = rows(5000, 500)", "PCA(10).fit(X)", 3, 9),
    "PCA 500000×100 float32": ("X = rows(500_000, 100, 'f4')", "PCA(10).fit(X)", 1, 9),
    "PCA 60000×784 float64": ("X = rows(60_000, 784)", "PCA(50).fit(X)", 1, 7),
    "PCA 60000×784 float32": ("X = rows(60_000, 784, 'f4')", "PCA(50).fit(X)", 1, 7),
    "PCA 800×20000 float32": ("X = rows(800, 20_000, 'f4')", "PCA(20).fit(X)", 1, 7),
    "PCA(0.9) 1400×40000 float32": ("X = rows(1400, 40_000, 'f4')", "PCA(0.9).fit(X)", 1, 5),
    "PCA sparse 20000×30000": (
        "X = scipy.sparse.random(20_000, 30_000, 0.002, 'csr', random_state=0)",
        "PCA(50, tol=1e-6, random_state=0).fit(X)",
        1,
        5,
    ),
    "PCA of a file in 256 MiB": (
        "import tempfile, mercer; path = tempfile.mkdtemp() + '/x.npy';"
        "np.save(path, rows(200_000, 512, 'f4')); c = mercer.config_context(memory='256MiB');"
        "c.__enter__()",
        "PCA(50).fit(path)",
        1,
        5,
    ),
    "PCA transform 500000×100 float32": (
        "X = rows(500_000, 100, 'f4'); p = PCA(10).fit(X)",
        "p.transform(X)",
        1,
        9,
    ),
    "Sketch(Gaussian(500)) 25000×4096 float32": (
        "X = rows(25_000, 4096, 'f4')",
        "PCA(10, svd_solver=Sketch(Gaussian(500, random_state=0)), **ALONE).fit(X)",
        1,
        5,
    ),
    "Gaussian sketch 5000×20000": (
        "X = rows(5000, 20_000, 'f4'); s = Gaussian(500, random_state=0).fit(X)",
        "s.transform(X)",
        1,
        7,
    ),
    "exact KernelPCA 4000×100": (
        "X = rows(4000, 100)",
        "KernelPCA(10, kernel='rbf', gamma=1.0, random_state=0).fit(X)",
        1,
        7,
    ),
    "exact KernelPCA 8000×784": (
        "X = rows(8000, 784)",
        "KernelPCA(10, kernel='rbf', gamma=1.0, random_state=0).fit(X)",
        1,
        5,
    ),
    "KernelPCA transform 10000 of 8000": (
        "X = rows(8000, 784); Y = rows(10_000, 784, seed=1);"
        "k = KernelPCA(10, kernel='rbf', gamma=1.0, random_state=0).fit(X)",
        "k.transform(Y)",
        1,
        5,
    ),
    "exact KernelPCA 5000×50 Matern": (
        "X = rows(5000, 50)",
        "KernelPCA(10, kernel=Matern(1.5, 1.0), random_state=0).fit(X)",
        1,
        5,
    ),
    "exact KernelPCA 3000×256 chi2": (
        "X = abs(rows(3000, 256))",
        "KernelPCA(10, kernel='chi2', gamma=1.0, random_state=0).fit(X)",
        1,
        5,
    ),
    "Subset(500) 20000×100": (
        "X = rows(20_000, 100)",
        "KernelPCA(10, kernel='rbf', gamma=1.0, method=Subset(500),"
        " random_state=0, **ALONE).fit(X)",
        1,
        7,
    ),
    "Subset(1000) 60000×784 float32": (
        "X = rows(60_000, 784, 'f4')",
        "KernelPCA(50, kernel='rbf', gamma=1.0, method=Subset(1000),"
        " random_state=0, **ALONE).fit(X)",
        1,
        5,
    ),
    "Subset(500, kmeans) 20000×100": (
        "X = rows(20_000, 100)",
        "KernelPCA(10, kernel='rbf', gamma=1.0, method=Subset(500, select='kmeans'),"
        " random_state=0, **ALONE).fit(X)",
        1,
        5,
    ),
    "Nystrom(500) on rows 20000×100": (
        "X = rows(20_000, 100)",
        "KernelPCA(10, kernel='rbf', gamma=1.0, method=Nystrom(500),"
        " random_state=0, **ALONE).fit(X)",
        1,
        5,
    ),
    "RandomFeatures(500) 60000×100 float32": (
        "X = rows(60_000, 100, 'f4')",
        "KernelPCA(10, kernel='rbf', gamma=1.0, method=RandomFeatures(500),"
        " random_state=0, **ALONE).fit(X)",
        1,
        5,
    ),
    "gap=0.01 7000×64": (
        "X = rows(7000, 64)",
        "KernelPCA(10, kernel='rbf', gamma=1.0, gap=0.01, random_state=0).fit(X)",
        1,
        5,
    ),
    "RBF matrix 3000×3000×256": (
        "X, Y = rows(3000, 256), rows(3000, 256, seed=1); k = RBF(1.0)",
        "k(X, Y)",
        3,
        9,
    ),
    "rbf + poly matrix 3000×3000×256": (
        "X, Y = rows(3000, 256), rows(3000, 256, seed=1); k = RBF(1.0) + Polynomial(2)",
        "k(X, Y)",
        3,
        9,
    ),
    "CSV 200000×50": (
        "import tempfile; path = tempfile.mkdtemp() + '/x.csv';"
        "np.savetxt(path, rows(200_000, 50), fmt='%.6f', delimiter=',',"
        " header=','.join(f'x{j}' for j in range(50)), comments='')",
        "PCA(2).fit(path)",
        1,
        5,
    ),
    "NoveltyDetector 3000×30": (
        "X = rows(3000, 30)",
        "NoveltyDetector(KernelPCA(20, kernel='rbf', gamma=1.0)).fit(X)",
        1,
        5,
    ),
    "SubspaceClassifier 3000×64": (
        "X = rows(3000, 64); y = np.arange(3000) % 10;"
        "m = SubspaceClassifier(KernelPCA(20, kernel='rbf', gamma=1.0)).fit(X, y)",
        "m.predict(X)",
        1,
        5,
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", folder, options.commit], check=True)
        try:
            print(f"{'new / old':<46}{'least':>8}{'median':>8}{'new, ms':>11}{'old, ms':>11}")
            for name, case in CASES.items():
                if options.only in name:
                    compare(name, case, [ROOT, Path(folder)])
        finally:
            subprocess.run([*git, "remove", "--force", folder], check=True)


def compare(name, case, roots):
    setup, call, loops, turns = case
    workers = [start(root, setup, call) for root in roots]
    times = [[], []]
    try:
        for worker in workers:
            if worker.stdout.readline() != "ready\n":
                print(f"{name:<46} failed")
                return
        for turn in range(turns):
            for side in (0, 1) if turn % 2 else (1, 0):
                print(loops, file=workers[side].stdin, flush=True)
                times[side].append(float(workers[side].stdout.readline()))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    new, old = min(times[0]), min(times[1])
    middle = statistics.median(times[0]) / statistics.median(times[1])
    print(
        f"{name:<46}{new / old:>8.2f}{middle:>8.2f}{new * 1e3:>11.2f}{old * 1e3:>11.2f}", flush=True
    )


def start(root, setup, call):
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    command = [sys.executable, "-c", WORKER, setup, call]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=root)


if __name__ == "__main__":
    main()
