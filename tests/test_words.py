"""One word for one thing: the glossary's term, not its synonyms, in the docs, on the pages and in `--help`.

What is said on a page is a string in the code that makes it, so the strings are read, not the pages: it takes no rows.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("experiments", "reporting", "cli")
INSTEAD = {
    r"told apart": "distinguishable",
    r"\bat hand\b": "fetched",
    r"\badjacent|\badjacency": "neighbours",
    r"privacy budget|privacy parameter": "ε",
    r"\bdatasets?\b": "data set",
    r"\bdata ?points?\b": "row",
    r"\btrials?\b": "run",
    r"\brepetitions?\b": "replicate",
    r"\bartifacts?\b": "artefact",
    r"hyper-parameter": "hyperparameter",
    r"exact optimum|true optimum": "certified optimum",
    r"suboptimality|optimality gap|excess risk": "excess loss",
    r"empirical (ε|epsilon)": "audit",
    r"\bthe house\b|\bdearest\b": "an ordinary word",
}
SHOWN = re.compile(r"```.*?^```$|`[^`]*`|\]\([^)]*\)|--\w+(?: \w+)?|^ *dpbench .*$", re.MULTILINE | re.DOTALL)


def said():
    """(where, text): every sentence that a reader may meet, without code."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if "generated" not in page.parts:
            yield page.relative_to(ROOT), SHOWN.sub("", page.read_text(encoding="utf-8"))
    for path in (path for room in ROOMS for path in sorted((ROOT / "dpbench" / room).rglob("*.py"))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        quiet = _docstrings(tree)
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) else None
            shown = path.parent.name == "cli" or id(node) not in quiet  # the docstring of a verb is its help
            if isinstance(text, str) and " " in text and shown:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", SHOWN.sub("", text)


def _docstrings(tree):
    kinds = ast.Module, ast.FunctionDef, ast.ClassDef
    return {id(node.body[0].value) for node in ast.walk(tree)
            if isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip


@pytest.fixture(scope="module")
def sentences():
    found = list(said())
    assert len(found) > 2000
    return found


@pytest.mark.parametrize("banned", INSTEAD)
def test_one_word_for_one_thing(banned, sentences):
    found = [f"{where}: …{text[max(0, hit.start() - 40) : hit.end() + 20]}…" for where, text in sentences
             for hit in re.finditer(banned, text, re.IGNORECASE)]  # fmt: skip
    assert found == [], f"say {INSTEAD[banned]!r}"
