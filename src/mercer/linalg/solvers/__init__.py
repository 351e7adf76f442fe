"""Eigensolvers: the largest eigenpairs of an operator, with residuals."""

from mercer.linalg.solvers.dense import *
from mercer.linalg.solvers.iterations import *
from mercer.linalg.solvers.krylov import *
from mercer.linalg.solvers.spectrum import *

SOLVERS: dict[str, Solver] = {
    "dense": dense,
    "jacobi": jacobi,
    "krylov": krylov,
    "power": power,
    "arpack": arpack,
    "randomized": Randomized(),
}
"""Solvers by name."""
