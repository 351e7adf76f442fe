"""What is wrong with a model file, or with what was to become one."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A file that is no whole model file, or a model that cannot become one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mercer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "short.mercer"
    ...     _ = path.write_bytes(b"abc")
    ...     try:
    ...         mercer.load(path)
    ...     except mercer.modelfile.ModelFileError as error:
    ...         print(str(error).replace(folder, "here"))
    here/short.mercer is no Mercer model file: it has 3 bytes. Write one with mercer.save.
    """
