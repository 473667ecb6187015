"""Who is in a comparison, under which accounting, and which settings are tried: one rule for every method."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.algorithms.base import Algorithm, make_settings
from dpbench.errors import NotAtHand, UserError
from dpbench.files import read_toml
from dpbench.problems import catalogue
from dpbench.problems.regularisers import Declaration
from dpbench.study.grid import GridEntry

OF_ROWS = "not derived for several rows of one person"


def entrants() -> list[str]:
    """Every registered private method; where aliases name all variants of one, the aliases."""
    return [name for name in algorithms.names() if _enters(name)]


def excluded() -> dict[str, str]:
    """Entrants that are left out all the same, and why."""
    return _tuning()["excluded"]


def _enters(name: str) -> bool:
    method, fixed = algorithms.resolve(name)
    # Where aliases name its variants, the bare name would enter one variant twice.
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


@functools.lru_cache(maxsize=4096)
def reason(problem: str, name: str) -> str:
    """Why the method is not run on the problem; "" where it is, or where that takes data that are not fetched."""
    why = ""
    for _, why in _tried(problem, name):
        if not why:
            return ""
    return why


@functools.lru_cache(maxsize=32)
def declared(problem: str) -> Declaration:
    """What is declared of the problem, kept while all methods are held against it."""
    return catalogue.declare(problem)


def of_persons(problem: str) -> bool:
    """Whether a record of the problem is a person, who may have several rows."""
    return catalogue.recipe_of(problem).spec.persons is not None


def _tried(problem: str, name: str) -> Iterator[tuple[tuple[str, Any] | None, str]]:
    """The (setting, value) pairs of the full grid, None where there are none, and why the problem does not admit each.

    "" where it does, or where that takes data that are not fetched. Of a method that is not run at all, None alone.
    """
    method, fixed = algorithms.resolve(name)
    why = "" if method.private else "not private"
    why = why or excluded().get(name, "")
    target = None
    if not why:
        try:
            target = declared(problem)
            method.needs.check(target, method.name)
            # The board compares at one relation, so a method that has no proof for it does not enter.
            method.under(rules.RELATION)
            if of_persons(problem):
                public = rules.public_settings(name, target.n, target.d, 1.0)
                # What is of the rows as they are would be no person's mean, even where it counts as public.
                # A fit takes nobody's word for it but dpbench's own derivations: see `own.spec`.
                derived = method.persons and not algorithms.not_ours(name, {})
                if not derived or method.public(make_settings(method, fixed | public)):
                    why = OF_ROWS
        except NotAtHand:
            target = None
        except UserError as error:
            why = _without_name(error, method)
    if why or target is None:
        yield None, why
        return
    # One setting at a time: what a problem refuses is a value, not a combination.
    pairs = [(key, value) for key, values in candidates(name, "full").items() for value in values]
    tried: list[tuple[str, Any] | None] = [*pairs] or [None]
    for one in tried:
        try:
            settings = method.complete(target, make_settings(method, fixed | dict([one] if one else [])))
            yield one, method.flaw(settings)
        except NotAtHand:
            yield one, ""
        except UserError as error:
            yield one, _without_name(error, method)


def _without_name(error: UserError, method: Algorithm) -> str:
    return str(error).removeprefix(f"{method.name}: ")


def named(block: GridEntry) -> list[str]:
    """The methods that a block names; "every": all entrants."""
    return [name for one in block.algorithms for name in (entrants() if one == "every" else [one])]


def entering(block: GridEntry, problem: str, name: str, settings: dict[str, Any], **other: Any) -> GridEntry:
    """The block for one method on one problem at these settings: under its accounting, at its δ, for replace-one.

    other: fields of the block that differ.
    """
    method, _ = algorithms.resolve(name)
    return msgspec.structs.replace(
        block,
        problems=[problem],
        algorithms=[name],
        settings=settings,
        accounting=rules.accounting(method),
        delta=rules.delta(method),
        relation=rules.RELATION.value,
        **other,
    )
