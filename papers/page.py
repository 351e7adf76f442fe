"""The page of results: its parts, and the contents above them."""

from __future__ import annotations

import re
from typing import NamedTuple

SOURCES = {
    "marukatat": "S. Marukatat, Tutorial on PCA and approximate PCA and approximate kernel PCA, "
    "2022",
    "washizawa": "Y. Washizawa, Subset basis approximation of kernel principal component analysis, "
    "2012",
    "aguilera": "C. Aguilera & J. Antoñanzas, On kernel principal component analysis, 2019",
    "worrell": "J. Worrell, Principal component analysis, lecture, 2017",
    "notes": "Notes on PCA and kernel PCA, without author or date",
    "Hoffmann": "H. Hoffmann, Kernel PCA for novelty detection, 2007",
}
_TOP = """# Results of the sources, made again

Tables and figures of the literature, ours beside what was printed. Each part is written by
`python -m papers NAME`, which runs everything anew; `make papers` runs them all. "Ours" is
measured, never copied. "Must" is a bound that we set our figure, by what is printed, by what the
text beside it says, or by theory, and "met" says whether it is kept. Where a source prints a
picture and no figures, a measured property stands for what it shows. The contents count the figures
that are printed as numbers, and how many of them ours come within 5 % of; and the bounds, and how
many are met. Where ours is farther off, the part says why, as far as we know. Every part ends with
its command, date, versions, machine and seeds."""
_PLACE = re.compile(rf"\(({'|'.join(SOURCES)}),? ?([^()]*)\)")


_FIGURE = re.compile(r"(\d[\d.]*(?:e[+-]?\d+)?)(?: ± \S+)?")


class Part(NamedTuple):
    """One result of the page."""

    name: str
    text: str

    @property
    def title(self) -> str:
        """What was made again: the paragraph below the heading."""
        return " ".join(self.text.split("\n\n", 2)[1].split())

    @property
    def place(self) -> tuple[str, str]:
        """The source and the place in it, which the title has in brackets."""
        found = _PLACE.search(self.title)
        return (found[1], found[2]) if found else ("", "")

    @property
    def order(self) -> tuple[int, tuple[int, ...], str]:
        """Where it stands: by its source, then by the numbers of its place, then by its name."""
        source, where = self.place
        rank = list(SOURCES).index(source) if source else len(SOURCES)
        return rank, tuple(map(int, re.findall(r"\d+", where))), self.name

    @property
    def seconds(self) -> int:
        """How long it took."""
        found = re.search(r" (\d+) s\. Seeds: ", self.text)
        return int(found[1]) if found else 0

    def cells(self) -> list[str]:
        """Return its line of the contents."""
        source, where = self.place
        what = _PLACE.sub("", self.title).split(": ")[0].replace(" ,", ",").strip(" .")
        met, not_met = (self.text.count(f"| {word} |") for word in ("yes", "NO "))
        picture = ""
        if f"](images/{self.name}.png)" in self.text:
            path = f"images/{self.name}.png"
            picture = f'<a href="{path}"><img src="{path}" width="220" alt="{self.name}"></a>'
        close = self.close()
        counts = [(sum(close), len(close)), (met, met + not_met)]
        near, verdict = (f"{some} of {all_}" if all_ else "–" for some, all_ in counts)
        link, seconds = f"[{self.name}](#{self.name})", str(self.seconds)
        return [source or "–", where or "–", link, what, near, verdict, seconds, picture]

    def close(self) -> list[bool]:
        """Return of every figure that is printed as a number whether ours is within 5 % of it."""
        made = []
        for line in self.text.splitlines():
            cells = [cell.strip() for cell in line.split(" | ")]
            both = [_FIGURE.fullmatch(cell) for cell in cells[1:3]]
            if line.startswith("| ") and len(both) == 2 and both[0] and both[1]:
                printed, ours = (float(figure[1]) for figure in both if figure)
                made.append(abs(ours - printed) <= max(0.05 * printed, 1e-9))
        return made


def put(old: str, name: str, text: str) -> str:
    """Return the page with a part in place of the one of that name, and contents that fit."""
    parts = {part.name: part for part in parsed(old)} | {name: Part(name, text.strip())}
    return whole(list(parts.values()))


def whole(parts: list[Part]) -> str:
    """Return the page of these parts, in the order of the contents."""
    kept = sorted(parts, key=lambda part: part.order)
    return "\n\n".join([_TOP, contents(kept), *(part.text for part in kept)]) + "\n"


def parsed(page: str) -> list[Part]:
    """Return the parts of a page; headings of the second order begin them."""
    pieces = re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]
    return [Part(piece.split("\n", 1)[0].removeprefix("## "), piece.strip()) for piece in pieces]


def contents(parts: list[Part]) -> str:
    """Return a table from source to figure, part and picture, and the names of the sources."""
    head = ["source", "place", "part", "what", "within 5 %", "bounds met", "seconds", "picture"]
    lines = [head, ["---"] * len(head), *(part.cells() for part in parts)]
    used = {part.place[0] for part in parts}
    names = [f"- **{key}**: {full}" for key, full in SOURCES.items() if key in used]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    took = f"All of them took {sum(part.seconds for part in parts) / 60:.0f} minutes."
    return "\n\n".join(piece for piece in (table, took, "\n".join(names)) if piece)
