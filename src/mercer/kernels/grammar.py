"""Kernels as text: "rbf(0.1) + 2*poly(5)".

The grammar is that of the kernels' own repr, a small part of Python's: numbers, + * **,
parentheses, names with arguments, and .normalized() .rbf(g) .on_columns([...]). It is parsed
to a tree and walked; nothing is ever evaluated.
"""

from __future__ import annotations

import ast
import difflib
from typing import Any, NoReturn

from mercer.kernels.algebra import Constant
from mercer.kernels.base import Kernel
from mercer.kernels.distances import RBF, Laplacian, Matern, RationalQuadratic
from mercer.kernels.dots import Cosine, Linear, Polynomial, Tanh
from mercer.kernels.histograms import (
    AdditiveChi2,
    ChiSquare,
    ExponentialChiSquare,
    GeneralizedHistogramIntersection,
    Hellinger,
    HistogramIntersection,
    JensenShannon,
)
from mercer.kernels.strings import Subsequence, Substring

_CLASSES: tuple[type[Kernel], ...] = (
    Linear,
    Polynomial,
    Tanh,
    Cosine,
    RBF,
    Laplacian,
    Matern,
    RationalQuadratic,
    HistogramIntersection,
    GeneralizedHistogramIntersection,
    ChiSquare,
    AdditiveChi2,
    ExponentialChiSquare,
    Hellinger,
    JensenShannon,
    Substring,
    Subsequence,
)
NAMES: dict[str, type[Kernel]] = {
    **{kind.__name__: kind for kind in _CLASSES},
    **{kind.__name__.lower(): kind for kind in _CLASSES},
    "poly": Polynomial,
    "sigmoid": Tanh,
    "chi2": ExponentialChiSquare,
    "additive_chi2": AdditiveChi2,
    "constant": Constant,
    "Constant": Constant,
}
"""What kernels are called in text."""

_METHODS = ("normalized", "rbf", "on_columns")


def parse(text: str) -> Kernel:
    """Read a kernel.

    Parameters
    ----------
    text : str
        Such as a kernel's repr, or "rbf(0.1) + 2*poly(5)".

    Examples
    --------
    >>> from mercer.kernels import parse
    >>> parse("rbf(0.1) + 2*poly(5)")
    RBF(0.1) + 2.0 * Polynomial(5)
    """
    return _Reader(text).kernel()


class _Reader:
    """Walks the tree of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError) as error:
            at = getattr(error, "offset", None) or len(text)
            raise ValueError(f"{text!r} is not a kernel, from character {at} on.") from None

    def kernel(self) -> Kernel:
        """Return the kernel of the whole text."""
        found = self._read(self.tree)
        if not isinstance(found, Kernel):
            self._refuse(self.tree, "is a number, not a kernel")
        found.check()
        return found

    def _read(self, node: ast.expr) -> Any:
        if isinstance(node, ast.BinOp):
            return self._operation(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Name):
            return self._class(node)()
        return self._value(node)

    def _operation(self, node: ast.BinOp) -> Any:
        left, right = self._read(node.left), self._read(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Pow) and isinstance(left, Kernel):
            return left**right
        self._refuse(node, "uses an operation that kernels are not closed under: use +, * and **")

    def _call(self, node: ast.Call) -> Any:
        positional = [self._value(argument) for argument in node.args]
        named = {str(word.arg): self._value(word.value) for word in node.keywords}
        if isinstance(node.func, ast.Attribute):
            owner = self._read(node.func.value)
            if not isinstance(owner, Kernel) or node.func.attr not in _METHODS:
                self._unknown(node, node.func.attr, _METHODS)
            make: Any = getattr(owner, node.func.attr)
        elif isinstance(node.func, ast.Name):
            make = self._class(node.func)
        else:
            self._refuse(node, "is not a kernel")
        try:
            return make(*positional, **named)
        except TypeError as error:
            self._refuse(node, f"has arguments that do not fit ({error})")

    def _class(self, node: ast.Name) -> type[Kernel]:
        if node.id not in NAMES:
            self._unknown(node, node.id, tuple(NAMES))
        return NAMES[node.id]

    def _value(self, node: ast.expr) -> Any:
        """Return a number, a string, or a list of them."""
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError):
            self._refuse(node, "is not a kernel, a number, a string or a list")
        kinds = (int, float, str, list, tuple, type(None))
        if isinstance(value, kinds):
            return value
        self._refuse(node, "is not a number, a string or a list")

    def _unknown(self, node: ast.expr, name: str, known: tuple[str, ...]) -> NoReturn:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known))}."
        raise ValueError(
            f"{self.text!r}: {name!r} at character {node.col_offset + 1} is not known; {hint}"
        )

    def _refuse(self, node: ast.expr, why: str) -> NoReturn:
        part = ast.get_source_segment(self.text.strip(), node) or self.text
        raise ValueError(f"{self.text!r}: {part!r} at character {node.col_offset + 1} {why}.")


def as_kernel(
    kernel: Any, gamma: float | None = None, degree: int = 3, coef0: float = 1.0
) -> Kernel:
    """Return a kernel from an object, a text, scikit-learn's name, or a function of two rows.

    scikit-learn's names take its parameters; "laplacian" is then the city block's.

    Examples
    --------
    >>> from mercer.kernels import as_kernel
    >>> as_kernel("rbf", gamma=0.1)
    RBF(0.1)
    """
    from mercer.kernels.given import FromFunction

    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return FromFunction(kernel, pairwise=True)
    if not isinstance(kernel, str):
        raise ValueError(f"kernel={kernel!r} is not a kernel, its text, its name or a function.")
    scale = {} if gamma is None else {"gamma": gamma}
    usual: dict[str, Kernel] = {
        "linear": Linear(),
        "poly": Polynomial(degree, coef0, **scale),
        "polynomial": Polynomial(degree, coef0, **scale),
        "rbf": RBF(**scale),
        "laplacian": Laplacian(**scale, norm="l1"),
        "sigmoid": Tanh(coef0=coef0, **scale),
        "cosine": Cosine(),
        "chi2": ExponentialChiSquare(**scale),
        "additive_chi2": AdditiveChi2(),
    }
    return usual[kernel] if kernel in usual else parse(kernel)
