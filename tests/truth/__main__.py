"""Check certificates against dense results: python -m tests.truth --cases 20000 --seeds 0 1 2."""

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.truth import case

CHUNK = 25


def main():
    options = parsed()
    if options.case:
        return one(options.case)
    results = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for done in pool.map(chunk, tasks(options)):
            for result in done:
                results.append(result)
                for look in result.violations:
                    print(line(result, look), flush=True)
    return report(results)


def parsed():
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="cases of each seed")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", help="generators or ways whose name contains this")
    parser.add_argument("--case", help="one case, SEED:INDEX, in full")
    return parser.parse_args()


def tasks(options):
    last = options.first + options.cases
    for seed in options.seeds:
        for start in range(options.first, last, CHUNK):
            yield seed, range(start, min(start + CHUNK, last)), options.only


def chunk(task):
    seed, indices, only = task
    wanted = []
    for index in indices:
        way, generator = case.chosen(seed, index)
        if only is None or only in way.name or only in generator:
            wanted.append(index)
    return [case.run(seed, index) for index in wanted]


def line(result, look):
    apart = "" if look.sure else " (at 99.9 %)"
    again = f"python -m tests.truth --case {result.seed}:{result.index}"
    return f"{look.check}{apart}: {look.wrong}\n    {result.text}\n    {again}"


def one(name):
    seed, index = (int(part) for part in name.split(":"))
    model, found, kernel = case.drawn(seed, index)
    result = case.run(seed, index)
    print(case.described(model, found, kernel))
    if kernel is not None:
        print("kernel:", kernel.name, kernel.settings)
    print("refused:", result.refused or "no", f"({result.seconds:.3f} s)")
    for look in result.looks:
        print(f"  {look.check}: {look.wrong or 'holds'}{'' if look.sure else ' (at 99.9 %)'}")
    return int(bool(result.violations))


def report(results):
    """Print counts, and return the exit status."""
    for title, key in (("data", "generator"), ("way", "way"), ("kernel", "kernel")):
        table(title, results, lambda result, key=key: getattr(result, key))
    looked, wrong = Counter(), Counter()
    for result in results:
        for look in result.looks:
            name = look.check if look.sure else f"{look.check} (at 99.9 %)"
            looked[name] += 1
            wrong[name] += look.wrong is not None
    print(f"\n{'check':<34}{'looks':>8}{'false':>8}")
    for name in sorted(looked):
        print(f"{name:<34}{looked[name]:>8}{wrong[name]:>8}")
    refused = Counter(result.refused for result in results if result.refused)
    print(f"\n{sum(refused.values())} refusals of {len(results)} cases")
    for text, count in refused.most_common(25):
        print(f"{count:>6}  {text}")
    slow = sorted(results, key=lambda result: -result.seconds)[:5]
    total = sum(result.seconds for result in results)
    print(f"\n{1000 * total / max(1, len(results)):.1f} ms a case; the slowest:")
    for result in slow:
        print(f"  {result.seconds:.2f} s  {result.seed}:{result.index}  {result.text}")
    failed = sum(look.sure for result in results for look in result.violations)
    print(f"\n{failed} violations of {sum(looked.values())} looks in {len(results)} cases")
    # Of bounds at 99.9 % one in a thousand may be false.
    often = [name for name in looked if "99.9" in name and wrong[name] > 3 + 0.002 * looked[name]]
    if often:
        print(f"false more often than one in a thousand: {', '.join(often)}")
    return int(failed > 0 or bool(often))


def table(title, results, key):
    cases, wrong, refused = Counter(), Counter(), Counter()
    for result in results:
        cases[key(result)] += 1
        refused[key(result)] += bool(result.refused)
        wrong[key(result)] += any(look.sure for look in result.violations)
    print(f"\n{title:<34}{'cases':>8}{'refused':>8}{'false':>8}")
    for name in sorted(cases):
        print(f"{name:<34}{cases[name]:>8}{refused[name]:>8}{wrong[name]:>8}")


if __name__ == "__main__":
    sys.exit(main())
