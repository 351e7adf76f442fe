"""A report of a fitted model: one self-contained HTML file."""

from mercer.report.write import write_report

__all__ = ["write_report"]
