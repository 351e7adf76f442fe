"""Paths that are addresses on a network, which are not read."""

from __future__ import annotations

import os
import re
import shlex

_COMMANDS = {
    ("http", "https", "ftp", "ftps"): "curl -LO {}",
    ("s3",): "aws s3 cp {} .",
    ("gs",): "gcloud storage cp {} .",
}
"""Commands that download a URL of these schemes."""


def is_url(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is the address of something on a network."""
    return re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", str(path)) is not None


def download(url: str | os.PathLike[str]) -> str:
    """Say that a URL is not read, and how to get the file."""
    text, scheme = str(url), str(url).partition("://")[0].lower()
    if scheme == "file":
        return f"{text} is a URL. Pass the path of the file, without file://."
    command = next((line for schemes, line in _COMMANDS.items() if scheme in schemes), None)
    if command is None:
        return f"{text} is a URL. Download it first, and pass the path of the file."
    line = command.format(shlex.quote(text))
    return f"{text} is a URL. Download it first, for example: {line}"
