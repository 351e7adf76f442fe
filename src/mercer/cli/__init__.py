"""The command line: ``mercer fit | plan | transform | …``.

Heavy packages are imported only when a command needs them: ``mercer --help`` answers at once.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and end the process with its exit code."""
    code = 130
    try:
        from mercer.cli.process import interrupts, signal_code

        with interrupts():
            from mercer.cli.app import run

            code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while the command line was read, or before
        from mercer.cli.process import signal_code
    sys.exit(signal_code() or code)  # typer has one code for all signals
