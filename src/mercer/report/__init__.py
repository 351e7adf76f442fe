"""A report of a fitted model: one HTML file that needs nothing else, not even a network."""

from mercer.report.write import write_report

__all__ = ["write_report"]
