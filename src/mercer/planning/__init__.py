"""The plan: which methods could do the work, what each costs, and which one is chosen."""

from mercer.planning.kernel import METHODS, make_kernel_plan
from mercer.planning.plan import ASKED, NAMES, Candidate, Plan, make_plan, measured

__all__ = [
    "ASKED",
    "METHODS",
    "NAMES",
    "Candidate",
    "Plan",
    "make_kernel_plan",
    "make_plan",
    "measured",
]
