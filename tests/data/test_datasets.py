"""Data sets and loaders of torch as rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import PCA, Denoiser, KernelPCA, as_source, config_context
from mercer.data import ArraySource
from mercer.data.datasets import ItemSource

torch = pytest.importorskip("torch")
data = torch.utils.data
X = np.random.default_rng(0).normal(size=(40, 3, 2)).astype(np.float32)
ROWS = X.reshape(40, 6)


class Items(data.Dataset):
    """Items made by a function of their number; counts how often they are read."""

    def __init__(self, item=lambda i: X[i], n=40):
        self.item, self.n, self.reads = item, n, []

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        self.reads.append(i)
        return self.item(i)


SETS = {
    "tensors": data.TensorDataset(torch.from_numpy(X)),
    "pairs": data.TensorDataset(torch.from_numpy(X), torch.arange(40)),
    "arrays": Items(),
    "subset": data.Subset(Items(lambda i: X[i - 5], 45), range(5, 45)),
    "joined": data.ConcatDataset([Items(n=10), Items(lambda i: (X[i + 10], i), 30)]),
    "loader": data.DataLoader(Items(), batch_size=7),
    "shuffled loader": data.DataLoader(Items(), batch_size=7, shuffle=True, drop_last=True),
    "loader without batches": data.DataLoader(Items(), batch_size=None),
}


@pytest.mark.parametrize("memory", [None, "3KB"], ids=["in memory", "as needed"])
@pytest.mark.parametrize("name", SETS)
def test_items_are_rows(name, memory):
    pca = PCA(2, svd_solver="covariance_eigh")
    expected = pca.fit_transform(ROWS)
    with config_context(memory=memory):
        source = as_source(SETS[name])
        assert isinstance(source, ArraySource if memory is None else ItemSource)
        assert source.image_shape == (3, 2)
        assert_array_equal(source.collect(), ROWS)
        assert_array_equal(source.take([3, 39]), ROWS[[3, 39]])
        assert_allclose(pca.fit_transform(SETS[name]), expected, atol=1e-5)
        assert_allclose(pca.transform(SETS[name]), expected, atol=1e-5)


def test_other_estimators():
    kernel = KernelPCA(2, kernel="rbf", gamma=0.1)
    expected = kernel.fit_transform(ROWS)
    assert_allclose(kernel.fit_transform(SETS["pairs"]), expected, atol=1e-5)
    assert Denoiser(PCA(2)).fit(SETS["pairs"]).transform(SETS["pairs"]).shape == (40, 6)


def test_items_that_fit_in_memory_are_read_once():
    items = Items()
    assert isinstance(as_source(items), ArraySource)
    assert items.reads == [0, *range(40)]


def test_whole_numbers_and_images():
    Image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 255, (5, 4, 3), dtype=np.uint8)
    source = as_source(Items(lambda i: Image.fromarray(pixels[i]), 5))
    assert_array_equal(source.collect(), pixels.reshape(5, 12))
    assert (source.dtype, source.image_shape) == (np.float64, (4, 3))


def random_items(i):
    return X[i] + random_items.rng.normal(size=(3, 2))


random_items.rng = np.random.default_rng(0)


class Stream(data.IterableDataset):
    def __iter__(self):
        return iter(X)


def with_nan(i):
    return np.where(np.arange(6) == 4, np.nan if i == 9 else 1.0, X[i].ravel())


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (Items(lambda i: X[i] if i != 17 else X[i][:2]), r"Item 17 .*\(2, 2\).*item 0 has \(3, 2"),
        (Items(lambda i: X[i] if i != 17 else X[i].T), r"Item 17 .*shape \(2, 3\)"),
        (Items(lambda i: X[i] if i != 17 else "x"), r"Item 17 of the Items is not an array .*str"),
        (Items(lambda i: {"x": X[i]}), r"Item 0 .*\(dict\)"),
        (Items(lambda i: X[i] + 1j), r"Item 0 .*complex64"),
        (Items(lambda i: torch.ones(3, dtype=torch.bfloat16)), r"torch\.bfloat16"),
        (Items(n=0), "has no items"),
        (Items(with_nan), r"NaN: the first is in row 9, column 4"),
        (Stream(), r"Stream of items that can only be iterated over.*partial_fit"),
        (data.DataLoader(Stream()), r"DataLoader of items that can only be iterated over"),
        (
            data.DataLoader(Items(), sampler=data.SubsetRandomSampler([1, 2])),
            r"SubsetRandomSampler, which may leave out.*torch\.utils\.data\.Subset",
        ),
        (
            data.DataLoader(Items(), sampler=data.RandomSampler(Items(), replacement=True)),
            "RandomSampler, which may",
        ),
        (data.DataLoader(Items(), batch_sampler=[[0, 1], [2]]), "has a list, which may"),
        (data.DataLoader(Items(), collate_fn=lambda batch: batch), "collate_fn of its own"),
    ],
)
@pytest.mark.parametrize("memory", [None, "3KB"], ids=["in memory", "as needed"])
def test_what_is_refused(items, message, memory):
    with config_context(memory=memory), pytest.raises((ValueError, TypeError), match=message):
        PCA(2, svd_solver="covariance_eigh").fit(items)


def test_random_items_are_refused_where_they_would_be_read_again():
    with config_context(memory="3KB"), pytest.raises(ValueError, match=r"different each time"):
        PCA(2).fit(Items(random_items))
    assert PCA(2).fit(Items(random_items)).n_samples_ == 40
