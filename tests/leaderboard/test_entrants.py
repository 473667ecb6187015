"""Who enters, and at which candidates."""

import numpy as np
import pytest

from dpbench import algorithms
from dpbench.leaderboard import entrants


def test_every_private_method_enters_once_and_no_other():
    names = entrants.entrants()
    behind = {algorithms.resolve(name)[0].name for name in names}
    private = {n for n in algorithms.names() if algorithms.resolve(n)[0].private}
    assert behind == {algorithms.resolve(n)[0].name for n in private}
    assert "dp-newton" not in names  # every variant of it has an alias
    assert {"dp-newton-hess-clip", "dp-gd", "o2nc-tree"} <= set(names)
    assert not {"dp-gd-oracle", "damped-newton", "o2nc"} & set(names)


def test_tuning_names_methods_and_settings_that_exist():
    for profile in ("full", "quick"):
        for name in entrants.entrants():
            method, fixed = algorithms.resolve(name)
            grid = entrants.candidates(name, profile)
            assert set(grid) <= set(method.Settings.__struct_fields__) - set(fixed), name
            assert len(grid) <= 2
            assert np.prod([len(values) for values in grid.values()]) <= (12 if profile == "full" else 4)
        known = {*algorithms.names(), "default"}
        assert set(entrants._tuning()[profile]) <= known
    assert set(entrants.excluded()) <= set(algorithms.names())


@pytest.mark.parametrize(
    ("problem", "name", "why"),
    [
        ("synthetic", "dp-gd", ""),
        ("synthetic", "dp-nag", "strong convexity"),
        ("log1-unit", "dp-nag", ""),
        ("log1-unit", "dp-newton-hess-clip", "regulariser l2"),
        ("square-unit", "dp-gd", "loss squared is not covered"),
        ("synthetic", "dp-gd-oracle", "not private"),
        ("synthetic", "dp-gcd-gs-q", "l1 alone"),
    ],
)
def test_who_fits_is_decided_by_what_the_method_declares(problem, name, why):
    found = entrants.reason(problem, name)
    assert (why in found) if why else found == ""
