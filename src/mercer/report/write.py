"""The report, from a fitted model and rows to a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from mercer.atomic_write import whole
from mercer.data import collected
from mercer.estimators.validation import default_ids, from_file
from mercer.report import html, reproduce, spectrum, summary, tables
from mercer.report.colours import Colour, coloured, column
from mercer.report.gallery import gallery
from mercer.report.payload import axes_drawn, charts
from mercer.report.pictures import check_shape
from mercer.report.sample import FURTHEST, chosen, furthest
from mercer.report.subject import Subject, taken_apart
from mercer.report.survey import Found, rows_of, surveyed
from mercer.report.text import clean, count, percent, short


def write_report(
    model: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    labels: Any = None,
    ids: Any = None,
    columns: Mapping[str, Any] | None = None,
    image_shape: tuple[int, ...] | None = None,
    title: str | None = None,
    origin: Mapping[str, Any] | None = None,
    sample: int = 20_000,
    random_state: Any = 0,
) -> None:
    """Write a report of a fitted model: one HTML file that opens anywhere, without a network.

    It tells in sentences what was kept and how good that is, shows the spectrum, the scores, what
    the components are made of, the rows furthest from them, the plan and the certificate, and how
    to make it all again. Rows are read block by block.

    Parameters
    ----------
    model : PCA, KernelPCA, NoveltyDetector, Denoiser, NearestProjection or Pipeline
        Fitted; of a pipeline the last step is one of these.
    X : array, sparse matrix, DataFrame, list of str, path, Source or None
        Rows to show, as `model` takes them. None shows what the model alone tells.
    path : path
        Where to write; what stood there before stays until all is written.
    labels : array of shape (n,), optional
        Classes of the rows, or numbers.
    ids : array of shape (n,), optional
        Names of the rows; by default the id column of a file or the index of a DataFrame, else
        they are counted from 0.
    columns : mapping of str to array of shape (n,), optional
        What points can be coloured by, besides the label, the distance from the components and,
        where they are few, the columns of X.
    image_shape : (height, width) or (height, width, 3), optional
        Where rows are images.
    title : str, optional
    origin : mapping, optional
        Where the model came from: "command" and whatever else should be told. "notes", a list of
        sentences about the data, are shown in the summary.
    sample : int
        The most rows that are drawn. Where there are more, they are chosen at random, with some
        of every class and the furthest from the components, and the page says so.
    random_state : int, Generator or None
        What they are chosen by.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_wine
    >>> from mercer import PCA
    >>> from mercer.report import write_report
    >>> wine = load_wine(as_frame=True)
    >>> pca = PCA(0.8, scale=True).fit(wine.data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "wine.html"
    ...     write_report(pca, wine.data, path, labels=wine.target_names[wine.target])
    ...     "5 components explain 80.16" in path.read_text("utf-8")
    True
    """
    subject = taken_apart(model)
    _check(path, X, sample, {"labels": labels, "ids": ids, "columns": columns})
    found, colours, name = None, [], None
    image = None
    if not (subject.strings or subject.precomputed):
        image = check_shape(image_shape, int(subject.first.n_features_in_))
    elif image_shape is not None:
        raise ValueError("image_shape is given, and the rows of this model are not images.")
    if X is not None:
        X = from_file(subject.first, collected(X))
        rows = rows_of(subject, X, image_shape)
        n = rows.raw.shape[0]
        colours = _colours(labels, columns, n, (origin or {}).get("label"))
        names = default_ids(X) if ids is None else ids
        name = None if names is None else column(names, n, "ids").__getitem__
        codes = colours[0].codes if labels is not None else None
        found = surveyed(
            rows,
            chosen(n, int(sample), codes, random_state),
            most=int(sample),
            axes=axes_drawn(subject, n, int(sample)),
            related=0 if subject.linear else min(tables.AXES, subject.model.n_components_),
        )
    cuts = spectrum.cuts(subject)
    given = {"X": X is not None, "labels": labels is not None, "ids": ids is not None}
    given |= {"columns": bool(columns), "image_shape": image is not None}
    label = colours[0] if labels is not None else None
    context = _context(subject, found, label, cuts, name, image)
    context |= {
        "title": clean(title or _title(subject, origin), 200),
        "command": reproduce.command(origin),
        "lines": reproduce.lines(subject, given, Path(path).name),
        "facts": reproduce.facts(subject, origin),
        "notes": [clean(note) for note in (origin or {}).get("notes") or ()],
    }
    data = charts(subject, found, colours, labels is not None, cuts, name, image)
    written = html.page(context, data)
    with whole(path) as part:
        part.write_bytes(written.encode("utf-8", "replace"))


def _check(path: Any, X: Any, sample: Any, given: Mapping[str, Any]) -> None:
    """Refuse arguments before anything is computed."""
    html.ready()
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"path is a {type(path).__name__}, not the path of a file. The order is "
            f"write_report(model, X, path)."
        )
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {Path(path).parent}. Make it first.")
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder. Name a file in it, such as report.html.")
    if isinstance(sample, bool) or not isinstance(sample, Integral) or sample < 1:
        raise ValueError(f"sample={sample!r} must be a whole number of rows, 1 or more.")
    for name, values in given.items():
        if values is not None and X is None:
            raise ValueError(f"{name} are of rows, and X is None: pass the rows too.")
    if given["columns"] is not None and not hasattr(given["columns"], "items"):
        raise TypeError(
            f"columns is a {type(given['columns']).__name__}: pass a mapping of names to values."
        )


def _colours(labels: Any, columns: Any, n: int, usual: Any) -> list[Colour]:
    """Return what points can be coloured by, labels first, each name once."""
    found = []
    if labels is not None:
        name = clean(getattr(labels, "name", None) or usual or "label", 60)
        found.append(coloured(name, column(labels, n, "labels"), label=True))
    for name, values in (columns or {}).items():
        said = short(name)
        if labels is not None and said == found[0].name:
            continue
        found.append(coloured(said, column(values, n, f"columns[{clean(name, 40)!r}]")))
    return found


def _title(subject: Subject, origin: Mapping[str, Any] | None) -> str:
    file = None if origin is None else origin.get("file")
    kind = subject.kind[0].upper() + subject.kind[1:]
    return kind if not file else f"{kind} of {Path(str(file)).name}"


def _context(
    subject: Subject,
    found: Found | None,
    label: Colour | None,
    cuts: Any,
    name: Callable[[int], Any] | None,
    image: tuple[int, ...] | None,
) -> dict[str, Any]:
    """Return what the templates tell."""
    certificate, plan = subject.model.certificate_, subject.model.plan_
    parts = tables.makings(subject, found)
    spoken = None if image else parts  # no one knows a pixel by its name
    return {
        "subject": subject,
        "kind": subject.kind,
        "sentences": summary.sentences(subject, found, spoken, label, name or str),
        "key": _key(subject, found),
        "certificate": certificate,
        "certified": tables.certified(subject),
        "plan": plan,
        "planned": tables.planned(subject),
        "cuts": cuts,
        "makings": parts,
        "image": image,
        "gallery": None if image is None else gallery(subject, found, image, name or str),
        "drawn": "" if found is None else found.sample.sentence,
        "axes_drawn": 0 if found is None else found.scores.shape[1],
        "outliers": _outliers(subject, found, label, name),
        "label_name": "label" if label is None else label.name,
        "found": found,
    }


def _key(subject: Subject, found: Found | None) -> list[tuple[str, str]]:
    """Return the figures at the top of the page: an even number, for two columns on a phone."""
    model, share = subject.model, spectrum.shares(subject)
    figures = [
        (count(model.n_components_), "component" if model.n_components_ == 1 else "components"),
        (percent(float(model.certificate_.captured)), "of the variance explained"),
        (percent(share[0]) if len(share) else "–", "by component 1"),
        (count(model.plan_.size.n), "rows in the fit"),
    ]
    if not (subject.strings or subject.precomputed):
        figures.append((count(int(model.n_features_in_)), "columns"))
        figures.append(("yes" if subject.scaled else "no", "columns scaled"))
    return figures


def _outliers(subject: Subject, found: Found | None, label: Any, name: Any) -> list[dict[str, Any]]:
    """Return the furthest rows."""
    if found is None or found.errors is None:
        return []
    if summary.whole(subject, found.errors, found):
        return []
    middle = float(np.median(found.errors))
    rows = []
    for i in furthest(found.errors, FURTHEST).tolist():
        error = float(found.errors[i])
        text = found.rows.raw.take([i])[0] if subject.strings else None
        rows.append(
            {
                "id": str(i) if name is None else name(i),
                "row": i,
                "label": None if label is None else label.text(i),
                "error": error,
                "ratio": error / middle if middle > 0 else float("nan"),
                "beyond": subject.threshold is not None and error > subject.threshold,
                "text": text,
            }
        )
    return rows
