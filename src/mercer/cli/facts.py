"""What there is to tell of a fitted model."""

from __future__ import annotations

import shlex
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from mercer.certificate import Certificate
from mercer.cli.errors import WorkError
from mercer.config import format_bytes
from mercer.estimators.pipeline import parts
from mercer.planning.base import Plan, measured

# Options that the model does not depend on.
_ASIDE = ("json", "debug", "force", "checkpoint", "checkpoint_seconds")


def axes_of(model: Any) -> Any:
    """Return the estimator that has the components: the last step, or the one inside it."""
    last = parts(model)[1]
    found = getattr(last, "estimator_", last)
    if not hasattr(found, "projection_"):
        raise WorkError(f"A {type(last).__name__} has no components of its own to be used here.")
    return found


def of_certificate(found: Certificate) -> dict[str, Any]:
    """Return a certificate as JSON has it."""
    return {
        "sentence": found.sentence,
        "captured": float(found.captured),
        "optimum_upper": float(found.optimum_upper),
        "gap": float(found.gap),
        "kind": found.gap.kind,
        "confidence": found.gap.confidence,
        "gap_estimate": float(found.gap_estimate),
        "converged": found.converged,
        "notes": list(found.notes),
    }


def of_plan(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON has it."""
    candidates = [
        {
            "method": one.method.label(plan.size),
            "passes": one.cost.passes,
            "operations": one.cost.products + one.cost.sparse + one.cost.factor,
            "memory": one.cost.memory,
            "seconds": measured().seconds(one.cost, plan.size),
            "fits": one.fits,
            "chosen": one.method is plan.method,
        }
        for one in plan.candidates
    ]
    return {
        "method": repr(plan.method),
        "reason": plan.reason,
        "budget": plan.budget,
        "candidates": candidates,
    }


def of_model(model: Any) -> dict[str, Any]:
    """Return what a fit found, as JSON has it."""
    axes = axes_of(model)
    return {
        "estimator": type(parts(model)[1]).__name__,
        "steps": [repr(step) for step in parts(model)[0]],
        "kernel": None if getattr(axes, "kernel_", None) is None else repr(axes.kernel_),
        "method": repr(axes.plan_.method),
        "reason": axes.plan_.reason,
        "components": axes.n_components_,
        "explained_variance": axes.explained_variance_,
        "explained_variance_ratio": axes.explained_variance_ratio_,
        "certificate": of_certificate(axes.certificate_),
    }


def command_line(name: str, asked: Any) -> str:
    """Return the command that would do the same again."""
    given: list[str] = []
    positional = [key for key in ("model", "data") if hasattr(asked, key)]
    given += [str(getattr(asked, key)) for key in positional]
    for field in fields(asked):
        value = getattr(asked, field.name)
        default = None if field.default is MISSING else field.default
        if field.name in (*positional, *_ASIDE) or value == default:
            continue
        option = "-o" if field.name == "output" else f"--{field.name.replace('_', '-')}"
        values = value if isinstance(value, list) else [value]
        given += [option] if value is True else [w for v in values for w in (option, str(v))]
    return shlex.join(["mercer", *name.split(), *given])


def written(path: Path) -> str:
    """Return a file's name and size."""
    return f"{path} ({format_bytes(path.stat().st_size)})"
