"""The sources' tables and figures, made again: ``python -m papers NAME``."""
