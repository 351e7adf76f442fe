"""Single cells: PCA of 2700×32738 sparse counts in place of scanpy's, and the neighbors of cells.

The counts are normalized and their logarithms taken as in scanpy's tutorial. Both sides write
their result to an AnnData object.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mercer
from benchmarks import data
from benchmarks.accuracy import exact
from benchmarks.harness import Race, Row, Side, peers, skipped

REPEATS = 7
_K, _NEIGHBORS = 50, 15


def run(repeats: int | None = None, quick: bool = False) -> list[Row]:
    """Time both sides on all genes and on the highly variable ones; compare neighbor graphs."""
    try:
        import scanpy
    except ImportError as absent:
        return [skipped("single cell", absent)]
    try:
        adata = data.cells(quick)
    except FileNotFoundError as absent:
        return [skipped("single cell", absent)]
    scanpy.pp.highly_variable_genes(adata, n_top_genes=2000)
    rows: list[Row] = []
    for mask in (None, "highly_variable"):
        ours, theirs = adata.copy(), adata.copy()

        def fit_ours(ours: Any = ours, mask: str | None = mask) -> Any:
            model = mercer.PCA(_K, random_state=0)
            scores = model.fit_transform(mercer.from_anndata(ours, mask_var=mask))
            mercer.to_anndata(model, ours, scores, mask_var=mask)
            return ours

        def fit_theirs(theirs: Any = theirs, mask: str | None = mask) -> Any:
            scanpy.pp.pca(theirs, n_comps=_K, mask_var=mask)
            return theirs

        side = Side("Mercer", fit_ours)
        race = Race([side], peers(f"scanpy {scanpy.__version__}", fit_theirs), repeats or REPEATS)
        X = adata.X if mask is None else adata[:, adata.var[mask]].X
        case = f"cells {X.shape[0]}×{X.shape[1]}"
        rows += [race.row(case, must=1, aim=2), *accuracy(race, case, X.toarray())]
    return rows


def accuracy(race: Race, case: str, X: data.Array) -> list[Row]:
    """Return how far variances and neighbors are from those of an exact decomposition."""
    import scanpy

    n, d = X.shape
    values, vectors = exact(X, _K)
    if n < d:
        scores = vectors * np.sqrt((n - 1) * values)
    else:
        scores = (X - X.mean(axis=0, dtype=np.float64)) @ vectors

    def neighbors(scores: data.Array) -> Any:
        graph = scanpy.AnnData(obsm={"scores": scores})
        scanpy.pp.neighbors(graph, n_neighbors=_NEIGHBORS, use_rep="scores")
        return graph.obsp["distances"] > 0

    truth = neighbors(scores)

    def variance_error(adata: Any) -> float:
        return float(np.max(np.abs(adata.uns["pca"]["variance"] - values) / values))

    def other_edges(adata: Any) -> float:
        edges = neighbors(adata.obsm["X_pca"])
        return 1 - edges.multiply(truth).nnz / max(edges.nnz, truth.nnz)

    return [
        race.compare(case, "relative error of variances", variance_error, must=1e-5),
        race.compare(case, "neighbors unlike those of an SVD", other_edges, unit="%", must=1e-3),
    ]
