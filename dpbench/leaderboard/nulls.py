"""What w = 0 loses on every problem of the board: `python -m dpbench.leaderboard.nulls` writes nulls.toml.

It takes data and optima, which whoever draws a report may not have; the numbers ship instead.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from dpbench import datasets
from dpbench.files import read_toml
from dpbench.leaderboard import tracks
from dpbench.problems import Problem, build, catalogue

FILE = Path(__file__).with_name("nulls.toml")


@functools.cache
def nulls(score: str = "excess") -> dict[str, float]:
    """Problem → F(0) - F*, or for "held" the mean loss of w = 0 on the rows held out."""
    return read_toml(FILE).get(score, {}) if FILE.exists() else {}


def null_excess(problem: Problem) -> float:
    """F(0) - F* of a fetched problem."""
    return float(problem.value(np.zeros((1, problem.d)))[0]) - problem.optimum().value


def null_held(problem: Problem) -> float:
    """The mean loss of w = 0 on the rows that a fetched problem holds out."""
    _, y = problem.held_out or ((), np.zeros(0))
    return float(problem.loss.value(np.zeros((1, len(y))), y, np.empty((1, len(y)))).mean())


def main() -> None:
    """Write the numbers of all problems that are fetched; the others keep what they have."""
    numbers = {score: dict(nulls(score)) for score in ("excess", "held")}
    names = {problem for blocks in tracks.grid().values() for block in blocks for problem in block.problems}
    for name in sorted(names):
        if datasets.available(catalogue.recipe_of(name).dataset):
            problem = build(name)
            # Ten digits: more would differ from machine to machine, and the file with them.
            numbers["excess"][name] = float(f"{null_excess(problem):.10g}")
            if problem.held_out:
                numbers["held"][name] = float(f"{null_held(problem):.10g}")
    told = (
        "# The excess loss of w = 0, and its loss on rows held out, by problem; written by dpbench.leaderboard.nulls\n"
    )
    for score, values in numbers.items():
        told += f"\n[{score}]\n" + "".join(f"{name} = {values[name]!r}\n" for name in sorted(names & values.keys()))
    FILE.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
