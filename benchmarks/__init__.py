"""Mercer and scikit-learn side by side, in one run: ``python -m benchmarks --help``."""
