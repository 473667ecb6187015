"""Who is in a comparison, under which accounting, and which settings are tried: one rule for every method."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import msgspec

from dpbench import algorithms
from dpbench.algorithms import terms
from dpbench.algorithms.base import Algorithm, make_settings
from dpbench.errors import NotAtHand, UserError
from dpbench.files import read_toml
from dpbench.problems import catalogue
from dpbench.study.grid import BEST, GridEntry


def entrants() -> list[str]:
    """Every registered private method; where aliases name all variants of one, the aliases."""
    return [name for name in algorithms.names() if _enters(name)]


def excluded() -> dict[str, str]:
    """Entrants that are left out all the same, and why."""
    return _tuning()["excluded"]


def _enters(name: str) -> bool:
    method, fixed = algorithms.resolve(name)
    return method.private and algorithms.display_name(method.name, make_settings(method, fixed)) == name


@functools.cache
def _tuning() -> dict[str, dict[str, Any]]:
    return read_toml(Path(__file__).with_name("tuning.toml"))


def candidates(name: str, profile: str) -> dict[str, list[Any]]:
    """The values tried: those of tuning.toml, else the method's own `tuning`, else the default T where it has a T."""
    method, fixed = algorithms.resolve(name)
    grids = _tuning().get(profile, _tuning()["full"])
    grid = grids.get(name) or grids.get(method.name) or method.tuning
    if not grid and "T" in method.Settings.__struct_fields__:
        grid = grids["default"]
    return {key: values for key, values in grid.items() if key not in fixed}


def reason(problem: str, name: str) -> str:
    """Why the method is not run on the problem; "" where it is, or where that takes data that are not fetched."""
    return _fit(problem, name)[0]


@functools.lru_cache(maxsize=4096)
def _fit(problem: str, name: str) -> tuple[str, frozenset[tuple[str, Any]]]:
    """The reason, and the (setting, value) pairs of the full grid that the problem does not admit."""
    method, fixed = algorithms.resolve(name)
    if not method.private:
        return "not private", frozenset()
    if name in excluded():
        return excluded()[name], frozenset()
    try:
        target = catalogue.declare(problem)
        method.needs.check(target, method.name)
        method.under(terms.RELATION)
    except NotAtHand:
        return "", frozenset()
    except UserError as error:
        return _without_name(error, method), frozenset()
    grid = candidates(name, "full") or {}
    refused, why = set(), ""
    pairs = [(key, value) for key, values in grid.items() for value in values]
    tried: list[tuple[str, Any] | None] = [*pairs] or [None]
    for one in tried:
        try:
            settings = method.complete(target, make_settings(method, fixed | dict([one] if one else [])))
            why = method.flaw(settings) or why
        except NotAtHand:
            continue
        except UserError as error:
            refused.add(one)
            why = _without_name(error, method)
        else:
            if method.flaw(settings):
                refused.add(one)
    if len(refused) == len(tried):
        return why, frozenset()
    return "", frozenset(one for one in refused if one)


def _without_name(error: UserError, method: Algorithm) -> str:
    return str(error).removeprefix(f"{method.name}: ")


@functools.lru_cache(maxsize=4096)
def expand(block: GridEntry, profile: str) -> list[GridEntry]:
    """The block's methods ("every": all entrants) on its problem, each under its accounting, with its candidates.

    One block per (problem, method); timed ones take the best of the candidates.
    """
    blocks = []
    for problem, name in itertools.product(block.problems, named(block)):
        why, refused = _fit(problem, name)
        if why:
            continue
        grid: dict[str, Any] = {
            key: [value for value in values if (key, value) not in refused]
            for key, values in candidates(name, profile).items()
        }
        grid = {key: values for key, values in grid.items() if values}
        if block.timed:
            grid = dict.fromkeys(grid, BEST)
        blocks.append(entering(block, problem, name, grid | block.settings))
    return blocks


def named(block: GridEntry) -> list[str]:
    """The methods that a block names; "every": all entrants."""
    return [name for one in block.algorithms for name in (entrants() if one == "every" else [one])]


def entering(block: GridEntry, problem: str, name: str, settings: dict[str, Any]) -> GridEntry:
    """The block for one method on one problem at these settings: under its accounting, at its δ, for replace-one."""
    method, _ = algorithms.resolve(name)
    return msgspec.structs.replace(
        block,
        problems=[problem],
        algorithms=[name],
        settings=settings,
        accounting=terms.accounting(method),
        delta=terms.delta(method),
        relation=terms.RELATION.value,
    )
