"""Methods: a problem in, a projection out; one file each."""

from mercer.methods.base import ConvergenceWarning, Cost, Method, Size, Streaming
from mercer.methods.basis import OnBasis
from mercer.methods.cholesky import Cholesky
from mercer.methods.covariance import Covariance
from mercer.methods.dot import Dot
from mercer.methods.exact import Exact
from mercer.methods.features import RandomFeatures
from mercer.methods.frequent import FrequentDirections
from mercer.methods.greedy import Greedy
from mercer.methods.hebbian import Hebbian
from mercer.methods.improved import Improved
from mercer.methods.iterative import Iterative
from mercer.methods.nystrom import Nystrom
from mercer.methods.reduced import Reduced
from mercer.methods.sketch import Sketch
from mercer.methods.sparse import Sparse
from mercer.methods.sparse_l1 import SparseL1
from mercer.methods.subset import Subset
from mercer.methods.svd import SVD
from mercer.methods.within import Within

__all__ = [
    "SVD",
    "Cholesky",
    "ConvergenceWarning",
    "Cost",
    "Covariance",
    "Dot",
    "Exact",
    "FrequentDirections",
    "Greedy",
    "Hebbian",
    "Improved",
    "Iterative",
    "Method",
    "Nystrom",
    "OnBasis",
    "RandomFeatures",
    "Reduced",
    "Size",
    "Sketch",
    "Sparse",
    "SparseL1",
    "Streaming",
    "Subset",
    "Within",
]
