"""A matrix of the small algebra that stays on a device until the host asks for it.

Matrices of a method's size, m×m or d×d, are NumPy arrays to most of the program. Where they were
made on a device they are a `Remote`: products, sums and scalings with it are made there, and what
comes out small, as products with a few axes do, is on the host. NumPy makes an array of it where
anything else is asked, so nothing needs to know; it is only slower.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.arrays.places import Array, Matrix, cast, like, namespace, on_accelerator, to_numpy

# Fewer entries than this are sooner on the host.
_LEAST = 2**18
_THERE = {
    np.matmul: "matmul",
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.true_divide: "divide",
}


def held(x: Array) -> Matrix:
    """Return a float64 matrix as the small algebra takes it: on the host, or a `Remote`."""
    if on_accelerator(x) and math.prod(x.shape) >= _LEAST:
        return Remote(x)  # type: ignore[return-value]
    return np.asarray(to_numpy(x))


class Remote(np.lib.mixins.NDArrayOperatorsMixin):
    """A float64 matrix on a device, which the host takes for one of its own.

    Attributes
    ----------
    there : array
        The matrix, where it lives.
    """

    dtype = np.dtype(np.float64)
    ndim = 2

    def __init__(self, there: Array) -> None:
        self.there = cast(there, np.float64)
        self.shape = tuple(int(size) for size in there.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        host = to_numpy(self.there)
        return host if dtype is None else host.astype(dtype, copy=False)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """Entries."""
        return math.prod(self.shape)

    @property
    def T(self) -> Matrix:  # noqa: N802 (NumPy's name)
        """The transpose."""
        return held(self.there.T)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, np.ndarray) and key.dtype.kind in "iu":
            return held(namespace(self.there).take(self.there, like(key, self.there), axis=0))
        keys = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(part, (int, slice)) for part in keys):
            return np.asarray(self)[key]
        found = self.there[key]
        return held(found) if found.ndim == 2 else to_numpy(found)

    def __setitem__(self, key: Any, value: Any) -> None:
        host = np.array(self)
        host[key] = value
        self.there[...] = like(host, self.there)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        (out,) = options.pop("out", (None,))
        if isinstance(out, Remote):  # A -= B
            made = self.__array_ufunc__(ufunc, method, *inputs, **options)
            out.there[...] = like(made, out.there)
            return out
        options = options if out is None else {**options, "out": (out,)}
        name = _THERE.get(ufunc)
        if name is None or method != "__call__" or options:
            inputs = tuple(np.asarray(x) if isinstance(x, Remote) else x for x in inputs)
            return getattr(ufunc, method)(*inputs, **options)
        xp = namespace(self.there)
        made = getattr(xp, name)(*(like(x, self.there, np.float64) for x in inputs))
        return held(made) if made.ndim == 2 else to_numpy(made)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        linalg = namespace(self.there).linalg
        if func is np.trace and len(args) == 1:
            return np.float64(float(linalg.trace(self.there)))
        if func in (np.diag, np.diagonal) and len(args) == 1:
            return to_numpy(linalg.diagonal(self.there)).copy()
        return func(*(np.asarray(x) if isinstance(x, Remote) else x for x in args), **kwargs)
