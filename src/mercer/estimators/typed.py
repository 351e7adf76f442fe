"""scikit-learn's decorators with types: what `fit` returns stays known to type checkers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn import base
from sklearn.utils import metaestimators

F = TypeVar("F", bound=Callable[..., Any])


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[F], F]:
    """Check the parameters before a method runs."""
    decorator: Callable[[F], F] = base._fit_context(
        prefer_skip_nested_validation=prefer_skip_nested_validation
    )
    return decorator


def available_if(check: Callable[[Any], bool]) -> Callable[[F], F]:
    """Offer a method only where the check passes."""
    decorator: Callable[[F], F] = metaestimators.available_if(check)
    return decorator
