"""Whatever is typed, and whatever a grid file holds: an exit code of 0, 1, 2 or 130 and a line, never a traceback."""

import io
import json
import os
from contextlib import redirect_stderr, redirect_stdout

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpbench import algorithms, datasets, experiments
from dpbench.cli import VERBS, main
from dpbench.run import runner

FEW = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
CODES = {0, 1, 2, 130}


def call(*arguments):
    """(exit code, stdout, stderr) of the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main(list(arguments))
    return end.value.code or 0, out.getvalue(), err.getvalue()


def judge(arguments):
    code, out, err = call(*arguments)
    assert code in CODES, (arguments, code)
    assert "Traceback" not in out + err
    if code == 2 and not out:
        assert err.startswith("error: "), (arguments, err)
        assert err.count("\n") == 1, (arguments, err)
    return code


@pytest.fixture
def nothing_runs(tmp_path, monkeypatch):
    """Plans are made, jobs are not run, nothing is fetched and no figure drawn."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "run", lambda jobs, store, **_: runner.RunSummary(keys=[job.key for job in jobs]))
    monkeypatch.setattr(datasets, "fetch", lambda names, **_: [datasets.FetchResult(name, "ready") for name in names])


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
numbers = st.one_of(
    st.integers(-3, 3), st.integers(), st.floats(), st.sampled_from(["1e400", "-0", "nan", "0x10", "1_0", "½", ""])
)
value = st.one_of(text, numbers.map(str))


def likely(*words):
    """Mostly a known word, sometimes anything."""
    return st.one_of(st.sampled_from(words), st.sampled_from(words), st.sampled_from(words), value)


FLAGS = {
    "--algo": likely("dp-gd", "dp-newton-hess-clip", "o2nc", "x.py:Mine", "."),
    "--dataset": likely("synthetic", "accelerated", "a1a", "phase-5"),
    "--eps": numbers.map(str),
    "--seeds": numbers.map(str),
    "--set": st.builds("{}={}".format, likely("T", "step", "M", "lambda0", "alpha"), value),
    "--accounting": likely("paper", "tight", "rdp"),
    "--delta": likely("n^-2", "0", "1e-6"),
    "--experiment": likely("second_order", "second_order/fig2", "all", "accelerated/", "/"),
    "--profile": likely("quick", "full"),
    "--config": likely("grid.toml", "."),
    "--jobs": numbers.map(str),
    "--backend": likely("loky", "threading"),
    "--out": likely("results", "/dev/null", "/dev/null/x", "a\nb"),
    "--results": likely("results", "/dev/null"),
    "--mirror": likely(".", "/dev/null", "http://", "https://[", "ftp://x"),
    "--check": st.just(None),
    "--help": st.just(None),
}
flag = st.sampled_from(sorted(FLAGS)).flatmap(lambda f: st.tuples(st.just(f), FLAGS[f]))
arguments = st.builds(
    lambda verb, words, flags: [verb, *words, *(part for pair in flags for part in pair if part is not None)],
    likely(*VERBS),
    st.lists(likely("all", "synthetic", "algorithms", "datasets", "experiments"), max_size=2),
    st.lists(flag, max_size=5),
)


@FEW
@given(arguments=arguments)
def test_any_arguments(nothing_runs, arguments):
    if arguments[0] not in ("audit", "reproduce") and "--help" not in arguments[1:2]:  # which do take minutes
        judge(arguments)


run_flags = sorted(set(FLAGS) - {"--results", "--mirror", "--check", "--help", "--experiment", "--profile", "--config"})


@FEW
@given(
    pairs=st.lists(
        st.sampled_from(run_flags).flatmap(lambda f: st.tuples(st.just(f), FLAGS[f])),
        max_size=4,
        unique_by=lambda p: p[0],
    )
)
def test_any_run_of_an_algorithm(nothing_runs, pairs):
    given_flags = {"--algo": "dp-gd", "--dataset": "synthetic", "--seeds": "2"} | dict(pairs)
    if given_flags["--seeds"].isdigit() and int(given_flags["--seeds"]) > 1000:
        given_flags["--seeds"] = "3"  # as many jobs as that are planned one by one
    judge(["run", *(part for pair in given_flags.items() for part in pair)])


BLOCK = {
    "artefacts": ["fig2"],
    "problems": ["synthetic"],
    "algorithms": ["dp-gd"],
    "epsilon": [1.0],
    "seeds": 2,
    "settings": {"T": [3, 4]},
}
scalar = st.one_of(
    st.booleans(),
    st.integers(-(2**40), 3),
    st.floats(),
    text,
    st.sampled_from(["best", "dp-gd", "synthetic", "fig2", "T", "n^-2", "tight"]),
)
anything = st.recursive(
    scalar, lambda part: st.lists(part, max_size=3) | st.dictionaries(text, part, max_size=3), max_leaves=5
)


def toml(given) -> str:
    """A TOML value."""
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, str):
        return json.dumps(given).replace("\x7f", "\\u007f")
    if isinstance(given, list):
        return f"[{', '.join(map(toml, given))}]"
    if isinstance(given, dict):
        return "{" + ", ".join(f"{toml(str(key))} = {toml(part)}" for key, part in given.items()) + "}"
    return repr(given)


@FEW
@given(
    changes=st.dictionaries(likely(*BLOCK, "accounting", "delta", "timed", "trace", "relation"), anything, max_size=3),
    profile=likely("quick"),
)
def test_any_values_in_a_grid(nothing_runs, changes, profile):
    with open("grid.toml", "w", encoding="utf-8") as file:
        file.write(f"{toml(profile)} = [{toml(BLOCK | changes)}]\n")
    judge(["run", "--experiment", "second_order", "--config", "grid.toml", "--jobs", "1"])


@FEW
@given(data=st.data())
def test_any_damage_to_a_grid_file(nothing_runs, data):
    whole = b"[[quick]]\n" + "\n".join(f"{key} = {toml(part)}" for key, part in BLOCK.items()).encode()
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, min(len(whole), start + 8)))
    with open("grid.toml", "wb") as file:
        file.write(whole[:start] + data.draw(st.binary(max_size=4)) + whole[stop:])
    judge(["run", "--experiment", "second_order", "--config", "grid.toml", "--jobs", "1"])


SHORT = {"T": "3", "passes": "0.001", "M": "400", "cap": "3", "inner": "20", "draws": "5"}
positive = st.floats(min_value=1e-300, max_value=1e300).map(repr)


@pytest.mark.thorough
@settings(FEW, max_examples=15)
@given(data=st.data())
def test_any_settings_of_any_algorithm_end_in_rows_or_a_line(tmp_path, monkeypatch, data):
    """Really run, for a few iterations; extreme values may fail or diverge, and say so in a row."""
    monkeypatch.chdir(tmp_path)
    name = data.draw(st.sampled_from(algorithms.names()))
    method, fixed = algorithms.resolve(name)
    fields = [f for f in method.Settings.__struct_fields__ if f not in {*SHORT, *fixed}]
    chosen = {f: SHORT[f] for f in method.Settings.__struct_fields__ if f in SHORT}
    for field in data.draw(st.lists(st.sampled_from(fields), max_size=2, unique=True)) if fields else ():
        chosen[field] = data.draw(st.one_of(positive, st.sampled_from(["0.5", "1", "true", "clip", "qu"])))
    problem = (
        "accelerated" if method.home == "accelerated" else "phase-5" if method.home == "zeroth_order" else "synthetic"
    )
    given_settings = [part for pair in chosen.items() for part in ("--set", "=".join(pair))]
    epsilon = data.draw(st.one_of(st.just("1"), positive))
    command = ["run", "--algo", name, "--dataset", problem, "--eps", epsilon, "--seeds", "2", "--jobs", "1"]
    code = judge([*command, *given_settings])
    assert code in {0, 1, 2}


def test_every_experiment_has_a_grid_that_is_read(nothing_runs):
    for name in experiments.BUILTIN:
        assert judge(["run", "--experiment", name, "--profile", "quick", "--jobs", str(os.cpu_count())]) == 0
