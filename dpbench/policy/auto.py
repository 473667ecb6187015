"""Methods chosen by n, d and ε alone, so that the choice costs no privacy; auto.toml has the rules."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpbench.errors import UserError
from dpbench.files import read_toml
from dpbench.problems import Declaration


@functools.cache
def _rules() -> dict[str, Any]:
    return read_toml(Path(__file__).with_name("auto.toml"))


def method(
    problem: Declaration, epsilon: float, models: int = 1, suits: Callable[[str], bool] = lambda name: True
) -> str:
    """The method to take where nobody has a reason for another; UserError where no rule covers the problem.

    models: among how many models (classes against the rest) the budget ε is split. suits: whether a method may be
    taken; one that may not is passed over.

    >>> method(Declaration(1_000, 25), 1.0), method(Declaration(1_000, 25, l2=0.1), 1.0)
    ('aop', 'dp-gd')
    """
    for rule in _rules()["auto"].get(problem.loss.name, []):
        if (
            models <= rule.get("models", math.inf)
            and problem.d <= rule.get("columns", math.inf)
            and epsilon / math.sqrt(models) <= rule.get("epsilon", math.inf)
            and not (rule.get("plain") and problem.regularisers)
            and suits(str(rule["algorithm"]))
        ):
            return str(rule["algorithm"])
    raise UserError(f"algorithm: no rule chooses one for {problem.loss.name} loss at d = {problem.d}; name one")
