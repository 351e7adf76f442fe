"""Arrow streams of any library: read once, in blocks, beyond memory through a temporary file."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import PCA, KernelPCA, NoveltyDetector, as_source, config_context
from mercer.data import NpySource
from mercer.data.files import FileError, MissingValues, read_table

pa = pytest.importorskip("pyarrow")
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(60, 2)), RNG.integers(0, 9, 60), RNG.integers(0, 2, 60)])
NAMES = ["a", "b", "i", "f"]


def table(rows=X):
    a, b, i, f = rows.T
    return pa.table({"a": a, "b": b, "i": pa.array(i.astype(int)), "f": f.astype(bool)})


class Capsule:
    """An object that has nothing but the PyCapsule interface."""

    def __init__(self, rows):
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema=None):
        return self.rows.__arrow_c_stream__(requested_schema)


def huggingface(rows):
    return pytest.importorskip("datasets").Dataset(rows)


STREAMS = {
    "Table": lambda rows: rows,
    "RecordBatch": lambda rows: rows.combine_chunks().to_batches()[0],
    "RecordBatchReader": lambda rows: rows.to_reader(7),
    "dataset": lambda rows: pytest.importorskip("pyarrow.dataset").dataset(rows),
    "scanner": lambda rows: pytest.importorskip("pyarrow.dataset").dataset(rows).scanner(),
    "PyCapsule": Capsule,
    "LazyFrame": lambda rows: pl.from_arrow(rows).lazy(),
    "DuckDB": lambda rows: pytest.importorskip("duckdb").from_arrow(rows),
    "nanoarrow": lambda rows: pytest.importorskip("nanoarrow").ArrayStream(rows),
    "Hugging Face": huggingface,
    "Hugging Face, selected": lambda rows: huggingface(
        pa.concat_tables([rows.slice(57), rows])
    ).select(range(3, 63)),
    "Hugging Face, iterable": lambda rows: huggingface(rows).to_iterable_dataset(),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("model", [PCA(2), KernelPCA(2, kernel="rbf", gamma=0.1)])
def test_streams_give_what_arrays_give(model, name):
    expected = model.fit_transform(X)
    assert_allclose(model.fit_transform(STREAMS[name](table())), expected, atol=1e-10)
    assert list(model.feature_names_in_) == NAMES
    assert_allclose(model.transform(STREAMS[name](table())), expected, atol=1e-10)


@pytest.mark.parametrize("name", STREAMS)
def test_missing_values_and_text_are_named(name):
    rows = table()
    column = pa.array([None if i == 7 else 1 for i in range(60)], pa.int64())
    with pytest.raises(ValueError, match=r"contains NaN: .* row 7, column 4 \('hole'\)"):
        PCA(1).fit(STREAMS[name](rows.append_column("hole", column)))
    text = rows.append_column("name", pa.array(["x"] * 60))
    with pytest.raises(ValueError, match=r"1 column that is not numeric: 'name' \(text\)\. Enc"):
        PCA(1).fit(STREAMS[name](text))


class Batches:
    """Batches made when they are read; counts how often, and how many are alive."""

    def __init__(self, count, rows=4000):
        self.count, self.rows, self.reads = count, rows, 0

    def batch(self, i):
        return np.random.default_rng(i).normal(size=(self.rows, 4))

    def __arrow_c_stream__(self, requested_schema=None):
        def batches():
            for i in range(self.count):
                self.reads += 1
                columns = map(pa.array, self.batch(i).T)
                yield pa.record_batch(list(columns), names=NAMES)

        schema = pa.schema([(name, pa.float64()) for name in NAMES])
        reader = pa.RecordBatchReader.from_batches(schema, batches())
        return reader.__arrow_c_stream__(requested_schema)


def test_rows_beyond_the_budget_are_read_once_into_a_temporary_file():
    stream = Batches(40)
    with config_context(memory="4MiB"):  # a quarter of it is 1 MiB; the rows are 5
        source = as_source(stream)
        assert isinstance(source, NpySource)
        assert stream.reads == 40
        folder = source.folder.path
        expected = np.concatenate([stream.batch(i) for i in range(40)])
        assert_array_equal(source.collect(), expected)
        pca = PCA(2)
        scores = pca.fit_transform(Batches(40))
    assert_allclose(scores, PCA(2).fit_transform(expected), atol=1e-10)
    del source
    assert not folder.exists()


def test_a_stream_is_read_once_by_a_fit_and_its_scores(tmp_path):
    stream = Batches(3)
    PCA(2).fit_transform(stream)
    assert stream.reads == 3
    PCA(2).fit(X[:, :4]).transform(table(), out=tmp_path / "scores.npy")
    assert np.load(tmp_path / "scores.npy").shape == (60, 2)


def test_a_reader_is_read_once_by_a_detector():
    detector = NoveltyDetector(PCA(2))
    expected = detector.fit_predict(X)
    assert_array_equal(detector.fit_predict(table().to_reader()), expected)
    assert_array_equal(detector.predict(table().to_reader()), expected)
    reader = table().to_reader()
    PCA(2).fit(reader)
    with pytest.raises(FileError, match="A stream that was read before is empty"):
        PCA(2).fit(reader)


def test_a_refused_reader_can_still_be_read():
    reader = table().append_column("name", pa.array(["x"] * 60)).to_reader()
    with pytest.raises(ValueError, match="not numeric"):
        PCA(1).fit(reader)
    assert reader.read_all().num_rows == 60


def test_streams_without_rows_and_columns():
    with pytest.raises(FileError, match="Table has columns, but no rows"):
        PCA(1).fit(table().slice(0, 0))
    with pytest.raises(FileError, match="RecordBatchReader has no columns"):
        PCA(1).fit(pa.table({}).to_reader())


def test_a_stream_that_breaks():
    class Broken(Batches):
        def batch(self, i):
            if i == 2:
                raise OSError("the server is gone")
            return super().batch(i)

    model = PCA(2).fit(X)
    before = model.projection_
    with pytest.raises(Exception, match="the server is gone"):
        model.fit(Broken(4))
    assert model.projection_ is before


def test_splits_of_a_data_set():
    datasets = pytest.importorskip("datasets")
    splits = datasets.DatasetDict(train=huggingface(table()), test=huggingface(table()))
    with pytest.raises(TypeError, match=r"the splits 'train', 'test'\. Pass one of them"):
        PCA(1).fit(splits)


def test_columns_of_a_stream_have_roles():
    rows = table().append_column("id", pa.array([f"r{i}" for i in range(60)]))
    rows = rows.append_column("species", pa.array(["u", "v", "w"] * 20))
    found = read_table(Capsule(rows), label="species")
    assert (found.source.names, found.id) == (NAMES, "id")
    assert found.extra["species"].tolist() == ["u", "v", "w"] * 20
    assert_array_equal(found.source.collect(), X)
    some = read_table(rows, columns=["b", "a"], id="species")
    assert_array_equal(some.source.collect(), X[:, [1, 0]])
    hole = rows.append_column("hole", pa.array([None, 1] * 30, pa.int8()))
    with pytest.raises(MissingValues, match=r"30 of 'hole'.*read_table\(X, missing='keep'\)"):
        read_table(hole)
    assert read_table(hole, missing="keep").missing == {"hole": 30}
