"""No user-facing default is worse at a larger ε: on data that come with scikit-learn or from its generators."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from benchmarks import sparse_methods
from benchmarks.default_methods import (
    COMPARED,
    EPSILONS,
    RESULTS,
    RIVALS,
    SETS,
    falls,
    read,
    read_bounded,
    regrets,
    scores,
)
from dpbench.algorithms import auto
from dpbench.problems import Declaration

ROOT = Path(__file__).resolve().parent.parent


def of_auto(names, seeds):
    return {
        (name, epsilon): np.array(scores(name, epsilon, "auto", range(seeds))) for name in names for epsilon in EPSILONS
    }


@pytest.mark.thorough
def test_the_default_gets_better_with_epsilon_on_a_few_sets():
    """Each of them falls where a method changes with ε, or where its noise has no bound."""
    names = ["diabetes", "friedman 1", "iris"]
    found = of_auto(names, 10)
    assert falls(found, names) == []
    assert all(found[name, EPSILONS[-1]].mean() > found[name, EPSILONS[0]].mean() + 0.1 for name in names)


@pytest.mark.slow
def test_the_default_gets_better_with_epsilon_on_all_sets():
    found = of_auto(SETS, 10)
    assert falls(found, list(SETS)) == []


def test_a_fall_is_found():
    found = {("diabetes", epsilon): np.full(4, 0.5) + np.arange(4) / 100 for epsilon in EPSILONS}
    assert falls(found, ["diabetes"]) == []
    found["diabetes", 10.0] = found["diabetes", 10.0] - 0.2
    (told,) = falls(found, ["diabetes"])
    assert told.startswith("diabetes: ε = 3 to 10: -0.2")


def test_the_committed_scores_hold_what_the_page_says():
    lines = read()
    auto = {(name, epsilon): found for (name, epsilon, method), found in lines.items() if method == "auto"}
    assert {name for name, _ in auto} == set(SETS)
    assert falls(auto, list(SETS)) == []
    assert len(SETS) >= 10
    for kind in RIVALS:
        assert set(regrets(kind, lines, lines)) == set(COMPARED)
    page = (ROOT / "docs" / "guides" / "defaults.md").read_text(encoding="utf-8")
    for default in (lines, read_bounded("private")):
        for mean, error in regrets("class", lines, default).values():
            assert f"{100 * mean:.1f} ± {100 * error:.1f}" in page
        for mean, error in regrets("number", lines, default).values():
            assert f"{mean:.3f} ± {error:.3f}" in page


def test_the_scores_by_row_bound_are_of_the_same_splits_and_methods():
    lines = read()
    for (name, epsilon, method), found in read_bounded("").items():
        if epsilon in EPSILONS:
            np.testing.assert_allclose(found, lines[name, epsilon, method], atol=1e-5, err_msg=f"{name}, ε = {epsilon}")


def test_a_regret_is_scored_on_seeds_that_did_not_choose():
    places = [(name, epsilon) for name, (kind, _) in SETS.items() if kind == "number" for epsilon in COMPARED]
    auto = {(*place, "auto"): np.full(10, 0.5) for place in places}
    lucky = {(*place, "adassp"): np.repeat([0.9, 0.1], 5) for place in places}
    assert all(mean == pytest.approx(-0.2) for mean, _ in regrets("number", auto | lucky, auto).values())
    better = {(*place, "adassp"): np.full(10, 0.6) for place in places}
    assert all(mean == pytest.approx(0.1) for mean, _ in regrets("number", auto | better, auto).values())


def test_with_l1_the_default_is_never_worse_than_nothing_and_better_with_epsilon():
    found = sparse_methods.read()
    for name, (loss, _) in sparse_methods.SETS.items():
        d = sparse_methods.problem(name).d
        chosen = auto.method(Declaration(1000, d, loss=loss, l1=0.1))
        line = [found[name, chosen, epsilon] for epsilon in sparse_methods.EPSILONS]
        assert all(share <= 1 + 2 * error for share, error in line), name
        assert all(b[0] <= a[0] + 2 * np.hypot(a[1], b[1]) for a, b in itertools.pairwise(line)), name
    others = [found[name, "dp-gd-average", 0.1][0] for name in sparse_methods.SETS]
    assert np.mean(others) > 1.5


def test_what_a_bound_on_the_rows_is_worth_is_what_the_page_says():
    page = (ROOT / "docs" / "guides" / "defaults.md").read_text(encoding="utf-8")
    shown = (RESULTS / "row_bounds.md").read_text(encoding="utf-8")
    for line in shown.split("\n\n")[0].splitlines()[2:]:
        numbers = line.split("|")[3:]
        assert "|".join(numbers) in page, line
