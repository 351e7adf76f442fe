"""The report, from a fitted model and rows to a file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from mercer.atomic_write import write_atomically
from mercer.data import materialize
from mercer.estimators.coloring import MAX_LEVELS, Coloring, coloring, row_values
from mercer.estimators.inspection import evaluated_rows
from mercer.estimators.validation import columns_of_fit, default_ids, flatten_images, image_sides
from mercer.report import html, summary
from mercer.report.charts import chart_data, image_gallery
from mercer.report.html import clean_text, format_count, format_percent, short_text
from mercer.report.subject import Subject, survey_rows


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
    """Write a report about a fitted model: one self-contained HTML file.

    It has a summary in sentences, the spectrum, scores, loadings, outliers, the certificate, the
    plan, and how to reproduce the model. Rows are read block by block.

    Parameters
    ----------
    model : PCA, KernelPCA, NoveltyDetector, Denoiser, NearestProjection or Pipeline
        Fitted; the last step of a pipeline is one of these.
    X : array, sparse matrix, DataFrame, list of str, path, Source or None
        Rows to show, in any form that `model` accepts. If None, the report shows only the model.
    path : path
        File to write; an existing file stays until the new one is complete.
    labels : array of shape (n,), optional
        Classes of the rows, or numbers.
    ids : array of shape (n,), optional
        Names of the rows; by default the id column of a file or the index of a DataFrame, or else
        numbers from 0.
    columns : mapping of str to array of shape (n,), optional
        Values to color points by, besides the label, the distance from the components and up to
        16 columns of X.
    image_shape : (height, width) or (height, width, 3), optional
        Shape of rows that are images. Rows that were read from images have one.
    title : str, optional
        Title of the page.
    origin : mapping, optional
        Where the model came from: "command" and any other facts to show. "notes", a list of
        sentences about the data, are shown in the summary.
    sample : int
        Maximum number of rows to draw. If there are more, the page shows a random sample with
        rows of every class and the rows furthest from the components, and says so.
    random_state : int, Generator or None
        Seed of the sample.

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
    subject, origin = Subject(model), origin or {}
    _check(path, X, sample, {"labels": labels, "ids": ids, "columns": columns})
    if X is not None:
        X = materialize(columns_of_fit(subject.first, X))
        if image_shape is None and subject.has_columns:
            known = getattr(X, "image_shape", None)
            same = known and math.prod(known) == subject.first.n_features_in_
            image_shape = known if same else None
    shape, shown = _image_shape(subject, image_shape), None
    if X is not None:
        images = X if shape is None else flatten_images(X, image_shape)
        rows = evaluated_rows(subject.steps, subject.model, images)
        n = rows.raw.shape[0]
        names = default_ids(X) if ids is None else ids
        shown = survey_rows(
            subject,
            rows,
            _colorings(labels, columns, n, origin.get("label")),
            labeled=labels is not None,
            ids=None if names is None else row_values(names, n, "ids"),
            most=int(sample),
            seed=random_state,
        )
    passed = {"labels": labels, "ids": ids, "columns": columns or None, "image_shape": shape}
    arguments = [name for name, value in passed.items() if value is not None]
    lines = summary.python_lines(
        subject, ["None" if X is None else "X", *arguments], Path(path).name
    )
    if not title:
        file, title = origin.get("file"), subject.kind[0].upper() + subject.kind[1:]
        title += f" of {Path(str(file)).name}" if file else ""
    loadings = summary.loadings_table(subject, shown)
    # Pixels have no names that a reader knows.
    named = None if shape else loadings
    context = {
        "title": clean_text(title, 200),
        "subject": subject,
        "shown": shown,
        "key_figures": _key_figures(subject),
        "paragraphs": summary.summary_paragraphs(subject, shown, named),
        "notes": [clean_text(note) for note in origin.get("notes") or ()],
        "certificate_columns": summary.certificate_columns(subject),
        "plan_rows": summary.plan_rows(subject),
        "loadings": loadings,
        "gallery": image_gallery(subject, shown, shape) if shape else None,
        "outliers": summary.outlier_rows(subject, shown),
        "from_command": origin.get("command") is not None,
        "lines": summary.command_line(origin) or lines,
        "provenance": summary.provenance(subject, origin),
    }
    page = html.render_page(context, chart_data(subject, shown, shape))
    with write_atomically(path) as part:
        part.write_bytes(page.encode("utf-8", "replace"))


def _check(path: Any, X: Any, sample: Any, row_arguments: Mapping[str, Any]) -> None:
    html.require_packages()
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"path is a {type(path).__name__}, not a file path. The order is "
            f"write_report(model, X, path)."
        )
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {Path(path).parent}. Create it first.")
    if isinstance(sample, bool) or not isinstance(sample, Integral) or sample < 1:
        raise ValueError(f"sample={sample!r} must be a positive integer.")
    for name, values in row_arguments.items():
        if values is not None and X is None:
            raise ValueError(f"{name} was passed without rows: X is None. Pass the rows, too.")
    columns = row_arguments["columns"]
    if columns is not None and not hasattr(columns, "items"):
        raise TypeError(
            f"columns is a {type(columns).__name__}: pass a mapping of names to values."
        )


def _image_shape(subject: Subject, image_shape: Any) -> tuple[int, ...] | None:
    if image_shape is None:
        return None
    if not subject.has_columns:
        raise ValueError("image_shape was passed, but the rows of this model are not images.")
    sides = image_sides(image_shape, int(subject.first.n_features_in_))
    return sides[:2] if sides[2:] == (1,) else sides


def _colorings(labels: Any, columns: Any, n: int, label_name: Any) -> list[Coloring]:
    """Return what points can be colored by, labels first, each name once."""
    colorings = []
    if labels is not None:
        name = clean_text(getattr(labels, "name", None) or label_name or "label", 60)
        colorings.append(coloring(labels, n, name=name, max_integers=n))
    for key, values in (columns or {}).items():
        name, argument = short_text(key), f"columns[{clean_text(key, 40)!r}]"
        if labels is None or name != colorings[0].name:
            by = coloring(values, n, name=name, argument=argument, max_integers=MAX_LEVELS)
            colorings.append(by)
    return colorings


def _key_figures(subject: Subject) -> list[tuple[str, str]]:
    """Return the figures at the top of the page: an even number, for two columns on a phone."""
    model, shares = subject.model, subject.shares
    figures = [
        (format_count(model.n_components_), "component" + "s" * (model.n_components_ != 1)),
        (format_percent(float(model.certificate_.captured)), "variance explained"),
        (format_percent(shares[0]) if len(shares) else "–", "by component 1"),
        (format_count(model.plan_.size.n), "rows in the fit"),
    ]
    if subject.has_columns:
        figures.append((format_count(int(model.n_features_in_)), "columns"))
        figures.append(("yes" if subject.scaled else "no", "columns scaled"))
    return figures
