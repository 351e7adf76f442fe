"""Functions for arrays of any library; the only importer of array_api_compat.

Data stays in the library and on the device it came from (NumPy, torch, ...). Small matrices, the
spectra and projected matrices of the solvers, are float64 NumPy arrays; those computed on a device
stay there until the host needs them (`DeviceMatrix`).
"""

from mercer.arrays.linear import *
from mercer.arrays.places import *
from mercer.arrays.transfer import copy_stream as copy_stream
