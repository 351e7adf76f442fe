"""Methods for kernel PCA, one file each."""
