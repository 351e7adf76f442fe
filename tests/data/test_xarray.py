"""Labelled arrays: samples by stacked columns, and results with the coordinates of the data."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import PCA, KernelPCA, as_source, column_weights, from_xarray, to_xarray

xr = pytest.importorskip("xarray")
TIMES = pd.date_range("2000-01-01", periods=30)
RNG = np.random.default_rng(0)
SHAPE = (30, 3, 4)
WAVES = RNG.normal(size=(30, 5)) * [9, 5, 3, 2, 1]
RAW = (WAVES @ RNG.normal(size=(5, 12)) + RNG.normal(size=12)).reshape(SHAPE)


def field(raw=RAW):
    coords = {"time": TIMES, "lat": [-60.0, 0.0, 60.0], "lon": [0, 90, 180, 270]}
    more = {"area": (("lat", "lon"), np.ones((3, 4))), "season": ("time", np.arange(30) % 4)}
    return xr.DataArray(raw, coords | more, ("time", "lat", "lon"), name="sst")


def masked():
    raw = RAW.copy()
    raw[:, 0, 1] = raw[:, 2, 2:] = np.nan
    return field(raw)


def dask_backed(data):
    pytest.importorskip("dask.array")
    return data.chunk(time=7)


DATA = {
    "array": (field(), "time", RAW.reshape(30, 12)),
    "other order": (field().transpose("lat", "time", "lon"), "time", RAW.reshape(30, 12)),
    "single precision": (field(RAW.astype("f4")), "time", RAW.astype("f4").reshape(30, 12)),
    "two sample dimensions": (field(), ("time", "lat"), RAW.reshape(90, 4)),
    "Dataset": (
        xr.Dataset({"sst": field(), "level": field().isel(lat=0, drop=True), "t": TIMES.day + 0.0})
        .drop_vars("t")
        .assign(index=("time", WAVES[:, 0])),
        "time",
        np.hstack([RAW.reshape(30, 12), RAW[:, 0], WAVES[:, :1]]),
    ),
    "mask": (masked(), "time", RAW.reshape(30, 12)[:, [0, *range(2, 10)]]),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("dask", [False, True], ids=["memory", "Dask"])
def test_fields_give_what_stacked_arrays_give(name, dask):
    data, dim, rows = DATA[name]
    source = from_xarray(dask_backed(data) if dask else data, dim)
    assert (source.remote is not None) == dask
    assert_array_equal(source.collect(), rows)
    model = PCA(3).fit(source)
    expected = PCA(3).fit(rows)
    assert_allclose(model.explained_variance_, expected.explained_variance_, rtol=1e-5)
    result = to_xarray(model, data, dim)
    scores = result.scores.stack(sample=[dim] if isinstance(dim, str) else dim)
    rtol = 1e-4 if rows.dtype == np.float32 else 1e-9
    found = np.abs(scores.transpose("sample", "component"))
    assert_allclose(found, np.abs(expected.transform(rows)), atol=rtol * 30)
    assert dict(result.explained_variance_ratio.sizes) == {"component": 3}


@pytest.mark.parametrize("name", DATA)
def test_components_reconstruct_the_fields(name):
    data, dim, _ = DATA[name]
    result = to_xarray(PCA().fit(from_xarray(data, dim)), data, dim)
    several = isinstance(data, xr.Dataset)
    for variable in data.data_vars.values() if several else [data]:
        end = f"_{variable.name}" if several else ""
        components, mean = result[f"components{end}"], result[f"mean{end}"]
        again = xr.dot(result.scores, components, dim="component") + mean
        assert_allclose(again.transpose(*variable.dims), variable, atol=2e-5)
        assert set(mean.dims) == set(variable.dims) - ({dim} if isinstance(dim, str) else set(dim))


def test_results_have_the_coordinates_of_the_data():
    result = to_xarray(PCA(2).fit(from_xarray(masked(), "time")), masked(), "time")
    assert result.components.dims == ("component", "lat", "lon")
    assert result.component.values.tolist() == [1, 2]
    assert set(result.scores.coords) == {"component", "time", "season"}
    assert set(result["mean"].coords) == {"lat", "lon", "area"}
    assert result.scores.sel(time="2000-01-09", component=1).size == 1
    missing = np.isnan(masked().isel(time=0)).drop_vars(["time", "season"])
    xr.testing.assert_equal(np.isnan(result["mean"]), missing)
    assert "PCA(n_components=2" in result.attrs["model"]
    assert "explain" in result.attrs["certificate"]


def test_names_of_columns_and_rows(tmp_path):
    source = from_xarray(masked(), "time")
    assert source.names[:2] == ["lat=-60.0, lon=0", "lat=-60.0, lon=180"]
    PCA(1).fit(source).transform(source, out=tmp_path / "scores.csv")
    assert pd.read_csv(tmp_path / "scores.csv")["time"][1].startswith("2000-01-02")
    both = xr.Dataset({"sst": field(), "index": ("time", WAVES[:, 0])})
    names = from_xarray(both, "time").names
    assert (names[0], names[-1]) == ("sst(lat=-60.0, lon=0)", "index")
    stacked = from_xarray(field(), ["lat", "time"])
    assert stacked.id is None
    assert_array_equal(stacked.extra_columns["lat"], np.repeat([-60.0, 0.0, 60.0], 30))
    assert_array_equal(stacked.extra_columns["time"], np.tile(TIMES, 3))
    dates = from_xarray(field(), "lon").names
    assert dates[0] == "time=2000-01-01, lat=-60.0"


def test_a_table_is_fitted_as_it_is():
    genes = [f"g{j}" for j in range(12)]
    table = xr.DataArray(
        RAW.reshape(30, 12), {"cell": [f"c{i}" for i in range(30)], "gene": genes}, ("cell", "gene")
    )
    pca = PCA(2)
    assert_allclose(pca.fit_transform(table), PCA(2).fit_transform(table.values), atol=1e-10)
    assert list(pca.feature_names_in_) == genes
    source = as_source(table)
    assert source.extra_columns[source.id][:2].tolist() == ["c0", "c1"]
    assert_allclose(pca.transform(table.chunk(cell=9)), pca.transform(table), atol=1e-12)
    assert as_source(table.drop_vars("gene")).names is None
    result = to_xarray(pca, table, "cell")
    assert result.components.sel(gene="g3").dims == ("component",)
    kernel = KernelPCA(2, kernel="rbf", gamma=0.01).fit(table)
    assert set(to_xarray(kernel, table, "cell").data_vars) == {
        *("scores", "explained_variance", "explained_variance_ratio")
    }


def test_other_samples_have_scores_too():
    pca = PCA(2).fit(from_xarray(masked().isel(time=slice(20)), "time"))
    later = masked().isel(time=slice(20, None))
    assert to_xarray(pca, later, "time").scores.sizes == {"time": 10, "component": 2}


def test_weights_of_points_follow_the_columns():
    weights = np.cos(np.deg2rad(field().lat))
    rows = np.broadcast_to(weights.values[:, None], (3, 4)).ravel()
    assert_array_equal(column_weights(field(), "time", weights), rows)
    assert_array_equal(column_weights(masked(), "time", weights), rows[[0, *range(2, 10)]])
    with pytest.raises(ValueError, match=r"weights have the dimensions \('time',\)"):
        column_weights(field(), "time", field().season)


def test_scaled_columns():
    result = to_xarray(PCA(1, scale=True).fit(from_xarray(field(), "time")), field(), "time")
    assert_allclose(result.scale, RAW.std(axis=0, ddof=1))


def hole(sample, raw=None):
    raw = RAW.copy() if raw is None else raw
    raw[sample, 1, 2] = np.nan
    return field(raw)


@pytest.mark.parametrize("chunks", [None, 7])
@pytest.mark.parametrize("sample", [0, 11])
def test_partly_missing_columns_are_refused_by_name(sample, chunks):
    data = hole(sample) if chunks is None else dask_backed(hole(sample))
    with pytest.raises(ValueError, match=r"(missing at|contains NaN.*) ?.*lat=0\.0, lon=180"):
        PCA(1).fit(from_xarray(data, "time"))


def test_advice_about_missing_values_works():
    with pytest.raises(ValueError, match=r"in 1 of 30 samples\. .*data\.interpolate_na\('time'\)"):
        from_xarray(hole(0), "time")
    data = hole(0, masked().values).interpolate_na("time", fill_value="extrapolate")
    assert PCA(1).fit(from_xarray(data, "time")).n_features_in_ == 9


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: PCA(1).fit(field()), r"from_xarray\(X, dim='time'\)"),
        (lambda: PCA(1).fit(field()[:, 0, 0]), r"dimensions \('time',\).*from_xarray"),
        (lambda: PCA(1).fit(field().to_dataset()), r"is a Dataset.*from_xarray"),
        (lambda: from_xarray(field(), "tim"), "no dimension 'tim': its dimensions are 'time'"),
        (
            lambda: from_xarray(field().to_dataset().assign(z=("lat", np.ones(3))), "time"),
            "Variable 'z' has no dimension 'time'",
        ),
        (
            lambda: from_xarray(field().to_dataset().assign(t=("time", TIMES)), "time"),
            r"not numeric: 't' \(datetime64",
        ),
        (lambda: from_xarray(field(np.full(SHAPE, np.nan)), "time"), "no values"),
        (lambda: from_xarray(xr.Dataset(), "time"), "no variables"),
        (
            lambda: to_xarray(
                PCA(1).fit(from_xarray(field(), "time")), field().rename(lat="component"), "time"
            ),
            "Rename it",
        ),
        (lambda: to_xarray(PCA(1).fit(RAW[:, 0]), field(), "time"), "4 columns, but data have 12"),
        (
            lambda: to_xarray(PCA(1).fit(from_xarray(field(), "time")), field()[:, 1:], "time"),
            r"4 columns that data do not have, such as 'lat=-60\.0, lon=0'",
        ),
    ],
)
def test_what_is_refused(fit, message):
    with pytest.raises(ValueError, match=message):
        fit()


def test_against_empirical_orthogonal_functions_of_another_package():
    xeofs = pytest.importorskip("xeofs")
    theirs = xeofs.single.EOF(n_modes=3, use_coslat=False).fit(field(), dim="time")
    ours = to_xarray(PCA(3).fit(from_xarray(field(), "time")), field(), "time")
    share = theirs.explained_variance_ratio()
    assert_allclose(ours.explained_variance_ratio, share, rtol=1e-10)
    patterns = theirs.components().transpose("mode", "lat", "lon")
    assert_allclose(np.abs(ours.components), np.abs(patterns), atol=1e-8)


def test_against_empirical_orthogonal_functions_by_svd():
    centered = RAW.reshape(30, 12) - RAW.reshape(30, 12).mean(axis=0)
    _, values, patterns = np.linalg.svd(centered, full_matrices=False)
    ours = to_xarray(PCA(3).fit(from_xarray(field(), "time")), field(), "time")
    assert_allclose(ours.explained_variance, values[:3] ** 2 / 29, rtol=1e-10)
    assert_allclose(np.abs(ours.components.values.reshape(3, 12)), np.abs(patterns[:3]), atol=1e-8)
