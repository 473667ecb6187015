"""What the front page says of the default: shares by family, a sign test, and differences with an interval."""

import numpy as np
import pandas as pd
import pytest

from dpbench.leaderboard import headline
from dpbench.leaderboard.places import AUTO, EXCESS, Scale


def test_quartiles_and_the_sign_test_are_of_families():
    one = headline.kept("all", pd.Series([0.99, 0.98, 0.96, 0.5, -1.0]))
    assert (one.families, one.better, one.median) == (5, 4, pytest.approx(0.96))
    assert (one.low, one.high) == (pytest.approx(0.5), pytest.approx(0.98))
    assert one.sign == pytest.approx(6 / 32)  # four or five heads of five
    assert headline.kept("none", pd.Series(dtype=float)).families == 0
    ties = headline.kept("ties", pd.Series([0.0, 0.0]))
    assert (ties.better, ties.sign) == (0, 1.0)


def test_groups_tell_real_data_from_drawn_ones_by_their_source():
    found = headline.groups(
        {"census": ["a1a", "adult"], "diabetes-ridge": ["diabetes-ridge"], "gen-tiny": ["gen-tiny"]}
    )
    assert found["real"] == ["census", "diabetes-ridge"]
    assert found["drawn"] == ["gen-tiny"]
    assert found["n < 1,500"] == ["diabetes-ridge", "gen-tiny"]
    assert found["n > 6,000"] == ["census"]


def losses(**cells):
    """{problem_method: losses} as rows and scores."""
    at = [(*name.split("_"), values) for name, values in cells.items()]
    rows = pd.DataFrame([(p, m, v) for p, m, values in at for v in values], columns=["problem", "algorithm", "loss"])
    scores = [(p, m, np.log10(np.mean(values))) for p, m, values in at]
    return rows, pd.DataFrame(scores, columns=["problem", "algorithm", "score"])


def test_a_difference_is_found_where_there_is_one_and_zero_where_the_default_is_that_method():
    rng = np.random.default_rng(1)
    cells = {
        f"p{i}_{m}": rng.lognormal(mean, 0.1, 10) for i in range(12) for m, mean in (("a", -2), ("b", -1), ("c", -2))
    }
    rows, scores = losses(**cells)
    chosen = scores[scores["algorithm"].eq("a")].assign(algorithm=AUTO)
    failed = scores[scores["algorithm"].eq("b")].assign(algorithm="d", score=0.0)  # of which there is no loss
    scores = pd.concat([scores, chosen, failed])
    problems = {f"p{i}" for i in range(12)}
    result = headline.against(
        rows, scores, Scale(EXCESS, dict.fromkeys(problems, 1.0)), dict.fromkeys(problems, "a"), {}
    )
    one = {each.algorithm: each for each in result}
    assert one["b"].words == "the default"
    assert one["b"].difference == pytest.approx(np.log10(np.exp(-1)), abs=0.05)
    assert (one["d"].words, one["d"].lower) == ("the default", 12)
    assert one["c"].words == "not distinguishable"
    assert one["c"].low < 0 < one["c"].high
    assert (one["a"].difference, one["a"].low, one["a"].high, one["a"].equal) == (0, 0, 0, 12)


def test_seeds_and_families_both_widen_the_interval():
    def width(spread, families):
        rng = np.random.default_rng(2)
        cells = {f"p{i}_{m}": rng.lognormal(-2, spread, 5) for i in range(8) for m in ("a", "b")}
        rows, scores = losses(**cells)
        scores = pd.concat([scores, scores[scores["algorithm"].eq("a")].assign(algorithm=AUTO)])
        names = [f"p{i}" for i in range(8)]
        result = headline.against(
            rows, scores, Scale(EXCESS, dict.fromkeys(names, 1.0)), dict.fromkeys(names, "a"), families
        )
        one = next(each for each in result if each.algorithm == "b")
        return one.high - one.low

    assert width(0.5, {}) > 3 * width(0.05, {})
    assert width(0.5, {f"p{i}": f"f{i // 4}" for i in range(8)}) != width(0.5, {})


def test_the_least_reach_is_where_a_sign_test_over_seeds_says_so():
    """At ε = 1 the default is below w = 0 on 5 of 5 seeds, p = 1/32; two methods share the level: neither is sure."""
    at = {
        (0.1, "a"): [2, 2, 2, 2, 0.5], (0.1, "b"): [2] * 5, (1.0, "a"): [0.5] * 5, (1.0, "b"): [0.5] * 4 + [2],
        (10.0, "a"): [0.5] * 8, (10.0, "b"): [0.5] * 8,
    }  # fmt: skip
    rows = [("diabetes-ridge", e, name, loss) for (e, name), values in at.items() for loss in values]
    table = pd.DataFrame(rows, columns=["problem", "epsilon", "algorithm", "loss"])
    (one,) = headline.reach(table, {"diabetes-ridge": 1.0}, {"diabetes-ridge": "a"})
    assert one == ("diabetes-ridge", 442, 442.0, 4420.0, "a")
    (none,) = headline.reach(table[table["epsilon"] < 1], {"diabetes-ridge": 1.0}, {})
    assert np.isnan([none.default, none.any]).all()
