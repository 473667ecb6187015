"""The papers are made with one kit: what it has is not written again beside it."""

import ast
import sys
from pathlib import Path

import pytest

from dpbench import experiments
from dpbench.study.paper import Paper, read_words
from tests.test_architecture import MODULES, room, tree

ROOT = Path(__file__).parents[2]
PAPERS = [name for name in MODULES if room(name) == "experiments"]


def codings(top):
    """f-strings that put "±" between two values."""
    for node in ast.walk(top):
        if isinstance(node, ast.JoinedStr):
            for before, text, after in zip(node.values, node.values[1:], node.values[2:], strict=False):
                ends = isinstance(before, ast.FormattedValue) and isinstance(after, ast.FormattedValue)
                if ends and isinstance(text, ast.Constant) and text.value.strip() == "±":
                    yield ast.unparse(node)


def test_a_mean_and_its_error_are_told_in_one_way():
    """`statistics.plus_minus`: six papers had seven of them."""
    found = {name: told for name in MODULES if (told := list(codings(tree(name))))}
    assert not found
    assert list(codings(ast.parse('f"{mean:.3g} ± {se:.1g}"')))


def test_missing_rows_are_told_in_one_way():
    """A claim raises `NotEnough`, a panel is `empty`, anything else is a `context.gap`: none writes the command."""
    for name in PAPERS:
        names = {node.id for node in ast.walk(tree(name)) if isinstance(node, ast.Name)}
        assert "NOT_ENOUGH" not in names, name
        assert not any(isinstance(node, ast.Attribute) and node.attr == "command" for node in ast.walk(tree(name))), (
            name
        )


@pytest.mark.parametrize("name", experiments.BUILTIN)
def test_what_a_claim_shows_is_there(name):
    """Its rows are what a reader is sent to, and what is run where they are missing."""
    experiment = experiments.get(name)
    known = {one.name for one in experiment.artefacts}
    for claim in experiment.claims:
        assert claim.shows in known, claim.name
        assert {why.artefact for why in claim.why} <= known, claim.name


# Claims without an interval, and without wrong runs that they are judged on; their words give the reason. The lists are
# closed: a new claim has both, or is added here.
WITHOUT = {
    "Interval": {
        "iyengar2019": ["high", "low"], "khanna2024": ["htso", "robust", "shared"], "lev2026": ["released"],
        "second_order": ["quadratic-bound"], "wang2018": ["better", "half"],
        "zeroth_order": ["crossover", "first_order", "guarantee", "kinks_power", "unbiased"],
    },
    "Power": {
        "iyengar2019": ["cost", "high", "low", "tuning"], "khanna2024": ["htso", "robust"], "lev2026": ["released"],
        "wang2018": ["better"],
    },
}  # fmt: skip


@pytest.mark.parametrize("part", WITHOUT)
def test_every_claim_has_an_interval_and_its_power_or_says_why_not(part):
    without = {}
    for path in (*ROOT.glob("dpbench/experiments/*/words.md"), *ROOT.glob("papers/*/*/words.md")):
        for section, words in read_words(path.read_text(encoding="utf-8")).items():
            if section.startswith("claim "):
                told = words.parts.get(part, "")
                assert told, f"{path.parent.name}, {section}: words.md needs a paragraph {part}: …"
                if told.startswith("none, as "):
                    without.setdefault(path.parent.name, []).append(section.removeprefix("claim "))
                elif part == "Interval":
                    assert "{" in told or told.startswith("in brackets"), (path.parent.name, section)
    assert {name: sorted(claims) for name, claims in without.items()} == WITHOUT[part]


@pytest.mark.parametrize("name", experiments.BUILTIN)
def test_every_section_of_the_words_is_used(name):
    """A {name} that nothing fills is an error where it is rendered, in tests/outputs.py and test_golden.py."""
    experiments.get(name)
    papers = {id(one): one for module in sys.modules.copy().values() if module.__name__.startswith(
        f"dpbench.experiments.{name}") for one in vars(module).values() if isinstance(one, Paper)}  # fmt: skip
    assert papers
    for paper in papers.values():
        assert {section for section in paper.unused if not section.startswith("table ")} == set()
