"""The tracks of tuning: rules that see no data, values nearby scored on other seeds, the candidates of grids."""

import numpy as np
import pandas as pd
import pytest

from dpbench import algorithms
from dpbench.algorithms.rules import RULES, gradient_steps, public_rho, public_settings
from dpbench.errors import UserError
from dpbench.leaderboard import entrants, places, tracks
from dpbench.study.grid import BEST, GridEntry


@pytest.mark.parametrize("name", entrants.entrants())
def test_a_rule_gives_settings_that_the_method_takes(name):
    method, fixed = algorithms.resolve(name)
    for n, d, epsilon in ((442, 10, 0.1), (30_956, 124, 1.0), (800, 88_119, 10.0), (495_141, 54, 10.0)):
        settings = public_settings(name, n, d, epsilon)
        assert not set(settings) & set(fixed)
        algorithms.base.make_settings(method, fixed | settings)
        assert settings == public_settings(name, n, d, epsilon)


def test_rules_are_of_methods_that_exist_and_follow_their_derivation():
    assert {algorithms.get(name).name for name in RULES} == set(RULES)
    rho = public_rho(10_000, 1.0)
    assert rho + 2 * np.sqrt(rho * np.log(1e8)) == pytest.approx(1.0)
    T = gradient_steps(10_000, 100, 1.0)
    assert pytest.approx(T, abs=0.5) == (rho * 1e8) ** (1 / 3)  # least of 64/(8T) + 4T²/(ρn²) where 8/T² = 8T/(ρn²)
    assert gradient_steps(100, 10, 0.01) == 3
    assert gradient_steps(10**6, 100, 10.0) == 2500  # WORK of 4nd flops a step
    with pytest.raises(UserError, match="unknown algorithm"):
        public_settings("dp-gf", 10, 1, 1.0)


def test_a_method_of_ones_own_may_have_its_own_rule(monkeypatch):
    monkeypatch.setattr(type(algorithms.get("aop")), "public_settings", lambda self, n, d, epsilon: {"T": n + d})
    assert public_settings("aop", 10, 2, 1.0) == {"T": 12}


def test_knobs_and_exclusions_name_what_exists():
    assert set(tracks.excluded()) <= set(algorithms.names())
    for name in entrants.entrants():
        tuned_setting = tracks.knob(name)
        assert not tuned_setting or tuned_setting in algorithms.resolve(name)[0].Settings.__struct_fields__


def test_persons_who_have_several_rows_count_once_and_only_methods_that_are_derived_for_them_run():
    kinds = {"union-by-man": "persons: logistic + ridge", "grades-by-student": "persons: squared + ridge"}
    assert {problem: tracks.kind(problem) for problem in kinds} == kinds
    assert [tracks.choice(problem) for problem in kinds] == ["dp-gd-average"] * 2
    assert [tracks.size(problem) for problem in kinds] == [(545 - 136, 18), (366 - 91, 11)]
    for problem in kinds:
        entered = {
            one.algorithms[0] for one in tracks.expand(block("default", algorithms=["every"], problems=[problem]))
        }
        assert {"dp-gd-average", "dp-gcd"} < entered
        assert all(algorithms.resolve(name)[0].persons for name in entered)
        assert "dp-hb" not in entered  # it takes an eigenvalue of the rows
    assert entrants.reason("union-by-man", "objpert") == entrants.OF_ROWS != entrants.reason("iris", "objpert") == ""
    assert not kinds.keys() & {
        block.problems[0] for block in tracks.default_blocks("full", tracks.grid())
    }  # private copies


def block(track, **changes):
    given = {"problems": ["diabetes-ridge"], "algorithms": ["every"], "epsilon": [1.0], "seeds": 3}
    return GridEntry(settings={tracks.TRACK: track}, **given | changes)


def test_a_track_gives_each_method_its_settings():
    default = {b.algorithms[0]: b for b in tracks.expand(block("default"))}
    assert {"adassp", "boosted-ssp", "dp-cd", "dp-gcd", "dp-sgd-1"} <= set(default)
    assert not {"dp-gd", "aop", "dp-gcd-published"} & set(default)  # squared loss is not theirs; excluded
    assert default["dp-cd"].settings == public_settings("dp-cd", 442, 10, 1.0)
    assert {b.relation for b in default.values()} == {"replace-one"}
    tune = {b.algorithms[0]: b.settings for b in tracks.expand(block(tracks.TUNE))}
    assert tune["dp-cd"]["clip"] == [0.1, 0.3, 0.9]
    assert "adassp" not in tune  # nothing to tune
    nearby = {b.algorithms[0]: b.settings for b in tracks.expand(block("nearby"))}
    assert (nearby["dp-cd"]["clip"], nearby["adassp"]) == (BEST, {})
    assert not tracks.expand(block("default", algorithms=["dp-gd"]))  # squared loss is not for it


def test_the_nearby_track_is_scored_on_other_seeds_at_what_the_first_chose():
    values = tracks.candidates("diabetes-ridge", "dp-cd", 1.0)
    assert len(values) == 3
    rows = pd.DataFrame(
        [
            {"problem": "diabetes-ridge", "epsilon": 1.0, "algorithm": "dp-cd", "settings": str(value), "seed": seed,
             "timed": 0, "status": "done", "counts_public": "",
             "excess": (1.0 + i) if seed < tracks.TUNED_ON else (3.0 - i)}  # the first is best on the seeds that choose
            for i, value in enumerate(values) for seed in range(15)
        ]
    )  # fmt: skip
    found = tracks.chosen(places.losses(rows))
    assert set(found["settings"]) == {str(values[0])}
    assert set(found["seed"]) == set(range(tracks.TUNED_ON, 15))
    assert found["loss"].eq(3.0).all()
    alone = rows[rows["settings"] == str(values[0])].assign(algorithm="adassp", settings="{}")  # which has no values
    assert tracks.chosen(places.losses(alone))["seed"].tolist() == [*range(tracks.TUNED_ON, 15)]
    without = rows[rows["settings"] != str(values[2])]
    assert tracks.chosen(places.losses(without)).empty  # a candidate is not there yet
