"""The words that users read: components, not axes; degrees, not radians."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import mercer
from mercer import PCA, KernelPCA
from mercer.cli.app import app

SOURCE = Path(inspect.getfile(mercer)).parent
ODD = re.compile(r"\b(ax[ei]s|radians?|rad)\b", re.IGNORECASE)
# Matplotlib's Axes, and names of attributes and of parts of files.
ALLOWED = {
    "certificate/__init__.py": "Axes",
    "plotting/base.py": "Axes",
    "methods/literature/hebbian.py": "axes",
    "report/payload.py": "axes",
}


def spoken(path):
    """The string literals of a module that are no docstrings and no lone words of code."""
    tree = ast.parse(path.read_text("utf-8"))
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and id(node) not in silent:
            yield text


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_messages_speak_of_components(path):
    allowed = ALLOWED.get(path.relative_to(SOURCE).as_posix())
    odd = [text for text in spoken(path) if ODD.search(text)]
    assert [text for text in odd if allowed is None or allowed not in text] == []


@pytest.mark.parametrize("path", sorted((SOURCE / "report" / "page").glob("*.html")))
def test_the_report_speaks_of_components(path):
    text = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", " ", path.read_text("utf-8"), flags=re.DOTALL)
    assert not ODD.findall(text)


def commands(group, names=()):
    for command in group.registered_commands:
        yield (*names, command.name)
    for inner in group.registered_groups:
        yield from commands(inner.typer_instance, (*names, inner.typer_instance.info.name))


@pytest.mark.parametrize("names", list(commands(app)), ids=" ".join)
def test_help_speaks_of_components(names, capsys):
    from mercer.cli.app import run

    assert run([*names, "--help"]) == 0
    assert not ODD.findall(capsys.readouterr().out)


def test_certificates_and_plans_speak_of_components():
    X = [[float(i % 7), float(i % 5), float(i * i % 11)] for i in range(40)]
    for model in (PCA(2), PCA(1), KernelPCA(2, kernel="rbf", gamma="median")):
        model.fit(X)
        said = f"{model.certificate_}\n{model.certificate_.table}\n{model.plan_}"
        assert not ODD.findall(said)
        assert "component" in said
        assert "°" in said
