"""Eigensolvers: an operator in, its largest eigenvalues with vectors and residuals out."""

from mercer.linalg.solvers.arpack import arpack
from mercer.linalg.solvers.dense import dense
from mercer.linalg.solvers.jacobi import jacobi
from mercer.linalg.solvers.krylov import krylov
from mercer.linalg.solvers.power import power
from mercer.linalg.solvers.randomized import Randomized
from mercer.linalg.solvers.spectrum import Solver, Spectrum, StopRule, rayleigh_ritz, ritz_pairs
from mercer.linalg.solvers.unseen import unseen_norm

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
