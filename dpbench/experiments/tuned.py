"""Tuned settings that ship with an experiment: its `tuned.toml`, which `dpbench run --algo` reads.

`python -m dpbench.experiments.tuned EXPERIMENT [RESULTS]` writes it from the rows: the "best" settings of the grid's
blocks, of the full profile where its rows are there, else of the quick one. The tuning looks at the data: these
settings reproduce the paper's numbers and are no private choice for data of one's own.
"""

from __future__ import annotations

import math
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from dpbench import experiments, toml

PROFILES = ("full", "quick")  # the first that has rows


class Tuned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was best for (algorithm, problem) at ε, and the profile whose rows say so."""

    algorithm: str
    problem: str
    epsilon: float
    profile: str
    settings: dict[str, Any]


def of(experiment: experiments.Experiment) -> list[Tuned]:
    """What ships with the experiment; nothing if it has no `tuned.toml`."""
    file = resources.files(experiment.package) / "tuned.toml"
    return msgspec.convert(toml.read(file)["tuned"], list[Tuned]) if file.is_file() else []


def lookup(algorithm: str, home: str, problem: str, epsilon: float) -> Tuned | None:
    """The entry for (algorithm or alias, problem) at the nearest ε on a log scale, in the experiment called `home`."""
    if home not in experiments.NAMES:
        return None
    known = [one for one in of(experiments.get(home)) if (one.algorithm, one.problem) == (algorithm, problem)]
    return min(known, key=lambda one: abs(math.log(one.epsilon / epsilon)), default=None)


def find(experiment: experiments.Experiment, results: str) -> list[Tuned]:
    """The tuned settings that the rows under `results` say, in the order of the grid."""
    from dpbench.experiments.tuning import best_settings
    from dpbench.results import Store

    found: dict[tuple, Tuned] = {}
    for profile in [one for one in PROFILES if one in experiment.grid()]:
        runs = Store(results, profile, experiment.name).runs()
        for block in experiment.blocks(profile):
            for problem, algorithm, epsilon in block.cells if block.tuned and not runs.empty else ():
                fixed = {name: block.settings[name] for name in block.settings if name not in block.tuned}
                if (algorithm, problem, epsilon) in found or any(isinstance(v, list | dict) for v in fixed.values()):
                    continue
                best = best_settings(
                    runs, problem, algorithm, epsilon, fixed, block.tuned, block.accounting, block.delta
                )
                if best is not None:
                    found[algorithm, problem, epsilon] = Tuned(algorithm, problem, epsilon, profile, fixed | best)
    return list(found.values())


def text(experiment: experiments.Experiment, tuned: list[Tuned]) -> str:
    """`tuned.toml`."""
    lines = [
        f"# Settings with the lowest mean excess loss in {experiment.name}'s grids: tuned on the data, not private.",
        f"# Written by: python -m dpbench.experiments.tuned {experiment.name}",
    ]
    for one in tuned:
        settings = ", ".join(f"{k} = {msgspec.json.encode(value).decode()}" for k, value in one.settings.items())
        lines += [
            "",
            "[[tuned]]",
            f'algorithm = "{one.algorithm}"',
            f'problem = "{one.problem}"',
            f"epsilon = {one.epsilon!r}",
            f'profile = "{one.profile}"',
            f"settings = {{ {settings} }}",
        ]
    return "\n".join(lines) + "\n"


def main(name: str, results: str = "results") -> None:
    experiment = experiments.get(name)
    tuned = find(experiment, results)
    if not tuned:
        sys.exit(f"error: no rows of {name} to tune on in {results}; run: dpbench run --experiment {name}")
    path = Path(str(resources.files(experiment.package) / "tuned.toml"))
    path.write_text(text(experiment, tuned))
    print(f"{path}: {len(tuned)} settings")


if __name__ == "__main__":
    main(*sys.argv[1:])
