"""Fitted maps, the results of all methods."""

from mercer.projection.fourier import FourierProjection as FourierProjection
from mercer.projection.incomplete import IncompleteProjection as IncompleteProjection
from mercer.projection.incomplete import with_factors as with_factors
from mercer.projection.incomplete import with_means as with_means
from mercer.projection.kernel import KernelProjection as KernelProjection
from mercer.projection.kernel import best_in_span as best_in_span
from mercer.projection.kernel import joint_residuals as joint_residuals
from mercer.projection.kernel import row_expansion as row_expansion
from mercer.projection.kernel import span_variance as span_variance
from mercer.projection.kernel import weighted_signs as weighted_signs
from mercer.projection.linear import LinearProjection as LinearProjection
from mercer.projection.linear import Projection as Projection
