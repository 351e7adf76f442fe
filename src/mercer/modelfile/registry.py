"""The classes that a model file may name: Mercer's own and four of scikit-learn's, no others.

A file can only build objects of these classes, from plain values, arrays and each other; it
names no module and no function. Classes of parameters, fitted maps, matrices of sketches and
estimators are found among the subclasses that Mercer itself defines, so a new one needs no entry
here as long as its state is plain.

Compiled code trusts indices, shapes and finite numbers, and sizes decide how much memory is
taken: those are checked. A file that passes may still describe a model that makes no sense.
Using it raises an ordinary error or gives meaningless numbers; it runs no code of the file's,
crashes nothing and allocates no more than a model of its size.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer import estimators
from mercer.arrays import numpy_dtype, on_accelerator, to_numpy
from mercer.certificate import Certificate, Figure
from mercer.certificate.block_gram import BlockGram
from mercer.certificate.partition import BlockSums
from mercer.config import get_config, machine_memory
from mercer.data import PastRows
from mercer.kernels import Fisher, Frequencies, FromFunction, Kernel, Separable, Sum
from mercer.kernels.strings import StringKernel
from mercer.linalg import DirectionsSketch, Moments, TriangularFactor
from mercer.linalg.solvers import Randomized
from mercer.linalg.span import Basis, KernelMoments, Span
from mercer.methods import Cost, Size
from mercer.methods.literature.hebbian import HebbianFold
from mercer.params import Params
from mercer.planning import Candidate, Plan
from mercer.preimage.closed_form import RidgeState
from mercer.projection import Projection
from mercer.projection.fourier import FeatureFold, FourierMap
from mercer.sketches import SketchMap, SketchMatrix

_RECORDS = (
    *(Certificate, Plan, Candidate, Size, Cost, Randomized),
    *(FourierMap, Frequencies, Basis, RidgeState, BlockGram),
)
_FOLDS = (
    *(Moments, TriangularFactor, DirectionsSketch, FeatureFold, KernelMoments, HebbianFold),
    BlockSums,
)
# Kernels of a function or model of the user's.
_REFUSED = (FromFunction, Separable, Fisher)
_STEPS = (SimpleImputer, StandardScaler)
_ON_DEVICE = (
    "holds sums on a device, which a model file cannot store. Pickle the model, or fit without "
    "config_context(device=...)"
)
# Attributes that scikit-learn sets while callbacks run.
_TRANSIENT = ("_callback_", "_skl_callbacks")

_MOST_JOBS, _NAME_BYTES = 1024, 64
# Loops count letters with 32-bit numbers.
_LONGEST_WORD = 2**31 - 1

Parts = dict[str, Any]


class UnsavableError(ValueError):
    """A part of an object that cannot be saved: its name, and the reason."""


class Codec(NamedTuple):
    """Encoder and decoder of a class, by its name in files."""

    name: str
    cls: type
    take: Callable[[Any], Parts]
    make: Callable[[Parts], Any]


def build(name: str, parts: Parts) -> Any:
    """Return the object that a file describes."""
    if name not in _codecs():
        raise ValueError(f"{name[:80]!r} is not a class known to this version")
    obj = _codecs()[name].make(parts)
    _check(obj)
    return obj


@functools.cache
def models() -> tuple[type, ...]:
    """Return the estimators and sketches, which can be saved on their own."""
    for module in pkgutil.iter_modules(estimators.__path__, "mercer.estimators."):
        importlib.import_module(module.name)
    classes = _family(BaseEstimator)
    bases = {base for cls in classes for base in cls.__mro__[1:]}
    final = (cls for cls in classes if cls not in bases and cls.__name__[0] != "_")
    return (*final, *_family(SketchMap))


@functools.cache
def _codecs() -> dict[str, Codec]:
    codecs = [_plain(_name(cls), cls, state=True) for cls in (*models(), *_family(Params))]
    codecs += [_plain(f"parts.{cls.__name__}", cls) for cls in (*_RECORDS, *_family(Projection))]
    codecs += [_plain(_name(cls), cls, _check_map) for cls in _family(SketchMatrix)]
    codecs += [*map(_fold, _FOLDS), *_SPECIAL]
    return {codec.name: codec for codec in codecs}


@functools.cache
def codecs_by_class() -> dict[type, Codec]:
    """Return the codecs of all classes that can be saved."""
    return {codec.cls: codec for codec in _codecs().values()}


def _family(base: type) -> list[type]:
    """Return the classes derived from a base that Mercer defines and that can have instances."""
    classes: set[Any] = set(base.__subclasses__())
    while more := {each for cls in classes for each in cls.__subclasses__()} - classes:
        classes |= more
    ours = (cls for cls in classes if cls.__module__.startswith("mercer."))
    return [cls for cls in ours if not inspect.isabstract(cls) and cls not in _REFUSED]


def _name(cls: type) -> str:
    return f"{cls.__module__.split('.')[1]}.{cls.__name__}"


def _arguments(cls: type) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(cls).parameters)


def _attributes(obj: Any, names: Iterable[str]) -> Parts:
    return {name: getattr(obj, name) for name in names}


def _is_state(cls: type, name: str) -> bool:
    """Return whether a name is that of a fitted or private attribute that the class leaves free."""
    underscored = name.endswith("_") or name.startswith("_")
    reserved = name.startswith(("__", *_TRANSIENT)) or hasattr(cls, name)
    return underscored and (not reserved or _is_view(cls, name))


def _is_view(cls: type, name: str) -> bool:
    """Return whether a class shows a part of its state by this name, and lets a user replace it."""
    return getattr(getattr(cls, name, None), "fset", None) is not None


def _plain(
    name: str, cls: type, check: Callable[[Parts], None] | None = None, *, state: bool = False
) -> Codec:
    """Return the codec of a class whose objects are their constructor arguments.

    With `state` they also have fitted and private attributes, which end or begin with an
    underscore. None may replace an attribute of the class, such as a method.
    """
    names = _arguments(cls)

    def take(obj: Any) -> Parts:
        parts = _attributes(obj, names)
        for part in vars(obj) if state else ():
            if _is_state(cls, part):
                parts[part] = getattr(obj, part)
            elif part not in names and not part.startswith(_TRANSIENT):
                raise UnsavableError(part, "was not set by Mercer. Delete it first")
        return parts

    def make(parts: Parts) -> Any:
        others = parts.keys() - names
        if not all(state and _is_state(cls, part) for part in others):
            raise ValueError(f"a {name} has no {min(others)[:80]!r}")
        if check is not None:
            check(parts)
        fitted = {part: parts.pop(part) for part in others}
        views = {part: fitted.pop(part) for part in others if _is_view(cls, part)}
        # A constructor argument that is missing is newer than the file: its default applies.
        obj = cls(**parts)
        if fitted:
            vars(obj).update(fitted)
        for part in sorted(views):  # which a user may have replaced
            setattr(obj, part, views[part])
        return obj

    return Codec(name, cls, take, make)


def _fold(cls: type) -> Codec:
    """Return the codec of a fold: constructor arguments and its arrays.

    An argument whose default is None is part of the arrays or not needed between batches.
    """
    names = [name for name, argument in _arguments(cls).items() if argument.default is not None]

    def take(fold: Any) -> Parts:
        fold.settle()
        if any(on_accelerator(array) for array in fold.arrays().values()):
            raise UnsavableError("", _ON_DEVICE)
        return {**_attributes(fold, names), "arrays": fold.arrays()}

    def make(parts: Parts) -> Any:
        arrays = parts.pop("arrays")
        _check_sums(parts, arrays)
        fold = cls(**parts)
        fold.restore(arrays)
        return fold

    return Codec(f"folds.{cls.__name__}", cls, take, make)


def _bare(cls: type, names: str) -> Codec:
    """Return the codec of a class whose constructor would need rows: some attributes."""

    def make(parts: Parts) -> Any:
        obj: Any = object.__new__(cls)
        vars(obj).update({name: parts[name] for name in names.split()})
        return obj

    return Codec(f"folds.{cls.__name__}", cls, lambda obj: _attributes(obj, names.split()), make)


# Classes with a codec of their own.


def _sum_terms(kernel: Any) -> Parts:
    """Return the terms of a + b + c as one list: as nested sums they could be too deep."""
    terms = []
    while isinstance(kernel, Sum):
        terms.append(kernel.k2)
        kernel = kernel.k1
    return {"terms": [kernel, *reversed(terms)]}


_IMPUTER = (*inspect.signature(SimpleImputer).parameters, "n_features_in_", "feature_names_in_")


def _imputer_parts(imputer: SimpleImputer) -> Parts:
    missing = isinstance(imputer.missing_values, float) and np.isnan(imputer.missing_values)
    if imputer.strategy != "mean" or not missing or imputer.add_indicator:
        raise UnsavableError(
            "", 'is not SimpleImputer(strategy="mean") for NaN, the only one that is saved'
        )
    parts = _attributes(imputer, (name for name in _IMPUTER if hasattr(imputer, name)))
    return {**parts, "statistics_": imputer.statistics_, "dtype": imputer._fit_dtype}


def _imputer(parts: Parts) -> SimpleImputer:
    means, dtype = parts.pop("statistics_"), parts.pop("dtype")
    # Fitted to one row: private attributes of scikit-learn differ between its versions.
    imputer = SimpleImputer().fit(np.nan_to_num(means)[None, :].astype(dtype))
    ensure(parts.keys() <= set(_IMPUTER), "an imputer has no such attribute")
    vars(imputer).update(parts, statistics_=means)
    return imputer


def _neighbors_parts(search: KNeighborsClassifier) -> Parts:
    classes, codes = search.classes_, search._y
    if isinstance(classes, list):  # several labels a row
        labels = np.column_stack([each[at] for each, at in zip(classes, codes.T, strict=True)])
    else:
        labels = classes[codes]
    params = _attributes(search, _arguments(KNeighborsClassifier))
    return {**params, "scores": search._fit_X, "labels": labels}


def _neighbors(parts: Parts) -> KNeighborsClassifier:
    scores, labels = parts.pop("scores"), parts.pop("labels")
    return KNeighborsClassifier(**parts).fit(scores, labels)


def _pipeline_parts(pipeline: Pipeline) -> Parts:
    if pipeline.memory is not None:
        raise UnsavableError("memory", "is a cache on this machine. Set it to None first")
    for name, step in pipeline.steps[:-1]:
        if not isinstance(step, _STEPS):
            what = repr(step) if isinstance(step, str) else f"a {type(step).__name__}"
            raise UnsavableError(
                f"steps[{name!r}]",
                f"is {what}. Before a model, only SimpleImputer and StandardScaler can be saved; "
                f"save other steps separately",
            )
    return {"steps": [[name, step] for name, step in pipeline.steps], "verbose": pipeline.verbose}


def _pipeline(parts: Parts) -> Pipeline:
    return Pipeline([(str(name), step) for name, step in parts["steps"]], verbose=parts["verbose"])


_SPECIAL = (
    Codec("kernels.Sum", Sum, _sum_terms, lambda parts: functools.reduce(Sum, parts["terms"])),
    Codec(
        "parts.Figure",
        Figure,
        lambda figure: {"value": float(figure), **_attributes(figure, ("kind", "confidence"))},
        lambda parts: Figure(**parts),
    ),
    _bare(Span, "kernel basis dtype reference matrix whitener ranks norm2 norm_fro"),
    _bare(PastRows, "shape dtype names reference _count"),
    _plain("scikit-learn.StandardScaler", StandardScaler, state=True),
    Codec("scikit-learn.SimpleImputer", SimpleImputer, _imputer_parts, _imputer),
    Codec("scikit-learn.KNeighborsClassifier", KNeighborsClassifier, _neighbors_parts, _neighbors),
    Codec("scikit-learn.Pipeline", Pipeline, _pipeline_parts, _pipeline),
)


# Checks of what a file describes.


def ensure(holds: bool, problem: str) -> None:
    """Raise an error about the file unless a condition holds."""
    if not holds:
        raise ValueError(problem)


def _check(obj: Any) -> None:
    """Raise if an object is unsafe for compiled code."""
    if isinstance(obj, Kernel):
        obj.check()
        short = not isinstance(obj, StringKernel) or obj.length <= _LONGEST_WORD
        ensure(short, f"length={getattr(obj, 'length', None)} is more letters than a string has")
    elif isinstance(obj, BaseEstimator):
        # Counts decide how many threads and names are made.
        model: Any = obj
        model._validate_params()
        jobs = getattr(obj, "n_jobs", None)
        ensure(jobs is None or abs(jobs) <= _MOST_JOBS, f"n_jobs={jobs} is more than machines have")
        for name in ("n_components_", "n_features_in_"):
            count = vars(obj).get(name, 0)
            fits = isinstance(count, Integral) and 0 <= int(count) * _NAME_BYTES <= machine_memory()
            ensure(fits, f"{name}={str(count)[:80]}")
    elif isinstance(obj, (Projection, Span)):
        for name, value in vars(obj).items():  # LAPACK may not end on those that are not finite
            matrix = isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind == "f"
            ensure(not matrix or bool(np.isfinite(value).all()), f"{name} is not finite")
    elif isinstance(obj, HebbianFold) and obj.state is not None:
        # Shapes that the compiled loops of the Hebbian algorithm rely on.
        state, shape = obj.state, (len(obj.state.A), obj.span.rank)
        fits = state.A.shape == state.B.shape == shape
        fits = fits and state.rho.shape == state.travel.shape == shape[:1]
        ensure(fits, "the arrays of Hebbian components have inconsistent shapes")


def _check_sums(parts: Parts, arrays: Any) -> None:
    """Check the arrays of a fold before it allocates some as large."""
    for name, array in arrays.items():
        ensure(numpy_dtype(array) == np.float64, "sums are not float64")
        # "own" holds bounds on rounding, which may be infinite.
        ensure(name == "own" or bool(np.isfinite(to_numpy(array)).all()), "sums are not finite")
    if not parts.keys() & {"inner", "gram"}:  # these allocate nothing
        width = parts["span"].size if "span" in parts else parts["d"]
        ensure(arrays["offset"].shape == (width,), "sums are not as wide as the rows")


def _check_map(parts: Parts) -> None:
    """Check the sizes and indices of the matrix of a sketch before it is built."""
    budget = get_config().budget
    if "sample" in parts:  # coordinates that loops of the Hadamard transform read
        up, sample = parts["up"], parts["sample"]
        typed = type(up) is type(sample) is np.ndarray and (up.dtype, sample.dtype) == (bool, int)
        shaped = typed and up.ndim == sample.ndim == 1 and 0 < len(sample) <= 2 * len(up)
        ensure(shaped and len(up) > 0, "a map has no signs or sample")
        size = 1 << (len(up) - 1).bit_length()
        inside = bool(((sample >= 0) & (sample < size)).all())
        ensure(inside, "a map samples columns it does not have")
        room = len(sample) * 4 * math.isqrt(2 * size)
        ensure(room <= budget, "a map takes more than the memory budget")
        return
    sizes: dict[str, Any] = {name: parts[name] for name in ("d", "q", "each") if name in parts}
    if "matrix" in parts:
        sizes["q"] = parts["matrix"].shape[1]
    for name, size in sizes.items():
        whole = isinstance(size, Integral) and not isinstance(size, bool)
        ensure(whole and 0 < 8 * int(size) <= budget, f"{name}={size!r} of a map")
    ensure(sizes.get("each", 0) <= sizes.get("q", math.inf), "a map has more entries than columns")
