"""Eigensolvers: an operator in, its largest eigenvalues with vectors and residuals out."""

from mercer.eigen.arpack import arpack
from mercer.eigen.dense import dense
from mercer.eigen.jacobi import jacobi
from mercer.eigen.krylov import krylov
from mercer.eigen.power import power
from mercer.eigen.probe import unseen
from mercer.eigen.randomized import Randomized
from mercer.eigen.spectrum import Enough, Solver, Spectrum, rayleigh_ritz, ritz_pairs

__all__ = [
    "SOLVERS",
    "Enough",
    "Randomized",
    "Solver",
    "Spectrum",
    "arpack",
    "dense",
    "jacobi",
    "krylov",
    "power",
    "rayleigh_ritz",
    "ritz_pairs",
    "unseen",
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
