"""A device: the GPU where there is one, else torch on the CPU in its place."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

CUDA = torch.cuda.is_available()


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a device; without CUDA, let tensors of the host count as on one.

    What is copied, where it is computed and what comes home is then the same, but for the
    streams and buffers of CUDA.
    """

    def refuse(tensor, *arguments):
        raise TypeError("can't convert a tensor of a device to numpy")

    if not CUDA:
        torch.set_num_threads(1)
        monkeypatch.setattr(torch.Tensor, "__array__", refuse)
        monkeypatch.setattr("mercer.arrays.linear._LEAST", 1000)
        monkeypatch.setattr("mercer.arrays.linear._HELPED", 50)
        monkeypatch.setattr("mercer.arrays.places._HOSTS", {"meta"})
        monkeypatch.setattr("mercer.config.require_device", lambda name: None)
        monkeypatch.setattr(
            "mercer.data.device.device_reference",
            lambda name: torch.empty(0, dtype=torch.float64),
        )
    return "cuda"


def there(X):
    """Return rows as a tensor on the device."""
    tensor = torch.from_numpy(X)
    return tensor.cuda() if CUDA else tensor
