"""Settings that hold for every computation: memory, block rows, progress, checkpoints."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from mercer.extras import extra

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


@dataclass(frozen=True)
class Settings:
    """What `set_config` and `config_context` change."""

    memory: int | str | None = None
    block_rows: int | None = None
    progress: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_seconds: float = 60.0
    device: str | None = None
    tf32: bool = False

    def __post_init__(self) -> None:
        if self.memory is not None:
            parse_bytes(self.memory)
        rows = self.block_rows
        whole = isinstance(rows, Integral) and not isinstance(rows, bool)
        if rows is not None and (not whole or rows < 1):
            raise ValueError(f"block_rows={rows!r} must be an integer of at least 1, or None.")
        for name in ("progress", "tf32"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}={getattr(self, name)!r} must be True or False.")
        if self.device is not None and not re.fullmatch(r"cuda(:\d+)?", str(self.device)):
            raise ValueError(
                f"device={self.device!r} must be 'cuda' or 'cuda:1' and so on, or None for the CPU."
            )
        self._check_checkpoint()

    def _check_checkpoint(self) -> None:
        folder, seconds = self.checkpoint, self.checkpoint_seconds
        if folder is not None and (not isinstance(folder, (str, os.PathLike)) or not str(folder)):
            raise ValueError(f"checkpoint={folder!r} must be the path of a folder, or None.")
        real = isinstance(seconds, Real) and not isinstance(seconds, bool)
        if not real or not 0 < seconds < math.inf:
            raise ValueError(
                f"checkpoint_seconds={seconds!r} must be a number of seconds, above 0."
            )

    @property
    def budget(self) -> int:
        """Bytes that a computation may hold beside the data it was given."""
        return machine_memory() // 2 if self.memory is None else parse_bytes(self.memory)


_everywhere = Settings()
_here: ContextVar[Settings | None] = ContextVar("mercer_settings", default=None)


def get_config() -> Settings:
    """Return the settings in force."""
    return _here.get() or _everywhere


def set_config(**changes: Any) -> None:
    """Change settings for good, in all threads; inside a `config_context`, until it ends.

    Parameters
    ----------
    memory : int or str, optional
        Bytes that a computation may hold beside the data it was given, such as
        ``"512MiB"`` or ``"4 GB"``. By default half of the machine's memory, or of
        the container's where that is less.
    block_rows : int, optional
        Rows of a block. By default as many as the memory allows and the caches like.
    progress : bool
        Show progress bars.
    checkpoint : str or path, optional
        A folder in which a fit keeps what it has done. A fit that was killed goes on from there
        when it is called again: the same rows, parameters, settings and versions, in another
        process; any other is refused. What was kept is removed when the fit is done. The folder
        holds one fit at a time.
    checkpoint_seconds : float
        How often: at most so much work is lost, and what cannot be saved. A step of LAPACK or
        of k-means is done again, and a kernel matrix that was kept in memory is computed again.
    device : str, optional
        "cuda", or "cuda:1" and so on: fits, transforms, pre-images and kernels of rows on the
        host are computed there, by torch, and what they give is handed out on the host. The
        memory budget is then half of the device's by default. Arrays that live on a device are
        worked on there whatever this says. An error where there is no such device.
    tf32 : bool
        Let float32 products with a kernel matrix that only drive an iteration be made on a GPU
        as TF32, with eleven bits; the last product is float64 as ever.

    Examples
    --------
    >>> import mercer
    >>> mercer.set_config(memory="4GiB")
    >>> mercer.set_config(memory=None)
    """
    global _everywhere
    if _here.get() is not None:
        _here.set(_changed(changes))
    else:
        _everywhere = _changed(changes)


@contextlib.contextmanager
def config_context(**changes: Any) -> Iterator[None]:
    """Change settings inside a ``with`` block, in this thread; takes what `set_config` takes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import PCA, config_context
    >>> X = np.random.default_rng(0).normal(size=(1000, 20))
    >>> with config_context(memory="64MiB"):
    ...     pca = PCA(2).fit(X)

    A long fit, which goes on where it was when the same lines are run again after a crash:

    >>> import tempfile
    >>> with config_context(checkpoint=tempfile.gettempdir() + "/my-long-fit"):
    ...     pca = PCA(2).fit(X)
    """
    token = _here.set(_changed(changes))
    try:
        yield
    finally:
        _here.reset(token)


def _changed(changes: dict[str, Any]) -> Settings:
    known = Settings.__dataclass_fields__
    for name in changes:
        if name not in known:
            raise TypeError(f"{name!r} is not a setting of Mercer; there are {', '.join(known)}.")
    settings = replace(get_config(), **changes)
    if changes.get("device") is not None:
        require_device(changes["device"])
    return settings


def require_device(name: str) -> None:
    """Refuse a device that is not there: what is asked of it is never computed elsewhere."""
    torch = extra("torch", "torch", f"device={name!r} takes")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        why = "it finds no GPU" if torch.version.cuda else "it was built without CUDA"
        raise RuntimeError(
            f"device={name!r}: torch {torch.__version__} cannot use one, {why}. Leave device out "
            f"to compute on the CPU."
        )
    _, _, number = name.partition(":")
    if number and int(number) >= count:
        raise RuntimeError(f"device={name!r}: there are {count}, from cuda:0 to cuda:{count - 1}.")


def parse_bytes(size: int | str) -> int:
    """Read a number of bytes: ``512``, ``"512MiB"``, ``"1.5 GB"``."""
    if isinstance(size, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", size.lower())
        if match is None:
            raise ValueError(f'memory={size!r} is not a size. Write it as "512MiB" or "4 GB".')
        number, unit, binary = match.groups()
        size = int(float(number) * (_BINARY[unit] if binary and unit else _UNITS[unit]))
    if not isinstance(size, Integral) or isinstance(size, bool) or size <= 0:
        raise ValueError(f"memory={size!r} must be a positive number of bytes.")
    return int(size)


def format_bytes(size: float) -> str:
    """Write a number of bytes for people: ``"1.5 GiB"``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def rounded_up(size: float) -> str:
    """Write a setting of `memory` that holds so many bytes: ``"65MiB"``."""
    for unit, bytes in (("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30)):
        if size <= 1000 * bytes:
            return f"{math.ceil(size / bytes)}{unit}"
    return f"{math.ceil(size / 2**30)}GiB"


@functools.cache
def machine_memory() -> int:
    """Bytes of memory of this machine, or of the container where that is less."""
    total = _physical_memory()
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # absent, or the word "max"
            total = min(total, int(Path(path).read_text()))
    return total


def _physical_memory() -> int:
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))
    return _windows_memory()


def _windows_memory() -> int:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *((name, ctypes.c_ulonglong) for name in ("total", "b", "c", "d", "e", "f", "g")),
        ]

    status = Status(length=ctypes.sizeof(Status))
    kernel32 = getattr(ctypes, "windll").kernel32  # noqa: B009 (absent from non-Windows stubs)
    kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.total)
