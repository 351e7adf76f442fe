"""AnnData objects for tests: the real ones, and what they look like from outside."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest


class AnnData:
    """The part of AnnData that Mercer uses, without what anndata checks and copies."""

    is_view = False

    def __init__(self, X=None, layers=None, obsm=None, var=None, filename=None, shape=None):
        self._X, self.filename = X, None if filename is None else Path(filename)
        arrays = [a for a in (X, *(layers or {}).values()) if a is not None]
        self.shape = tuple(shape or arrays[0].shape)
        self.layers, self.obsm, self.varm, self.uns = layers or {}, obsm or {}, {}, {}
        self.var_names = pd.Index([f"g{j}" for j in range(self.shape[1])])
        self.obs_names = pd.Index([f"cell{i}" for i in range(self.shape[0])])
        self.var = pd.DataFrame(var or {}, index=self.var_names)

    @property
    def isbacked(self):
        return self.filename is not None

    @property
    def X(self):  # noqa: N802
        assert not self.isbacked, "a backed matrix would be loaded whole"
        return self._X


def stand_in(X=None, **parts):
    return AnnData(X, **parts)


def real(X=None, layers=None, obsm=None, var=None, filename=None):
    """Return an object of anndata with the names of the stand-in."""
    anndata = pytest.importorskip("anndata")
    if filename is not None:
        return anndata.read_h5ad(filename, backed="r")
    n, d = next(a for a in (X, *(layers or {}).values()) if a is not None).shape
    obs = pd.DataFrame(index=pd.Index([f"cell{i}" for i in range(n)]).astype(object))
    names = pd.Index([f"g{j}" for j in range(d)]).astype(object)
    var = pd.DataFrame({name: np.asarray(v) for name, v in (var or {}).items()}, index=names)
    return anndata.AnnData(X, obs=obs, var=var, layers=layers, obsm=obsm)


MAKERS = [pytest.param(stand_in, id="stand-in"), pytest.param(real, id="anndata")]
