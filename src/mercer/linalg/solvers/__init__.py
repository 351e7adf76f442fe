"""Eigensolvers: the largest eigenpairs of an operator, with residuals."""

from mercer.linalg.solvers.dense import dense, jacobi
from mercer.linalg.solvers.iterations import Randomized, arpack, power
from mercer.linalg.solvers.krylov import krylov, unseen_norm
from mercer.linalg.solvers.spectrum import Solver, Spectrum, StopRule, rayleigh_ritz, ritz_pairs

__all__ = [
    "SOLVERS",
    "Randomized",
    "Solver",
    "Spectrum",
    "StopRule",
    "arpack",
    "dense",
    "jacobi",
    "krylov",
    "power",
    "rayleigh_ritz",
    "ritz_pairs",
    "unseen_norm",
]

SOLVERS: dict[str, Solver] = {
    "dense": dense,
    "jacobi": jacobi,
    "krylov": krylov,
    "power": power,
    "arpack": arpack,
    "randomized": Randomized(),
}
"""Solvers by name."""
