"""One word for one thing: the glossary's term, not its synonyms, in the docs, on the pages and in `--help`.

What is said on a page is a string in the code that makes it, so the strings are read, not the pages: it takes no rows.
"""

import ast
import re

import pytest

from tests.sources import MODULES, ROOT, text, tree, walked

EVERYWHERE = {  # in docstrings, too
    r"\bsharper\b": "better or tighter",
    r"\bdearest\b": "most expensive",
    r"\bcame to\b": "cost, or what it was",
    r"\bforesee": "predict",
    r"kept ε|\bhonest (run|noise|row|setting|seed|error)s?\b": "at a proven ε",
    r"(noise|setting|runs) that keeps? (their |its )?ε": "at a proven ε",
    r"\bprinted cells?\b": "published value",
}
INSTEAD = EVERYWHERE | {
    r"\btold\b|\btells? of\b|\btells? \w+ apart": "shown, reveals or distinguishes",
    r"\bat hand\b": "fetched or available",
    r"\badjacent|\badjacency": "neighbours",
    r"privacy budget|privacy parameter": "ε",
    r"(?<!\.)\bdatasets?\b": "data set",
    r"\bdata ?points?\b": "row",
    r"\btrials?\b(?! steps?)": "run",
    r"\brepetitions?\b": "replicate",
    r"\bartifacts?\b": "artefact",
    r"hyper-parameter": "hyperparameter",
    r"exact optimum|true optimum": "certified optimum",
    r"suboptimality|optimality gap|excess risk": "excess loss",
    r"empirical (ε|epsilon)": "audit",
    r"\bthe house\b": "an ordinary word",
}
NO_NAME = {"told", "asked", "ways", "given", "apart", "usual", "followed", "standing", "fallen", "found"}  # say of what
FOUND = 139  # locals and arguments called `found`, which take the noun of what they hold: this number only falls
# Where a name may say "cell": an entry of a table, given or printed (in `auditing`: of a closure). This only shrinks.
CELLS = {"auditing", "cli.output", "cli.run", "own", "reporting.adhoc", "reporting.errata_pages",
         "reporting.html", "reporting.pages", "schema", "study.output", "study.paper"}  # fmt: skip
SHOWN = re.compile(r"```.*?^```$|`[^`]*`|\]\([^)]*\)|--\w+(?: \w+)?|^ *dpbench [^\n]*$", re.MULTILINE | re.DOTALL)


def said():
    """(where, text, whether only developers read it): docs, and every string of the package, without code."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *_words()]:
        if "generated" not in page.parts:
            yield page.relative_to(ROOT), SHOWN.sub("", page.read_text(encoding="utf-8")), False
    for name, path in MODULES.items():
        quiet = set() if path.parent.name == "cli" else _docstrings(name)  # the docstring of a verb is its help
        for node in walked(name):
            words = node.value if isinstance(node, ast.Constant) else None
            if isinstance(words, str) and " " in words:
                yield f"{name}:{node.lineno}", SHOWN.sub("", words), id(node) in quiet


def _words():
    """What the papers say, and packages beside them."""
    return sorted(path for top in ("dpbench", "papers") for path in (ROOT / top).rglob("words.md"))


def _docstrings(name):
    kinds = ast.Module, ast.FunctionDef, ast.ClassDef
    return {id(node.body[0].value) for node in walked(name)
            if isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip


@pytest.fixture(scope="module")
def sentences():
    found = list(said())
    assert len(found) > 7000
    return found


@pytest.mark.parametrize("banned", INSTEAD)
def test_one_word_for_one_thing(banned, sentences):
    found = [f"{where}: …{text[max(0, hit.start() - 40) : hit.end() + 20]}…" for where, text, quiet in sentences
             if banned in EVERYWHERE or not quiet for hit in re.finditer(banned, text, re.IGNORECASE)]  # fmt: skip
    assert found == [], f"say {INSTEAD[banned]!r}"


def _named():
    """(where, name, whether it is a variable): functions, classes and constants; locals and arguments."""
    for module in MODULES:
        top = {id(target) for node in tree(module).body if isinstance(node, ast.Assign) for target in node.targets}
        for node in walked(module):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield f"{module}:{node.lineno}", node.name, False
            elif isinstance(node, ast.Name):
                yield f"{module}:{node.lineno}", node.id, id(node) not in top
            elif isinstance(node, ast.arg):
                yield f"{module}:{node.lineno}", node.arg, True


def test_names_say_what_they_stand_for():
    names = list(_named())
    assert len(names) > 50_000
    assert [(where, name) for where, name, local in names if not local and name.lower().strip("_") in NO_NAME] == []
    locals_found = sum(local and name == "found" for _, name, local in names)
    assert locals_found <= FOUND, "name a new variable for what it holds"


def test_a_cell_is_an_entry_of_a_table():
    """Of a paper it is a published value; of a grid a comparison, combination or configuration; of an axis a bin."""
    where = {at.partition(":")[0].removeprefix("dpbench.") for at, name, _ in _named()
             if re.search(r"(?<![a-z])cells?(?![a-z])", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())}  # fmt: skip
    modules = {name if name in CELLS else name.partition(".")[0] for name in where}
    assert modules == CELLS


def test_the_glossary_of_the_code_names_what_there_is():
    section = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## In the code")[2]
    sources = "\n".join(map(text, MODULES))
    names = re.findall(r"`(\w+)`", section)
    assert len(names) > 20
    assert [name for name in names if not re.search(rf"^(?:class )?{name}\b[^\n]*[:=]", sources, re.MULTILINE)] == []
