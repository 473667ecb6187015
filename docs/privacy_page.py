"""The page "The privacy of each algorithm": what every method declares of its releases, beside the audit's bounds.

The bounds are in `audited.csv`, which `python docs/audited.py` makes anew (minutes); all else is made from code.
"""

from __future__ import annotations

import contextlib
import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dpbench import algorithms
from dpbench.algorithms.base import Algorithm, make_settings
from dpbench.errors import UserError, counted
from dpbench.privacy import accounting
from dpbench.privacy.disclosure import MECHANISMS

TITLE = "The privacy of each algorithm"
INTRO = (
    "What each method releases, with which noise, and what its ε takes for granted. This page is made from the code: a "
    "run that releases anything that is not listed here fails."
)
NOTATION = (
    "L₀ bounds a row's gradient, L₁ its Hessian, R its norm; n rows, d columns, m rows in a sample; g̃ is a "
    "released gradient, C_j a clipping threshold. An audited bound on μ is of Gaussian DP (Dong, Roth and Su 2022), "
    "beside the μ of what was planned. δ, the accounting and the neighbours are the user's choice where the method "
    "takes more than one. A test compares every sensitivity with the noise that is drawn."
)
HEADER = ["release", "what", "times × mechanism", "add/remove", "replace-one", "because"]
BREAKING = (
    "Most repeat what a paper's code does. A run with one of them has `private` = false and is marked on every page."
)
AUDIT = ["release", "audited at", "bound", "claim"]
AUDIT_SLACK = 1 + 1e-3  # bounds and claims are printed to three digits


class Section(NamedTuple):
    """One method. facts: (name, text). releases: rows under HEADER. audited: rows under AUDIT."""

    name: str
    title: str
    facts: list[tuple[str, str]]
    releases: list[list[str]]
    audited: list[list[str]]


def sections() -> Iterator[Section]:
    """A section per method that is no alias, by name."""
    bounds = _bounds()
    for name in algorithms.names(wrappers=True):
        method, fixed = algorithms.resolve(name)
        if fixed:
            continue
        releases = [
            [one.label + (f" ({one.when})" if one.when else ""), one.value, f"{one.count} × {one.mechanism}",
             one.add_remove or "–", one.replace_one or "–", one.why]
            for one in method.discloses
        ]  # fmt: skip
        yield Section(name, method.title or name, list(_facts(method, name)), releases, bounds.get(name, []))


def _facts(method: Algorithm, name: str) -> Iterator[tuple[str, str]]:
    yield "private", _private(method, name)
    if not (method.private or method.discloses):
        return
    both = method.discloses and any(one.add_remove for one in method.discloses)
    yield (
        "proved for",
        f"{method.relation} neighbours"
        + (", and replace-one" if method.relation.value == "add-remove" else ", and add-remove" if both else ""),
    )
    others = ", ".join(mode for mode in method.accountings if mode != method.paper_accounting)
    yield "composed by", f"{method.paper_accounting} (paper)" + (f"; also {others}" if others else "")
    yield "δ by default", str(method.delta)
    yield "counts as public", ", ".join(filter(None, ("n", method.counts_public)))
    if method.stops_early:
        yield "stops early", "it may; its ε is that of all it planned"


def _private(method: Algorithm, name: str) -> str:
    """Yes or no, and with which settings not: why is in the table of `breaking`."""
    if not method.private:
        return f"no: without paying it takes {method.unpaid}"
    broken = [f"`{variant}`" for variant, _ in _flaws(method, name)]
    return "yes" + (f", but not with {' or '.join(broken)}" if broken else "")


def breaking() -> list[list[str]]:
    """Rows (setting, methods, why): the settings with which a private method has no guarantee."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in algorithms.names(wrappers=True):
        method, fixed = algorithms.resolve(name)
        for each in () if fixed else _flaws(method, name):
            found.setdefault(each, []).append(name)
    return [[f"`{variant}`", ", ".join(methods), flaw] for (variant, flaw), methods in sorted(found.items())]


def _flaws(method: Algorithm, name: str) -> Iterator[tuple[str, str]]:
    """Published variants of a method that do not keep their ε, and why."""
    if not method.private:
        return
    defaults = make_settings(method, {})
    for mode in accounting.names():
        with contextlib.suppress(UserError):  # one that the method does not take
            told = mode if mode != method.paper_accounting else "paper"
            if flaw := method.flaw(defaults, method.accounting(told)):
                yield f"--accounting {told}" + (f" ({mode})" if told != mode else ""), flaw
    (schema,) = msgspec.json.schema_components([method.Settings])[1].values()
    for setting, kind in schema["properties"].items():
        half = ["0.5"] if (setting, kind.get("type")) == ("noise", "number") else []
        for value in _choices(kind) + half:
            if flaw := method.flaw(make_settings(method, {setting: value}), ""):
                yield f"{setting} = {value}", flaw


def _choices(kind: dict[str, Any]) -> list[str]:
    """What a setting of this JSON schema can be in words."""
    return [*kind.get("enum", []), *(one for part in kind.get("anyOf", []) for one in _choices(part))]


def _bounds() -> dict[str, list[list[str]]]:
    """Algorithm → rows under AUDIT, of the last audit that was kept."""
    source = Path(__file__).with_name("audited.csv")
    if not source.is_file():
        return {}
    bounds: dict[str, list[list[str]]] = {}
    for row in csv.DictReader(source.read_text("utf-8").splitlines()):
        told = [f"{row['unit']} ≥ {float(row['bound']):.3g}", f"{float(row['claim']):.3g}"]
        at = f"ε = {float(row['epsilon']):g}, {counted(int(row['runs']), 'run')}"
        bounds.setdefault(row["algorithm"], []).append([row["label"], at, *told])
    return bounds


def modes() -> list[tuple[str, str]]:
    """(accounting, what the docstring of its module, or else of its class, says of it in one line)."""
    modes = []
    for name in accounting.names():
        mode = type(accounting.get(name))
        lines = f"{sys.modules[mode.__module__].__doc__}\n{mode.__doc__}".splitlines()
        named = [line.removeprefix(f"`{name}`: ") for line in lines if line.startswith(f"`{name}`: ")]
        line = named[0] if named else (mode.__doc__ or "").partition("\n")[0]
        modes.append((name, f"{line} Not (ε, δ)-DP: {mode.flaw}." if mode.flaw else line))
    return modes


def text() -> str:
    """The page as Markdown."""
    methods = list(sections())
    parts = [f"# {TITLE}", f"{INTRO} {summary(methods)}", NOTATION, "## Mechanisms"]
    parts.append(_markdown(["mechanism", "sensitivity in", "theorem"], [[k, *v] for k, v in MECHANISMS.items()]))
    parts += ["## Composition", _markdown(["accounting", "what it is"], [list(mode) for mode in modes()])]
    parts += ["## Settings that break a guarantee", BREAKING, _markdown(["setting", "methods", "why"], breaking())]
    for one in methods:
        parts += [f"## {one.name}", f"**{one.title}**"]
        parts.append("\n".join(f"- *{name}*: {told}" for name, told in one.facts))
        parts.append(_markdown(HEADER, one.releases) if one.releases else "It releases nothing with noise.")
        if one.audited:
            parts.append(_markdown(AUDIT, one.audited))
    return "\n\n".join(parts) + "\n"


def summary(methods: list[Section]) -> str:
    """How many methods are private, and what the audit found of them."""
    others = [one.name for one in methods if dict(one.facts)["private"].startswith("no")]
    audited = [one for one in methods if one.audited]
    rows = [row for one in audited for row in one.audited]
    broken = [row for row in rows if float(row[2].split(" ≥ ")[1]) > float(row[3]) * AUDIT_SLACK]
    told = f"{len(broken)} exceed" if broken else "none exceeds"
    use = f" The others are baselines that use something which no ε covers: {', '.join(others)}." if others else ""
    assume = [one.name for one in methods if one.name not in others and dict(one.facts)["counts as public"] != "n"]
    return (
        f"Of {counted(len(methods), 'method')} {len(methods) - len(others)} are private.{use} Beside n a statistic of "
        f"the data counts as public for {len(assume)} of the private ones: {', '.join(assume)}; with `L` given, or "
        "`scales=bound`, none does. The audit has "
        f"{counted(len(rows), 'lower bound')} on the releases of {counted(len(audited), 'method')}: {told} what the "
        "method claims."
    )


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
