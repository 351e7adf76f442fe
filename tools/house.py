"""Measure how large the code base is and how far a reader must go to follow a fit.

``python tools/house.py`` prints each figure, its limit and its goal, and exits with 1 when a limit
is exceeded; ``--no-limits`` only prints. Lower a limit whenever a figure falls.
"""

import argparse
import ast
import sys
import tempfile
import threading
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "mercer"

# What must not be exceeded now, and the goal.
LIMITS = {
    "lines in src": (41_400, 33_000),
    "files in src": (212, 210),
    "layers of the import contract": (6, 6),
    "functions called by PCA(10).fit(X)": (100, 100),
    "files entered by PCA(10).fit(X)": (22, 22),
    "functions called by a Subset fit of a CSV file": (200, 200),
    "files entered by a Subset fit of a CSV file": (36, 35),
    "functions called by it with random blocks": (285, 275),
    "files entered by it with random blocks": (45, 43),
    "public names with two meanings": (0, 0),
    "files that mention a kernel, its test catalogue included": (2, 2),
    "files that mention a method, its test catalogue included": (3, 3),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-limits", action="store_true", help="print only")
    parser.add_argument("--list", action="store_true", help="list functions and duplicate names")
    options = parser.parse_args()
    names = collisions()
    pca, subset, blocks = calls(fit_pca), calls(fit_subset), calls(fit_with_blocks)
    values = [
        sum(len(path.read_text().splitlines()) for path in modules()),
        len(modules()),
        layers(),
        *counts(pca),
        *counts(subset),
        *counts(blocks),
        len(names),
        mentions("RationalQuadratic", "tests/kernel_catalogue.py"),
        mentions("Reduced", "tests/catalogue.py"),
    ]
    figures = dict(zip(LIMITS, values, strict=True))
    if options.list:
        print_details(pca, blocks, names)
    return report(figures, enforce=not options.no_limits)


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def layers():
    with open(ROOT / "pyproject.toml", "rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return max(len(contract.get("layers", ())) for contract in contracts)


def collisions():
    """Return the public top-level functions and classes that several modules define."""
    places = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    return {name: paths for name, paths in sorted(places.items()) if len(paths) > 1}


def mentions(name, catalogue):
    """Count the files, catalogue included, that must name a class for it to be usable.

    Re-exports in ``__init__.py`` count; docstrings and comments do not.
    """
    files = [path for path in modules() if name in identifiers(path)]
    return len(files) + (ROOT / catalogue).exists()


def identifiers(path):
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.alias)):
            found.add(node.name)
    return found


def calls(run):
    """Return the functions of Mercer that a call enters, in every thread, as (file, name).

    Comprehensions, which are functions in Python 3.11 alone, do not count.
    """
    entered = set()

    def profile(frame, event, argument):
        file, name = frame.f_code.co_filename, frame.f_code.co_qualname
        if event == "call" and file.startswith(str(PACKAGE)) and not name.endswith("comp>"):
            entered.add((file, name))

    call = run()
    call()  # imports and caches are not part of the path that a reader follows
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return entered


def counts(entered):
    return len(entered), len({file for file, _ in entered})


def fit_pca():
    import numpy as np

    from mercer import PCA

    X = np.random.default_rng(0).standard_normal((20_000, 40))
    return lambda: PCA(10).fit(X)


def fit_with_blocks():
    return fit_subset(certificate=True)


def fit_subset(certificate=False):
    import numpy as np

    from mercer import KernelPCA
    from mercer.methods import Subset

    X = np.random.default_rng(0).standard_normal((2_000, 10))
    path = Path(tempfile.mkdtemp()) / "rows.csv"
    header = ",".join(f"x{j}" for j in range(X.shape[1]))
    np.savetxt(path, X, delimiter=",", header=header, comments="")
    settings = {"kernel": "rbf", "gamma": 0.1, "certificate": certificate, "random_state": 0}
    model = KernelPCA(5, method=Subset(100), **settings)
    return lambda: model.fit(str(path))


def print_details(pca, subset, names):
    for title, entered in (("PCA(10).fit(X)", pca), ("Subset fit of a CSV file", subset)):
        print(title)
        for file, name in sorted(entered):
            print(f"  {Path(file).relative_to(PACKAGE)}: {name}")
    for name, paths in names.items():
        print(f"{name}: {', '.join(paths)}")


def report(figures, *, enforce):
    failed = False
    for name, value in figures.items():
        limit, goal = LIMITS[name]
        failed |= value > limit
        note = "  exceeded" if value > limit else "  above the goal" if value > goal else ""
        print(f"{name:<58}{value:>8}{limit:>8}{goal:>8}{note}")
    if failed and enforce:
        print("Shorten the code, or raise the limit in LIMITS of tools/house.py and say why.")
    return int(failed and enforce)


if __name__ == "__main__":
    sys.exit(main())
