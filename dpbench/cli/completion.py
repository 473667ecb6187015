"""What a shell completes: names of algorithms, data sets, problems and experiments.

eval "$(_DPBENCH_COMPLETE=bash_source dpbench)"    # in ~/.bashrc; zsh_source and fish_source likewise
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _of(names: Callable[[], Iterable[str]]) -> Complete:
    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        return [name for name in names() if name.startswith(begun)]

    return complete


def _algorithms() -> Iterable[str]:
    from dpbench import algorithms

    return algorithms.names()


def _datasets() -> Iterable[str]:
    from dpbench import datasets

    return [*datasets.names(), "all"]


def _problems() -> Iterable[str]:
    from dpbench import datasets
    from dpbench.problems import catalogue

    return dict.fromkeys([*datasets.names(), *catalogue.names()])


def _experiments() -> Iterable[str]:
    """The experiments, and the artefacts of each."""
    from dpbench import experiments

    return [
        name
        for one in experiments.NAMES
        for name in (one, *(f"{one}/{artefact.name}" for artefact in experiments.get(one).artefacts))
    ]


ALGORITHMS, DATASETS, PROBLEMS, EXPERIMENTS = map(_of, (_algorithms, _datasets, _problems, _experiments))
