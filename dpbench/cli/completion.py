"""What a shell completes: names of algorithms, data sets and experiments.

eval "$(_DPBENCH_COMPLETE=bash_source dpbench)"    # in ~/.bashrc; zsh_source and fish_source likewise
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

import dpbench

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _of(names: Callable[[], Iterable[str]]) -> Complete:
    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        return [name for name in names() if name.startswith(begun)]

    return complete


def _listed(what: str, column: str) -> Callable[[], Iterable[str]]:
    def names() -> Iterable[str]:
        return map(str, dpbench.listing(what)[column])

    return names


def _experiments() -> Iterable[str]:
    """The experiments, and the artefacts of each."""
    found = dpbench.listing("experiments")
    for name, artefacts in zip(found["experiment"], found["artefacts"], strict=True):
        yield from (name, *(f"{name}/{artefact}" for artefact in artefacts.split(", ")))


ALGORITHMS, DATASETS, EXPERIMENTS = map(
    _of, (_listed("algorithms", "algorithm"), _listed("datasets", "data_set"), _experiments)
)
