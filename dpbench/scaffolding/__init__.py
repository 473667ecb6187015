"""Packages of one's own, begun: a paper, an algorithm, a data set or a loss that passes its own tests from the start.

A template is the files of a package with `$name`s to fill in, beside this module: `all/` goes into every package.
"""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
from collections.abc import Callable, Collection
from importlib import resources
from pathlib import Path
from string import Template
from typing import NamedTuple

from dpbench import algorithms, datasets, experiments, files
from dpbench.errors import UserError, nearest, reason
from dpbench.problems import catalogue, losses

NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
LONGEST = 40  # letters of a name


class Kind(NamedTuple):
    """What a template is of. words: for the package's description; group: of the entry point; attribute: what it names,
    "" for the class; separator: of words in its registered name; taken: the names that it may not have."""

    words: str
    group: str
    attribute: str
    separator: str
    taken: Callable[[], Collection[str]]


KINDS = {
    "paper": Kind(
        "a paper", experiments.ENTRY_POINTS, "EXPERIMENT", "_", lambda: (*experiments.names(), *experiments.TAKEN)
    ),
    "algorithm": Kind(
        "a private optimiser", "dpbench.algorithms", "", "-", lambda: algorithms.names(wrappers=True)
    ),
    "dataset": Kind(
        "a data set", "dpbench.datasets", "SPEC", "-", lambda: (*datasets.names(), *catalogue.names())
    ),
    "loss": Kind("a loss", losses.ENTRY_POINTS, "", "-", losses.names),
}  # fmt: skip


def new(kind: str, name: str, *, out: str | os.PathLike[str] = ".") -> list[Path]:
    """Begin a package of one's own: files that pass their own tests, in a new folder, whole or not at all.

    Args:
        kind: "paper", "algorithm", "dataset" or "loss".
        name: of the package and of what it brings: small letters, digits, - and _, a letter first.
        out: the folder that the package's own goes into.

    Returns:
        The files.

    Raises:
        UserError: for an unknown kind, a name that is no package's or is taken, and a folder that is there already or
            cannot be written.
    """
    if kind not in KINDS:
        raise UserError(f"new: no template of {kind!r}; {nearest(kind, KINDS)}")
    filled = _filled(kind, name)
    target = Path(out) / name
    if target.exists() or target.is_symlink():
        raise UserError(f"new: {target} is there already; choose another name, or move it away")
    try:
        with files.staging(target) as stage:
            for path, text in _texts(kind, filled):
                whole = stage / "package" / path
                whole.parent.mkdir(parents=True, exist_ok=True)
                whole.write_text(text, encoding="utf-8")
            os.rename(stage / "package", target)
    except OSError as error:
        raise UserError(f"new: {target} cannot be written: {reason(error)}") from error
    return sorted(path for path in target.rglob("*") if path.is_file())


def _filled(kind: str, name: str) -> dict[str, str]:
    """What stands for each name of the templates; UserError for a name that will not do."""
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        raise UserError(f"new: {name!r} is no name: small letters, digits, - and _, a letter first, at most {LONGEST}")
    what, words = KINDS[kind], re.split("[-_]", name)
    module, entry = "_".join(words), what.separator.join(words)
    if keyword.iskeyword(module) or importlib.util.find_spec(module) is not None:
        raise UserError(f"new: Python has a module {module} here already; choose another name")
    if entry in what.taken() or (kind == "loss" and re.fullmatch(r"softmax-\d+", entry)):
        raise UserError(f"new: the name {entry} is taken by {what.words} of dpbench or of a package; choose another")
    class_name = "".join(word.capitalize() for word in words)
    return {
        "name": "-".join(words),
        "module": module,
        "entry": entry,
        "class_name": class_name,
        "attribute": what.attribute or class_name,
        "group": what.group,
        "kind": what.words,
        "title": " ".join(words).capitalize(),
    }


def _texts(kind: str, filled: dict[str, str]) -> list[tuple[Path, str]]:
    """(where in the package, content) of each file."""
    texts = []
    for folder in ("all", kind):
        root = Path(str(resources.files(__name__))) / "templates" / folder
        for path in sorted(root.rglob("*.in")):
            parts = [filled["module"] if part == "package" else part for part in path.relative_to(root).parts]
            parts[-1] = parts[-1].removesuffix(".in").replace("test_package", f"test_{filled['module']}")
            texts.append((Path(*parts), Template(path.read_text(encoding="utf-8")).substitute(filled)))
    return texts
