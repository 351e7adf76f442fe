"""The plan of a fit: candidate methods, their costs, and the method chosen."""

from mercer.planning.kernel import METHODS as METHODS
from mercer.planning.kernel import make_kernel_plan as make_kernel_plan
from mercer.planning.plan import ASKED as ASKED
from mercer.planning.plan import NAMES as NAMES
from mercer.planning.plan import Candidate as Candidate
from mercer.planning.plan import Plan as Plan
from mercer.planning.plan import make_plan as make_plan
from mercer.planning.plan import measured as measured
