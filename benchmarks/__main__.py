"""Run the benchmarks, print the table and write results/NAME.json."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys

from benchmarks import report
from benchmarks.environment import environment
from benchmarks.harness import Row, say, warm_up

NAMES = (
    "small",
    "tall",
    "wide",
    "disk",
    "beyond",
    "gpu",
    "sparse",
    "single_cell",
    "memory",
    "kernels",
    "kernel_pca",
    "sketches",
    "basis",
    "certificates",
    "faces",
    "ways",
    "applications",
    "files",
    "cli",
)


def main() -> int:
    """Return 1 where something that must be is not so."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Mercer and scikit-learn side by side. The status is 1 where a must is missed.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all")
    parser.add_argument("--repeats", type=int, help="of every timing; each has its own number")
    parser.add_argument("--quick", action="store_true", help="small sizes, and no verdicts")
    parser.add_argument("--markdown", action="store_true", help="end with the table in Markdown")
    options = parser.parse_args()
    for name in options.names:
        if name not in NAMES:
            parser.error(f"{name!r} is not one of {', '.join(NAMES)}")
    if options.repeats is not None and options.repeats < 1:
        parser.error("--repeats must be at least 1")

    # So that the temporary files go, too, when the run is ended from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    warm_up()
    print(report.heading(environment()))
    table: list[Row] = []
    for name in options.names or NAMES:
        say(name)
        facts = environment()
        rows = importlib.import_module(f"benchmarks.{name}").run(options.repeats, options.quick)
        if options.quick:
            for row in rows:
                row.must = row.aim = None
        report.save(name, rows, facts, options.quick)
        print(f"\n{report.table(rows)}", flush=True)
        table += rows
    if options.markdown:
        print(f"\n{report.table(table, markdown=True)}")
    return int(any(row.met is False for row in table))


if __name__ == "__main__":
    sys.exit(main())
