"""Methods for linear PCA, one file each."""
