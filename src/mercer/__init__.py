"""Principal components, linear and kernel, with a certificate for every answer."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "PCA": "mercer.estimators.pca",
    "Certificate": "mercer.certificate",
    "ConvergenceWarning": "mercer.methods.base",
    "Plan": "mercer.plan",
    "Source": "mercer.sources",
    "as_source": "mercer.sources",
    "config_context": "mercer.config",
    "get_config": "mercer.config",
    "set_config": "mercer.config",
    "methods": "mercer.methods",
    "rules": "mercer.rules",
}
__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604

if TYPE_CHECKING:
    from mercer import methods, rules
    from mercer.certificate import Certificate
    from mercer.config import config_context, get_config, set_config
    from mercer.estimators.pca import PCA
    from mercer.methods.base import ConvergenceWarning
    from mercer.plan import Plan
    from mercer.sources import Source, as_source


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    module = importlib.import_module(_HOMES[name])
    value = module if module.__name__ == f"mercer.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
