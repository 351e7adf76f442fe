"""The command line: ``mercer fit | plan | transform | … ``.

Nothing heavy is imported before there is work to do: ``mercer --help`` answers at once.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and end the process with its exit code."""
    code = 130
    try:
        from mercer.cli.stops import stopped, stops

        with stops():
            from mercer.cli.app import run

            code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while the command line was read, or before
        from mercer.cli.stops import stopped
    sys.exit(stopped() or code)  # typer has one code for all signals
