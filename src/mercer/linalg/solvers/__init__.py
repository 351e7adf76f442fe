"""Eigensolvers: the largest eigenpairs of an operator, with residuals."""

from mercer.linalg.solvers.dense import dense as dense
from mercer.linalg.solvers.dense import jacobi as jacobi
from mercer.linalg.solvers.iterations import Randomized as Randomized
from mercer.linalg.solvers.iterations import arpack as arpack
from mercer.linalg.solvers.iterations import power as power
from mercer.linalg.solvers.krylov import krylov as krylov
from mercer.linalg.solvers.krylov import unseen_norm as unseen_norm
from mercer.linalg.solvers.spectrum import Solver as Solver
from mercer.linalg.solvers.spectrum import Spectrum as Spectrum
from mercer.linalg.solvers.spectrum import rayleigh_ritz as rayleigh_ritz
from mercer.linalg.solvers.spectrum import ritz_pairs as ritz_pairs

SOLVERS: dict[str, Solver] = {
    "dense": dense,
    "jacobi": jacobi,
    "krylov": krylov,
    "power": power,
    "arpack": arpack,
    "randomized": Randomized(),
}
"""Solvers by name."""
