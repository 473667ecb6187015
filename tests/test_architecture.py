"""The house as its imports draw it: data flow down it once, no circle, no upward arrow, and the page that says so."""

import ast
import functools
import re
from collections.abc import Iterator

import pytest

import dpbench
from dpbench import cli, experiments
from tests.sources import MODULES, PACKAGE, ROOT, text, tree, walked

# From the top floor down; rooms of one floor do not import each other.
FLOORS = (
    {"__main__"},
    {"cli"},
    {"reporting", "submitting", "scaffolding"},
    {"archive"},
    {"experiments", "comparing", "own", "auditing"},
    {"leaderboard"},
    {"study"},
    {"run"},
    {"serving"},
    {"algorithms"},
    {"problems"},
    {"privacy", "datasets", "schema"},
    {"files", "frames"},
    {"errors", "version"},
)
FRONT = "dpbench"  # the package's own file: it names what is public and loads it on first use


def used(top: ast.AST) -> Iterator[ast.AST]:
    """Every node below but for those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(top):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from used(node)


def imports(name: str, *, types: bool = True) -> set[str]:
    """The modules of the house that `name` imports anywhere, also in functions; types: and for types alone."""
    found = set()
    for node in walked(name) if types else used(tree(name)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: a relative import, which this graph does not follow"
            within = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            others = [alias.name for alias in node.names if f"{node.module}.{alias.name}" not in MODULES]
            found |= within | ({node.module} if others else set())
    if "iter_modules(__path__)" in text(name):  # it loads all that lie beside it
        found |= {other for other in MODULES if other.rpartition(".")[0] == name}
    return {one for one in found if one in MODULES and one != name}


def told(name: str) -> set[str]:
    """The modules of the house that `name` has in strings, to load by name:
    "dpbench.algorithms.gradient_descent:Method" too.
    """
    strings = {node.value for node in walked(name) if isinstance(node, ast.Constant)} - {None}
    return {str(each).partition(":")[0].rstrip(".") for each in strings} & (MODULES.keys() - {FRONT, name})


@functools.cache
def graph() -> dict[str, set[str]]:
    """Module → the modules that it imports; made where it is asked for: reading the house takes seconds."""
    return {name: imports(name) for name in MODULES}


def room(name: str) -> str:
    """The first floor's name of a module: "privacy" of dpbench.privacy.correlated."""
    return name.split(".")[1] if "." in name else FRONT


def floor(name: str) -> int:
    return next(i for i, rooms in enumerate(FLOORS) if room(name) in rooms)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            cut = stack.index(node)
            component, stack[cut:] = stack[cut:], []
            if len(component) > 1:
                found.append(sorted(component))

    for node in graph:
        if node not in index:
            visit(node)
    return found


def test_every_room_has_a_floor():
    named = {one for rooms in FLOORS for one in rooms}
    assert {room(name) for name in MODULES} - {FRONT} == named


def test_no_arrow_goes_up_or_sideways():
    wrong = [
        f"{name} → {other}"
        for name, others in graph().items()
        for other in others | told(name)
        if name != FRONT and room(other) != room(name) and room(other) != FRONT and floor(other) <= floor(name)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_private_name_of_another_module_is_imported():
    """What ruff's SLF does not see: it looks at attributes."""
    wrong = [
        f"{name}: {alias.name}"
        for name in MODULES
        for node in walked(name)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if re.match(r"_(?!_)", alias.name)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_class_name_has_two_meanings():
    where: dict[str, list[str]] = {}
    for name in MODULES:
        for node in tree(name).body:  # a method's own `Settings` lies in its class
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where.setdefault(node.name, []).append(name)
    assert len(where) > 300
    assert {name: modules for name, modules in where.items() if len(modules) > 1} == {}


def test_no_variable_is_looked_up_by_its_spelling():
    calls = {
        (name, node.func.id)
        for name in MODULES
        for node in walked(name)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert {(name, f) for name, f in calls if f in {"locals", "globals", "eval", "exec"}} == set()


def test_modules_and_packages_stand_in_no_circle():
    assert not circles({name: others - {FRONT} for name, others in graph().items() if name != FRONT})
    packages: dict[str, set[str]] = {}
    for name, others in graph().items():
        own = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
        for other in others:
            target = other if MODULES[other].name == "__init__.py" else other.rpartition(".")[0]
            if not (own.startswith(target) or target.startswith(own)):
                packages.setdefault(own, set()).add(target)
    assert not circles(packages)


@pytest.mark.parametrize(
    ("arrows", "count"), [({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, 1), ({"a": {"b"}}, 0)]
)
def test_a_circle_is_seen(arrows, count):
    assert len(circles(arrows)) == count


# The errors, the version, the rows of a table, and how a mean is told are no logic of a verb.
BESIDE_THE_VERBS = {"dpbench.errors", "dpbench.frames", "dpbench.version", "dpbench.study.statistics"}


def test_a_verb_is_a_function_of_the_package():
    """What the command line can do, `import dpbench` can: no verb reaches behind it, and each calls it."""
    verbs = {name for name in MODULES if room(name) == "cli"}
    assert all(room(name) == "cli" for name, others in graph().items() if FRONT in others)
    for name in verbs:
        others = imports(name, types=False) - verbs - BESIDE_THE_VERBS
        assert others <= {FRONT}, f"{name} imports {others}"
    for verb, module in cli.VERBS.items():
        called = {
            n.attr
            for n in walked(f"dpbench.cli.{module}")
            if isinstance(n, ast.Attribute) and ast.unparse(n.value) == FRONT
        }
        assert called, f"{verb} calls nothing of the package"
        assert called <= set(dpbench.__all__), f"{verb} calls {called}"


def test_the_site_knows_no_paper():
    papers = re.compile(rf"\b({'|'.join(experiments.BUILTIN)})\b")
    for name in MODULES:
        if room(name) == "reporting":
            names = {n.value for n in walked(name) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
            assert not {one for one in names if papers.search(one)}, name


def test_the_page_shows_the_floors_that_there_are():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = [line for line in page.split("```")[1].splitlines() if line and not line.startswith(" ")]
    shown = [set(re.split(r"\s{2,}", line)[0].split(" · ")) for line in picture]
    assert shown == [set(rooms) for rooms in FLOORS if rooms != {"__main__"}]
    assert len(shown) <= 13


CORE = {"algorithms", "serving", "problems", "privacy", "run", "auditing", "submitting", "datasets", "cli"}


def test_the_page_is_the_tree_of_the_core_and_says_where_things_are_made():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    heads = re.split(r"^(\w+)/$", page.partition("## The tree")[2].split("```")[1], flags=re.MULTILINE)[1:]
    shown = {f"{top}/{file}" for top, part in zip(heads[::2], heads[1::2], strict=True)
             for file in re.findall(r"(?<![\w/])[\w/]+\.py\b", part)}  # fmt: skip
    files = {path.relative_to(PACKAGE).as_posix() for path in MODULES.values() if path.name != "__init__.py"}
    assert shown == {file for file in files if file.partition("/")[0] in CORE}
    answers = re.findall(r"^\| [^|]+ \| `([\w/]+)\.py` \| (.*) \|$", page, flags=re.MULTILINE)
    assert len(answers) >= 10
    for module, cell in answers:
        name = re.search(r"`(?:(\w+)\.)?(\w+)`", cell)
        source = text("dpbench." + module.replace("/", "."))
        assert re.search(rf"^\s*def {name[2]}\b", source, re.MULTILINE), cell
        assert not name[1] or f"class {name[1]}" in source, cell


def test_products_stand_beside_the_papers():
    """Data of one's own, models, audits and submissions take nothing of a paper, so they would be the same without."""
    products = {"comparing", "estimators", "auditing", "submitting"}
    assert not {(name, other) for name, others in graph().items() for other in others | told(name)
                if room(name) in products and room(other) == "experiments"}  # fmt: skip
