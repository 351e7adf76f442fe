"""Rules for the number of components."""

from typing import Any

from mercer.checks import is_real
from mercer.rules.base import (
    Count,
    Fraction,
    Kaiser,
    RelativeError,
    Rule,
    Threshold,
    is_integer,
)
from mercer.rules.noise import MLE, BrokenStick, GavishDonoho, ParallelAnalysis

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

NAMED: dict[str, type[Rule]] = {
    "mle": MLE,
    "kaiser": Kaiser,
    "broken-stick": BrokenStick,
    "parallel": ParallelAnalysis,
    "gavish-donoho": GavishDonoho,
}
"""Rules by name."""


def as_rule(n_components: Any, n: int, d: int) -> Rule:
    """Return the rule for `n_components`, checked for n samples of d features.

    None or "all": every component; an integer: Count; a float in (0, 1): Fraction; "mle",
    "kaiser", "broken-stick", "parallel" or "gavish-donoho": that rule; a Rule: itself.

    Examples
    --------
    >>> as_rule(0.95, n=100, d=5)
    Fraction(0.95)
    """
    rule: Rule
    if isinstance(n_components, Rule):
        rule = n_components
    elif n_components is None or (isinstance(n_components, str) and n_components == "all"):
        rule = Count(min(n, d))
    elif is_integer(n_components):
        rule = Count(int(n_components))
    elif is_real(n_components) and 0 < n_components < 1:
        rule = Fraction(float(n_components))
    elif isinstance(n_components, str) and n_components in NAMED:
        rule = NAMED[n_components]()
    else:
        plausible = is_real(n_components) or isinstance(n_components, str)
        raise (ValueError if plausible else TypeError)(
            f"n_components={n_components!r} must be an int between 0 and {min(n, d)}, a float "
            f"in the range (0.0, 1.0), one of {', '.join(map(repr, ('all', *NAMED)))}, a Rule, or "
            "None for every component"
        )
    rule.check(n, d)
    return rule
