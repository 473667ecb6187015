"""Every new method's excess loss against what was expected of it, by an independent plain-NumPy prototype.

`python -m benchmarks.expected_excess` runs all cells of expected_excess.csv, twenty seeds each (fewer on large data),
replace-one, δ = n⁻², and writes results/expected_excess.csv and .md. An argument runs that method alone and prints.
off: the difference over its standard error, √(se² + se²).
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.algorithms.base import make_settings
from dpbench.privacy.budget import Budget
from dpbench.privacy.check import guarantee
from dpbench.problems import build
from dpbench.run.bind import BoundRun
from dpbench.run.job import delta_value

HERE = Path(__file__).parent
SEEDS, LARGE = 20, 1e6  # entries of X, beyond which a quarter of the seeds do
HEADER = ("method", "problem", "epsilon", "settings", "expected", "se", "measured", "se_measured", "seeds", "off")


def cells() -> list[dict[str, str]]:
    """The rows of expected_excess.csv."""
    with (HERE / "expected_excess.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def measured(cell: dict[str, str], seeds: int | None = None) -> tuple[float, float, int]:
    """(mean, standard error, seeds) of F(w) - F*; RuntimeError where the second accountant finds more than ε."""
    method, problem = algorithms.get(cell["method"]), build(cell["problem"])
    given = dict(word.split("=") for word in cell["settings"].split())
    settings = method.complete(problem, make_settings(method, given))
    budget = Budget(
        float(cell["epsilon"]),
        delta_value(rules.delta(method), problem.n),
        rules.RELATION,
        method.accounting(rules.accounting(method)),
    )
    k = seeds or (SEEDS if problem.n * problem.d <= LARGE else SEEDS // 4)
    keys = [f"expected/{cell['method']}/{cell['problem']}/{cell['epsilon']}/{seed}" for seed in range(k)]
    run = BoundRun(method, problem, [settings] * k, [budget] * k, np.zeros((k, problem.d)), keys).run()
    found = guarantee(run.mechanisms.ledger, 0, budget, method.labels)
    if found.error:
        raise RuntimeError(f"{cell}: {found.error}")
    excess = run.objective - problem.optimum().value
    return float(excess.mean()), float(excess.std(ddof=1) / np.sqrt(k)), k


def main(names: list[str]) -> None:
    """Print a line a cell; with no names, write them all."""
    lines = []
    for cell in cells():
        if names and cell["method"] not in names:
            continue
        mean, se, k = measured(cell)
        expected, spread = float(cell["mean"]), float(cell["se"])
        off = (mean - expected) / np.hypot(se, spread)
        line = (cell["method"], cell["problem"], cell["epsilon"], cell["settings"], cell["mean"], cell["se"],
                f"{mean:.3g}", f"{se:.2g}", str(k), f"{off:+.1f}")  # fmt: skip
        lines.append(line)
        print("  ".join(line), flush=True)
    if names:
        return
    with (HERE / "results" / "expected_excess.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *lines])
    (HERE / "results" / "expected_excess.md").write_text(table(lines))


def table(lines: Iterable[tuple[str, ...]]) -> str:
    """The page's table, with each mean and its standard error in one column."""
    header = ("method", "problem", "ε", "settings", "expected", "measured", "seeds", "off")
    told = [(*one[:4], f"{one[4]} ± {one[5]}", f"{one[6]} ± {one[7]}", *one[8:]) for one in lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in [header, ("---",) * len(header), *told])


if __name__ == "__main__":
    main(sys.argv[1:])
