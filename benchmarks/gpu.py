"""On a GPU: exact kernel PCA, a basis, PCA; against scikit-learn on the CPUs where it can run.

``python -m benchmarks gpu`` runs every part, ``python -m benchmarks.gpu NAME ...`` only some.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.accuracy import residual
from benchmarks.harness import Row, say, skipped
from mercer import PCA, KernelPCA, config_context
from mercer.methods import Exact, Subset

_WIDTH = 784
_GAMMA = 2e-3


def run(
    repeats: int | None = None, quick: bool = False, names: list[str] | None = None
) -> list[Row]:
    """Run every part, or those named; skip where there is no GPU."""
    try:
        import torch
    except ImportError as error:
        return [skipped("gpu", error)]
    if not torch.cuda.is_available():
        return [skipped("gpu", "torch finds no CUDA device")]
    say(torch.cuda.get_device_name())
    rows: list[Row] = []
    for name in names or PARTS:
        say(name)
        rows += PARTS[name](repeats or 3, quick)
        torch.cuda.empty_cache()
    return rows


def rows(n: int, d: int, kind: str = "float32", seed: int = 0) -> Any:
    """Make rows on the device: thirty clusters in a space of forty directions, and noise."""
    import torch

    torch.manual_seed(seed)
    kinds = {"dtype": torch.float32, "device": "cuda"}
    axes = torch.randn(40, d, **kinds) / d**0.5
    centres = 6.0 * torch.randn(30, 40, **kinds)
    X = torch.empty(n, d, dtype=getattr(torch, kind), device="cuda")
    for start in range(0, n, 100_000):
        m = min(100_000, n - start)
        which = torch.randint(30, (m,), device="cuda")
        inside = centres[which] + 2.0 * torch.randn(m, 40, **kinds)
        X[start : start + m] = inside @ axes + 0.3 * torch.randn(m, d, **kinds)
    return X


def timed(fit: Callable[[], Any], repeats: int) -> tuple[float, Any, list[float]]:
    """Return the median seconds of a fit, what it made, and all times."""
    import torch

    times, made = [], None
    for _ in range(repeats):
        made = None
        torch.cuda.synchronize()
        begin = time.perf_counter()
        made = fit()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        say(f"{times[-1]:.2f} s")
    return sorted(times)[len(times) // 2], made, times


def gemm_rate(kind: str, size: int = 8192) -> float:
    """Return the flops a second of a square matrix product."""
    import torch

    A = torch.randn(size, size, dtype=getattr(torch, kind), device="cuda")
    for _ in range(3):
        A @ A
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(10):
        A @ A
    torch.cuda.synchronize()
    return 10 * 2.0 * size**3 / (time.perf_counter() - begin)


def kernel_pca(**how: Any) -> KernelPCA:
    """Return kernel PCA of ten axes, whose residuals are at most 1e-5."""
    return KernelPCA(10, kernel="rbf", gamma=_GAMMA, tol=1e-5, random_state=0, copy_X=False, **how)


def _exact(repeats: int, quick: bool) -> list[Row]:
    n, made = 20_000 if quick else 200_000, []
    for kind in ("float32", "float64"):
        X = rows(n, _WIDTH, kind)
        kernel_pca(method=Exact(store="none")).fit(X[:5000])
        seconds, model, times = timed(
            lambda X=X: kernel_pca(method=Exact(store="none")).fit(X), 1 if quick else repeats
        )
        made.append(_row(f"exact KPCA {n}×{_WIDTH} {kind}", seconds, 8.0, model, times))
    return made


def _million(repeats: int, quick: bool) -> list[Row]:
    n = 40_000 if quick else 1_000_000
    X = rows(n, _WIDTH)
    kernel_pca(method=Exact(store="none")).fit(X[:5000])
    seconds, model, times = timed(lambda: kernel_pca(method=Exact(store="none")).fit(X), 1)
    return [_row(f"exact KPCA {n}×{_WIDTH} float32", seconds, 180.0, model, times)]


def _row(case: str, seconds: float, must: float, model: Any, times: list[float]) -> Row:
    found = model.certificate_
    worst = float(np.max(found.residuals / found.eigenvalues))
    note = f"residual {worst:.1e}; {found.sentence}".replace("\n", " ")
    return Row(case, "seconds", seconds, must=must, note=note, times={"ours": times})


def _subset(repeats: int, quick: bool) -> list[Row]:
    n, m = (50_000, 1000) if quick else (1_000_000, 10_000)
    X = rows(n, _WIDTH)
    method = Subset(m)

    def fit(certificate: bool = False) -> KernelPCA:
        settings = {"kernel": "rbf", "gamma": _GAMMA, "certificate": certificate}
        return KernelPCA(50, method=method, random_state=0, **settings).fit(X)

    timed(fit, 1)
    seconds, _, times = timed(fit, repeats)
    more, model, certified = timed(lambda: fit(certificate=True), repeats)
    note = model.certificate_.sentence.replace("\n", " ")
    case, gap = f"Subset {n}×{_WIDTH} float32, m={m}, r=50", float(model.certificate_.gap)
    return [
        Row(case, "seconds", seconds, must=7.0, times={"ours": times}),
        Row(
            case, "seconds of the certificate", more - seconds, must=2.0, times={"ours": certified}
        ),
        Row(case, "certified gap", gap, unit="%", must=0.08, note=note),
    ]


def _pca(repeats: int, quick: bool) -> list[Row]:
    n, d = (100_000, 500) if quick else (1_000_000, 2000)
    X = rows(n, d)
    timed(lambda: PCA(50).fit(X), 1)
    seconds, model, times = timed(lambda: PCA(50).fit(X), repeats)
    rate = gemm_rate("float32")
    least = 2.0 * n * d * d / rate
    case = f"PCA {n}×{d} float32, k=50, on the device"
    note = f"GEMM {rate / 1e12:.0f} TFLOP/s; {model.plan_.method!r}"
    return [Row(case, "time", seconds, least, "s", must=0.5, note=note, times={"ours": times})]


def _host(repeats: int, quick: bool) -> list[Row]:
    """Rows on the host, in blocks that are copied while others are computed."""
    n, d = (50_000, 200) if quick else (1_000_000, 1000)
    X = rows(n, d).cpu().numpy()
    made = []
    for name, memory in (("kept on the device", None), ("in blocks", X.nbytes // 2)):
        with config_context(device="cuda", memory=memory):
            PCA(50).fit(X[:20_000])
            seconds, _, times = timed(lambda: PCA(50).fit(X), repeats)
        note = f"{X.nbytes / seconds / 1e9:.1f} GB/s"
        case = f"PCA {n}×{d} float32 from the host, {name}"
        made.append(Row(case, "seconds", seconds, note=note, times={"ours": times}))
    return made


def sparse_rows(n: int, d: int, entries: int, seed: int = 0) -> Any:
    """Make CSR rows on the host, in blocks: a hundred topics of falling weight, and a background.

    Each row draws its columns from its topic's power law and from a common one; about `entries`
    of a row differ.
    """
    import scipy.sparse

    rng, topics, size = np.random.default_rng(seed), 100, 10_000
    share = 0.94 ** np.arange(topics)
    strides, draws = 2 * rng.integers(d // 2, size=topics) + 1, entries + entries // 30
    blocks = []
    for start in range(0, n, size):
        m = min(size, n - start)
        topic = rng.choice(topics, m, p=share / share.sum())[:, None]
        own = (d * rng.random((m, draws // 2)) ** 3).astype(np.int64) * strides[topic] % d
        common = (d * rng.random((m, draws - draws // 2)) ** 1.2).astype(np.int64)
        columns = np.sort(np.hstack([own, common]).astype(np.int32), axis=1)
        new = np.diff(columns, axis=1, prepend=-1) > 0
        data = 0.5 + rng.exponential(size=np.count_nonzero(new))
        pointers = np.concatenate([[0], np.cumsum(new.sum(axis=1))])
        blocks.append(scipy.sparse.csr_array((data, columns[new], pointers), (m, d)))
    return scipy.sparse.vstack(blocks, format="csr")


def _sparse(repeats: int, quick: bool) -> list[Row]:
    """Sparse rows of the host, whose peak of device memory is stated."""
    import torch

    n, d, entries = (50_000, 2000, 50) if quick else (1_000_000, 20_000, 200)
    X = sparse_rows(n, d, entries)
    case = f"PCA {n}×{d} CSR float64, {X.nnz / 1e6:.0f} M entries, k=50, from the host"

    def fit() -> PCA:
        with config_context(device="cuda"):
            return PCA(50, svd_solver="krylov", tol=1e-6, random_state=0).fit(X)

    timed(fit, 1)
    torch.cuda.reset_peak_memory_stats()
    seconds, model, times = timed(fit, repeats)
    peak = torch.cuda.max_memory_allocated() / 2**30
    note = f"{model.plan_.method!r}; {model.certificate_.sentence}".replace("\n", " ")
    return [
        Row(case, "seconds", seconds, must=30.0, aim=10.0, note=note, times={"ours": times}),
        Row(case, "true residual", residual(model, X), must=1e-6),
        Row(case, "peak of device memory", peak, unit="GiB"),
    ]


def _peers(repeats: int, quick: bool) -> list[Row]:
    """scikit-learn on the CPUs of the same machine, on as many rows as it can take."""
    from sklearn import decomposition
    from sklearn.kernel_approximation import Nystroem

    n, d = (20_000, 200) if quick else (1_000_000, 2000)
    made = [_peer("PCA", n, d, PCA(50), lambda X: decomposition.PCA(50).fit(X))]
    n = 3000 if quick else 20_000
    theirs = decomposition.KernelPCA(10, kernel="rbf", gamma=_GAMMA, eigen_solver="arpack")
    made.append(_peer("exact KPCA", n, _WIDTH, kernel_pca(), theirs.fit))
    n, m = (20_000, 300) if quick else (200_000, 2000)

    def approximate(X: Any) -> Any:
        features = Nystroem(gamma=_GAMMA, n_components=m, random_state=0)
        return decomposition.PCA(50).fit(features.fit_transform(X))

    ours = KernelPCA(50, kernel="rbf", gamma=_GAMMA, method=Subset(m), random_state=0)
    made.append(_peer(f"Subset m={m}, Nystroem and PCA", n, _WIDTH, ours, approximate))
    return made


def _peer(name: str, n: int, d: int, ours: Any, theirs: Callable[[Any], Any]) -> Row:
    X = rows(n, d)
    host = X.cpu().numpy()
    ours.fit(X)
    seconds, _, times = timed(lambda: ours.fit(X), 3)
    begin = time.perf_counter()
    theirs(host)
    peer = time.perf_counter() - begin
    case = f"{name} {n}×{d} float32, scikit-learn on the CPUs"
    return Row(case, "time", seconds, peer, "s", times={"ours": times, "peer": [peer]})


PARTS: dict[str, Callable[[int, bool], list[Row]]] = {
    "pca": _pca,
    "exact200": _exact,
    "subset": _subset,
    "host": _host,
    "sparse": _sparse,
    "exact1000": _million,
    "peers": _peers,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PARTS)}; all")
    options = parser.parse_args()
    for name in options.names:
        if name not in PARTS:
            parser.error(f"{name!r} is not one of {', '.join(PARTS)}")
    print(report.table(run(names=options.names or None)))
