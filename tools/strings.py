"""List every text that users can see: errors, warnings, notes, help texts and first sentences.

``python tools/strings.py`` prints one text a line, with its place, for proof-reading. Expressions
inside f-strings are shown as {}.
"""

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "mercer"


def main():
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        tree = ast.parse(path.read_text())
        for line, text in sorted(texts(tree)):
            print(f"{place}:{line}: {text}")


def texts(tree):
    """Yield (line, text) of docstrings' first paragraphs and of strings with several words."""
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                docstrings.add(id(node.body[0].value))
                yield node.body[0].lineno, docstring.split("\n\n")[0].replace("\n", " ")
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if id(node) in docstrings or id(node) in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
            text = "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if len(text.split()) >= 3:
            yield node.lineno, " ".join(text.split())


if __name__ == "__main__":
    main()
