"""The pages of the documentation that are made from the code: every algorithm and its privacy, every data set."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
import privacy_page

from dpbench import algorithms, datasets


def write(folder: Path) -> None:
    """Write all of them into `folder`; a page that is as it should be is not touched."""
    folder.mkdir(exist_ok=True)
    for name, text in (
        ("algorithms.md", algorithms_page()),
        ("datasets.md", datasets_page()),
        ("privacy.md", privacy_page.text()),
    ):
        page = folder / name
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def algorithms_page() -> str:
    """A section per algorithm: what its class says, and its settings with types, ranges and defaults."""
    parts = [
        "# Algorithms and their settings\n\n"
        "Settings are given as `--set KEY=VALUE` on the command line, as keyword arguments of `dpbench.fit`, and in "
        "the `settings` of a grid. A default of – depends on the problem and is worked out when the run starts."
    ]
    for name in algorithms.names():
        method, fixed = algorithms.resolve(name)
        facts = {
            "private": "yes" if method.private else "no: a baseline that looks at the data without paying",
            "neighbours": method.relation.value,
            "accountings": ", ".join(method.accountings) + f" (paper: {method.paper_accounting})",
            "losses": ", ".join(method.needs.covered),
            "regularisers": ", ".join(method.needs.regularisers) or "none",
            "counts as public": ", ".join(filter(None, ("n", method.counts_public))),
        }
        if fixed:
            facts["fixed by its name"] = ", ".join(f"{key} = {value}" for key, value in fixed.items())
        rows = [_row(field) for field in msgspec.structs.fields(method.Settings) if field.name not in fixed]
        parts.append(f"## {name}\n\n{method.title and f'**{method.title}**'}")
        parts.append(f"```text\n{inspect.getdoc(type(method))}\n```")
        parts.append("\n".join(f"{key}\n: {value}\n" for key, value in facts.items()))
        parts.append(_table(("setting", "type and range", "default"), rows) if rows else "It has no settings.")
    return "\n\n".join(part for part in parts if part) + "\n"


def datasets_page() -> str:
    """One table: name, size, where it comes from."""
    rows = []
    for name in datasets.names():
        spec = datasets.describe(name)
        size = ["?" if count is None else f"{count:,}" for count in (spec.rows, spec.columns)]
        rows.append((f"`{name}`", *size, "generated" if spec.synthetic else "fetched", spec.title))
    return "# Data sets\n\n" + _table(("name", "rows", "columns", "how", "title"), rows) + "\n"


def _row(field: msgspec.structs.FieldInfo) -> tuple[str, str, str]:
    default = field.default
    if default is msgspec.NODEFAULT:
        default = field.default_factory() if field.default_factory is not msgspec.NODEFAULT else "required"
    return f"`{field.name}`", _type(field.type), "–" if default is None else f"`{default}`"


def _type(annotation: Any) -> str:
    """In words: "integer ≥ 1", "number > 0", "one of …"."""
    if get_origin(annotation) is Annotated:
        inner, *metas = get_args(annotation)
        words = [_type(inner)]
        for meta in metas:
            for sign, bound in (("≥", meta.ge), (">", meta.gt), ("≤", meta.le), ("<", meta.lt)):
                if bound is not None:
                    words.append(f"{sign} {bound:g}")
        return " ".join([words[0], ", ".join(words[1:])]).strip()
    arguments = get_args(annotation)
    if get_origin(annotation) is Union or type(annotation).__name__ == "UnionType":
        return " or ".join(_type(one) for one in arguments if one is not type(None))
    if arguments and str(annotation).startswith("typing.Literal"):
        return "one of " + ", ".join(f"`{one}`" for one in arguments)
    return {int: "integer", float: "number", str: "text", bool: "true or false"}.get(annotation, f"`{annotation}`")


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
