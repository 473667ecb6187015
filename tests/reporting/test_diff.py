"""Two sets of results side by side: what moved, what changed, what is on one side alone, and the exit code."""

import json
import math

import numpy as np
import pytest

from dpbench.cli import main
from dpbench.reporting.summary import between, load, save, verdict_words
from dpbench.run.store import Store
from dpbench.study.printed import Number
from dpbench.study.value_verdict import DECIDING, Judged, Outcome, Place, PublishedValue
from tests.batches import write

ROW = {"problem": "synthetic", "algorithm": "dp-gd", "epsilon": 1.0, "settings": '{"T":5}', "accounting": "bs16",
       "relation": "add-remove", "status": "done", "timed": 0}  # fmt: skip
VALUES = [0.10, 0.12, 0.11, 0.13]


def written(root, values, experiment="mine", **other):
    rows = [ROW | {"key": f"{other}{i}", "seed": i, "excess": v} | other for i, v in enumerate(values)]
    write(Store(root, "quick", experiment), rows, [])
    return root / "quick"


def code(*arguments):
    with pytest.raises(SystemExit) as exit_:
        main(["diff", *map(str, arguments)])
    return exit_.value.code


def test_the_same_numbers_up_to_rounding_are_no_difference(tmp_path, capsys):
    a = written(tmp_path / "a", VALUES)
    b = written(tmp_path / "b", np.array(VALUES) * (1 + 1e-9))
    found = between(load(a), load(b))
    assert found.same
    assert (found.compared, found.only) == (1, (0, 0))
    assert code(a, b) == 0
    told = capsys.readouterr().out
    assert (
        "1 configurations on both sides: 1 equal to 8 digits, 0 up to rounding, 0 within their errors, 0 moved" in told
    )


def test_how_close_the_settings_are_is_counted(tmp_path):
    """Two of eight digits, one of six, one within its errors, one that moved, one that diverged on both sides."""
    epsilons = (0.1, 0.2, 0.3, 0.4, 0.5)
    factors = (1, 1 + 1e-8, 1 + 5e-7, 1.01, 2)
    for root, scales in (("a", (1,) * 5), ("b", factors)):
        for epsilon, scale in zip(epsilons, scales, strict=True):
            written(tmp_path / root, np.array(VALUES) * scale, epsilon=epsilon)
        written(tmp_path / root, [math.inf, 0.1], epsilon=0.6)
    found = between(load(tmp_path / "a" / "quick"), load(tmp_path / "b" / "quick"))
    assert (found.compared, found.exact, found.close, len(found.moved)) == (6, 3, 1, 1)
    assert "3 equal to 8 digits, 1 up to rounding, 1 within their errors, 1 moved" in str(found)


def test_runs_that_are_wrong_on_purpose_hide_no_move_of_the_right_ones(tmp_path):
    for root, scale in (("a", 1.0), ("b", 1.5)):
        written(tmp_path / root, np.array(VALUES) * scale)
        for factor in (0.5, 2.0):
            written(tmp_path / root, np.array(VALUES) * 100 * factor, planted=factor)
    found = between(load(tmp_path / "a" / "quick"), load(tmp_path / "b" / "quick"))
    assert (found.compared, found.exact, len(found.moved)) == (3, 2, 1)


@pytest.mark.parametrize(("shift", "moved"), [(2.5, False), (3.5, True), (-3.5, True)])
def test_a_mean_moves_beyond_three_errors_of_the_difference(tmp_path, shift, moved):
    error = math.sqrt(2) * np.std(VALUES, ddof=1) / 2
    a = load(written(tmp_path / "a", VALUES))
    b = load(written(tmp_path / "b", np.array(VALUES) + shift * error))
    found = between(a, b)
    assert len(found.moved) == moved
    assert between(a, b, errors=abs(shift) - 0.1).moved["apart"].tolist() == pytest.approx([shift])


def test_a_move_is_printed_and_exits_1(tmp_path, capsys, monkeypatch):
    a, b = written(tmp_path / "a", VALUES), written(tmp_path / "b", np.array(VALUES) + 1)
    assert code(a, b) == 1
    assert capsys.readouterr().out == (
        "problem    algorithm  ε      A  ± s.e. of A      B  ± s.e. of B    apart  settings\n"
        "─────────  ─────────  ─  ─────  ───────────  ─────  ───────────  ───────  ────────\n"
        "synthetic  dp-gd      1  0.115       0.0065  1.115       0.0065  1.1e+02  T=5\n"
        "moved: by more than 3 standard errors; 0 would have if A and B were independent draws\n\n"
        "1 configurations on both sides: 0 equal to 8 digits, 0 up to rounding, 0 within their errors, 1 moved; "
        "0 verdicts on\nboth sides, 0 changed\n"
    )
    monkeypatch.setenv("COLUMNS", "60")
    assert code(a, b) == 1
    assert max(map(len, capsys.readouterr().out.splitlines()[3:])) <= 60


def test_of_many_moves_the_largest_25_are_printed_to_so_many_digits(tmp_path, capsys):
    for root, step in (("a", 0.0), ("b", 0.0012345)):
        rows = [
            ROW | {"key": f"{i} {seed}", "seed": seed, "excess": value + i * step, "epsilon": float(i),
                   "settings": json.dumps({"T": i})}
            for i in range(1, 28) for seed, value in enumerate((0.1234567, 0.1234568))
        ]  # fmt: skip
        write(Store(tmp_path / root, "quick", "mine"), rows)
    assert code(tmp_path / "a" / "quick", tmp_path / "b" / "quick", "--errors", "2.5") == 1
    head, _, *printed = capsys.readouterr().out.splitlines()
    lines, told = printed[:25], " ".join(printed[25:])
    assert head.split("  ")[0] == "problem"
    assert [int(line.split("T=")[1]) for line in lines] == [*range(27, 2, -1)]
    assert lines[0].split() == ["synthetic", "dp-gd", "27", "0.12346", "5e-08", "0.15679", "5e-08", "4.7e+05", "T=27"]
    assert told.startswith("… and 2 more moved: by more than 2.5 standard errors; 3 would have if A and B")
    assert "27 configurations on both sides: 0 equal" in told


@pytest.mark.parametrize(("status", "value"), [("diverged", 5.0), ("defect", math.nan)])
def test_what_diverged_or_failed_on_one_side_has_moved(tmp_path, status, value):
    a = load(written(tmp_path / "a", VALUES))
    b = load(written(tmp_path / "b", [value] * 4, status=status))
    assert len(between(a, b).moved) == 1
    assert between(b, b).same


def test_one_diverged_run_makes_the_mean_of_its_setting_infinite(tmp_path):
    written(tmp_path, VALUES)
    (one,) = load(written(tmp_path, [5.0], status="diverged")).means.itertuples()  # key 0 of the same setting
    assert (one.n, one.mean) == (5, math.inf)


@pytest.mark.parametrize(
    ("word", "said"), [("match", "match; survives: no"), ("differs", "differs"), ("no data", "no data")]
)
def test_only_a_value_that_is_reproduced_survives_or_not(word, said):
    value = PublishedValue(Place("Table 1"), "table1", (Number("loss", "0.6", k=5),))
    notices = dict.fromkeys(DECIDING, True)
    assert verdict_words(Judged(value, Outcome(word), notices, "no" if word == "match" else "")) == said


def test_one_seed_is_compared_up_to_rounding(tmp_path):
    a, b = (load(written(tmp_path / name, [value])) for name, value in (("a", 0.1), ("b", 0.1001)))
    assert len(between(a, b).moved) == 1
    assert between(a, a).same


def test_what_is_on_one_side_alone_is_counted_and_is_no_difference(tmp_path):
    a = written(tmp_path / "a", VALUES)
    written(tmp_path / "a", VALUES, epsilon=2.0)
    b = written(tmp_path / "b", VALUES)
    found = between(load(a), load(b))
    assert found.same
    assert found.only == (1, 0)


def test_an_experiment_on_one_side_alone_is_named_and_nothing_in_common_is_a_mistake(tmp_path, capsys):
    a = written(tmp_path / "a", VALUES)
    b = written(tmp_path / "b", VALUES, experiment="other")
    assert code(a, b) == 2
    assert "no setting in common" in capsys.readouterr().err
    written(tmp_path / "b", VALUES)
    assert code(a, b) == 0
    assert "1 configurations only on the second; the first has nothing of other" in capsys.readouterr().out
    assert code(b, a) == 0
    assert "1 configurations only on the first; the second has nothing of other\n" in capsys.readouterr().out


def test_timed_runs_and_other_experiments_do_not_mix(tmp_path):
    a = written(tmp_path / "a", VALUES)
    written(tmp_path / "a", [9.0] * 4, timed=1)
    written(tmp_path / "a", [7.0] * 4, experiment="other")
    cells = load(a).means
    assert cells.groupby("experiment")["mean"].first().to_dict() == pytest.approx({"mine": 0.115, "other": 7.0})
    assert load(a / "mine").means["n"].tolist() == [4]


def test_a_summary_is_read_back_as_it_was(tmp_path):
    a = written(tmp_path / "a", VALUES)
    written(tmp_path / "a", [0.5] * 4, status="diverged", epsilon=3.0)
    file = tmp_path / "quick.json"
    assert code(a, "--save", file) == 0
    again = load(file)
    assert between(load(a), again).same
    assert np.isinf(again.means["mean"]).sum() == 1
    first = file.read_bytes()
    save(load(a), file)
    assert file.read_bytes() == first


def test_a_verdict_that_changed_is_a_difference_and_one_that_waits_for_rows_is_none(tmp_path):
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    for waiting in ("not enough data", "no data"):  # on either side
        for words in ((waiting, "held"), ("held", waiting)):
            for file, word in zip((a, b), words, strict=True):
                told = {"format": 1, "cells": [], "verdicts": [["second_order", "one", word]]}
                file.write_text(json.dumps(told))
            found = between(load(a), load(b))
            assert (found.same, found.judged) == (True, 0)
    for file, words in ((a, ("held", "open")), (b, ("not held", "not enough data"))):
        verdicts = [["second_order", "one", words[0]], ["second_order", "two", words[1]]]
        file.write_text(json.dumps({"format": 1, "cells": [], "verdicts": verdicts}))
    found = between(load(a), load(b))
    assert found.changed[["claim", "verdict_a", "verdict_b"]].to_numpy().tolist() == [["one", "held", "not held"]]
    assert found.judged == 1
    assert code(a, b) == 1


def test_a_wrong_place_is_one_line(tmp_path, capsys):
    (tmp_path / "bad.json").write_text("[]")
    for arguments in (
        ["nowhere", "nowhere"],
        [tmp_path / "bad.json", tmp_path],
        [tmp_path],
        [tmp_path, tmp_path, "--errors", "0"],
    ):
        assert code(*arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1
