"""scikit-learn's callbacks, where its version has them: they hear of every pass."""

from __future__ import annotations

from typing import Any

from mercer.estimators.typed import F
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


__all__ = ["CallbackSupportMixin", "Tasks", "with_callbacks"]


def with_callbacks(method: F) -> F:
    """Let callbacks hear of a method, whose types stay."""
    decorated: F = _with_callbacks(method)
    return decorated


class Tasks(Listener):
    """Tells an estimator's callbacks of passes as subtasks of its fit."""

    def __init__(self, estimator: Any, X: Any) -> None:
        self.estimator = estimator
        self.X = X
        self.root = estimator._init_callback_context(max_subtasks=None)
        self.root.call_on_fit_task_begin(estimator=estimator, X=X)

    def begin(self, label: str, total: int) -> Any:
        task = self.root.subcontext(task_name=label)
        return task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)

    def advance(self, handle: Any, steps: int) -> None:
        """A pass is a leaf: scikit-learn hears of its beginning and its end."""

    def end(self, handle: Any) -> None:
        handle.call_on_fit_task_end(estimator=self.estimator, X=self.X)

    def close(self, attributes: Any) -> None:
        """Tell the callbacks that the fit is over."""
        self.root.call_on_fit_task_end(
            estimator=self.estimator, X=self.X, reconstruction_attributes=attributes
        )
