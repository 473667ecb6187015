"""Tuned settings that ship with an experiment: its `tuned.toml`, which `dpbench run --algo` reads."""

from __future__ import annotations

from typing import Any

import msgspec

from dpbench.files import read_toml
from dpbench.run.store import Store
from dpbench.study.experiment import Experiment
from dpbench.study.tuner import Tuner, columns_of

PROFILES = ("full", "quick")  # the first that has rows


class Tuned(msgspec.Struct, frozen=True, array_like=True):
    """What was best for (algorithm, problem) at ε, and the profile whose rows say so."""

    algorithm: str
    problem: str
    epsilon: float
    profile: str
    settings: dict[str, Any]


def shipped(experiment: Experiment) -> list[Tuned]:
    """What ships with the experiment; nothing if it has no `tuned.toml`."""
    file = experiment.file("tuned.toml")
    return msgspec.convert(read_toml(file)["tuned"], list[Tuned]) if file.is_file() else []


def tune(experiment: Experiment, results: str) -> list[Tuned]:
    """The tuned settings that the rows under `results` say, in the order of the grid."""
    tuned: dict[tuple[str, str, float], Tuned] = {}
    for profile in [one for one in PROFILES if one in experiment.grid()]:
        tuner = Tuner(columns_of(Store(results, profile, experiment.name)))
        for block in experiment.blocks(profile):
            for problem, algorithm, epsilon in block.cells if block.tuned else ():
                fixed = {name: block.settings[name] for name in block.settings if name not in block.tuned}
                if (algorithm, problem, epsilon) in tuned or any(isinstance(v, list | dict) for v in fixed.values()):
                    continue
                how = (block.accounting, block.delta, block.relation, block.split)
                best = tuner.best(problem, algorithm, epsilon, fixed, block.tuned, *how)
                if best is not None:
                    tuned[algorithm, problem, epsilon] = Tuned(algorithm, problem, epsilon, profile, fixed | best)
    return list(tuned.values())


def as_toml(experiment: Experiment, tuned: list[Tuned]) -> str:
    """The text of `tuned.toml`."""
    lines = [
        f"# Settings with the lowest mean excess loss in {experiment.name}'s grids: tuned on the data, not private.",
        f"# Written by: python -m dpbench.experiments.tuned {experiment.name}",
        "tuned = [ # algorithm, problem, ε, profile, settings",
    ]
    for one in tuned:
        settings = ", ".join(f"{k} = {msgspec.json.encode(value).decode()}" for k, value in one.settings.items())
        lines.append(f'  ["{one.algorithm}", "{one.problem}", {one.epsilon!r}, "{one.profile}", {{ {settings} }}],')
    lines.append("]")
    return "\n".join(lines) + "\n"
