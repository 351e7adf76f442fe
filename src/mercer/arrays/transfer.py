"""Copies between the host and a GPU through pinned memory.

A copy from pageable memory goes through a small buffer of the driver, at a fraction of the speed of
the bus. Here it goes through two larger pinned buffers: one is filled while the other is sent.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

_BYTES = 32 * 2**20
# Less than this is sent sooner than it is staged.
_SMALL = 2**20
_mine = threading.local()


def to_host(x: Any) -> npt.NDArray[Any]:
    """Return a tensor of torch as a NumPy array: the same memory where it is the host's."""
    if not x.is_cuda or x.numel() * x.element_size() < _SMALL:
        return np.asarray(x.cpu().numpy())
    import torch

    # Without a type: float64 and float32 entries are bytes here.
    flat = x.contiguous().view(-1).view(torch.uint8)
    out = np.empty(tuple(x.shape), str(x.dtype).rsplit(".", 1)[-1])
    into = out.reshape(-1).view(np.uint8)
    before = None
    for step, start in enumerate(range(0, len(into), _BYTES)):
        stage, event = _buffers()[step % 2]
        part = flat[start : start + _BYTES]
        stage[: len(part)].copy_(part, non_blocking=True)
        event.record()
        if before is not None:
            _unload(*before)
        before = into[start : start + _BYTES], stage, event
    assert before is not None
    _unload(*before)
    return out


def _unload(into: npt.NDArray[np.uint8], stage: Any, event: Any) -> None:
    event.synchronize()
    into[:] = stage.numpy()[: len(into)]


def to_device(x: npt.NDArray[Any], device: Any) -> Any:
    """Return a contiguous NumPy array as a tensor on a GPU; the copy is in its current stream."""
    import torch

    if x.nbytes < _SMALL:
        return torch.from_numpy(x if x.flags.writeable else x.copy()).to(device)
    out = torch.empty(x.shape, dtype=getattr(torch, x.dtype.name), device=device)
    flat, entries = out.view(-1).view(torch.uint8), x.reshape(-1).view(np.uint8)
    for step, start in enumerate(range(0, len(entries), _BYTES)):
        stage, event = _buffers()[step % 2]
        part = entries[start : start + _BYTES]
        event.synchronize()  # the copy before it has ended
        stage.numpy()[: len(part)] = part
        flat[start : start + len(part)].copy_(stage[: len(part)], non_blocking=True)
        event.record()
    return out


@contextlib.contextmanager
def copy_stream(reference: Any) -> Iterator[Callable[[Any], Any]]:
    """Copy in a separate stream of this thread, which does not wait for computations.

    Yields a function that marks a tensor for use in the main stream. Its copy is complete when the
    context ends.
    """
    if not getattr(reference, "is_cuda", False):
        yield lambda tensor: tensor
        return
    import torch

    main = torch.cuda.default_stream(reference.device)
    if not hasattr(_mine, "stream"):
        _mine.stream = torch.cuda.Stream(reference.device)

    def share(tensor: Any) -> Any:
        tensor.record_stream(main)
        return tensor

    with torch.cuda.stream(_mine.stream):
        yield share
    _mine.stream.synchronize()


def _buffers() -> list[tuple[Any, Any]]:
    """Return two pinned buffers of this thread, each with the event of its last copy."""
    import torch

    if not hasattr(_mine, "buffers"):
        _mine.buffers = [
            (torch.empty(_BYTES, dtype=torch.uint8, pin_memory=True), torch.cuda.Event())
            for _ in range(2)
        ]
    return _mine.buffers  # type: ignore[no-any-return]
