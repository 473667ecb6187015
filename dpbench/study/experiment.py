"""What an experiment is: a grid per profile, the artefacts drawn from its rows, and the claims they test."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

from dpbench.errors import UserError, nearest
from dpbench.files import read_toml
from dpbench.study.claims import BOTH, Artefact, Claim, Erratum, declared
from dpbench.study.grid import Grid, GridEntry, load_grid, serving
from dpbench.study.value_verdict import PublishedValue, Switch

PLANTED = "planted"  # the artefact of runs that are wrong on purpose, of every paper with printed values


@dataclass(frozen=True)
class Experiment:
    """One paper: its grid file, and what its modules declare (see `study.claims`).

    modules: where artefacts, claims and errata are declared, in the order of the report; order: names of artefacts
    that come first, in this order, where that of the modules is not the paper's.
    published_values: of a context, each `PublishedValue` with our runs for it; switches: the differences between the
    run at a proven ε and the published one that they may name.
    short: the title in a few words, for navigation and axes; about: what the paper proposes, and the names and letters
    that its pages use, for a reader who has not read it.
    alone: under which settings a claim's only verdict is: BOTH where the paper's own setting keeps its ε, else PROVEN.
    expand: what a block of the grid's file stands for under a profile: itself.
    """

    name: str
    title: str
    citation: str
    package: str
    modules: tuple[ModuleType, ...] = ()
    order: tuple[str, ...] = ()
    published_values: Callable[[Any], Iterable[PublishedValue]] | None = None
    switches: tuple[Switch, ...] = ()
    short: str = ""
    about: str = ""
    alone: str = BOTH
    expand: Callable[[GridEntry, str], list[GridEntry]] = lambda block, profile: [block]

    @cached_property
    def links(self) -> tuple[tuple[str, str], ...]:
        """(text, address) of the paper's DOI and arXiv number, where its `paper.bib` has them."""
        source = self.file("paper.bib")
        text = source.read_text(encoding="utf-8") if source.is_file() else ""
        given = dict(re.findall(r"^ *(doi|eprint) *= *[{]([^}]+)[}]", text, flags=re.MULTILINE))
        kinds = (("doi", "doi", "https://doi.org/"), ("eprint", "arXiv", "https://arxiv.org/abs/"))
        return tuple((f"{label}:{given[name]}", root + given[name]) for name, label, root in kinds if name in given)

    @cached_property
    def artefacts(self) -> tuple[Artefact, ...]:
        by_name = {one.name: one for one in declared(self.modules, Artefact)}
        return tuple(by_name[name] for name in dict.fromkeys([*self.order, *by_name]))

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        return declared(self.modules, Claim)

    @cached_property
    def errata(self) -> tuple[Erratum, ...]:
        return declared(self.modules, Erratum)

    def file(self, name: str) -> Path:
        """A file beside the paper's modules."""
        return Path(str(resources.files(self.package))) / name

    @cached_property
    def _grid(self) -> Grid:
        return load_grid(self.file("grid.toml"))

    def grid(self, config: str | os.PathLike[str] | None = None) -> Grid:
        """The experiment's own grid, or the one of a file."""
        return self._grid if config is None else load_grid(config)

    def published(self) -> dict[str, Any]:
        """The paper's own values, as data."""
        return read_toml(self.file("published.toml"))

    def cited(self, place: str) -> str:
        """A place in the paper with its pages, where `[pages]` of the published values has them: "Fig. 3 (p. 812)".

        Those of the figures and tables it names, else of its section.
        """
        named = re.findall(r"(Fig|Table)s?[.]? (\d+(?:(?:, | and )\d+)*)", place)
        keys = [f"{'Fig.' if kind == 'Fig' else kind} {n}" for kind, ns in named for n in re.findall(r"\d+", ns)]
        keys = keys or re.findall(r"Section [\w.]*\w", place)
        known = self.published().get("pages", {}) if keys and self.published_text() else {}
        pages = [str(known[key]) for key in keys if key in known]
        return f"{place} ({'p.' if len(pages) == 1 else 'pp.'} {', '.join(pages)})" if pages else place

    def published_text(self) -> str:
        """The file behind `published`, comments and all; "" where the paper publishes none."""
        source = self.file("published.toml")
        return source.read_text(encoding="utf-8") if source.is_file() else ""

    def blocks(
        self, profile: str, artefact: str | None = None, config: str | os.PathLike[str] | None = None
    ) -> list[GridEntry]:
        """The grid's blocks under a profile, or those that one artefact needs (tuning blocks included)."""
        grid = self.grid(config)
        if profile not in grid:
            where = f"{config}: " if config is not None else ""
            there = nearest(profile, grid) if grid else f"the grid has none; add [profiles.{profile}]"
            raise UserError(f"{where}unknown profile {profile!r}: {there}")
        known = {one.name for one in self.artefacts} | ({PLANTED} if self.published_values else set())
        if artefact is not None and artefact not in known:
            raise UserError(f"{self.name} has no artefact {artefact!r}: {nearest(artefact, known)}")
        # A name with a slip of the pen would be an artefact that never gets its rows.
        for block in grid[profile]:
            wrong = sorted(set(block.artefacts) - known)
            if wrong:
                raise UserError(f"{self.name} has no artefact {wrong[0]!r}: {nearest(wrong[0], known)}")
        blocks = grid[profile] if artefact is None else serving(artefact, grid[profile])
        return [one for block in blocks for one in self.expand(block, profile)]

    def has(self, blocks: Iterable[GridEntry], profile: str) -> bool:
        """Whether every run of the blocks is one of this experiment's under the profile."""
        own = self.blocks(profile) if profile in self.grid() else []
        return all(any(one.within(other) for other in own) for one in blocks)

    def problems(self, profile: str = "full") -> list[str]:
        """Every problem of the grid, in its order; of all profiles where a package's paper has none of that name."""
        profiles = [profile] if profile in self.grid() else [*self.grid()]
        return list(dict.fromkeys(p for each in profiles for block in self.blocks(each) for p in block.problems))
