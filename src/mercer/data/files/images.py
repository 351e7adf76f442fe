"""Images as rows: one of the same size from every file, decoded by Pillow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mercer.config import require_budget
from mercer.data.errors import FileError, FileGuard, file_errors
from mercer.data.files.storage import BAND_BYTES, Banded, Decode, Rows, place_rows
from mercer.data.files.table import Request, Table, find_column
from mercer.extras import extra
from mercer.progress import Tick

IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".pgm", ".ppm")
_COLOR, _GRAY = "color", "8-bit gray"
# The kind of an image by the mode in which Pillow opens it. The rest are in color.
_KINDS = {
    **dict.fromkeys(["1", "L", "LA", "La"], _GRAY),
    **dict.fromkeys(["I;16", "I;16L", "I;16B", "I;16N"], "16-bit gray"),
    **{"I": "32-bit gray", "F": "floating-point"},
}
_DTYPES = {
    **dict.fromkeys([_GRAY, _COLOR], np.uint8),
    **{"16-bit gray": np.uint16, "32-bit gray": np.int32, "floating-point": np.float32},
}
# Copies of an image in memory while it is decoded.
_COPIES = 4


def read_images(paths: Sequence[Path], root: Path, request: Request, tick: Tick) -> Table:
    """Read images of one size, or resized to one; the names of the files are those of the rows."""
    if (request.columns, request.weights, request.id) != (None,) * 3 or request.drop:
        raise FileError(
            f"{request.path}: images have no columns. Omit columns, drop, id and weights."
        )
    names = [path.relative_to(root).as_posix() if path != root else path.name for path in paths]
    beside = {"file": _texts(names)}
    if any("/" in name for name in names):
        beside["folder"] = _texts(name.rpartition("/")[0] for name in names)
    if request.label is not None:
        find_column(request.label, dict.fromkeys(beside, 0), request.path)
    images = Images(paths, request)
    require_budget(_COPIES * images.width * images.stored.itemsize, f"{request.path}: reading it")
    source = place_rows(images)
    tick(images.guard.size)
    source.image_shape = images.image_shape
    source.id, source.extra_columns = "file", beside
    return Table(source, beside, id=source.id)


def _texts(names: Iterable[str]) -> Rows:
    return np.array([*names, None], dtype=object)[:-1]


class Images(Banded):
    """Images in files, decoded when they are read.

    In color if any of them is, or as the third entry of `resize` says; transparency is ignored.
    """

    slow = True

    def __init__(self, paths: Sequence[Path], request: Request) -> None:
        self.paths, self.resized = paths, bool(request.resize)
        kinds, self.size = _survey(paths, request)
        self.kind = _common_kind(kinds, (request.resize or ())[2:])
        self.image_shape = (*self.size, 3) if self.kind == _COLOR else self.size
        # Pillow resizes pixels that are no bytes in floating point only. "" keeps the file's mode.
        self.mode = {_COLOR: "RGB", _GRAY: "L"}.get(self.kind, "F" if self.resized else "")
        stored = np.float32 if self.mode == "F" else _DTYPES[self.kind]
        n, d = len(paths), math.prod(self.image_shape)
        edges = np.append(np.arange(0, n, max(1, BAND_BYTES // d)), n)
        super().__init__((n, d), stored, edges, FileGuard(paths), (request.path, "images"))

    @contextmanager
    def open(self) -> Iterator[Decode]:
        yield lambda start, stop: np.stack([self._pixels(path) for path in self.paths[start:stop]])

    def _pixels(self, path: Path) -> Rows:
        with _open(path) as image:
            if self.mode not in ("", image.mode):
                image = image.convert(self.mode)
            if self.resized:
                image = image.resize(self.size[::-1])
            pixels = np.asarray(image, self.stored)
        if pixels.shape != self.image_shape:
            raise FileError(f"{path} changed while it was being read. Fit again.")
        return pixels.ravel()


def _survey(paths: Sequence[Path], request: Request) -> tuple[dict[str, Path], tuple[int, ...]]:
    """Return the kinds of images, each with a file, and their height and width."""
    kinds: dict[str, Path] = {}
    first: tuple[int, ...] = ()
    for path in paths:
        with _open(path) as image:
            size = image.height, image.width
            kinds.setdefault(_KINDS.get(image.mode, _COLOR), path)
        first = first or size
        if size != first and request.resize is None:
            option = request.option("resize", first)
            raise FileError(
                f"{path} has {_format(size)} pixels, but {paths[0]} has {_format(first)}. Images "
                f"must have one height and width: resize them with {option}."
            )
    return kinds, (request.resize or first)[:2]


def _common_kind(kinds: dict[str, Path], channels: tuple[int, ...]) -> str:
    """Return the kind in which all images are decoded."""
    if kinds.keys() <= {_COLOR, _GRAY}:
        color = channels == (3,) or (not channels and _COLOR in kinds)
        return _COLOR if color else _GRAY
    first, *others = kinds
    if others:
        raise FileError(
            f"{kinds[first]} is {first}, but {kinds[others[0]]} is {others[0]}: their pixels have "
            f"different units. Convert all images to one kind."
        )
    if channels == (3,):
        raise FileError(f"{kinds[first]} is {first}, and cannot be read in color.")
    return first


def _format(size: Sequence[int]) -> str:
    return " × ".join(map(str, size))


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Open an image; its pixels are decoded when they are used."""
    pillow = extra("PIL.Image", "images", "Images require")
    with file_errors(path, "an image"), pillow.open(path) as image:
        frames = getattr(image, "n_frames", 1)
        if frames > 1:
            raise FileError(f"{path} holds {frames} images. Save each of them as a file.")
        yield image
