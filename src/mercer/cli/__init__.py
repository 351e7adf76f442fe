"""The command line: ``mercer fit | plan | transform | … ``.

Nothing heavy is imported before there is work to do: ``mercer --help`` answers at once.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and end the process with its exit code."""
    from mercer.cli.stops import stopped, stops

    try:
        with stops():
            from mercer.cli.app import run

            code = run(sys.argv[1:])
        code = stopped() or code  # typer has one code for all signals
    except KeyboardInterrupt:  # while the command line was read, or before
        code = stopped() or 130
    sys.exit(code)
