"""What a row's run planned to release, worked out again: rows do not hold their ledgers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Composition
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.relation import Relation
from dpbench.privacy.streams import stream
from dpbench.problems import build, catalogue, starts
from dpbench.run.bound import bind
from dpbench.run.results import Store

LEAST = 6  # letters of a key


def row_of(key: str, results: str | os.PathLike[str]) -> dict[str, Any]:
    """The row whose key begins with `key`, under any profile; UserError where there is none, or more than one."""
    if len(key) < LEAST:
        raise UserError(f"key: give at least its first {LEAST} letters, got {key!r}")
    found: dict[str, dict[str, Any]] = {}
    for folder in sorted(Path(results).glob("*/*/runs")):
        runs = Store(results, folder.parent.parent.name, folder.parent.name).runs()
        for row in runs[runs["key"].str.startswith(key)].to_dict("records"):
            found[row["key"]] = row
    if len(found) != 1:
        raise UserError(f"key: {len(found) or 'no'} rows in {results} have a key that begins with {key}")
    return found.popitem()[1]


def planned(row: Mapping[str, Any]) -> tuple[Composition, Budget]:
    """What the run of a row could have released, and its budget: the plan of its method, without any data.

    A run of a method that plans nothing is made again, with noise of its own. UserError for a run of an algorithm that
    is not installed, or of a sweep; NotAtHand for data that it needs.
    """
    if isinstance(row["sweep"], str) and row["sweep"]:
        raise UserError(f"key: {row['key']} is a sweep of many runs; give that of a single one")
    method, _ = algorithms.resolve(str(row["algorithm"]))
    target = catalogue.declare(row["problem"])
    settings = method.complete(target, make_settings(method, msgspec.json.decode(row["settings"])))
    budget = Budget(float(row["epsilon"]), float(row["delta"]), Relation(row["relation"]), row["accounting"])
    mechanisms = Mechanisms([f"replay/{row['key']}"], budget, declared=method.declared(budget.relation))
    method.plan(target, mechanisms, settings)
    if plan := mechanisms.ledger.planned(0):
        return plan, budget
    problem = build(row["problem"])
    generator = stream(f"{row['problem']}/{row['seed']}", "init")
    start = np.asarray(starts.draw(catalogue.recipe_of(row["problem"]).start, problem.d, generator))[None]
    with threadpool_limits(1):
        run = bind(method, problem, [settings], [budget], start, [f"replay/{row['key']}"]).run()
    return run.mechanisms.ledger.planned(0), budget
