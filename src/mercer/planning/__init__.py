"""The plan of a fit: candidate methods, their costs, and the method chosen."""

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
