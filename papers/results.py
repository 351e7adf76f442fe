"""What a run found beside what was printed, and the page that keeps it."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import text
from benchmarks.environment import environment
from papers import page as pages

HERE = Path(__file__).resolve().parent
PAGE = HERE / "RESULTS.md"
NONE = "none, nothing is drawn"
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
    departs : bool
        Whether the text tells why ours is not what the source has it to be: the line says NO, and
        the run has not failed.
    """

    what: str
    ours: float
    printed: str = "–"
    most: float | None = None
    least: float | None = None
    spread: float | None = None
    form: str = ".2f"
    note: str = ""
    departs: bool = False

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
        # Bounds that look the same are one, but for rounding: "= 1".
        if len({bound[2:] for bound in bounds}) < len(bounds):
            bounds = [f"= {self.most:{self.form}}"]
        spread = "" if self.spread is None else f" ± {self.spread:{self.form}}"
        met = {True: "yes", False: "NO", None: "–"}[self.met]
        ours = f"{self.ours:{self.form}}{spread}"
        return self.what, self.printed, ours, " and ".join(bounds) or "–", met, self.note


def fill(lines: list[Line], draws: np.ndarray[Any, Any]) -> None:
    """Give lines their means and deviations over draws, a row a draw and a column a line."""
    for line, values in zip(lines, draws.T, strict=True):
        line.ours, line.spread = float(values.mean()), float(values.std())


@dataclass
class Result:
    """What one run found.

    Attributes
    ----------
    title : str
        What was made again, and in brackets the place in its source: ``(worrell §4.1)``.
    lines : list of Line
        The figures.
    figure : matplotlib Figure
        The picture, where there is one.
    text : str
        Sentences that go with them: the protocol, and what differs from the source's. An empty
        line parts paragraphs, whose lines are joined.
    seeds : str
        What was drawn at random, with its seeds; `NONE` where nothing is.
    """

    title: str
    lines: list[Line]
    figure: Any = None
    text: str = ""
    seeds: str = field(kw_only=True)

    def __post_init__(self) -> None:
        parts = re.split(r"\n\s*\n", self.text.strip())
        self.text = "\n\n".join(" ".join(part.split()) for part in parts)

    @property
    def met(self) -> bool:
        """Whether everything is as it must be, but for what the text tells."""
        return all(line.met is not False or line.departs for line in self.lines)

    def table(self, markdown: bool = False) -> str:
        """Return the lines as a table."""
        return text.table([_HEAD, *(line.cells() for line in self.lines)], markdown)


def save(figure: Any, path: Path) -> None:
    """Write a picture in 256 colours, a third of what all colours take."""
    from PIL import Image

    made = io.BytesIO()
    figure.savefig(made, dpi=110)
    with Image.open(made) as picture:
        few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def threads(pools: list[dict[str, Any]]) -> str:
    """Say how many threads a matrix product may take in this process."""
    most = [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]
    return f"{max(most)} BLAS thread{'s' if max(most) > 1 else ''}, " if most else ""


def keep(name: str, result: Result, seconds: float, page: Path = PAGE) -> None:
    """Write a result into the page, in place of the one that stood there."""
    facts = environment()
    versions = ", ".join(f"{key} {value}" for key, value in facts["versions"].items())
    parts = [f"## {name}", result.title, result.text, result.table(markdown=True)]
    if result.figure is not None:
        picture = page.parent / "images" / f"{name}.png"
        picture.parent.mkdir(exist_ok=True)
        save(result.figure, picture)
        parts.append(f"![{name}](images/{picture.name})")
    parts.append(
        f"`python -m papers {name}`, {facts['date'][:10]}: {versions}; {facts['cpu']}, "
        f"{facts['cores']} cores, {threads(facts['threads'])}{seconds:.0f} s. "
        f"Seeds: {result.seeds}."
    )
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    ours = "\n\n".join(part for part in parts if part)
    page.write_text(pages.put(old, name, ours), encoding="utf-8")
