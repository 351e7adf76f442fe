"""Model files: arrays in safetensors, everything else in plain JSON, never code."""

from __future__ import annotations

import json
import os
from typing import Any

from mercer.modelfile.container import (
    FORMAT,
    ModelFileError,
    make_header,
    read_contents,
    read_texts,
    refuse_file,
    write_contents,
)

__all__ = ["ModelFileError", "load", "read_header", "save"]


def save(model: Any, path: str | os.PathLike[str], *, origin: dict[str, Any] | None = None) -> None:
    """Save a fitted model to a file that is safe to load.

    The file replaces an existing one only when it is complete.

    Parameters
    ----------
    model : estimator
        A fitted Mercer estimator, or a fitted `sklearn.pipeline.Pipeline` that ends in one,
        after a mean `SimpleImputer`, a `StandardScaler`, or both.
    path : path
        The file; ``.mercer`` is the usual suffix.
    origin : dict, optional
        Where the model comes from, for `read_header`: plain JSON, such as texts and numbers.

    Raises
    ------
    ModelFileError
        If a part of the model cannot be saved, such as a function; the message names the part.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import mercer
    >>> with TemporaryDirectory() as folder:
    ...     mercer.save(mercer.PCA(1).fit([[0.0, 1.0], [2.0, 3.0]]), f"{folder}/line.mercer")
    ...     mercer.load(f"{folder}/line.mercer").transform([[4.0, 5.0]]).round(3)
    array([[4.243]])
    """
    from sklearn.utils.validation import check_is_fitted

    from mercer.modelfile.tree import Encoder

    _require_model(model)
    check_is_fitted(model)
    encoder = Encoder()
    texts = {"format": "mercer", "version": str(FORMAT)}
    parts = {"tree": encoder.node(model, ""), "header": make_header(model, origin)}
    for name, part in parts.items():
        texts[name] = json.dumps(part, allow_nan=False, separators=(",", ":"))
    write_contents(path, texts, encoder.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model saved by `save`, identical to the bit; `partial_fit` can continue.

    Nothing in the file is run: it can only name classes from a closed list of Mercer's own, and
    give them plain values and arrays. A model that was fitted to torch tensors holds tensors on
    the host, and needs torch.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is truncated, was changed after it was written, or was
        written by a later version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import mercer
    >>> with TemporaryDirectory() as folder:
    ...     mercer.save(mercer.PCA(1).fit([[0.0, 1.0], [2.0, 3.0]]), f"{folder}/line.mercer")
    ...     mercer.load(f"{folder}/line.mercer")
    PCA(n_components=1)
    """
    from sklearn.utils.validation import check_is_fitted

    from mercer.modelfile.tree import Decoder

    texts, arrays = read_contents(path)
    version = _require_format(path, texts)
    try:
        model = Decoder(arrays, version).model(json.loads(texts["tree"]))
        _require_model(model)
        check_is_fitted(model)
    except ImportError:  # of torch
        raise
    except Exception as error:  # whatever a file can say
        refuse_file(path, error)
    return model


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of a model file, without reading arrays or verifying the checksum.

    Returns
    -------
    dict
        Plain JSON, as the file has it:

        - "format", "checksum": version of the format; SHA-256 of the file.
        - "estimator", "method", "kernel": class of the model (the last step of a pipeline), method
          that found the components, and kernel, as `mercer.kernels.parse` reads it; None for PCA.
        - "parameters", "preprocessing": parameters of the model by name; steps before it.
        - "feature_names", "n_features": of the columns; None where there are none.
        - "certificate": "sentence", "notes", "text", and figures, "captured", "optimum_upper" and
          "gap", each with its label; for a classifier, those of the class with the widest gap.
        - "spectrum": "eigenvalues", the first variances, and their "shares" of the total; None
          where a number is not finite.
        - "versions", "created": versions of the libraries; time of saving, UTC.
        - "origin": the `origin` passed to `save`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import mercer
    >>> with TemporaryDirectory() as folder:
    ...     mercer.save(mercer.PCA(1).fit([[0.0, 1.0], [2.0, 3.0]]), f"{folder}/line.mercer")
    ...     header = mercer.modelfile.read_header(f"{folder}/line.mercer")
    >>> header["estimator"], header["method"], header["n_features"]
    ('PCA', 'SVD()', 2)
    """
    texts = read_texts(path)
    _require_format(path, texts)
    try:
        return {**json.loads(texts["header"]), "checksum": texts["checksum"]}
    except Exception as error:  # whatever a file can say
        refuse_file(path, error)


def _require_format(path: str | os.PathLike[str], texts: dict[str, str]) -> int:
    """Return the format version of a file; raise if it is unknown."""
    try:
        if texts["format"] != "mercer":
            raise ValueError(f"its format is {texts['format'][:20]!r}")
        version = int(texts["version"])
        if version < 1:
            raise ValueError(f"its format is {version}")
        if version <= FORMAT:
            return version
        writer = str(json.loads(texts["header"])["versions"]["mercer"])[:40]
    except Exception as error:  # whatever a file can say
        refuse_file(path, error)
    raise ModelFileError(
        f"{path} has format {version}, but this version of Mercer reads formats up to {FORMAT}. It "
        f"was written by Mercer {writer}: update with pip install -U mercer."
    )


def _require_model(model: Any) -> None:
    """Raise unless this is a Mercer estimator, or a pipeline that ends in one."""
    from mercer.modelfile.registry import models

    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if not isinstance(last, models()):
        names = ", ".join(sorted(cls.__name__ for cls in models()))
        raise ModelFileError(
            f"{type(last).__name__} is not a Mercer model. These can be saved: {names}, and "
            f"pipelines of a mean imputer, a scaler and one of them."
        )
