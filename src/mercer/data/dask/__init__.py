"""Rows of Dask arrays and DataFrames: the workers of the current scheduler run the passes."""

from mercer.extras import extra

extra("dask.array", "dask", "Dask collections require")  # before the imports that need it

from mercer.data.dask.source import DaskSource, as_dask_array, shuffle_chunks, sum_over_points  # noqa: E402

__all__ = ["DaskSource", "as_dask_array", "shuffle_chunks", "sum_over_points"]
