"""Rows of Dask arrays and DataFrames: passes are tree reductions on the current scheduler."""

from mercer.extras import extra

extra("dask.array", "dask", "Dask collections are read with")  # before what needs it

from mercer.data.dask.across import across  # noqa: E402
from mercer.data.dask.source import DaskSource, lazy  # noqa: E402

__all__ = ["DaskSource", "across", "lazy"]
