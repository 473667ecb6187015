"""Mistakes drawn at random over all of dpbench: `python -m tests.mutants --random 60 --seed 1`.

An operator is drawn, then a place in the source where it applies: a comparison that takes or leaves its border or is
turned round, another constant, another sign, a statement left out, two arguments swapped. What each breaks is judged by
the tests of its room and by those that import its file, as `make test` runs them, the likeliest first.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
OPERATORS = ("comparison", "constant", "sign", "dropped line", "swapped arguments")
BORDERS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
SIGNS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
LEFT_OUT = ("scaffolding/", "version.py")  # templates, and a number


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
    unseen = {id(part) for node in ast.walk(tree) for part in _annotations(node)}
    for node in ast.walk(tree):
        if id(node) in unseen or not hasattr(node, "lineno"):
            continue
        for operator, start, end, instead in _changes(node, text, at):
            yield Site(operator, file, node.lineno, start, end, instead)


def _annotations(node: ast.AST) -> Iterator[ast.AST]:
    """What runs nowhere: annotations, and the call of `TypeAlias` or of a type variable."""
    for name in ("annotation", "returns"):
        if part := getattr(node, name, None):
            yield from ast.walk(part)


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
    if isinstance(node, ast.Call) and len(node.args) >= 2:
        first, second = node.args[:2]
        if not any(isinstance(one, ast.Starred | ast.GeneratorExp) for one in (first, second)):
            (start, inner), (other, end) = at(first), at(second)
            if (a := text(first)) != (b := text(second)):
                between = text(node).encode()[inner - at(node)[0] : other - at(node)[0]].decode()
                yield "swapped arguments", start, end, b + between + a


def drawn(count: int, seed: int) -> list[Site]:
    """So many places, all different, each operator as likely as the others."""
    chance, by_operator = random.Random(seed), defaultdict(list)
    for path in sorted((ROOT / "dpbench").rglob("*.py")):
        file = path.relative_to(ROOT / "dpbench").as_posix()
        if not file.startswith(LEFT_OUT):
            for site in sites(file):
                by_operator[site.operator].append(site)
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
