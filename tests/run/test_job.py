import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench import algorithms
from dpbench.errors import UserError
from dpbench.problems import catalogue
from dpbench.run import job as jobs
from dpbench.run.job import JobSeries, check_delta, delta_value, make_job


def job(**changes):
    return make_job(**({"problem": "synthetic", "algorithm": "dp-gd", "epsilon": 1.0, "seed": 0} | changes))


def test_the_key_does_not_depend_on_how_a_value_is_spelled():
    keys = {job(epsilon=e, settings={"T": t, "step": s}).key for e in (1, 1.0) for t in (5, "5") for s in (4, "4.0")}
    assert len(keys) == 1


def test_a_default_spelled_out_is_the_same_job():
    assert job(settings={"T": 100}).key == job().key


def test_an_alias_is_the_same_job_as_its_settings():
    spelled = job(algorithm="dp-newton", settings={"curvature": "qu", "modification": "add"})
    assert job(algorithm="dp-newton-qu-add").key == spelled.key


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 2}, {"seed": 1}, {"settings": {"T": 7}}, {"accounting": "tight"}, {"problem": "a1a"}, {"timed": 1},
     {"delta": 1e-6}, {"algorithm": "dp-newton"}],
)  # fmt: skip
def test_everything_that_decides_the_result_is_in_the_key(change):
    assert job(**change).key != job().key


def test_a_problem_of_another_version_is_another_job(monkeypatch):
    key = job(problem="synthetic-ridge").key
    recipe = catalogue.recipe_of("synthetic-ridge")
    monkeypatch.setitem(catalogue.CATALOGUE, "synthetic-ridge", replace(recipe, version=2))
    jobs._keys_like.cache_clear()
    assert job(problem="synthetic-ridge").key != key
    jobs._keys_like.cache_clear()


def test_a_timed_run_repeats_the_untimed_one():
    assert job(timed=2).stream_key == job().key
    assert job(timed=2).key != job(timed=1).key


def test_keys_are_the_same_in_another_process_with_another_hash_seed():
    script = (
        "from dpbench.run.job import make_job\n"
        "print(make_job(problem='synthetic', algorithm='dp-gd', epsilon=1, seed=0, settings={'T': 3}).key)"
    )
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    there = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
    )
    assert there.stdout == job(settings={"T": 3}).key + "\n"


def test_jobs_that_may_advance_together_share_a_group():
    assert job(seed=1).group == job(seed=2).group
    assert job(settings={"step": 1}).group == job(settings={"step": 2}).group  # per-replicate
    assert job(settings={"T": 1}).group != job(settings={"T": 2}).group
    assert job(seed=1, timed=1).group != job(seed=2, timed=1).group


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_epsilon_is_positive_and_finite_or_refused(epsilon):
    if 0 < epsilon < float("inf"):
        assert job(epsilon=epsilon).epsilon == epsilon
    else:
        with pytest.raises(UserError, match="epsilon must be a positive number"):
            job(epsilon=epsilon)


@pytest.mark.parametrize(("rule", "value"), [("n^-2", 1e-4), ("n^-1", 1e-2), (0, 0), ("1e-6", 1e-6)])
def test_delta_rules(rule, value):
    assert delta_value(check_delta(rule), 100) == pytest.approx(value)


def test_repeated_jobs_have_the_keys_they_would_have_by_themselves():
    for changes in (
        {"settings": {"T": 5}},
        {"relation": "replace-one", "accounting": "tight"},
        {"algorithm": "dp-gcd", "problem": "log1", "settings": {"passes": 2}},
        {"algorithm": "dp-cd", "problem": "log1", "sweep": {"step": [0.1, 1.0], "clip": [1.0]}},
    ):
        repetitions = [0] if "sweep" in changes else [0, 1, 12]
        series = JobSeries(job(**changes), range(3), repetitions)
        found = list(zip(series.keys, series.jobs, strict=True))
        assert [(one.seed, one.timed) for _, one in found] == [(s, t) for s in range(3) for t in repetitions]
        assert len({key for key, _ in found}) == len(found)
        for key, one in found:
            assert key == hashed(one)


def hashed(one):
    """The key as `make_job` has named jobs from the first row on: one hash of one canonical JSON object."""
    algorithm, recipe = algorithms.get(one.algorithm), catalogue.recipe_of(one.problem)
    content = {"problem": one.problem, "data_version": recipe.spec.version,
               "algorithm": algorithm.name, "algorithm_version": algorithm.version, "epsilon": one.epsilon,
               "seed": one.seed, "settings": json.loads(one.settings), "accounting": one.accounting,
               "delta": one.delta}  # fmt: skip
    content |= {"problem_version": recipe.version} if recipe.version > 1 else {}
    content |= {"relation": one.relation} if one.relation else {}
    content |= {"timed": one.timed} if one.timed else {}
    content |= {"sweep": one.axes} if one.sweep else {}
    return hashlib.blake2b(msgspec.json.encode(content, order="deterministic"), digest_size=16).hexdigest()
