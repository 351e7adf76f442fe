"""Kernels as text: "rbf(0.1) + 2*poly(5)".

The grammar is that of the kernels' repr, a small part of Python's: numbers, + * **, parentheses,
names with arguments, and .normalized() .rbf(g) .on_columns([...]). Text is parsed to a tree, and
the tree is walked; nothing is ever evaluated.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from mercer.checks import is_real
from mercer.kernels.base import KERNELS, Kernel
from mercer.kernels.custom import FromFunction
from mercer.params import arguments

_METHODS = ("normalized", "rbf", "on_columns")


def parse(text: str) -> Kernel:
    """Return the kernel that a text describes, such as a kernel's repr.

    Examples
    --------
    >>> from mercer.kernels import parse
    >>> parse("rbf(0.1) + 2*poly(5)")
    RBF(0.1) + 2.0 * Polynomial(5)
    """
    return _Reader(text).kernel()


class _Reader:
    """Walks the syntax tree of a text."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ValueError(f"{text!r} is not a kernel expression.")
        self.text, self.line = text, "".join(" " if c.isspace() else c for c in text).strip()
        self.lead = len(text) - len(text.lstrip())

    def kernel(self) -> Kernel:
        """Return the kernel of the whole text."""
        try:
            with warnings.catch_warnings():  # about odd escapes and numbers
                warnings.simplefilter("ignore")
                tree = ast.parse(self.line, mode="eval").body
            kernel = self._read(tree)
            if not isinstance(kernel, Kernel):
                self._refuse(tree, "is a number, not a kernel")
            kernel.check()
        except SyntaxError as error:
            at = self.lead + (error.offset or len(self.line))
            raise ValueError(f"{self.text!r}: invalid syntax at character {at}.") from None
        except (RecursionError, MemoryError):
            raise ValueError(
                f"The kernel expression of {len(self.text)} characters is nested too deeply; "
                f"build the kernel with sums and products in Python."
            ) from None
        return kernel

    def _read(self, node: ast.expr) -> Any:
        """Return a kernel or a number."""
        if isinstance(node, ast.BinOp):
            return self._operation(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Name):
            return self._function(node)()
        value = self._value(node)
        if not is_real(value):
            self._refuse(node, "is not a kernel or a number")
        return value

    def _operation(self, node: ast.BinOp) -> Any:
        chain, first = [node], node.left
        while isinstance(first, ast.BinOp):  # a loop: a sum of a thousand is nested as deeply
            chain.append(first)
            first = first.left
        left = self._read(first)
        for step in reversed(chain):
            right = self._read(step.right)
            if isinstance(step.op, ast.Add):
                left = left + right
            elif isinstance(step.op, ast.Mult):
                left = left * right
            elif isinstance(step.op, ast.Pow) and isinstance(left, Kernel) and is_real(right):
                left = left**right
            else:
                self._refuse(step, "uses an unsupported operator: use +, * and **")
        return left

    def _call(self, node: ast.Call) -> Any:
        make = self._function(node.func)
        keywords = {str(word.arg): self._value(word.value) for word in node.keywords}
        if len(keywords) < len(node.keywords):
            self._refuse(node, "names an argument twice")
        try:
            return make(*[self._value(argument) for argument in node.args], **keywords)
        except TypeError:
            names = list(inspect.signature(make).parameters)
            unknown = [word.arg for word in node.keywords if word.arg and word.arg not in names]
            what = f"has no argument {unknown[0]!r}" if unknown else "has invalid arguments"
            self._refuse(node, f"{what}; it takes {', '.join(names) or 'none'}")

    def _function(self, node: ast.expr) -> Any:
        """Return a class of kernels, or a method of a kernel."""
        if isinstance(node, ast.Name):
            if node.id not in KERNELS:
                names = sorted({kernel.name for kernel in KERNELS.values()})
                self._unknown(node.col_offset, node.id, KERNELS, names)
            return KERNELS[node.id]
        if not isinstance(node, ast.Attribute):
            self._refuse(node, "is not a kernel")
        owner = self._read(node.value)
        if not isinstance(owner, Kernel) or node.attr not in _METHODS:
            end = node.end_col_offset or node.col_offset
            self._unknown(end - len(node.attr.encode()), node.attr, _METHODS, _METHODS)
        return getattr(owner, node.attr)

    def _value(self, node: ast.expr) -> Any:
        """Return a literal: the kernel checks whether it is a valid parameter."""
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError):
            self._refuse(node, "is not a kernel, a number, a string or a list")

    def _unknown(
        self, offset: int, name: str, valid: Iterable[str], listed: Sequence[str]
    ) -> NoReturn:
        similar = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
        hint = f"did you mean {similar[0]!r}?" if similar else f"choose from {', '.join(listed)}."
        at = self._character(offset)
        raise ValueError(f"{self.text!r}: {name!r} at character {at} is unknown; {hint}")

    def _refuse(self, node: ast.expr, why: str) -> NoReturn:
        part = ast.get_source_segment(self.line, node) or self.text
        at = self._character(node.col_offset)
        raise ValueError(f"{self.text!r}: {part!r} at character {at} {why}.")

    def _character(self, offset: int) -> int:
        """Return the position in the text, from 1, of an offset in bytes."""
        return self.lead + len(self.line.encode()[:offset].decode()) + 1


def as_kernel(
    kernel: Any, gamma: float | None = None, degree: float = 3, coef0: float = 1.0
) -> Kernel:
    """Return a kernel from an object, a text, scikit-learn's name, or a function of two rows.

    For a name alone, `gamma`, `degree` and `coef0` are its parameters where the kernel has them,
    with scikit-learn's defaults; gamma=None is 1.0, and `KernelPCA` passes 1/d instead, as
    scikit-learn's does. The name "laplacian" alone is the city block's, as in scikit-learn.

    Examples
    --------
    >>> from mercer.kernels import as_kernel
    >>> as_kernel("rbf", gamma=0.1)
    RBF(0.1)
    """
    if isinstance(kernel, type):
        raise ValueError(f"kernel={kernel.__name__} is a class: pass {kernel.__name__}().")
    if gamma is not None and not isinstance(kernel, str):
        raise ValueError(
            f"kernel={kernel!r} and gamma={gamma!r}: a kernel object or function has its own "
            f"parameters. Set gamma there."
        )
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return FromFunction(kernel, pairwise=True)
    if not isinstance(kernel, str):
        raise ValueError(f"kernel={kernel!r} must be a kernel, expression, name or function.")
    if kernel == "precomputed":
        raise ValueError("kernel='precomputed' needs a matrix: use Precomputed(matrix).")
    if kernel not in KERNELS:
        if gamma is not None:
            raise ValueError(f"kernel={kernel!r} and gamma={gamma!r}: set gamma in the expression.")
        return parse(kernel)
    cls = KERNELS[kernel]
    accepted, by_name = arguments(cls), kernel == cls.name
    if gamma is not None and "gamma" not in accepted and not (cls.ignores_gamma and by_name):
        names = ", ".join(accepted) or "nothing"
        raise ValueError(f"kernel={kernel!r} has no gamma; it takes {names}.")
    params = dict(cls.name_params) if by_name else {}
    for name, value in (("gamma", gamma), ("degree", degree), ("coef0", coef0)):
        if name in accepted and value is not None:
            params[name] = value
    return cls(**params)
