"""The judge, on synthetic papers of known law."""

import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpbench
from dpbench.study import laws, printed, value_verdict
from dpbench.study.headline import Headline, headline
from dpbench.study.printed import ALL, COUNT, FIXED, ROUNDED, STD, Number
from dpbench.study.value_verdict import (
    BLIND,
    CANNOT_TELL,
    HONEST,
    NOT_PUBLIC,
    NOT_RUN,
    UNPLANTED,
    Outcome,
    Place,
    PublishedValue,
    Switch,
    judge,
)

A, B, C = (Switch(name, (name, True), f"line of {name}") for name in "abc")


def sample(center, sd=0.01, N=100, seed=0, ended=1.0):
    x = np.random.default_rng(seed).standard_normal(N)
    x = (x - x.mean()) / x.std(ddof=1)
    return {"loss": (center + sd * x).tolist(), "ended": [ended] * N}


FAR = {0.5: sample(0.3), 2.0: sample(1.2)}  # half and twice the noise, which any test notices
FAR_STREAM = {0.5: {"loss": [0.3] * 5}, 2.0: {"loss": [1.2] * 5}}


def value(name="1", mean="0.600", std="", ended="", runs=None, planted=FAR, **more):
    numbers = [Number("loss", mean, k=5)]
    numbers += [Number("loss", std, STD, k=5)] if std else []
    numbers += [Number("ended", ended, ALL, k=5)] if ended else []
    return PublishedValue(
        Place("Table 1", "method", name), "table1", tuple(numbers), runs or {}, planted=planted, **more
    )


def word(one, *switches):
    return judge([one], switches)[0].word


def test_a_synthetic_paper_of_true_values_differs_in_one_of_twenty_before_the_correction():
    rng = np.random.default_rng(5)
    words = []
    for i in range(400):
        ours, theirs = 0.6 + 0.01 * rng.standard_normal(100), 0.6 + 0.01 * rng.standard_normal(5)
        one = value(str(i), f"{theirs.mean():.9f}", f"{theirs.std(ddof=1):.9f}", runs={HONEST: {"loss": ours.tolist()}})
        words.append(value_verdict.outcome_of(one, HONEST).word)
    assert words.count("differs") / len(words) == pytest.approx(0.05, abs=0.035)
    assert words.count("match") / len(words) == pytest.approx(0.95, abs=0.035)


@pytest.mark.slow
def test_a_large_synthetic_paper_differs_in_five_percent_of_its_values():
    rng = np.random.default_rng(6)
    found = 0
    for i in range(8000):
        ours, theirs = 0.6 + 0.01 * rng.standard_normal(100), 0.6 + 0.01 * rng.standard_normal(5)
        one = value(str(i), f"{theirs.mean():.9f}", f"{theirs.std(ddof=1):.9f}", runs={HONEST: {"loss": ours.tolist()}})
        found += value_verdict.outcome_of(one, HONEST).word == "differs"
    assert found / 8000 == pytest.approx(0.05, abs=0.01)


def test_the_correction_releases_what_chance_gives_and_keeps_what_is_far():
    rng = np.random.default_rng(7)
    values = []
    for i in range(200):
        theirs = 0.6 + 0.01 * rng.standard_normal(5)
        ours = (0.6 + 0.01 * rng.standard_normal(100)).tolist()
        values.append(value(str(i), f"{theirs.mean():.6f}", runs={HONEST: {"loss": ours}}))
    values.append(value("far", "0.700", runs={HONEST: sample(0.6)}))
    assert sum(value_verdict.outcome_of(one, HONEST).word == "differs" for one in values) > 4
    differs = [one.value.place.column for one in judge(values) if one.outcome.word == "differs"]
    assert "far" in differs
    assert len(differs) <= 3


def test_a_wide_spread_is_judged_by_its_power_and_says_its_resolution():
    """A report of means within 5 % called such values too wide, though they noticed half and twice the noise."""
    assert word(value(mean="0.900", runs={HONEST: sample(0.6, 0.06)})) == "differs"
    found = judge([value(runs={HONEST: sample(0.6, 0.06)})])[0]
    assert (found.word, found.resolution) == ("match", pytest.approx(0.148, abs=0.001))
    assert "judge it by 100 seeds" in judge([value(runs={HONEST: sample(0.6, 0.5, N=20)})])[0].outcome.numbers


def test_too_few_runs_are_no_data():
    assert word(value(runs={HONEST: sample(0.6, N=19)})) == "no data"
    assert word(value(runs={HONEST: sample(0.6, N=20)})) == "match"
    assert word(value()) == "no data"


def test_a_value_whose_two_numbers_need_different_variants_differs():
    """Its loss is that of variant a, its × that of variant b: no setting gives both."""
    on = {frozenset("a"): sample(0.6, ended=1.0), frozenset("b"): sample(0.8, ended=0.0)}
    one = value(ended="×", runs={HONEST: sample(0.9), frozenset("ab"): sample(0.7, ended=1.0)} | on,
               switches=("a", "b"))  # fmt: skip
    found = judge([one], [A, B])[0]
    assert (found.word, found.survival) == ("differs", "")
    one = value(ended="yes", runs={HONEST: sample(0.9), frozenset("a"): sample(0.6)}, switches=("a",))
    assert (judge([one], [A])[0].outcome.word, judge([one], [A])[0].by) == ("match", ("a",))


def test_the_smallest_set_of_switches_explains():
    on = {HONEST: sample(0.9), frozenset("a"): sample(0.8), frozenset("b"): sample(0.6), frozenset("abc"): sample(0.6)}
    found = judge([value(runs=on, switches=("a", "b", "c"))], [A, B, C])[0]
    assert (found.survival, found.by, found.how) == ("no", ("b",), "")
    assert not found.private
    on = {HONEST: sample(0.9), frozenset("ab"): sample(0.6), frozenset("abc"): sample(0.6)}
    found = judge([value(runs=on, switches=("a", "b", "c"))], [A, B, C])[0]
    assert (found.by, found.how) == (("a", "b"), "reduced; 2 of its 2 smaller sets not searched")
    stream = {frozenset("abc"): {"loss": [0.6] * 5}}
    one = value(stream=stream, runs={HONEST: sample(0.9)}, switches=("a", "b", "c"), planted_stream=FAR_STREAM)
    found = judge([one], [A, B, C])[0]
    assert (found.outcome.word, found.by) == ("exact", ("a", "b", "c"))
    assert found.how == "exact, not attributed; 6 of its 6 smaller sets not searched"
    assert judge([value(runs={HONEST: sample(0.6)})])[0].survival == "yes"


def test_nothing_explains_where_the_published_setting_differs():
    """With many sets tried some smaller one matches by chance; it explains nothing that all of them do not give."""
    on = {HONEST: sample(0.9), frozenset("a"): sample(0.6), frozenset("ab"): sample(0.8)}
    found = judge([value(runs=on, switches=("a", "b"))], [A, B])[0]
    assert (found.word, found.survival, found.by) == ("differs", "", ())


def test_exact_is_every_printed_number_of_as_many_runs():
    run = {"loss": [0.61, 0.60, 0.59, 0.60, 0.60], "ended": [1.0] * 5}
    off = {f: {"loss": each["loss"], "ended": [1.0] * 5} for f, each in FAR_STREAM.items()}
    exact = {"mean": "0.600", "std": "0.007", "ended": "yes", "stream": {HONEST: run}, "planted_stream": off}
    assert word(value(**exact)) == "exact"
    for wrong in ({"mean": "0.601"}, {"std": "0.006"}, {"ended": "×"}, {"stream": {HONEST: {"loss": [0.6] * 4}}}):
        assert word(value(**exact | {"ended": ""} | wrong)) == "differs"
    assert word(value(stream={HONEST: {"loss": [0.6] * 5}}, planted_stream=FAR_STREAM)) == "exact"
    assert word(value(stream={HONEST: {"loss": [0.6] * 4}})) == "differs"
    tie = value(mean="0.021", stream={HONEST: {"loss": [0.0205] * 5}})
    assert judge([tie])[0].outcome.word == "differs"
    assert "a rounding tie (0.0205: half to even gives 0.020, half up gives 0.021)" in judge([tie])[0].outcome.numbers


def test_a_stream_that_misses_may_still_match():
    one = value(stream={HONEST: {"loss": [0.6004] * 4 + [0.61]}}, runs={HONEST: sample(0.6)})
    found = judge([one])[0].outcome
    assert found.word == "match"
    assert "published stream: loss: 0.60232, published 0.600" in found.numbers


def test_a_bundle_cannot_be_registered():
    for setting in (
        {"a": 1, "b": 2},
        ("a", {"b": 1, "c": 2}),
        ("a", ["b", "c"]),
        ("a", 1, "b", 2),
        "as-published-code",
    ):
        with pytest.raises(ValueError, match="a switch is one setting and its value"):
            Switch("bundle", setting, "somewhere")
    with pytest.raises(ValueError, match="name the line"):
        Switch("a", ("a", 1), " ")


def test_what_is_not_registered_explains_nothing():
    with pytest.raises(ValueError, match="'half the noise' is no registered switch"):
        judge([value(runs={frozenset(["half the noise"]): sample(0.6)})], [A])
    found = judge([value(runs={HONEST: sample(0.9)}, fits={"half the noise": sample(0.6)})])[0]
    assert (found.word, found.survival) == ("differs", "")
    assert found.fits.startswith("half the noise: loss: ours 0.6")


def test_a_run_time_cannot_enter_a_share():
    seconds = value(runs={HONEST: sample(0.6)}, stream={HONEST: {"loss": [0.6] * 5}}, run_time=True, series=("s",))
    found = judge([seconds])[0]
    assert (found.word, found.outcome.reason, found.counts) == ("not comparable", "other unit costs", False)
    assert headline([found.record()]).total == 0


def test_trivial_values_and_copies_count_in_no_share():
    values = [
        value("1", runs={HONEST: sample(0.6)}),
        value("2", runs={HONEST: sample(0.6, seed=1)}, trivial="the value of the start"),
        value("3", runs={HONEST: sample(0.6, seed=2)}, shares="Table 1, method, 1"),
        value("4", runs={HONEST: sample(0.6, seed=3)}),
    ]
    found = judge(values)
    assert [one.word for one in found] == ["match", "trivial", "match", "match"]
    assert [one.counts for one in found] == [True, False, False, True]
    assert found[2].copy_of == "Table 1, method, 1"
    said = headline([one.record() for one in found])
    assert (said.total, said.words["match"], sum(said.left.values())) == (4, 2, 2)
    assert dict(said.left) == {"the value of the start": 1, "copy of another value": 1}


def test_a_value_with_the_runs_of_its_neighbour_becomes_a_copy():
    """Whatever is printed in it; whole numbers, which may agree by chance, make none."""
    own = {frozenset(): sample(0.6)}
    first, second = judge([value("1", runs=own), value("2", "0.700", runs=own)])
    assert (first.copy_of, second.copy_of, second.counts) == ("", "Table 1, method, 1", False)
    stream = {HONEST: {"loss": [0.61, 0.60, 0.59, 0.60, 0.60]}}
    both = judge([value(name, stream=stream, planted_stream=FAR_STREAM) for name in "12"])
    assert headline([one.record() for one in both]).words["exact"] == 1
    whole = [
        PublishedValue(Place("T", name), "t", (Number("x", "396", FIXED),), {HONEST: {"x": [396.0]}}) for name in "12"
    ]
    assert not any(one.copy_of for one in judge(whole))


# ---- power ----


def test_a_value_without_planted_runs_is_neither_exact_nor_a_match():
    for more in ({"runs": {HONEST: sample(0.6)}}, {"stream": {HONEST: {"loss": [0.6] * 5}}}):
        for planted in ({}, {0.5: FAR[0.5]}, {2.0: FAR[2.0]}):
            assert word(value(planted=planted, **more)) == "noise not planted"


def test_what_also_comes_out_of_wrong_noise_is_blind_to_it():
    right = {HONEST: sample(0.6)}
    assert word(value(runs=right)) == "match"
    for factor in (0.5, 2.0):
        found = judge([value(runs=right, planted=FAR | {factor: sample(0.601, seed=1)})])[0]
        assert (found.word, found.survival, found.counts) == ("blind to noise", "", True)
        assert [name for name, seen in found.notices.items() if not seen] == [value_verdict.NOISE[factor]]
    stream = {HONEST: {"loss": [0.6] * 5}}
    blind = FAR_STREAM | {2.0: {"loss": [0.6001] * 5}}
    one = judge([value(stream=stream, planted={}, planted_stream=blind)])[0]
    assert (one.word, one.outcome.word) == ("blind to noise", "exact")
    assert headline([one.record()]).blind_exact == 1
    # Where the stream is planted too, its digits tell; where it is not, the law of the means does.
    both = {"stream": stream, "runs": right}
    near = judge([value(**both, planted=FAR | {2.0: sample(0.601, seed=1)})])[0]
    assert (near.word, near.notices) == ("blind to noise", {"half the noise": True, "twice the noise": False})
    digits = judge([value(**both, planted_stream={0.5: {"loss": [0.601] * 5}, 2.0: {"loss": [0.6001] * 5}})])[0]
    assert digits.notices == {"half the noise": True, "twice the noise": False}
    # Every run crashes, with the right noise as with half and twice of it: equal runs of wrong noise are runs of it.
    crashed = {HONEST: {"loss": [], "left": [0.0] * 5}}
    lost = PublishedValue(Place("T"), "t", (Number("left", "0", COUNT, k=5),), {}, stream=crashed)
    assert word(lost) == "noise not planted"
    assert word(replace(lost, planted_stream={0.5: crashed[HONEST], 2.0: crashed[HONEST]})) == "blind to noise"


def test_other_recipes_are_shown_and_never_decide():
    right = {HONEST: sample(0.6)}
    more = {f"nothing, {i}": sample(0.1) for i in range(20)} | {"another T": sample(0.6, seed=4)}
    for planted in (FAR, FAR | {2.0: sample(0.601, seed=1)}):
        with_menu = judge([value(runs=right, planted=planted | more)])[0]
        assert with_menu.word == word(value(runs=right, planted=planted))
    assert headline([with_menu.record()]).placebo["twice the noise"] == (1, 1)
    passed = headline([judge([value(runs=right, planted=FAR | more)])[0].record()]).placebo
    assert (passed["another T"], passed["half the noise"]) == ((1, 1), (0, 1))


def test_neighbours_of_the_grid_are_recipes_and_equal_runs_say_nothing():
    values = [value(f"ε = {i}", f"{0.6 + 0.1 * i:.3f}", runs={HONEST: sample(0.6 + 0.1 * i, seed=i)}, series=("m",))
             for i in range(3)]  # fmt: skip
    assert all(one.notices[value_verdict.NEIGHBOUR] for one in judge(values))
    same = value(runs={HONEST: sample(0.6)}, planted=FAR | {"the sibling": sample(0.6)})
    assert "the sibling" not in judge([same])[0].notices


def test_one_run_without_noise_stands_for_all_seeds():
    found = judge([value(runs={HONEST: sample(0.6)}, planted=FAR | {0.0: {"loss": [0.6]}})])[0]
    assert not found.notices["no noise"]
    assert found.word == "match"


def paper(factor, values=96, seed=0):
    """Curve ends of which half are noise floors, which go with the square of the noise, and a third transients."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(values):
        floor = 1.0 if i % 6 < 3 else 0.01 if i % 6 < 5 else 0.3
        wanted = lambda f, floor=floor: 1 - floor + floor * f**2  # noqa: E731

        def runs(f, k=20, wanted=wanted, rng=rng):
            return (wanted(f) * (1 + 0.3 * rng.standard_normal(k))).tolist()

        theirs = np.mean(runs(1.0))
        own = {"loss": runs(factor)}
        planted = {f: {"loss": runs(factor * f)} for f in (0.5, 2.0)}
        number = (Number("loss", f"{theirs:.6f}", k=20),)
        found.append(
            PublishedValue(Place("Fig. 1", str(i)), "fig1", number, {HONEST: own}, planted=planted, curve=str(i // 4))
        )
    return headline([one.record() for one in judge(found)])


def test_a_report_under_wrong_noise_keeps_at_most_a_quarter_of_the_matches():
    right = paper(1.0)
    assert right.words["match"] >= 40
    assert right.words["differs"] <= 2
    assert right.pooled["published noise"].word == "match"
    for factor in (0.0, 0.5, 2.0, 2**0.5):
        wrong = paper(factor)
        assert wrong.words["match"] <= right.words["match"] / 4, factor
        assert wrong.pooled["published noise"].word == "differs"


def test_transients_do_not_narrow_the_pooled_ratio():
    """They do not notice wrong noise, so they are not pooled."""
    noise = [value(str(i), runs={HONEST: sample(0.6 * (1 + 0.02 * (i - 2)), 0.05, seed=i)}) for i in range(5)]
    quiet = [value(f"t{i}", runs={HONEST: sample(0.6, seed=i)}, planted={0.5: sample(0.6, seed=50 + i), 2.0: FAR[2.0]})
             for i in range(20)]  # fmt: skip
    alone, both = (headline([one.record() for one in judge(some)]).pooled["published noise"]
                   for some in (noise, noise + quiet))  # fmt: skip
    assert alone == both


# ---- survival ----


def test_survival_is_yes_no_not_run_or_cannot_tell():
    def told(honest, **more):
        runs = {frozenset("a"): sample(0.6)} | ({HONEST: honest} if honest else {})
        return judge([value(runs=runs, switches=("a",), **more)], [A])[0]

    assert told(sample(0.6, seed=1)).survival == "yes"
    assert told(sample(0.9)).survival == "no"
    assert (told(None).survival, told(None).how) == ("not run", "no runs at a proven ε")
    assert (told(sample(0.6, N=5)).survival, told(sample(0.6, N=5)).how) == ("not run", "5 of 20 seeds")
    blind = told(sample(0.6, seed=1), planted=FAR | {0.5: sample(0.6, seed=2)})
    assert (blind.word, blind.survival) == ("blind to noise", "")


def test_an_exact_value_survives_only_if_means_alone_would_have_noticed():
    """Honest runs have no published stream: the weaker test needs a power of its own."""
    stream = {frozenset("a"): {"loss": [0.59, 0.6, 0.6, 0.6, 0.61]}}
    honest = {HONEST: sample(0.6)}
    near = {0.5: {"loss": [0.58, 0.6, 0.6, 0.6, 0.61]}, 2.0: {"loss": [0.59, 0.6, 0.6, 0.6, 0.62]}}
    far = {0.5: {"loss": [0.3, 0.31, 0.3, 0.3, 0.3]}, 2.0: {"loss": [1.2, 1.21, 1.2, 1.2, 1.2]}}
    for planted, said in ((near, "cannot tell"), (far, "yes")):
        one = value(stream=stream, runs=honest, switches=("a",), planted={}, planted_stream=planted)
        found = judge([one], [A])[0]
        assert (found.word, found.survival) == ("exact", said)


def test_reasons_come_from_the_closed_list():
    assert judge([value(runs={HONEST: sample(0.6)}, not_comparable=NOT_PUBLIC)])[0].outcome.reason == NOT_PUBLIC
    for reason in ("too wide", "we do not like it"):
        with pytest.raises(ValueError, match="none of the reasons"):
            value(not_comparable=reason)


def test_the_least_of_a_grid_lies_low():
    def one(text, **more):
        return PublishedValue(Place("Table 1"), "table1", (Number("loss", text, k=5, lowest=True),),
                    {HONEST: sample(0.6, 0.02)}, **more)  # fmt: skip

    assert word(one("0.500")) == "noise not planted"  # on the better side of ours: it rejects nothing
    assert word(one("0.700")) == "differs"  # above: counts in full
    tuned = (0.5 + 0.01 * np.random.default_rng(1).standard_normal(200)).tolist()
    assert word(one("0.500", tuned={"loss": tuned})) == "noise not planted"
    assert word(one("0.400", tuned={"loss": tuned})) == "differs"


def test_counts_and_numbers_without_randomness():
    def one(number, values):
        return PublishedValue(Place("Table 1"), "table1", (number,), {HONEST: {"x": values}})

    assert word(one(Number("x", "3", COUNT, k=5), [1.0, 0.0] * 50)) == "noise not planted"
    assert word(one(Number("x", "5", COUNT, k=5), [1.0, 0.0, 0.0, 0.0] * 25)) == "differs"
    assert word(one(Number("x", "1", ROUNDED, k=5), [1.0] * 100)) == "noise not planted"
    assert word(one(Number("x", "3", ROUNDED, k=5), [1.0] * 100)) == "differs"
    assert judge([one(Number("x", "396", FIXED), [396.0])])[0].outcome.word == "exact"
    assert word(one(Number("x", "396", FIXED), [303.0])) == "differs"


def test_counts_without_spread_are_judged_with_their_deviation():
    """Ours never took a Hessian in 20 runs: one in one of four published runs may be, some in all four may not."""

    def one(mean, std):
        numbers = (Number("H", mean, k=4, count=True), Number("H", std, STD, k=4, count=True))
        return PublishedValue(Place("Table 1"), "table1", numbers, {HONEST: {"H": [0.0] * 20}})

    assert word(one("0.25", "0.500")) == "noise not planted"
    assert word(one("6.50", "1.732")) == "differs"


def test_diverged_runs_are_no_agreement():
    runs = sample(0.6)
    runs["loss"][:60] = [np.inf] * 60
    assert word(value(runs={HONEST: runs})) == "differs"  # .4^5 that none of five diverges


def test_a_mean_below_a_share_of_one_of_ours_is_not_of_such_runs():
    """Twice the noise throws every fourth run far off: a mean of fifteen losses of .0144 has none of them."""
    losses = [0.02 + 0.001 * i for i in range(15)] + [10.0, 100.0, 1e6, 1e6, 2e6]

    def chance(ours):
        return printed.chance(Number("x", "0.0144", k=15), np.array(ours), None)[0]

    assert chance(losses) < 0.001
    right = [0.0144 + 0.001 * (-1) ** i for i in range(19)]
    assert chance([*right, 0.3]) == pytest.approx(0.95**15, rel=0.02)
    assert chance([*right, -0.3]) > 0.5  # no bound where losses may be negative


def test_the_headline_adds_up_and_every_share_has_its_denominator():
    on = {HONEST: sample(0.9), frozenset("a"): sample(0.6)}
    values = [
        value("1", runs=on, switches=("a",)),
        value("2", "0.700", runs={HONEST: sample(0.6, seed=1)}),
        value("3", runs={HONEST: sample(0.6, seed=2)}),
        value("4", stream={HONEST: {"loss": [0.6] * 5}}, planted_stream=FAR_STREAM),
        value("5"),
        value("6", runs={HONEST: sample(0.6, seed=3)}, not_comparable=NOT_PUBLIC),
        value("7", runs={HONEST: sample(0.6, seed=4)}, planted={}),
    ]
    found = headline([one.record() for one in judge(values, [A])])
    assert sum(found.words.values()) + sum(found.left.values()) == found.total == 7
    assert found.paragraph() == (
        "Of 7 published values, 3 are reproduced, and would not be with half or twice the noise: 1 to the last "
        "digit, 2 within statistical error. 1 differs. 1 agrees, but is not yet tested with wrong noise. 2 are left "
        "out. At a proven ε, 2 of the 3 still come out."
    )
    assert found.paragraph().startswith(found.sentence())
    lines = found.lines()
    assert lines[0] == "left out: 2 of 7 (no data: 1, problem not public: 1)"
    assert lines[2].startswith("differs: 1 (Table 1, method, 2 (p < .001)); chance alone would give 0.2 of 4 tests")


RATIO = laws.Pooled(laws.Interval(1.0, 0.9, 1.1), "match", 4, 9)
NOTHING = {
    "total": 0, "words": Counter(), "left": {}, "blind_exact": 0, "survival": Counter(), "sets": (), "differs": (),
    "tested": 0, "resolution": math.nan, "placebo": {}, "pooled": {},
}  # fmt: skip
ONE = {"total": 6, "words": Counter(exact=1, differs=1) | Counter({BLIND: 1, UNPLANTED: 1}), "left": {"no data": 1},
       "survival": Counter(yes=1), "tested": 2, "differs": (("a", 0.001),)}  # fmt: skip
SEVERAL = {
    "total": 12, "words": Counter(exact=2, match=1, differs=2) | Counter({BLIND: 2, UNPLANTED: 2}), "blind_exact": 1,
    "left": {"no data": 2, "copy": 1}, "tested": 40, "differs": (("a", 0.00099), ("b", 0.0123)), "resolution": 0.126,
    "survival": Counter({"yes": 0, CANNOT_TELL: 1, NOT_RUN: 2}), "sets": (("noise + w", 2), ("w", 1)),
    "placebo": {"half the noise": (0, 3), "no noise": (1, 2)}, "pooled": {"published noise": RATIO},
}  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "sentence", "more", "lines"),
    [
        ({}, "None of the published values can be compared: run times and memory depend on the machine.", "",
         ["left out: 0 of 0", "blind to noise: 0, 0 of them to the last digit", "differs: 0"]),
        ({"total": 2, "left": {"no data": 2}}, "None of the published values can be compared: see why below.", "",
         ["left out: 2 of 2 (no data: 2)", "blind to noise: 0, 0 of them to the last digit", "differs: 0"]),
        (ONE, "Of 6 published values, 1 is reproduced, and would not be with half or twice the noise: 1 to the last "
         "digit, 0 within statistical error. 1 differs.",
         "1 agrees, but would also with half or twice the noise. 1 agrees, but is not yet tested with wrong noise. "
         "1 is left out. At a proven ε, 1 of the 1 still comes out.",
         ["left out: 1 of 6 (no data: 1)", "blind to noise: 1, 0 of them to the last digit",
          "differs: 1 (a (p = 0.001)); chance alone would give 0.1 of 2 tests a p below 0.05, which the verdicts "
          "correct for"]),
        (SEVERAL, "Of 12 published values, 3 are reproduced, and would not be with half or twice the noise: 2 to the "
         "last digit, 1 within statistical error. 2 differ.",
         "2 agree, but would also with half or twice the noise. 2 agree, but are not yet tested with wrong noise. "
         "3 are left out. At a proven ε, 0 of the 3 still come out (1 cannot be tested, 2 not run).",
         ["left out: 3 of 12 (no data: 2, copy: 1)", "blind to noise: 2, 1 of them to the last digit",
          "differs: 2 (a (p < .001); b (p = 0.012)); chance alone would give 2.0 of 40 tests a p below 0.05, which "
          "the verdicts correct for",
          "most values that are lost at a proven ε come back with noise + w (2), w (1)",
          "resolution: half of the matches would have shown a gap of 13 %",
          "wrong runs that would pass, made on purpose: half the noise 0 of 3, no noise 1 of 2",
          "pooled ratio of ours to published, published noise: 1 [0.9, 1.1] (match; 9 values in 4 curves)"]),
    ],
)  # fmt: skip
def test_a_headline_is_told_with_its_numbers_in_the_right_number(counts, sentence, more, lines):
    one = Headline(**NOTHING | counts)
    assert (one.sentence(), one.lines()) == (sentence, lines)
    assert one.paragraph() == f"{sentence} {more}".strip()


def test_exact_is_tried_before_match_and_no_data_before_not_comparable():
    both = value(stream={HONEST: {"loss": [0.6] * 5}}, runs={HONEST: sample(0.6)}, planted_stream=FAR_STREAM)
    assert word(both) == "exact"
    assert word(value(not_comparable=NOT_PUBLIC)) == "no data"


def test_a_trivial_value_does_not_loosen_the_correction():
    """Among many that differ for sure .04 would stand; of three tested values it is what chance gives."""
    outcomes = [Outcome("differs", chance=0.04), *[Outcome("match", chance=0.5)] * 2]
    assert [one.word for one in value_verdict.corrected(outcomes)[0]] == ["match"] * 3
    outcomes += [Outcome("trivial", "start", chance=1e-9)] * 36
    assert [one.word for one in value_verdict.corrected(outcomes)[0]] == ["match"] * 3 + ["trivial"] * 36


def test_a_planted_run_is_judged_alone_in_the_right_report():
    """Its bar is that of the right report: with many planted values in one report the bar would move with them."""
    _, stands = value_verdict.corrected([Outcome("match", chance=c) for c in (0.5, 0.6, 0.7, 0.8)])
    assert [stands(0, chance) for chance in (0.0124, 0.0126)] == [True, False]


def test_a_setting_keeps_epsilon_where_all_of_its_switches_do():
    kept = Switch("d", ("d", True), "line of d", keeps_epsilon=True)
    both, one = (judge([value(switches=names)], [A, kept])[0] for names in (("a", "d"), ("d",)))
    assert (both.private, one.private) == (False, True)


def test_trivial_values_that_differ_are_not_listed():
    found = judge([value(mean="0.700", runs={HONEST: sample(0.6)}, trivial="the value of the start")])
    assert found[0].word == "trivial"
    assert headline([one.record() for one in found]).differs == ()


# ---- one rule of truth ----


def test_the_level_is_in_one_place(monkeypatch):
    one = value("1", "0.608", runs={HONEST: sample(0.6)})
    assert value_verdict.outcome_of(one, HONEST).word == "match"
    monkeypatch.setattr(laws, "LEVEL", 0.5)
    assert value_verdict.outcome_of(one, HONEST).word == "differs"
    assert "tests a p below 0.5" in " ".join(headline([each.record() for each in judge([one])]).lines())


def test_no_other_module_has_a_quantile_or_a_level_of_its_own():
    root = Path(dpbench.__file__).parent
    # The quantile of Laplace noise is of an erratum, no judge's.
    own = re.compile(r"(?<!laplace\.)ppf\(|isf\(|quantile\(|1\.96|\b\d(\.0)? \* .*error")
    files = [file for room in ("study", "experiments") for file in (root / room).rglob("*.py")]
    assert [file.name for file in files if own.search(file.read_text())] == ["laws.py"]


def test_a_value_that_is_not_judged_has_its_numbers_all_the_same():
    """With runs enough and their chance, with fewer how many there are, without any what was published."""

    def said(loss, **more):
        runs = None if loss is None else {"loss": loss}
        return value_verdict._numbers_without_verdict(value(std="0.010", **more), runs)

    assert said(sample(0.6)["loss"][:20]) == (
        "loss: ours 0.5973 (sd 0.009, N = 20), published 0.600 (k = 5), chance 0.63; "
        "loss: ours sd 0.00903, published 0.010, chance 0.76"
    )
    few = "(2 of the 20 runs that a verdict takes)"
    assert said([0.5, 0.6]) == f"ours 0.55, published 0.600; ours 0.55, published 0.010 {few}"
    assert said([]) == said(None) == "published 0.600; published 0.010 (0 of the 20 runs that a verdict takes)"
    seconds = sample(0.6)["loss"]
    assert said(seconds[:2], run_time=True) == f"ours {np.mean(seconds[:2]):.4g}, published 0.600; " + (
        f"ours {np.mean(seconds[:2]):.4g}, published 0.010"
    )


def test_means_alone_notice_a_recipe_that_has_runs_enough_and_is_far_off():
    one = value(planted=FAR | {2.0: sample(0.601, seed=1)}, planted_stream={0.0: {"loss": [0.1] * 5}})
    single = value(planted={0.5: {"loss": [0.3]}}, planted_stream={0.5: {"loss": [0.3] * 5}})
    seen = value_verdict._seen_by_means
    assert [seen(one, name) for name in value_verdict.NOISE.values()] == [True, False, True]
    assert (seen(one, "another"), seen(single, "half the noise")) == (False, False)
