"""Methods that compute components."""

from mercer.methods.base import ConvergenceWarning, Cost, Method, Size, Streaming
from mercer.methods.kernel.adaptive import Adaptive
from mercer.methods.kernel.exact import Exact
from mercer.methods.kernel.features import RandomFeatures
from mercer.methods.kernel.low_rank import Cholesky, Greedy, Nystrom, Reduced
from mercer.methods.kernel.subset import Improved, OnBasis, Subset
from mercer.methods.linear.direct import SVD, Covariance, Dot
from mercer.methods.linear.expectation_maximization import EM
from mercer.methods.linear.frequent_directions import FrequentDirections
from mercer.methods.linear.iterative import Iterative
from mercer.methods.literature.hebbian import Hebbian
from mercer.methods.literature.sparse import Sparse
from mercer.methods.literature.sparse_l1 import SparseL1
from mercer.methods.sketch import Sketch

__all__ = [
    "EM",
    "SVD",
    "Adaptive",
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
]
