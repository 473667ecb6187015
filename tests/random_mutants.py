"""Mistakes drawn at random over all of dpbench: `python -m tests.mutants --random 60 --seed 1`.

An operator is drawn, then a place in the source where it applies: a comparison that takes or leaves its border or is
turned round, another constant, another sign, a statement left out, two arguments swapped. Each is judged by the tests
of `make test` that run its statement: one run of them all, with a mark before the statement of each mistake, tells
which. What runs where a module is loaded has no such tests, and is judged by those of its file and room. What is left
is judged in the same way by the thorough tests of its file and room, of an experiment by what its paper says of the
committed rows. `ENOUGH` seconds of tests judge a mistake; one that needs more of them to be noticed survives.
"""

from __future__ import annotations

import ast
import functools
import itertools
import random
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests import judging
from tests.outputs import PAPERS

ROOT = Path(__file__).resolve().parent.parent
OPERATORS = ("comparison", "constant", "sign", "dropped line", "swapped arguments")
BORDERS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
SIGNS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
# Guards and speed, which no outcome shows: what `zip` does with unequal lengths, how much a cache keeps, copies.
UNSEEN = ("strict", "maxsize", "cache", "stacklevel", "copy", "kw_only", "frozen")
LOOKS = ("size", "figsize", "zorder", "lw", "fontsize", "room", "width_ratios", "height_ratios")  # of figures
# What takes its arguments in any order; the last two, of the command line, tell an option by its dashes.
SYMMETRIC = (
    "min",
    "max",
    "minimum",
    "maximum",
    "hypot",
    "gcd",
    "logaddexp",
    "union1d",
    "isdisjoint",
    "option",
    "several",
)
LEFT_OUT = ("scaffolding/", "version.py")  # templates, and a number
ENOUGH = 120.0  # seconds of tests, each as long as it took without the mistake
COMMON, THOROUGH = "not slow and not thorough", "thorough and not slow"  # what make test and make thorough run
MARKS = """
import os
from pathlib import Path

known = set()

def mark(number):
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    if (number, test) not in known:
        known.add((number, test))
        try:
            with Path({folder!r}, str(os.getpid())).open("a", encoding="utf-8") as file:
                file.write(f"{{number}} {{test}}\\n")
        except OSError:  # a sandbox, or a test of full disks
            pass
"""


class Site(NamedTuple):
    """A place of `dpbench/file` from `start` to `end`, in bytes, and what is put there."""

    operator: str
    file: str
    line: int
    start: int
    end: int
    instead: str

    def mutated(self, root: Path = ROOT) -> str:
        """The text of the file under `root` with the mistake in it."""
        source = (root / "dpbench" / self.file).read_bytes()
        return (source[: self.start] + self.instead.encode() + source[self.end :]).decode()

    def shown(self) -> str:
        """The place, what stands there and what is put there, in a line."""
        text = (ROOT / "dpbench" / self.file).read_bytes()[self.start : self.end].decode()
        words = f"{' '.join(text.split())} -> {' '.join(self.instead.split())}"
        return f"{self.file}:{self.line}: {self.operator}: {words[:150]}"


def sites(file: str) -> Iterator[Site]:
    """All places of a file, a path below dpbench/."""
    source = (ROOT / "dpbench" / file).read_bytes()
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)

    def text(node: ast.AST) -> str:
        return source[at(node)[0] : at(node)[1]].decode()

    def at(node: ast.AST) -> tuple[int, int]:
        return (starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset)  # type: ignore[attr-defined]

    tree = ast.parse(source)
    unseen = {id(part) for node in ast.walk(tree) for part in (*_annotations(node), *_looks(node))}
    for node in ast.walk(tree):
        if id(node) in unseen or not hasattr(node, "lineno"):
            continue
        for operator, start, end, instead in _changes(node, text, at):
            yield Site(operator, file, node.lineno, start, end, instead)


def _annotations(node: ast.AST) -> Iterator[ast.AST]:
    """What runs nowhere or shows nowhere: annotations, and the arguments `UNSEEN`."""
    if isinstance(node, ast.keyword) and node.arg in UNSEEN:
        yield from ast.walk(node.value)
    for name in ("annotation", "returns"):
        if part := getattr(node, name, None):
            yield from ast.walk(part)


def _looks(node: ast.AST) -> Iterator[ast.AST]:
    """What only eyes tell: statements that draw on an axis or a figure, their numbers, and the sizes of figures.

    What they are given is computed all the same: signs, comparisons and the order of arguments stay.
    """
    if isinstance(node, ast.keyword) and node.arg in LOOKS:
        yield from ast.walk(node.value)
    call = node.value if isinstance(node, ast.Expr) else node
    if isinstance(call, ast.Call):
        root = call.func
        while isinstance(root, ast.Attribute | ast.Call):
            root = root.value if isinstance(root, ast.Attribute) else root.func
        drawn_on = [one.id for one in (root, *call.args) if isinstance(one, ast.Name)]
        if {"axis", "axes", "figure"} & {*drawn_on}:
            yield node
            yield from (part for part in ast.walk(call) if isinstance(part, ast.Constant))


def _changes(
    node: ast.AST, text: Callable[[ast.AST], str], at: Callable[[ast.AST], tuple[int, int]]
) -> Iterator[tuple[str, int, int, str]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in BORDERS:
        instead = f"({text(node.left)}) {BORDERS[type(node.ops[0])]} ({text(node.comparators[0])})"
        yield "comparison", *at(node), instead
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "constant", *at(node), str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield (
            "constant",
            *at(node),
            f"({text(node)} + 1)" if isinstance(node.value, int) else f"({text(node)} * 2 + 1e-3)",
        )
    elif isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        yield "sign", *at(node), f"(({text(node.left)}) {SIGNS[type(node.op)]} ({text(node.right)}))"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "sign", *at(node), f"({text(node.operand)})"
    elif (
        isinstance(node, ast.AugAssign)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript))
    ):
        yield "dropped line", *at(node), "pass"
    name = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
    if isinstance(node, ast.Call) and len(node.args) >= 2 and name not in SYMMETRIC:
        first, second = node.args[:2]
        if not any(isinstance(one, ast.Starred | ast.GeneratorExp) for one in (first, second)):
            (start, inner), (other, end) = at(first), at(second)
            if (a := text(first)) != (b := text(second)):
                between = text(node).encode()[inner - at(node)[0] : other - at(node)[0]].decode()
                yield "swapped arguments", start, end, b + between + a


@functools.cache
def places() -> dict[str, list[Site]]:
    """Operator → all places in dpbench where it applies."""
    by_operator: dict[str, list[Site]] = {operator: [] for operator in OPERATORS}
    for path in sorted((ROOT / "dpbench").rglob("*.py")):
        file = path.relative_to(ROOT / "dpbench").as_posix()
        if not file.startswith(LEFT_OUT):
            for site in sites(file):
                by_operator[site.operator].append(site)
    return by_operator


def drawn(count: int, seed: int) -> list[Site]:
    """So many places, all different, each operator as likely as the others."""
    chance, by_operator = random.Random(seed), places()
    found: dict[Site, None] = {}
    while len(found) < count:
        site = chance.choice(by_operator[chance.choice(OPERATORS)])
        try:
            compile(site.mutated(), site.file, "exec")
        except (SyntaxError, ValueError):
            continue
        found[site] = None
    return [*found]


def covering(file: str) -> list[str]:
    """The test files for a file of dpbench, below tests/: of its name, those that import it, and its room's."""
    module = "dpbench." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    parent, _, name = module.rpartition(".")
    words = (f"from {module} import", f"import {module}", f"from {parent} import")
    room = file.partition("/")[0] if "/" in file else ""
    ranks: dict[str, int] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        test, source = path.relative_to(ROOT / "tests").as_posix(), path.read_text(encoding="utf-8")
        imports = any(word in source for word in words[:2]) or (words[2] in source and name in source)
        if path.stem == f"test_{name}":
            ranks[test] = 0
        elif imports:
            ranks[test] = 1
        elif room and test.startswith(f"{room}/"):
            ranks[test] = 2
    return sorted(ranks, key=lambda test: (ranks[test], test)) or ["test_api.py", "test_cli.py"]


def thorough(file: str) -> list[str]:
    """The tests of `make thorough` that a mistake in a file of dpbench is judged by."""
    papers = [file.split("/")[1].removesuffix(".py")] if file.startswith("experiments/") else []
    said = [f"tests/test_outputs.py::test_a_paper_says_what_it_said[{one}]" for one in papers if one in PAPERS]
    return [*said, *(f"tests/{test}" for test in covering(file))]


class _Marked(ast.NodeTransformer):
    """Puts a mark before the statement of each site of a file, where that runs later than at the import."""

    def __init__(self, numbered: Iterable[tuple[int, Site]], starts: list[int]) -> None:
        self._numbered, self._starts, self.placed = [*numbered], starts, set[int]()
        self._depth = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        # numba compiles the decorated functions within others, and knows no marks.
        if function and self._depth and node.decorator_list:  # type: ignore[attr-defined]
            return node
        self._depth += function
        super().generic_visit(node)
        self._depth -= function
        for name in ("body", "orelse", "finalbody"):
            if isinstance(statements := getattr(node, name, None), list):
                inside = self._depth or function
                setattr(
                    node, name, [part for one in statements for part in (*(self._marks(one) if inside else ()), one)]
                )
        return node

    def _marks(self, statement: ast.stmt) -> list[ast.stmt]:
        low = self._starts[statement.lineno - 1] + statement.col_offset
        high = self._starts[(statement.end_lineno or 0) - 1] + (statement.end_col_offset or 0)
        here = [number for number, one in self._numbered if low <= one.start < high and number not in self.placed]
        self.placed.update(here)  # children are visited first, so this is the innermost statement
        return [ast.parse(f"_marks.mark({number})").body[0] for number in here]


def marked(source: bytes, numbered: Iterable[tuple[int, Site]]) -> tuple[str, set[int]]:
    """A file's text with marks before the statements of its sites, and the numbers of those not at the import."""
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    marks, tree = _Marked(numbered, starts), ast.parse(source)
    marks.visit(tree)
    first = next((i for i, one in enumerate(tree.body) if not isinstance(one, ast.Expr | ast.ImportFrom)
                  or (isinstance(one, ast.ImportFrom) and one.module != "__future__")), len(tree.body))  # fmt: skip
    tree.body.insert(first, ast.parse("import dpbench._marks as _marks").body[0])
    return ast.unparse(ast.fix_missing_locations(tree)), marks.placed


def running(
    copy: Path, drawn: list[Site], marks: str = COMMON, among: Iterable[str] = (), workers: int = 2
) -> list[list[str]]:
    """Of each site the tests that run its statement and pass, the likeliest and quickest first, `ENOUGH` of them.

    Where a statement runs at the import, those of the files that cover it. copy: a copy of the tree, whose files are
    marked, and unmarked again. marks, among: the tests, as of pytest -m and as its arguments.
    """
    by_file: dict[str, list[tuple[int, Site]]] = defaultdict(list)
    for number, one in enumerate(drawn):
        by_file[one.file].append((number, one))
    folder, placed = copy / "marks", set[int]()
    folder.mkdir(exist_ok=True)
    for log in folder.iterdir():
        log.unlink()
    (copy / "dpbench/_marks.py").write_text(MARKS.format(folder=str(folder)))
    whole = {file: (copy / "dpbench" / file).read_bytes() for file in by_file}
    for file, numbered in by_file.items():
        text, numbers = marked(whole[file], numbered)
        placed |= numbers
        (copy / "dpbench" / file).write_text(text, encoding="utf-8")
    report = copy / "report.xml"
    command = f"-m pytest -q -n {workers} --dist loadfile -p no:cacheprovider --junitxml={report} -m".split()
    subprocess.run([sys.executable, *command, marks, *among], cwd=copy, env=judging.environment(copy), check=False,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    for file, text_before in whole.items():
        (copy / "dpbench" / file).write_bytes(text_before)
    (copy / "dpbench/_marks.py").unlink()
    seconds = passed(report)
    seen: dict[int, set[str]] = defaultdict(set)
    of_file: dict[str, set[str]] = defaultdict(set)
    for test in seconds:
        of_file[test.partition("::")[0]].add(test)
    for log in folder.iterdir():
        for line in log.read_text(encoding="utf-8").splitlines():
            number, _, running = line.partition(" ")
            test, _, phase = running.rpartition(" ")
            if phase == "(setup)":  # what a fixture runs for one test, others of its file may use
                seen[int(number)].update(of_file[test.partition("::")[0]])
            elif test in seconds:
                seen[int(number)].add(test)
    return [_enough(one, seen[i] if i in placed else None, seconds) for i, one in enumerate(drawn)]


def _enough(one: Site, ran: set[str] | None, seconds: dict[str, float]) -> list[str]:
    """The tests of a site in the order in which they are tried: the quick ones of its file and room are the first.

    Before them, and beside `ENOUGH`, that of what the site's paper says: it alone judges most of a paper's functions.
    """
    likely = {test: rank for rank, test in enumerate(thorough(one.file), 1)}
    ran = {test for test in seconds if {test, test.partition("::")[0]} & likely.keys()} if ran is None else ran
    said = [test for test in likely if test in ran]
    order = sorted(
        ran.difference(said),
        key=lambda test: likely.get(test.partition("::")[0], 2 * len(likely)) * (seconds[test] + 0.01),
    )
    spent = itertools.accumulate(seconds[test] for test in order)
    return [*said, *(test for test, until in zip(order, spent, strict=True) if until <= ENOUGH)]


def passed(report: Path) -> dict[str, float]:
    """Test → seconds, of those that passed, from pytest's JUnit report."""
    found = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if not {child.tag for child in case} & {"failure", "error", "skipped"}:
            file = case.get("file") or case.get("classname", "").replace(".", "/") + ".py"
            found[f"{file}::{case.get('name')}"] = float(case.get("time", 0))
    return found
