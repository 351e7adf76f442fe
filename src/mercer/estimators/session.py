"""The session of a fit: all of it or nothing, resumable, heard of, on its device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from sklearn import base
from sklearn.base import is_classifier
from sklearn.utils import metaestimators

from mercer import progress
from mercer.arrays import Array, products
from mercer.checkpoint import checkpointed
from mercer.data import at_work
from mercer.data.errors import MissingValues
from mercer.progress import Listener

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where there are no callbacks."""

    def _with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


__all__ = [
    "CallbackSupportMixin",
    "Sessions",
    "available_if",
    "fit_context",
    "on_device",
    "with_callbacks",
]

F = TypeVar("F", bound=Callable[..., Any])
# Attributes by which scikit-learn tears its callbacks down.
_CALLBACKS = ("_callback_", "_skl_callbacks")


def with_callbacks(method: F) -> F:
    """Let scikit-learn's callbacks hear of a method, whose types stay."""
    decorated: F = _with_callbacks(method)
    return decorated


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[F], F]:
    """Check the parameters before a method runs, whose types stay."""
    decorator: Callable[[F], F] = base._fit_context(
        prefer_skip_nested_validation=prefer_skip_nested_validation
    )
    return decorator


def available_if(check: Callable[[Any], bool]) -> Callable[[F], F]:
    """Offer a method, whose types stay, only where the check passes."""
    decorator: Callable[[F], F] = metaestimators.available_if(check)
    return decorator


class PassCallbacks(Listener):
    """Reports passes to the callbacks of an estimator, as subtasks of its fit."""

    def __init__(self, estimator: Any, X: Any) -> None:
        self.estimator, self.X = estimator, X
        self.root = estimator._init_callback_context(max_subtasks=None)
        self.root.call_on_fit_task_begin(estimator=estimator, X=X)

    def begin(self, label: str, total: int) -> Any:
        task = self.root.subcontext(task_name=label)
        return task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)

    def advance(self, handle: Any, steps: int) -> None:
        """Do nothing: a pass is a leaf, and scikit-learn hears of its beginning and its end."""

    def end(self, handle: Any) -> None:
        handle.call_on_fit_task_end(estimator=self.estimator, X=self.X)

    def close(self) -> None:
        """Report the end of the fit."""
        fitted = {k: v for k, v in vars(self.estimator).items() if k.endswith("_")}
        self.root.call_on_fit_task_end(
            estimator=self.estimator, X=self.X, reconstruction_attributes=lambda: fitted
        )


class Sessions:
    """Base of estimators whose fits run in a session."""

    @contextlib.contextmanager
    def _session(self, X: Any = None, *, resumable: bool = True) -> Iterator[None]:
        """Run a fit: if it fails, the estimator is as it was; if it is killed, it can be resumed.

        Where scikit-learn has callbacks, those of the estimator hear of the fit to X.
        """
        heard = X is not None and hasattr(self, "_skl_callbacks")
        callbacks = [PassCallbacks(self, X)] if heard else []
        recorded = checkpointed() if resumable else contextlib.nullcontext()
        with self._all_or_nothing(), recorded, progress.session(*callbacks):
            yield
            for each in callbacks:
                each.close()

    @contextlib.contextmanager
    def _all_or_nothing(self, *, always: bool = False) -> Iterator[None]:
        """Leave the estimator as it was when something fails inside, or always."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException as error:
            always = True
            if isinstance(error, MissingValues):  # the outermost estimator is the user's
                home = type(self).__module__
                home = "mercer" if home.startswith("mercer.") else home
                error.estimator = home, type(self).__name__, "X, y" if is_classifier(self) else "X"
            raise
        finally:
            if always:
                before |= {k: v for k, v in vars(self).items() if k.startswith(_CALLBACKS)}
                self.__dict__.clear()
                self.__dict__.update(before)


@contextlib.contextmanager
def on_device(reference: Array) -> Iterator[None]:
    """Compute where an array lives, within its memory and with its products.

    What overflows, in bounds of variances of 1e160, is judged where it is used.
    """
    silent: Any = {"over": "ignore", "invalid": "ignore"}
    with at_work(reference), products(reference), np.errstate(**silent):
        yield
