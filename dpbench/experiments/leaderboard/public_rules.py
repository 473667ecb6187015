"""Methods chosen by n, d and ε alone, so that the choice costs no privacy; public_rules.toml has the rules."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

from dpbench.errors import UserError
from dpbench.files import read_toml
from dpbench.problems import Declaration


@functools.cache
def _rules() -> dict[str, Any]:
    return read_toml(Path(__file__).with_name("public_rules.toml"))


def method(problem: Declaration, epsilon: float) -> str:
    """The method to take where nobody has a reason for another; UserError where no rule covers the problem.

    >>> method(Declaration(1_000, 25), 1.0), method(Declaration(1_000, 25, l2=0.1), 1.0)
    ('aop', 'dp-gd')
    """
    for rule in _rules()["auto"].get(problem.loss.name, []):
        if (
            problem.d <= rule.get("columns", math.inf)
            and epsilon <= rule.get("epsilon", math.inf)
            and not (rule.get("plain") and problem.regularisers)
        ):
            return str(rule["algorithm"])
    raise UserError(f"algorithm: no rule chooses one for {problem.loss.name} loss at d = {problem.d}; name one")
