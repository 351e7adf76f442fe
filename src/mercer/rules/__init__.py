"""Rules for the number of components."""

from mercer.rules.base import (
    MLE,
    NAMED,
    BrokenStick,
    Count,
    Fraction,
    GavishDonoho,
    Kaiser,
    ParallelAnalysis,
    RelativeError,
    Rule,
    Threshold,
    as_rule,
)

__all__ = [
    "MLE",
    "NAMED",
    "BrokenStick",
    "Count",
    "Fraction",
    "GavishDonoho",
    "Kaiser",
    "ParallelAnalysis",
    "RelativeError",
    "Rule",
    "Threshold",
    "as_rule",
]
