"""Rows of data sets of torch: a length, and items by number."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.arrays import numpy_dtype, to_numpy, working_dtype
from mercer.config import get_config
from mercer.data.in_memory import ArraySource
from mercer.data.source import Source

# Items that are read twice, to see whether they are the same in every pass.
_SAMPLE = 8
_IN_ORDER = "SequentialSampler"


class ItemSource(Source):
    """The items of a data set as rows, read when they are needed.

    Of items that are tuples, such as (x, y), the first entry is the row. Items are flattened.
    """

    # Items may share an open file, or a connection that works in its own thread only.
    parallel = False

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        if not len(dataset):
            raise ValueError(f"The {type(dataset).__name__} has no items: 0 samples.")
        first = self._item(0)
        self.item_shape = first.shape
        self.shape, self.dtype = (len(dataset), first.size), working_dtype(first.dtype)
        if first.ndim == 2:
            self.image_shape = first.shape

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        out = np.empty((stop - start, self.shape[1]), self.dtype)
        for i in range(start, stop):
            item = self._item(i)
            if item.shape != self.item_shape:
                raise ValueError(
                    f"Item {i} of the {type(self.dataset).__name__} has shape {item.shape}, but "
                    f"item 0 has {self.item_shape}. All items must have the same shape: resize "
                    f"them, for example with a transform."
                )
            out[i - start] = item.ravel()
        return out

    def _item(self, i: int) -> npt.NDArray[Any]:
        item = self.dataset[i]
        item = item[0] if isinstance(item, (tuple, list)) and len(item) else item
        known = numpy_dtype(item).kind != "O"  # NumPy has no bfloat16
        array = to_numpy(item) if known else np.empty(0)
        if array.dtype.kind not in "fiub" or not array.size:
            what = getattr(item, "dtype", type(item).__name__)
            raise TypeError(
                f"Item {i} of the {type(self.dataset).__name__} is not an array of real numbers "
                f"({what}). Items must be tensors or arrays, or tuples that begin with one; "
                f"convert them in the data set."
            )
        return array

    def require_repeatable(self) -> None:
        """Raise if some items differ when they are read again."""
        n = self.shape[0]
        for i in np.linspace(0, n - 1, min(n, _SAMPLE)).astype(int).tolist():
            if not np.array_equal(self.read(i, i + 1), self.read(i, i + 1), equal_nan=True):
                raise ValueError(
                    f"Item {i} of the {type(self.dataset).__name__} is different each time it is "
                    f"read, but every pass needs the same rows. Leave out random transforms."
                )


def read_dataset(dataset: Any) -> Source:
    """Return the items as rows: in memory if they take a quarter of the budget, else as needed."""
    source = ItemSource(dataset)
    if source.nbytes > get_config().budget // 4:
        source.require_repeatable()
        return source
    with progress.quiet():
        rows = ArraySource(source.collect())
    rows.image_shape = source.image_shape
    return rows


def read_loader(loader: Any) -> Source:
    """Return the items of a loader's data set, in the order of the data set."""
    if any(base.__name__ == "IterableDataset" for base in type(loader.dataset).__mro__):
        return refuse_iterable(loader)
    odd = loader.batch_sampler
    if type(odd).__name__ in ("BatchSampler", "NoneType"):
        odd = getattr(odd, "sampler", loader.sampler)
        shuffled = type(odd).__name__ == "RandomSampler" and not odd.replacement
        if (shuffled and len(odd) == len(loader.dataset)) or type(odd).__name__ == _IN_ORDER:
            odd = None
    if odd is not None:
        raise ValueError(
            f"The DataLoader has a {type(odd).__name__}, which may leave out or repeat items. Pass "
            f"the data set itself, or a torch.utils.data.Subset of it."
        )
    if getattr(loader.collate_fn, "__name__", "") not in ("default_collate", "default_convert"):
        raise ValueError(
            "The DataLoader has a collate_fn of its own, which may change items. Pass a data set "
            "whose items are the rows, or call partial_fit with every batch."
        )
    return read_dataset(loader.dataset)


def refuse_iterable(dataset: Any) -> Source:
    """Refuse a data set without a length and items by number."""
    raise TypeError(
        f"X is a {type(dataset).__name__} of items that can only be iterated over, perhaps without "
        f"end. Call partial_fit with every batch, or pass an array of the items."
    )
