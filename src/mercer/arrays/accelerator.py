"""Devices with memory of their own: which there is, how much it holds, how it multiplies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.arrays.places import Array, on_accelerator


def device_reference(name: str) -> Array:
    """Return an empty tensor of torch on a device that the settings have found to be there."""
    import torch

    return torch.empty(0, dtype=torch.float64, device=name)


def device_memory(reference: Array) -> int | None:
    """Return the bytes of the device that an array lives on; None of the host."""
    if not on_accelerator(reference):
        return None
    if hasattr(reference, "is_cuda") and reference.is_cuda:
        import torch

        return int(torch.cuda.mem_get_info(reference.device)[1])
    if type(reference).__module__.startswith("cupy"):
        with reference.device:
            import cupy  # type: ignore[import-not-found]

            return int(cupy.cuda.runtime.memGetInfo()[1])
    return None


@contextlib.contextmanager
def products(reference: Array, *, coarse: bool = False) -> Iterator[None]:
    """Let float32 products on a GPU keep their digits; or, `coarse`, be made as TF32.

    Whatever torch is set to elsewhere: TF32 keeps eleven bits.
    """
    if not (on_accelerator(reference) and hasattr(reference, "is_cuda")):
        yield
        return
    import torch

    before, now = torch.get_float32_matmul_precision(), "high" if coarse else "highest"
    if before == now:
        yield
        return
    torch.set_float32_matmul_precision(now)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def product_eps(dtype: Any, reference: Array, *, coarse: bool = False) -> float:
    """Return the spacing of the numbers that products of a precision are made with."""
    if coarse and np.dtype(dtype) == np.float32 and on_accelerator(reference):
        return 2.0**-10
    return float(np.finfo(dtype).eps)
