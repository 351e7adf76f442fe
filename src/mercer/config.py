"""Global settings: memory, block rows, progress, checkpoints."""

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
from mercer.messages import format_parameter


@dataclass(frozen=True)
class Settings:
    """The settings of `set_config` and `config_context`."""

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
        rows, folder, seconds = self.block_rows, self.checkpoint, self.checkpoint_seconds
        integer = isinstance(rows, Integral) and not isinstance(rows, bool) and rows >= 1
        gpu = re.fullmatch(r"cuda(:\d+)?", str(self.device))
        path = isinstance(folder, (str, os.PathLike)) and str(folder)
        real = isinstance(seconds, Real) and not isinstance(seconds, bool)
        positive = real and 0 < seconds < math.inf
        for name, valid, expected in (
            ("block_rows", rows is None or integer, "an integer of at least 1, or None"),
            ("progress", isinstance(self.progress, bool), "True or False"),
            ("tf32", isinstance(self.tf32, bool), "True or False"),
            ("device", self.device is None or gpu, "'cuda', 'cuda:1' and so on, or None"),
            ("checkpoint", folder is None or path, "the path of a folder, or None"),
            ("checkpoint_seconds", positive, "a number of seconds, above 0"),
        ):
            if not valid:
                raise ValueError(f"{_given(name, getattr(self, name))} must be {expected}.")

    @property
    def budget(self) -> int:
        """Memory budget in bytes, besides the data itself."""
        return machine_memory() // 2 if self.memory is None else parse_bytes(self.memory)


_everywhere = Settings()
_here: ContextVar[Settings | None] = ContextVar("mercer_settings", default=None)


def get_config() -> Settings:
    """Return the current settings."""
    return _here.get() or _everywhere


def set_config(**changes: Any) -> None:
    """Change settings globally, or inside a `config_context` until it ends.

    Parameters
    ----------
    memory : int or str, optional
        Memory budget besides the data itself, in bytes or as ``"512MiB"`` or ``"4 GB"``. Default:
        half of the memory of the machine or container.
    block_rows : int, optional
        Rows per block. Default: as many as fit in the memory budget and the caches.
    progress : bool
        Show progress bars.
    checkpoint : str or path, optional
        A folder in which a fit saves its progress. A killed fit resumes from there when it is
        called again with the same rows, parameters, settings and versions; a different fit
        raises an error. The checkpoint is removed after the fit. A folder holds one fit at a time.
    checkpoint_seconds : float
        Time between saves. A killed fit loses at most this much work, and the steps that
        cannot be saved: LAPACK, k-means and stored kernel matrices are recomputed.
    device : str, optional
        "cuda", or "cuda:1" and so on: fits, transforms, pre-images and kernels of rows on the
        host are computed on this GPU by torch, and results are returned on the host. The default
        memory budget is then half of the GPU's memory. Arrays on a device are always processed
        there. Raises an error if the device does not exist.
    tf32 : bool
        Allow TF32 (11 bits) on a GPU for float32 products with a kernel matrix that only drive an
        iteration; the last product is always float64.

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
    """Change settings inside a ``with`` block, in this thread. Parameters as in `set_config`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import PCA, config_context
    >>> X = np.random.default_rng(0).normal(size=(1000, 20))
    >>> with config_context(memory="64MiB"):
    ...     pca = PCA(2).fit(X)

    A long fit that resumes when the same lines are run again after a crash:

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
            raise TypeError(f"Unknown setting {name!r}. Choose from {', '.join(known)}.")
    settings = replace(get_config(), **changes)
    if changes.get("device") is not None:
        require_device(changes["device"])
    return settings


def require_device(name: str) -> None:
    """Raise if a device does not exist: nothing is silently computed on the CPU."""
    torch = extra("torch", "torch", f"device={name!r} requires")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        why = "it finds no GPU" if torch.version.cuda else "it was built without CUDA"
        raise RuntimeError(
            f"device={name!r}: torch {torch.__version__} cannot use a GPU: {why}. Omit device to "
            f"compute on the CPU."
        )
    _, _, number = name.partition(":")
    if number and int(number) >= count:
        raise RuntimeError(f"device={name!r}: the GPUs are cuda:0 to cuda:{count - 1}.")


def _given(name: str, value: Any) -> str:
    """Format a setting as it was given; `format_parameter` says how to set it, by a whole call."""
    return re.sub(r"^config_context\((.*)\)$", r"\1", format_parameter(name, value), flags=re.S)


def parse_bytes(size: int | str) -> int:
    """Parse a number of bytes: ``512``, ``"512MiB"``, ``"1.5 GB"``."""
    if isinstance(size, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", size.lower())
        if match is None:
            given = _given("memory", size)
            raise ValueError(f'{given} is not a size. Write it as "512MiB" or "4 GB".')
        number, unit, binary = match.groups()
        size = int(float(number) * (1024 if binary else 1000) ** " kmgt".index(unit or " "))
    if not isinstance(size, Integral) or isinstance(size, bool) or size <= 0:
        raise ValueError(f"memory={size!r} must be a positive number of bytes.")
    return int(size)


def format_bytes(size: float) -> str:
    """Format a number of bytes: ``"1.5 GiB"``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def rounded_up(size: float) -> str:
    """Format the smallest round `memory` setting of at least this many bytes: ``"65MiB"``."""
    for unit, bytes in (("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30)):
        if size <= 1000 * bytes:
            return f"{math.ceil(size / bytes)}{unit}"
    return f"{math.ceil(size / 2**30)}GiB"


class BudgetError(MemoryError):
    """The memory budget is too small."""


BASIS = "use a method with a basis, such as method=Subset(1000)"
"""A remedy for rows that do not fit in memory."""


def require_budget(needed: float, what: str, instead: str = "") -> None:
    """Raise if `what` takes more bytes than the memory budget; `instead` is another remedy."""
    budget = get_config().budget
    if needed > budget:
        raise BudgetError(
            f"{what} takes {format_bytes(needed)}, more than the memory budget of "
            f"{format_bytes(budget)}. Raise it with {format_parameter('memory')}"
            f"{instead and f', or {instead}'}."
        )


@functools.cache
def machine_memory() -> int:
    """Return the memory of this machine, or of the container if that is less, in bytes."""
    try:
        total = int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        total = _windows_memory()
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # absent, or the word "max"
            total = min(total, int(Path(path).read_text()))
    return total


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
