"""Make results of the sources again, print ours beside the printed figures, and keep them."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time

from benchmarks.environment import environment
from papers import page, results

HELPERS = {"__main__", "data", "drawing", "openml", "page", "panels", "results", "shapes"}
NAMES = sorted({module.name for module in pkgutil.iter_modules([str(results.HERE)])} - HELPERS)


def main(arguments: list[str] | None = None) -> int:
    """Return 1 where a figure is not what it must be, or what was named has no data."""
    parser = argparse.ArgumentParser(
        prog="python -m papers",
        description="The status is 1 where a figure is not what it must be.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all")
    parser.add_argument(
        "--quick", action="store_true", help="seconds instead of minutes; no verdict, nothing kept"
    )
    parser.add_argument(
        "--contents", action="store_true", help="write the contents of the page anew; run nothing"
    )
    options = parser.parse_args(arguments)
    if options.contents and options.names:
        parser.error("--contents writes the whole page, and takes no names")
    if options.contents:
        text = results.PAGE.read_text(encoding="utf-8")
        results.PAGE.write_text(page.whole(page.parsed(text)), encoding="utf-8")
        return 0
    for name in options.names:
        if name not in NAMES:
            parser.error(f"{name!r} is not one of {', '.join(NAMES)}")
    environment()  # the commit is noted before anything is written
    met, found, skipped, began = True, list[results.Result](), list[str](), time.perf_counter()
    for name in options.names or NAMES:
        start = time.perf_counter()
        try:
            result = importlib.import_module(f"papers.{name}").run(options.quick)
        except FileNotFoundError as absent:
            print(f"\n{name}: skipped, {absent}", flush=True)
            skipped.append(name)
            met = met and name not in options.names
            continue
        seconds = time.perf_counter() - start
        print(f"\n{result.title}\n\n{result.table()}\n\n{result.text}\n{seconds:.0f} s", flush=True)
        found.append(result)
        if not options.quick:
            results.keep(name, result, seconds)
            met = met and result.met
    if not options.quick:
        print(summary(found, skipped, time.perf_counter() - began))
    return 0 if met else 1


def summary(found: list[results.Result], skipped: list[str], seconds: float) -> str:
    """Say how many results there are, which bounds they do not keep, and what is not there."""
    bounds = [line for result in found for line in result.lines if line.met is not None]
    missed = [line for line in bounds if not line.met]
    kept = f"{len(bounds) - len(missed)} of {len(bounds)} bounds met"
    text = f"\nresults: {len(found)} in {seconds / 60:.1f} minutes, {kept}"
    notes = [f"  not met{', explained' * line.departs}: {line.what}" for line in missed]
    notes += [f"  skipped, as there are no data: {name}" for name in skipped]
    return "\n".join([text, *notes])


if __name__ == "__main__":
    sys.exit(main())
