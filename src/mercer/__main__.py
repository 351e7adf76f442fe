"""Run the command ``mercer`` with ``python -m mercer``."""

from mercer.cli import main

main()
