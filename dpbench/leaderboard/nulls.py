"""The excess loss of w = 0 on every problem of the board: `python -m dpbench.leaderboard.nulls` writes nulls.toml.

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
def nulls() -> dict[str, float]:
    """Problem → F(0) - F*."""
    return read_toml(FILE) if FILE.exists() else {}


def null_excess(problem: Problem) -> float:
    """F(0) - F* of a fetched problem."""
    return float(problem.value(np.zeros((1, problem.d)))[0]) - problem.optimum().value


def main() -> None:
    """Write the numbers of all problems that are fetched; the others keep what they have."""
    numbers = dict(nulls())
    names = {problem for blocks in tracks.grid().values() for block in blocks for problem in block.problems}
    for name in sorted(names):
        if datasets.available(catalogue.recipe_of(name).dataset):
            # Ten digits: more would differ from machine to machine, and the file with them.
            numbers[name] = float(f"{null_excess(build(name)):.10g}")
    told = "# The excess loss of w = 0, by problem; written by dpbench.leaderboard.nulls\n"
    FILE.write_text(
        told + "".join(f"{name} = {value!r}\n" for name, value in sorted(numbers.items())), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
