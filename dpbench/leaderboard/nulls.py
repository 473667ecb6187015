"""What w = 0 and the optimum without privacy lose on every problem: `python -m dpbench.leaderboard.nulls` writes it.

It takes data and optima, which whoever draws a report may not have; the numbers ship instead.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path

import numpy as np

from dpbench import datasets
from dpbench.files import read_toml
from dpbench.leaderboard import tracks
from dpbench.leaderboard.places import EXCESS, Scale
from dpbench.problems import Problem, build, catalogue

FILE = Path(__file__).with_name("nulls.toml")
SURE = 2.0  # standard errors of a gain


@functools.cache
def nulls(score: str = "excess") -> dict[str, float]:
    """Problem → F(0) - F*; on the rows held out the mean loss of w = 0 for "held", of the optimum for "best".

    "best" has the problems alone on which the optimum gains anything: at least SURE standard errors over these rows.
    """
    return read_toml(FILE).get(score, {}) if FILE.exists() else {}


@functools.cache
def scale(column: str) -> Scale:
    """How the losses of a column become scores, on the problems where w = 0 loses anything by it."""
    if column == EXCESS:
        return Scale(column, nulls())
    best = nulls("best")
    return Scale(column, {name: nulls("held")[name] for name in best}, best)


def null_excess(problem: Problem) -> float:
    """F(0) - F* of a fetched problem."""
    return float(problem.value(np.zeros((1, problem.d)))[0]) - problem.optimum().value


def held_losses(problem: Problem) -> tuple[float, float, float]:
    """The mean losses of w = 0 and of the optimum on the rows held out, and the standard error of their difference."""
    X, y = problem.held_out or (np.zeros((0, problem.d)), np.zeros(0))
    of_both = [problem.loss.value((X @ w)[None], y, np.empty((1, len(y))))[0].copy()
               for w in (np.zeros(problem.d), problem.optimum().w)]  # fmt: skip
    gain = of_both[0] - of_both[1]
    return float(of_both[0].mean()), float(of_both[1].mean()), float(gain.std(ddof=1) / math.sqrt(len(y)))


def main() -> None:
    """Write the numbers of all problems that are fetched; the others keep what they have."""
    numbers = {score: dict(nulls(score)) for score in ("excess", "held", "best")}
    names = {problem for blocks in tracks.grid().values() for block in blocks for problem in block.problems}
    for name in sorted(names):
        if datasets.available(catalogue.recipe_of(name).dataset):
            problem = build(name)
            # Ten digits: more would differ from machine to machine, and the file with them.
            numbers["excess"][name] = float(f"{null_excess(problem):.10g}")
            if problem.held_out:
                null, best, error = (float(f"{one:.10g}") for one in held_losses(problem))
                numbers["held"][name] = null
                numbers["best"].pop(name, None)
                if null - best >= SURE * error:
                    numbers["best"][name] = best
    told = (
        "# The excess loss of w = 0, its loss on rows held out, and there that of the optimum without privacy, where\n"
        "# that gains anything; written by dpbench.leaderboard.nulls\n"
    )
    for score, values in numbers.items():
        told += f"\n[{score}]\n" + "".join(f"{name} = {values[name]!r}\n" for name in sorted(names & values.keys()))
    FILE.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
