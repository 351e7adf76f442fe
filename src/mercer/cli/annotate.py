"""``mercer fit --obsm``: results in a copy of an AnnData file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mercer.anndata import pca_fields
from mercer.cli.apply import compute_scores
from mercer.cli.console import UsageError
from mercer.cli.options import Options
from mercer.cli.rows import existing
from mercer.data import Source
from mercer.data.anndata import match_names
from mercer.data.errors import FileGuard
from mercer.data.files import split_path
from mercer.data.files.anndata import variable_names
from mercer.data.files.annotated import copy_annotated

SUFFIX = ".h5ad"


@dataclass(frozen=True)
class AnnotatedCopy:
    """A copy to write, and the file that it is made of, watched for changes."""

    path: Path
    data: Path
    part: str
    guard: FileGuard

    def write(self, model: Any, source: Source, path: Path) -> None:
        """Write the copy with the scores, components and variances of a model to a path."""
        names, (group, _, key) = variable_names(self.data), self.part.partition("/")
        fields = pca_fields(
            model,
            compute_scores(model, source)[0],
            (source.shape[0], len(names)),
            None if source.names is None else match_names(names, source.names)[0],
            layer=key if group == "layers" else None,
            use_rep=key if group == "obsm" else None,
        )
        copy_annotated(self.data, path, fields, self.guard)


def output_files(options: Options) -> tuple[Path | None, AnnotatedCopy | None]:
    """Return the model file and the copy to write; at least one of them."""
    output: Path | None = options.output
    if not options.obsm:
        if output is None:
            raise UsageError("Missing option '--output' / '-o'.")
        return output, None
    data, part = split_path(options.data)
    if data.suffix.lower() != SUFFIX or options.format not in (None, SUFFIX[1:]):
        raise UsageError(
            f"--obsm writes into a copy of an .h5ad file, but the data is {options.data}. Use "
            f"--scores to write a table of scores."
        )
    part = part.strip("/")
    if part.partition("/")[0] not in ("", "X", "layers", "obsm"):
        raise UsageError(f"--obsm takes X, layers/NAME or obsm/NAME of the file, not {part}.")
    existing(options.data)
    path = data.with_name(f"{data.stem}_pca{data.suffix}")
    if output is not None and output.suffix.lower() == SUFFIX:
        path, output = output, None
    return output, AnnotatedCopy(path, data, part, FileGuard([data]))
