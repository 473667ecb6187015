"""A claim is judged once more on wrong runs, by its own function: with wrong noise, and with sides exchanged."""

import sys
from types import SimpleNamespace

import pandas as pd
import pytest

from dpbench.study.claims import HELD, NOT_HELD, NOT_TESTABLE, Claim, NotEnough, declared
from dpbench.study.paper import Paper
from dpbench.study.power import PLACE, WrongContext, run_by, wrong_contexts

WORDS = "## claim best\na beats b.\n\nNumbers: {told}\n\nInterval: 2 [1, 3]\n\nPower: {wrong}\n"


def runs():
    """Two methods, two seeds; each once more with half the noise, where a is as good as b, and timed."""
    at = {"problem": "p", "epsilon": 1.0, "delta": 1e-6, "settings": "{}", "accounting": "tight", "relation": "r"}
    rows = [
        at | {"algorithm": name, "seed": seed, "planted": planted, "timed": timed, "excess": excess, "key": key}
        for name, excesses in (("a", (1.0, 5.0)), ("b", (2.0, 2.0)))
        for seed in (0, 1)
        for planted, timed, excess, key in (
            (None, 0, excesses[0], f"{name}{seed}"),
            (None, 1, 9.0, f"{name}{seed}-timed"),
            (0.5, 0, excesses[1], f"{name}{seed}-half"),
        )
    ]
    return pd.DataFrame(rows).astype({"planted": float})


CONTEXT = SimpleNamespace(runs=runs(), experiment=None, profile="quick", store=None)


def test_planted_runs_stand_under_the_keys_of_the_right_ones_and_have_no_traces(monkeypatch):
    ((words, wrong),) = wrong_contexts(CONTEXT, {})
    assert words == "half the noise"
    assert sorted(wrong.runs["key"]) == ["a0", "a1", "b0", "b1"]
    assert wrong.runs.set_index("key").loc["a0", "excess"] == 5.0
    assert wrong.runs["planted"].isna().all()
    asked = []
    monkeypatch.setattr(
        WrongContext.__base__, "traces", lambda context, given: asked.append(len(given)) or pd.DataFrame()
    )
    wrong.traces(wrong.runs)
    assert asked == [0]
    assert list(wrong_contexts(CONTEXT, {}, planted=False)) == []


def test_the_optimum_of_a_problem_is_the_same_for_wrong_runs():
    optimum = pd.DataFrame([{"algorithm": "probe-optimum", "problem": "p", "timed": 0, "key": "optimum"}])
    context = SimpleNamespace(**vars(CONTEXT) | {"runs": pd.concat([runs(), optimum])})
    ((_, wrong),) = wrong_contexts(context, {})
    assert sorted(wrong.runs["key"]) == ["a0", "a1", "b0", "b1", "optimum"]


@pytest.mark.parametrize("column", PLACE)
def test_a_planted_run_without_a_right_one_of_its_place_is_left_out(column):
    table = runs()
    table[column] = table[column].astype(object).where(table["planted"].isna(), "another")
    assert list(wrong_contexts(SimpleNamespace(**vars(CONTEXT) | {"runs": table}), {})) == []


def test_exchanged_methods_have_one_anothers_runs_and_tell_whose():
    *_, (words, turned) = wrong_contexts(CONTEXT, {"a": "b"})
    assert words == "a and b exchanged"
    assert set(turned.runs.loc[turned.runs["algorithm"].eq("a"), "key"].str[0]) == {"b"}
    assert run_by(turned, pd.Series(["a", "b", "c"])).tolist() == ["b", "a", "c"]
    assert run_by(CONTEXT, pd.Series(["a"])).tolist() == ["a"]
    assert not turned.planted  # their traces are their own


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """A function: the rule of a claim on the untimed means of a and b → its verdict."""
    (tmp_path / "powerful").mkdir()
    (tmp_path / "powerful" / "__init__.py").touch()
    (tmp_path / "powerful" / "words.md").write_text(WORDS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def judge(rule, context=CONTEXT, **declaration):
        @Paper("powerful").claim("best", **declaration)
        def best(context):
            right = context.runs[context.runs["timed"].eq(0) & context.runs["planted"].isna()]
            means = right.groupby("algorithm")["excess"].mean()
            return rule(means["a"], means["b"]), {"told": f"{means['a']:g} and {means['b']:g}"}

        (one,) = declared([SimpleNamespace(__name__=best.__module__, best=best)], Claim)
        return one.judge(context)[0]

    yield judge
    sys.modules.pop("powerful", None)


def test_the_words_tell_what_becomes_of_the_claim_on_each_kind_of_wrong_runs(judged):
    verdict = judged(lambda a, b: a < b, exchange={"a": "b"})
    assert verdict.word == HELD
    assert verdict.numbers == ("1 and 2; interval: 2 [1, 3]; power: not held with half the noise, a and b exchanged")
    alone = judged(lambda a, b: a < b, exchange={"a": "b"}, planted=False)
    assert alone.numbers.endswith("power: not held with a and b exchanged")


def test_what_holds_exchanged_too_is_not_testable_and_what_does_not_hold_stays(judged):
    assert judged(lambda a, b: a < 100, exchange={"a": "b"}).word == NOT_TESTABLE
    assert judged(lambda a, b: a > 100, exchange={"a": "b"}).word == NOT_HELD
    assert judged(lambda a, b: a < 100).word == HELD  # nothing was exchanged
    assert judged(lambda a, b: a < 100).numbers.endswith("power: held with half the noise")


def test_wrong_runs_that_are_too_few_are_no_runs(judged):
    def rule(a, b):
        if a == 5:
            raise NotEnough
        return a < b

    assert judged(rule).numbers.endswith("power: no runs with half the noise")
    none = SimpleNamespace(**vars(CONTEXT) | {"runs": runs().query("planted != 0.5")})
    assert judged(rule, none).numbers.endswith("power: no runs")
