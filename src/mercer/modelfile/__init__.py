"""Model files: arrays in safetensors, all else in plain JSON, never code."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any, NoReturn

from mercer.modelfile.container import Contents, parsed, read, read_contents, write
from mercer.modelfile.errors import ModelFileError
from mercer.modelfile.header import FORMAT, Header, header_from, header_of, header_text

__all__ = ["Header", "ModelFileError", "load", "read_header", "save"]


def save(model: Any, path: str | os.PathLike[str], *, origin: dict[str, Any] | None = None) -> None:
    """Write a fitted model to a file that anyone can load without trusting it.

    The file is a safetensors file: arrays, and in its header JSON that says what they are. It is
    there whole or not at all, in place of one that had its name.

    Parameters
    ----------
    model : estimator
        A fitted estimator of Mercer's; or a fitted `sklearn.pipeline.Pipeline` that ends in one,
        after a `SimpleImputer` of means, a `StandardScaler`, or both.
    path : path
        Where to; ``.mercer`` is the usual ending.
    origin : dict, optional
        Where the model came from, for `read_header`: text, numbers and lists of texts.

    Raises
    ------
    ModelFileError
        Where part of the model has no place in a file, such as a function. It says which.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> import mercer
    >>> X = load_iris().data
    >>> pca = mercer.PCA(2).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mercer.save(pca, Path(folder) / "iris.mercer")
    ...     again = mercer.load(Path(folder) / "iris.mercer")
    >>> bool((again.transform(X) == pca.transform(X)).all())
    True
    """
    from sklearn.utils.validation import check_is_fitted

    from mercer.modelfile.encode import Encoder
    from mercer.modelfile.models import require_model

    require_model(model)
    check_is_fitted(model)
    _require_host(model)
    encoder = Encoder()
    tree = encoder.node(model, "")
    header = header_of(model, origin)
    texts = {
        "format": "mercer",
        "version": str(FORMAT),
        "header": header_text(header),
        "tree": json.dumps(tree, allow_nan=False, separators=(",", ":")),
    }
    write(path, texts, encoder.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that a file holds: what `save` was given, to the bit.

    Nothing of the file is run: it names classes from a list of Mercer's own, and the parts that
    these have. Arrays are NumPy's, or torch's on the host where the model was fitted to tensors.

    Parameters
    ----------
    path : path
        A file that `save` wrote.

    Returns
    -------
    estimator
        The fitted model; `partial_fit` goes on where it was.

    Raises
    ------
    ModelFileError
        Where the file is no model file, is cut off, was changed after it was written, or was
        written by a later version.
    ImportError
        Where the model was fitted to tensors, and torch is not installed.

    Notes
    -----
    ``mercer fit`` with ``--impute``, or with ``--scale`` and ``--kernel``, writes a pipeline.
    scikit-learn's imputer has no way back: behind one, ``model[1:].inverse_transform(scores)``
    gives the rows that ``mercer inverse`` writes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mercer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "plane.mercer"
    ...     mercer.save(mercer.PCA(1).fit([[0.0, 1.0], [2.0, 3.0]]), path)
    ...     mercer.load(path)
    PCA(n_components=1)
    """
    from sklearn.utils.validation import check_is_fitted

    from mercer.modelfile.decode import Decoder
    from mercer.modelfile.models import require_model

    contents, arrays = read(path)
    _header(contents)
    tree = parsed(contents.texts.get("tree", ""))
    try:
        model = Decoder(arrays).model(tree)
        require_model(model)
        check_is_fitted(model)
    except ImportError:  # of torch
        raise
    except Exception as error:  # whatever a file says that makes no sense
        _refuse(contents, f"{type(error).__name__}: {error}", error)
    return model


def read_header(path: str | os.PathLike[str]) -> Header:
    """Return what a file tells of its model; no array is read, and the checksum not compared.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> import mercer
    >>> from mercer.modelfile import read_header
    >>> kpca = mercer.KernelPCA(2, kernel="rbf", gamma=0.1).fit(load_iris().data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mercer.save(kpca, Path(folder) / "iris.mercer", origin={"file": "iris.csv"})
    ...     header = read_header(Path(folder) / "iris.mercer")
    >>> header.estimator, header.kernel, header.n_features, header.origin
    ('KernelPCA', 'RBF(0.1)', 4, {'file': 'iris.csv'})
    """
    return _header(read_contents(path))


def _header(contents: Contents) -> Header:
    texts = contents.texts
    if texts.get("format") != "mercer":
        raise ModelFileError(
            f"{contents.path} is a safetensors file, but no Mercer model file. Write one with "
            f"mercer.save."
        )
    version = texts.get("version", "")
    if not (version.isascii() and version.isdecimal() and len(version) < 9):
        _refuse(contents, f"its format is {version[:20]!r}")
    told = parsed(texts.get("header", ""))
    if int(version) > FORMAT:
        versions = told.get("versions") if isinstance(told, dict) else None
        writer = versions.get("mercer") if isinstance(versions, dict) else None
        raise ModelFileError(
            f"{contents.path} has format {version}, and this version of Mercer reads formats up to "
            f"{FORMAT}. It was written by Mercer {str(writer)[:40]}: update with "
            f"pip install -U mercer."
        )
    try:
        return replace(header_from(told, texts["checksum"]), format=int(version))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        _refuse(contents, str(error), error)


def _refuse(contents: Contents, why: str, error: BaseException | None = None) -> NoReturn:
    raise ModelFileError(
        f"{contents.path} does not hold a model that makes sense ({why[:500]}). Get the file "
        f"again, or fit and save the model again."
    ) from error


def _require_host(model: Any) -> None:
    """Refuse a stream whose sums lie on a device: in a file they would be another library's."""
    from mercer.arrays import on_accelerator

    fold = getattr(model, "_fold", None)
    if fold is not None and any(on_accelerator(array) for array in fold.arrays().values()):
        raise ModelFileError(
            "partial_fit has summed these rows on a device, from where a model file cannot go on "
            "with them. Pickle the model, or fit without config_context(device=...)."
        )
