"""The plan: which methods could do the work, what each costs, and which one is chosen."""

from mercer.plan.base import Candidate, Plan
from mercer.plan.kernel import METHODS, alternatives, make_kernel_plan
from mercer.plan.linear import NAMES, make_plan

__all__ = ["METHODS", "NAMES", "Candidate", "Plan", "alternatives", "make_kernel_plan", "make_plan"]
