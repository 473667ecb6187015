"""The files of the package as syntax trees, each parsed and walked once in a process."""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "dpbench"


def module_name(path: Path) -> str:
    """Its dotted name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@functools.cache
def text(name: str) -> str:
    """The text of a module."""
    return MODULES[name].read_text(encoding="utf-8")


@functools.cache
def tree(name: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(text(name))


@functools.cache
def walked(name: str) -> tuple[ast.AST, ...]:
    """All nodes of a module, its top first."""
    return tuple(ast.walk(tree(name)))
