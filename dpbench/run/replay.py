"""What a row's run planned to release, worked out again: rows do not hold their ledgers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

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
from dpbench.run.row import Row
from dpbench.run.threads import one_thread

LEAST = 6  # letters of a key


def row_of(key: str, results: str | os.PathLike[str]) -> Row:
    """The row whose key begins with `key`, under any profile; UserError where there is none, or more than one."""
    if len(key) < LEAST:
        raise UserError(f"key: give at least its first {LEAST} letters, got {key!r}")
    found: dict[str, Row] = {}
    for folder in sorted(Path(results).glob("*/*/runs")):
        store = Store(results, folder.parent.parent.name, folder.parent.name)
        found |= {row.key: row for row in store.rows(key)}
    if len(found) != 1:
        raise UserError(f"key: {len(found) or 'no'} rows in {results} have a key that begins with {key}")
    return found.popitem()[1]


def planned(row: Row) -> tuple[Composition, Budget]:
    """What the run of a row could have released, and its budget: the plan of its method, without any data.

    A run of a method that plans nothing is made again, with noise of its own. UserError for a run of an algorithm that
    is not installed, or of a sweep; NotAtHand for data that it needs.
    """
    if row.sweep:
        raise UserError(f"key: {row.key} is a sweep of many runs; give that of a single one")
    name = str(row.problem)
    method, _ = algorithms.resolve(str(row.algorithm))
    target, key = catalogue.declare(name), f"replay/{row.key}"
    settings = method.complete(target, make_settings(method, row.settings or {}))
    budget = Budget(float(row.epsilon or 0), float(row.delta or 0), Relation(row.relation), str(row.accounting))
    mechanisms = Mechanisms([key], budget, declared=method.declared(budget.relation))
    method.plan(target, mechanisms, settings)
    if plan := mechanisms.ledger.planned(0):
        return plan, budget
    problem = build(name)
    start = np.asarray(starts.draw(catalogue.recipe_of(name).start, problem.d, stream(f"{name}/{row.seed}", "init")))
    with one_thread():
        run = bind(method, problem, [settings], [budget], start[None], [key]).run()
    return run.mechanisms.ledger.planned(0), budget
