"""What a run found beside what was printed, and the page that keeps it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import text
from benchmarks.environment import environment

HERE = Path(__file__).resolve().parent
PAGE = HERE / "RESULTS.md"
_TOP = """# Results of the sources, made again

Each part is written by `python -m papers NAME`, which runs everything anew.
"""
_HEAD = ("what", "printed", "ours", "must", "met", "note")


@dataclass
class Line:
    """One figure: ours, the source's, and what ours must be.

    Attributes
    ----------
    what : str
        What was measured.
    ours, spread : float
        The figure, and its standard deviation over trials where there were several.
    printed : str
        The figure of the source as it stands there.
    most, least : float
        What ours may be at most, and must be at least.
    form : str
        How the figures are written, a format such as ``.2f``.
    """

    what: str
    ours: float
    printed: str = "–"
    most: float | None = None
    least: float | None = None
    spread: float | None = None
    form: str = ".2f"
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether ours is as it must be; None where nothing must."""
        if self.most is None and self.least is None:
            return None
        over = self.most is not None and not self.ours <= self.most
        under = self.least is not None and not self.ours >= self.least
        return not (over or under)

    def cells(self) -> tuple[str, ...]:
        """Return the line as texts."""
        bounds = [f"≤ {self.most:{self.form}}"] if self.most is not None else []
        bounds += [f"≥ {self.least:{self.form}}"] if self.least is not None else []
        spread = "" if self.spread is None else f" ± {self.spread:{self.form}}"
        met = {True: "yes", False: "NO", None: "–"}[self.met]
        ours = f"{self.ours:{self.form}}{spread}"
        return self.what, self.printed, ours, " and ".join(bounds) or "–", met, self.note


@dataclass
class Result:
    """What one run found.

    Attributes
    ----------
    title : str
        What was made again, with the place in its source.
    lines : list of Line
        The figures.
    figure : matplotlib Figure
        The picture, where there is one.
    text : str
        Sentences that go with them: the protocol, and what differs from the source's.
    """

    title: str
    lines: list[Line]
    figure: Any = None
    text: str = ""

    @property
    def met(self) -> bool:
        """Whether everything is as it must be."""
        return all(line.met is not False for line in self.lines)

    def table(self, markdown: bool = False) -> str:
        """Return the lines as a table."""
        return text.table([_HEAD, *(line.cells() for line in self.lines)], markdown)


def keep(name: str, result: Result, seconds: float, page: Path = PAGE) -> None:
    """Write a result into the page, in place of the one that stood there."""
    facts = environment()
    versions = ", ".join(f"{key} {value}" for key, value in facts["versions"].items())
    parts = [f"## {name}", result.title, result.text, result.table(markdown=True)]
    if result.figure is not None:
        picture = page.parent / "images" / f"{name}.png"
        picture.parent.mkdir(exist_ok=True)
        result.figure.savefig(picture, dpi=110)
        parts.append(f"![{name}](images/{picture.name})")
    parts.append(
        f"`python -m papers {name}`, {facts['date'][:10]}: {versions}; {facts['cpu']}, "
        f"{facts['cores']} cores, {seconds:.0f} s."
    )
    ours = "\n\n".join(part for part in parts if part)
    old = page.read_text(encoding="utf-8") if page.exists() else _TOP
    top, *sections = re.split(r"^(?=## )", old, flags=re.MULTILINE)
    kept = [part.strip() for part in sections if part.split("\n", 1)[0] != f"## {name}"]
    whole = [top.strip(), *sorted([*kept, ours])]
    page.write_text("\n\n".join(whole) + "\n", encoding="utf-8")
