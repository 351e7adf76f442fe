"""The plan: which methods could do the work, what each costs, and which one is chosen."""

from mercer.planning.base import Candidate, Plan
from mercer.planning.kernel import METHODS, alternatives, make_kernel_plan
from mercer.planning.linear import NAMES, make_plan

__all__ = ["METHODS", "NAMES", "Candidate", "Plan", "alternatives", "make_kernel_plan", "make_plan"]
