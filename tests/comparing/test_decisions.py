"""What `compare` decides, each decision on made-up rows: which settings, which error, what is of use, what is cut."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpbench.comparing import own_data, references
from dpbench.comparing.own_data import Comparison
from dpbench.comparing.pilot import CUT, ERRORS, cut, hopeless
from dpbench.comparing.ranking import Field, Ranking, beaten_by, board, nested, recommendation, useful
from dpbench.problems import Problem


def rows(settings="{}", method="a", **columns):
    """Runs of one method at one setting: column → values by seed."""
    given = {"objective": [1.0, 1.0], "held_loss": [1.0, 1.0], "held_loss_se": 0.0, "held_gain": 0.1,
             "held_gain_se": 0.0, "held_loss_gain": 0.1, "held_loss_gain_se": 0.0} | columns  # fmt: skip
    count = max(len(v) for v in given.values() if isinstance(v, list))
    frame = pd.DataFrame({name: v if isinstance(v, list) else [v] * count for name, v in given.items()})
    return frame.assign(algorithm=method, settings=settings, accounting="tight", relation="replace-one", delta=1e-6,
                        epsilon=1.0, seed=range(count), status="done", held_accuracy=0.5, held_auc=0.5,
                        held_balanced=0.5, held_precision=0.5, held_calibration=0.1, excess=0.1,
                        epsilon_planned=1.0, private=True, counts_public="",
                        code="built in")  # fmt: skip


def test_settings_are_chosen_by_the_rows_in_use_never_by_those_held_out():
    chosen = rows('{"T":1}', objective=[0.1, 0.1], held_loss=[9.0, 9.0])
    better_held_out = rows('{"T":2}', objective=[0.2, 0.2], held_loss=[0.1, 0.1])
    (line,) = board(pd.concat([better_held_out, chosen], ignore_index=True)).itertuples()
    assert (line.settings, line.mean) == ('{"T":1}', 9.0)


def test_a_setting_of_which_a_seed_diverged_is_not_chosen():
    diverged = rows('{"T":1}', objective=[0.1, 0.1]).assign(status=["done", "diverged"])
    (line,) = board(pd.concat([diverged, rows('{"T":2}', objective=[5.0, 5.0])], ignore_index=True)).itertuples()
    assert line.settings == '{"T":2}'


def test_standard_errors_are_of_their_own_columns_over_seeds_and_over_the_draw():
    spread = rows(held_loss=[0.0, 2.0], held_loss_se=[3.0, 3.0], held_gain=[0.0, 4.0], held_gain_se=[5.0, 5.0])
    (line,) = board(spread).itertuples()
    assert line.se == pytest.approx(math.hypot(np.std([0, 2], ddof=1) / math.sqrt(2), 3.0))
    assert line.gain_se == pytest.approx(math.hypot(np.std([0, 4], ddof=1) / math.sqrt(2), 5.0))
    assert line.spread == pytest.approx(
        math.hypot(12.706 / 1.96 * np.std([0, 2], ddof=1) * math.sqrt(1.5), 3.0), rel=1e-3
    )


@pytest.mark.parametrize(("gain", "expected"), [(0.0, False), (1.5, False), (2.0, False), (2.01, True), (-3.0, False)])
def test_useful_is_more_than_two_standard_errors_above_the_constant_answer(gain, expected):
    one = {"algorithm": ["a"], "gain": [gain], "gain_se": [1.0], "loss_gain": [0.0], "loss_gain_se": [1.0]}
    other = one | {"gain": [0.0], "loss_gain": [gain]}  # a rare class: better by loss, never by accuracy
    for table in (one, other):
        assert useful(pd.DataFrame(table)) == (["a"] if expected else [])


@pytest.mark.parametrize(
    ("best", "other", "cut"),
    [
        ((0.0, 1.0), (ERRORS * 1.2, 1.0), False),  # √2 errors of the difference: one side's alone would cut
        ((0.0, 1.0), (ERRORS * 1.2, 0.0), True),
        ((0.0, 0.0), (ERRORS * 1.2, 1.0), True),
        ((0.0, 1.0), (ERRORS * 1.5, 1.0), True),
        ((0.0, 1.0), (math.inf, 0.0), True),
        ((0.0, 1.0), (math.nan, 0.0), True),
    ],
)
def test_a_trial_cuts_what_is_ten_errors_of_the_difference_behind(best, other, cut):
    scores = {"a": best, "b": other}
    assert hopeless(scores) == ({"b"} if cut else set())


def test_a_method_is_beaten_by_two_errors_of_the_difference():
    cell = pd.DataFrame({"mean": [0.0, 2.5, 3.0, math.inf], "se": 1.0})  # two errors of a difference are 2.83
    assert beaten_by(cell).tolist() == [0, 0, 1, 3]


def ranking(*lines):
    """A ranking of (method, mean, gain, beaten by), the gains with an error of 1."""
    table = pd.DataFrame(lines, columns=["algorithm", "mean", "gain", "beaten_by"]).assign(
        gain_se=1.0, gain_spread=1.0, loss_gain=-1.0, loss_gain_se=1.0, private=True, counts_public="",
        code="built in", rank=1,
        settings="{}", epsilon=1.0, delta=0.0, accounting="tight",
    )  # fmt: skip
    table[["se", "spread", "accuracy", "auc", "balanced", "precision", "calibration"]] = math.nan
    return Ranking(1.0, table, {}, {}, {})


def test_the_best_is_the_first_useful_one_and_ties_are_useful_ones():
    found = ranking(("a", 0.1, 1.0, 0), ("b", 0.2, 5.0, 0), ("c", 0.3, 5.0, 0), ("d", 0.3, 1.0, 0), ("e", 0.4, 5.0, 1))
    assert found.best.algorithm == "b"
    assert found.tied == ["c"]
    assert ranking(("a", 0.1, 1.0, 0), ("b", 0.2, 1.0, 0)).best.algorithm == "a"
    assert ranking(("a", math.inf, 5.0, 0)).best is None


def test_a_method_is_chosen_by_rows_that_it_is_not_scored_on():
    """The least of many scores is low by luck: "b" has the least on the rows held out, "a" on the others."""
    outer = ranking(("a", 0.3, 5.0, 0), ("b", 0.1, 5.0, 0))
    parts = [ranking(("a", 0.1, 5.0, 0), ("b", 0.2, 5.0, 0), ("c", 0.0, 5.0, 0)).table,
             ranking(("a", 0.3, 5.0, 0), ("b", 0.4, 5.0, 0)).table]  # fmt: skip
    inner = nested(parts)
    assert inner["algorithm"].tolist() == ["a", "b"]  # "c" did not end on every part
    assert inner["mean"].tolist() == pytest.approx([0.2, 0.3])
    assert inner["gain_se"].tolist() == pytest.approx([math.sqrt(0.5)] * 2)
    assert replace(outer, inner=inner).best.algorithm == "a"
    assert replace(outer, inner=inner).best.mean == 0.3  # its score is of the rows held out
    assert outer.best.algorithm == "b"


def test_a_chosen_method_that_does_not_beat_the_constant_answer_is_not_recommended():
    outer = ranking(("a", 0.3, 1.0, 0), ("b", 0.1, 5.0, 0))
    chosen = replace(outer, inner=ranking(("a", 0.1, 5.0, 0), ("b", 0.2, 5.0, 0)).table)
    assert "chosen on the other rows" in " ".join(recommendation(chosen, "the mean"))


def test_a_sentence_names_a_foreign_method_with_the_mark_of_the_table():
    found = ranking(("a", 0.1, 5.0, 0), ("b", 0.1, 5.0, 0), ("c", 0.3, 0.0, 0))
    found.table["code"] = "foreign code, trusted"
    found = replace(found, references=dict.fromkeys("abc", "dp-gd"))
    said = " ".join(recommendation(found, "the mean"))
    assert [f"{name} (foreign code, trusted)" in said for name in "abc"] == [True] * 3
    assert said.count("(foreign code, trusted)") == len([word for word in said.split() if word in "abc"])


def test_what_counts_nothing_of_the_data_as_public_comes_first():
    found = ranking(("a", 0.1, 5.0, 0), ("b", 0.2, 5.0, 0), ("c", 0.3, 5.0, 0))
    found.table.loc[0, "counts_public"] = "the columns' scales"
    assert found.best.algorithm == "b"
    assert found.strictly_first(found.table)["algorithm"].tolist() == ["b", "c", "a"]


def test_a_method_that_failed_in_the_trial_is_not_judged_by_it():
    """So few rows may not admit it. The field has a method by its reference, the table by its name."""
    trial = ranking(("good", 0.1, 5.0, 0), ("bad", 9.0, 5.0, 0)).table.assign(se=0.01)
    entered = Field({"good": [1], "bad.py:Bad": [2], "failed": [3]})
    cut(entered, trial, {"good": "good", "bad": "bad.py:Bad", "failed": "failed"})
    assert entered.jobs == {"good": [1], "failed": [3]}
    assert entered.left_out == {"bad.py:Bad": CUT}
    cut(entered, trial.head(0), {})  # nothing ended there
    assert entered.jobs == {"good": [1], "failed": [3]}


def test_a_regression_is_told_in_the_unit_of_its_target():
    line = SimpleNamespace(mean=2.0, spread=0.1, gain=0.7, gain_spread=0.2)  # the loss is (y - z)²/2
    told = Comparison.scores(SimpleNamespace(task="regression", unit=3.0), line)
    assert told == {"RMSE": (pytest.approx(6.0), pytest.approx(0.15)), "R²": (0.7, 0.2)}


def test_printed_code_fits_the_rows_as_they_were_compared():
    """By default a fit has a ridge, and releases a bound on its rows first: the comparison had neither."""
    row = ranking(("dp-gd", 0.1, 5.0, 0)).best
    source = own_data.Source("my.csv", "label", None)
    printed = own_data.printed_code(source, row, "dp-gd", loss="logistic", weights={})
    assert "    l2=0.0,\n    row_bound=None,\n).fit(table)" in printed


def test_the_reference_of_separable_classes_has_the_ridge_of_the_estimators():
    X, y = np.column_stack([np.linspace(-0.7, 0.7, 20), np.full(20, 0.7)]), np.repeat([-1.0, 1.0], 10)
    w, name = references._optimum(Problem(X, y))
    assert name == "not private, ridge 1/(nd)"
    np.testing.assert_allclose(w, Problem(X, y, l2=1 / 40).optimum().w, rtol=1e-6)


NONE = (
    "Do not use any of these at ε = 1: on the rows held out {} better than always no by two standard errors, neither "
    "in loss nor in accuracy. More rows or a larger ε would help; so would fewer columns."
)
USE, TIED, POOR = (
    "At ε = 1 use {}.",
    "As good within two standard errors: {}.",
    'These methods do not beat "always no": {}.',
)
PAGES = {  # scores have the digits of the table above
    "nothing ended": ([("a", math.inf, 0.0, 0, 0.5, 0.5)], {}, [
        "Do not use any at ε = 1: no method ended with a finite loss."]),
    "none is of use": ([("a", 0.1, 2.0, 0, 0.9, 0.6), ("b", 0.2, 0.0, 0, 0.8, 0.55)], {}, [NONE.format("none is")]),
    "none is of use, one ranks": ([("a", 0.1, 1.0, 0, 0.9, 0.61), ("b", 0.2, 0.0, 0, 0.8, 0.7004)], {}, [
        NONE.format("none is"), "b ranks rows all the same (AUC 0.7): another threshold may serve."]),
    "what is chosen is not of use": ([("a", 0.1, 9.0, 0, 0.9, 0.6), ("b", 0.2, 0.0, 0, 0.8, 0.6)], {"chosen": "b"}, [
        NONE.format("b, chosen on the other rows, is not")]),
    "one, with settings": ([("dp-gd", 0.1, 2.1, 0, 0.9, 0.9)], {"settings": '{"T": 10, "clip": 0.25}'}, [
        USE.format("dp-gd with T=10")]),  # clip is not tuned
    "ties, the most often right, the poor": (
        [("a", 0.1, 5.0, 0, 0.8, 0.9), ("b", 0.2, 5.0, 0, 0.912, 0.9), ("c", 0.3, 0.0, 0, 0.7, 0.5),
         ("d", 0.4, 5.0, 1, 0.7, 0.5), ("e", 0.5, 0.0, 2, 0.7, 0.5)], {}, [
        USE.format("a"), TIED.format("b"), "Right most often: b, on 91.2 % of the rows.", POOR.format("c, e")]),
    "one takes from the data": ([("a", 0.1234, 5.0, 0, 0.9, 0.9), ("b", 0.2, 5.0, 0, 0.9, 0.9)], {"unpaid": "a"}, [
        USE.format("b"), "a has a lower loss (0.123), and counts the scales as public.", TIED.format("a")]),
    "all take from the data": ([("a", 0.1, 5.0, 0, 0.9, 0.9)], {"unpaid": "a"}, [
        USE.format("a"), "It takes the scales from the data and counts that as public: its ε does not cover it."]),
    "by loss alone": ([("a", 0.1, 2.0, 0, 0.9, 0.8123)], {"by_loss": "a"}, [
        USE.format("a"), "It is not right more often than always no: it ranks rows better than chance (AUC 0.812), so "
        "use its probabilities, or another threshold."]),
    "another is better on the rows held out": ([("a", 0.1, 5.0, 0, 0.9, 0.9), ("b", 0.2, 5.0, 1, 0.9, 0.9)],
        {"chosen": "b"}, [USE.format("b"), "On the rows held out a is better by more than two standard errors; on the "
        "rows by which the method was chosen it is not."]),
}  # fmt: skip


@pytest.mark.parametrize("case", PAGES)
def test_the_whole_recommendation(case):
    """Rows: method, mean loss, gain (its error is 1), beaten by, accuracy, AUC."""
    lines, given, said = PAGES[case]
    found = ranking(*(line[:4] for line in lines))
    table = found.table.assign(accuracy=[line[4] for line in lines], auc=[line[5] for line in lines])
    table["settings"] = given.get("settings", "{}")
    table.loc[table["algorithm"].eq(given.get("unpaid")), "counts_public"] = "the scales"
    table.loc[table["algorithm"].eq(given.get("by_loss")), "loss_gain"] = 2.1
    inner = (
        table.assign(mean=np.where(table["algorithm"].eq(given["chosen"]), 0.0, 1.0), gain=5.0)
        if "chosen" in given
        else None
    )
    whole = replace(found, table=table, inner=inner, references=dict.fromkeys(table["algorithm"], "dp-gd"))
    assert [*recommendation(whole, "always no")] == said


def test_a_board_line_is_the_means_of_its_runs_and_its_place():
    """Three methods of which the second is within two errors of the first, and the third is not."""
    runs = [
        rows("{}", name, held_loss=[loss - 0.1, loss + 0.1], held_loss_gain=[0.0, 0.2], held_loss_gain_se=0.3,
             held_gain=[0.1, 0.3]).assign(held_accuracy=[0.5, 0.7], held_auc=[0.6, 0.7], held_balanced=[0.1, 0.2],
             held_precision=[0.2, 0.3], held_calibration=[0.3, 0.4], excess=[0.4, 0.5], epsilon_planned=[0.9, 0.8])
        for name, loss in (("c", 0.9), ("b", 0.5), ("a", 0.5))
    ]  # fmt: skip
    table = board(pd.concat(runs, ignore_index=True))
    assert table[["algorithm", "rank", "beaten_by"]].values.tolist() == [["a", 1, 0], ["b", 1, 0], ["c", 3, 2]]
    line = table.iloc[0].to_dict()
    expected = {
        "mean": 0.5, "gain": 0.2, "loss_gain": 0.1, "accuracy": 0.6, "auc": 0.65, "balanced": 0.15, "precision": 0.25,
        "calibration": 0.35, "excess": 0.45, "planned": 0.8, "seeds": 2, "se": 0.1, "gain_se": 0.1,
        "loss_gain_se": math.hypot(0.1, 0.3), "tuned_by": 1.0,
    }  # fmt: skip
    assert {name: line[name] for name in expected} == pytest.approx(expected)


def test_references_are_what_scikit_learn_says_of_their_predictions():
    from sklearn import metrics

    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (400, 3))
    labels = {"logistic": np.where(X[:, 0] + rng.normal(0, 0.3, 400) > 0.3, 1.0, -1.0), "squared": X[:, 0] + 0.1}
    for loss, y in labels.items():
        problem = Problem(X[:300], y[:300], loss=loss)
        data, held = SimpleNamespace(held_out=(X[300:], y[300:])), y[300:]
        always, zero, optimum = references.references(problem, data, ("no", "yes") if loss == "logistic" else None)
        assert [one.name for one in (zero, optimum)] == ["w = 0", "not private"]
        scores, mean = X[300:] @ problem.optimum().w, y[:300].mean()
        if loss == "squared":
            assert always.name == "the mean"
            assert always.mean == pytest.approx(((held - mean) ** 2).mean() / 2)
            assert zero.mean == pytest.approx((held**2).mean() / 2)
            assert optimum.gain == pytest.approx(1 - ((held - scores) ** 2).sum() / ((held - mean) ** 2).sum())
            continue
        share, p = (mean + 1) / 2, 1 / (1 + np.exp(-scores))
        assert (always.name, always.auc) == ("always no", 0.5)
        assert always.mean == pytest.approx(metrics.log_loss(held, np.full(100, share)))
        assert always.accuracy == pytest.approx((held < 0).mean())
        assert always.gain == 0.0
        assert zero.mean == pytest.approx(math.log(2))
        assert np.isnan([zero.accuracy, zero.balanced, zero.gain]).all()
        assert optimum.balanced == pytest.approx(metrics.balanced_accuracy_score(held, np.sign(scores)))
        assert optimum.gain == pytest.approx((np.sign(scores) == held).mean() - always.accuracy)
        assert optimum.precision == pytest.approx(metrics.average_precision_score(held, scores))
        assert (zero.auc, optimum.auc) == (0.5, pytest.approx(metrics.roc_auc_score(held, p)))


@pytest.mark.parametrize("trial", [False, True])
def test_methods_are_chosen_on_parts_at_their_share_of_epsilon_and_judged_on_all_rows(monkeypatch, trial):
    asked, table = [], ranking(("a", 0.1, 5.0, 0), ("b", 9.0, 5.0, 0)).table.assign(loss_gain=0.0)

    def field_of(problem, epsilon, names, seeds):
        asked.append((problem, epsilon, [*names], seeds))
        return Field({"a": [1], "b.py:B": [2]})

    ranked = []
    monkeypatch.setattr(own_data.ranking, "field_of", field_of)
    monkeypatch.setattr(own_data.ranking, "rank", lambda field, epsilon, *of: ranked.append((list(field.jobs), epsilon))
                        or Ranking(epsilon, table.assign(se=0.01), {}, {}, {}))  # fmt: skip
    monkeypatch.setattr(own_data.ranking, "nested", lambda tables: tables[0].assign(parts=len(tables)))
    inner = own_data._Inner(["p1", "p2"], 10, 2, trial)
    found = own_data._ranked("whole", 0.5, inner, {"a": "a", "b": "b.py:B"}, 5, None, None)
    both = ["a", "b.py:B"]
    assert asked == [("whole", 0.5, both, 5), ("p1", 5.0, both, 2), ("p2", 5.0, both, 2)]
    assert ranked == [(both, 0.5), (both, 0.5), (["a"] if trial else both, 0.5)]  # of each ε one page
    assert found.inner["parts"].tolist() == [2, 2]
