"""Plain parameter objects: kernels, methods, rules, landmark rules."""

import functools
import inspect
from typing import Any, Self

import numpy as np

__all__ = ["Params", "arguments", "same"]

# Arrays of more entries than this are shown by their shape.
_SHOWN = 20


class Params:
    """Base of objects that are described by their constructor arguments.

    The constructor stores each argument, as it is, under its own name; use validates.
    Such objects satisfy `sklearn.base.clone` and take part in a grid search.

    Examples
    --------
    >>> class Ball(Params):
    ...     def __init__(self, radius, centre=None):
    ...         self.radius = radius
    ...         self.centre = centre
    >>> Ball(2.0)
    Ball(2.0)
    >>> Ball(2.0, centre=Ball(1.0)).set_params(centre__radius=3.0)
    Ball(2.0, centre=Ball(3.0))
    >>> Ball(2.0) == Ball(2)
    True
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments by name; `deep` adds those of nested objects as `outer__inner`."""
        params = {name: getattr(self, name) for name in arguments(type(self))}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    inner = value.get_params(deep=True)
                    params.update({f"{name}__{key}": v for key, v in inner.items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set arguments by name, those of nested objects as `outer__inner`; return self."""
        valid = list(arguments(type(self)))
        for key in params:
            if key.partition("__")[0] not in valid:
                raise ValueError(
                    f"Invalid parameter {key.partition('__')[0]!r} for {self!r}. Valid parameters "
                    f"are: {valid}."
                )
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, delimiter, inner = key.partition("__")
            if delimiter:
                nested.setdefault(name, {})[inner] = value
            else:
                setattr(self, name, value)
        # After the plain ones: `method=Subset(10), method__n_basis=20` means the new method's.
        for name, settings in nested.items():
            owner = getattr(self, name)
            if not hasattr(owner, "get_params") or isinstance(owner, type):
                raise ValueError(
                    f"Invalid parameter '{name}__{next(iter(settings))}' for {self!r}: "
                    f"{name}={owner!r} has no parameters. Valid parameters are: {valid}."
                )
            owner.set_params(**settings)
        return self

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(same(getattr(self, n), getattr(other, n)) for n in arguments(type(self)))

    def __hash__(self) -> int:
        values = tuple(self.get_params(deep=False).values())
        try:
            return hash((type(self), values))
        except TypeError:  # arrays, lists
            return hash(type(self))

    def __repr__(self) -> str:
        shown = []
        for position, (name, argument) in enumerate(arguments(type(self)).items()):
            value = getattr(self, name)
            if argument.default is not argument.empty and same(value, argument.default):
                continue
            if isinstance(value, np.ndarray) and value.size > _SHOWN:
                text = f"<array of {' × '.join(map(str, value.shape))}>"
            else:  # np.float64(0.1) would not read back without numpy's name
                text = repr(value.item() if isinstance(value, np.generic) else value)
            positional = position == 0 and argument.kind is not argument.KEYWORD_ONLY
            shown.append(text if positional else f"{name}={text}")
        return f"{type(self).__name__}({', '.join(shown)})"


def _inspect(cls: type[Params]) -> dict[str, inspect.Parameter]:
    """Return the constructor arguments in order, without self."""
    if cls.__init__ is object.__init__:
        return {}
    arguments = dict(list(inspect.signature(cls.__init__).parameters.items())[1:])
    if any(a.kind in (a.VAR_POSITIONAL, a.VAR_KEYWORD) for a in arguments.values()):
        raise TypeError(f"{cls.__name__}.__init__ must name each argument")
    return arguments


arguments: Any = functools.cache(_inspect)
"""The constructor arguments of a class by name, in order."""


def same(a: Any, b: Any) -> bool:
    """Return whether two values are equal; arrays, and lists and dicts of them, included."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.array_equal(a, b)
    if isinstance(a, (list, tuple)) and type(a) is type(b):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    # Sparse matrices and tensors hash by identity, so they compare by it too.
    if hasattr(a, "nnz"):
        return False
    try:
        return bool(a == b)
    except (TypeError, ValueError, RuntimeError):
        return False
