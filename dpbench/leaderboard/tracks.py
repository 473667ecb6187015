"""Tracks of tuning: which settings a method runs at, from nothing, from values nearby, from its own ε.

default: the public rule of `algorithms.rules`, from (n, d, ε) alone. nearby: the best of three values around the rule
on TUNED_ON seeds, scored on others, so that the score has not the optimism of a minimum; the choice itself is free,
which no practitioner has, and often at an end of the three, so it is no oracle. private: the same values searched
within the one ε (`algorithms.private_tuning`).
"""

from __future__ import annotations

import functools
import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.algorithms.base import Algorithm, make_settings
from dpbench.algorithms.rules import public_settings
from dpbench.errors import NotAtHand, UserError
from dpbench.files import read_toml
from dpbench.leaderboard import entrants
from dpbench.leaderboard.places import METHOD
from dpbench.problems import catalogue
from dpbench.study import tuning
from dpbench.study.grid import BEST, Grid, GridEntry, load_grid

PRIVATE = "private-tuning"  # the algorithm that searches within ε
TRACK = "track"  # a block's settings name it under this key
TUNE = "nearby-tune"  # the rows that the choice among nearby values is made on
TUNED_ON = 10  # seeds, from 0 on


@functools.cache
def _file() -> dict[str, Any]:
    return read_toml(Path(__file__).with_name("tracks.toml"))


PERSONS = "persons: "  # before the kind of a problem whose records are persons
KINDS = (
    *("logistic", "logistic + ridge", "squared + ridge", "logistic + L1", "squared + L1"),
    *(PERSONS + "logistic + ridge", PERSONS + "squared + ridge"),
)


def kind(problem: str) -> str:
    """Of the KINDS, by loss and regulariser: what a method's needs are about."""
    recipe = catalogue.recipe_of(problem)
    loss = (PERSONS if entrants.of_persons(problem) else "") + recipe.loss
    if recipe.weights.get("l1"):
        return f"{loss} + L1"
    return f"{loss} + ridge" if recipe.weights else loss


@functools.cache
def families() -> dict[str, str]:
    """Problem → family, of problems that share one; see families.toml."""
    told = read_toml(Path(__file__).with_name("families.toml"))
    return {problem: family for family, problems in told.items() for problem in problems}


def choice(problem: str) -> str:
    """The method that users get where they name none; "" where no rule covers the problem."""
    persons = entrants.of_persons(problem)
    try:
        return rules.method(entrants.declared(problem), suits=lambda name: not persons or algorithms.get(name).persons)
    except UserError:
        return ""


def chosen(rows: pd.DataFrame) -> pd.DataFrame:
    """Of `places.losses` rows of the nearby track: each method's setting with the lowest mean on the first seeds.

    By its other seeds alone. Methods of which candidates are missing are left out.
    """
    sizes = rows[rows["seed"] < TUNED_ON].groupby([*METHOD, "settings"], sort=True).agg(size=("loss", "size"))
    seen = sizes[sizes["size"] == TUNED_ON].reset_index()
    tried = seen.groupby(METHOD)["size"].transform("size")
    asked = [max(1, len(candidates(p, name, e))) for p, e, name in seen[METHOD].itertuples(index=False)]
    whole = seen.loc[tried >= np.array(asked, dtype=int), [*METHOD, "settings"]]
    compared = rows.merge(whole, on=[*METHOD, "settings"])
    scored = tuning.chosen(compared.sort_values("settings", kind="stable"), METHOD, ["settings"], "loss", TUNED_ON)
    return scored[scored["seed"] >= TUNED_ON]  # one without later seeds has no score


@functools.cache
def grid() -> Grid:
    """The board's own grid: profile → blocks."""
    return load_grid(Path(__file__).with_name("grid.toml"))


@functools.cache
def excluded() -> dict[str, str]:
    """Entrants that are on no track, and why."""
    return {**entrants.excluded(), **_file()["excluded"]}


def knob(name: str) -> str:
    """The setting that is tuned; "" for a method that has none."""
    method, fixed = algorithms.resolve(name)
    setting = _file()["knob"].get(method.name, "T" if "T" in method.public_settings(1000, 10, 1.0) else "")
    return "" if setting in fixed else setting


def size(problem: str) -> tuple[int, int]:
    """(n, d), declared, so that it takes no data."""
    recipe = catalogue.recipe_of(problem)
    if recipe.rows is None or recipe.spec.columns is None:
        declared = entrants.declared(problem)
        return declared.n, declared.d
    return recipe.rows, recipe.spec.columns


@functools.lru_cache(maxsize=65536)
def rule(problem: str, name: str, epsilon: float) -> tuple[tuple[str, Any], ...] | None:
    """The default track's settings, as items; None where method and problem, or its rule there, do not fit."""
    if name in excluded() or entrants.reason(problem, name):
        return None
    settings = public_settings(name, *size(problem), epsilon)
    return tuple(settings.items()) if _admitted(problem, name, settings) else None


@functools.lru_cache(maxsize=65536)
def candidates(problem: str, name: str, epsilon: float) -> tuple[Any, ...]:
    """The values of the knob that the nearby track and the private search try, rising; () without a knob."""
    settings, tuned = dict(rule(problem, name, epsilon) or ()), knob(name)
    if tuned not in settings:
        return ()
    values = [_scaled(settings[tuned], factor) for factor in _file()["factors"]]
    # The rule's own value is admitted, as there is a rule.
    fit = {v for v in values if v == settings[tuned] or _admitted(problem, name, settings | {tuned: v})}
    return tuple(sorted(fit))


def _scaled(value: float, factor: float) -> float:
    return max(1, round(value * factor)) if isinstance(value, int) else float(f"{value * factor:.2g}")


def _admitted(problem: str, name: str, settings: dict[str, Any]) -> bool:
    method, fixed = algorithms.resolve(name)
    try:
        method.complete(entrants.declared(problem), make_settings(method, fixed | settings))
    except NotAtHand:
        return True
    except UserError:
        return False
    return True


@functools.lru_cache(maxsize=4096)
def expand(block: GridEntry) -> list[GridEntry]:
    """A block of a track: one per (problem, method, ε), with the settings of the track named in `settings`."""
    track = block.settings[TRACK]
    combinations = itertools.product(block.problems, entrants.named(block), block.epsilon)
    return [one for at in combinations if (one := _block(block, track, *at)) is not None]


def default_blocks(profile: str, grid: Grid) -> list[GridEntry]:
    """The default track's blocks, split into one per (problem, ε), for a method that is not yet in it.

    Without those of persons: private copies are drawn of rows.
    """
    blocks = [block for block in grid[profile] if "places" in block.artefacts and not block.timed]
    return [
        msgspec.structs.replace(block, problems=[problem], epsilon=[epsilon])
        for block in blocks
        for problem, epsilon in itertools.product(block.problems, block.epsilon)
        if not entrants.of_persons(problem)
    ]


def _block(block: GridEntry, track: str, problem: str, name: str, epsilon: float) -> GridEntry | None:
    settings = rule(problem, name, epsilon)
    if settings is None:
        return None
    values = candidates(problem, name, epsilon) if track != "default" else ()
    given: dict[str, Any] = dict(settings)
    method: Algorithm = algorithms.resolve(name)[0]
    run = name
    if track == "private" and len(values) > 1 and method.name in _file()["private"]["methods"]:
        tried = [given | {knob(name): value} for value in values]
        run, given = PRIVATE, {"method": name, "candidates": json.dumps(tried)}
    if track in (TUNE, "nearby"):
        if len(values) < 2:
            if track == TUNE:
                return None
        else:
            given[knob(name)] = list(values) if track == TUNE else BEST
    entered = entrants.entering(block, problem, name, given, epsilon=[epsilon])
    if run == PRIVATE:
        mode = "pure" if rules.delta(method) == 0 else "tight"
        return msgspec.structs.replace(entered, algorithms=[run], accounting=mode)
    return entered
