"""What modules declare is found in their order, and a claim is judged to verdicts whatever becomes of it."""

import types

import pytest

from dpbench.study.claims import (
    AS_PUBLISHED,
    BOTH,
    HELD,
    NOT_ENOUGH,
    NOT_HELD,
    OPEN,
    PROVEN,
    Artefact,
    Case,
    Claim,
    NotEnough,
    Share,
    Verdict,
    Why,
    all_of,
    declared,
    each,
    over_variants,
    settings_of,
)
from tests.declared import artefact, claim


def module(name, **functions):
    made = types.ModuleType(name)
    for key, function in functions.items():
        function.__module__ = name
        setattr(made, key, function)
    return made


def fresh():
    return lambda context: context


def test_declarations_are_collected_in_order():
    one = module(
        "one",
        b=artefact("b", "B")(fresh()),
        many=each(artefact(f"table{i}", f"Table {i}") for i in (1, 2))(fresh()),
        a=artefact("a", "A")(artefact("a2", "A again")(fresh())),
        judged=claim("c", "C")(fresh()),
        plain=fresh(),
    )
    two = module("two", first=artefact("first", "First")(fresh()))
    two.imported = one.b
    found = declared((two, one), Artefact)
    assert [each.name for each in found] == ["first", "b", "table1", "table2", "a", "a2"]
    assert [each.text for each in declared((one, two), Claim)] == ["C"]


@pytest.mark.parametrize(("artefact", "told"), [((), "x/fig1"), (("table2",), "x/table2"), (("",), "x/")])
def test_a_claim_without_rows_is_told_with_the_command_after_what_was_judged_before(artefact, told):
    def check(context):
        yield Verdict.of(True, "2 > 1", "as published")
        raise NotEnough("no rows of dp-gd", *artefact)

    context = types.SimpleNamespace(command=lambda artefact: f"dpbench run --experiment x/{artefact}")
    judged, missing = Claim("c", "C", check, shows="fig1").judge(context)
    assert judged == Verdict("held", "2 > 1", "as published")
    assert missing == Verdict(NOT_ENOUGH, f"no rows of dp-gd; run: dpbench run --experiment {told}")
    assert Claim("c", "C", lambda context: Verdict(OPEN, "1 ≈ 1")).judge(None) == [Verdict(OPEN, "1 ≈ 1")]


def test_a_verdict_is_one_of_the_words():
    assert [Verdict.of(held, "").word for held in (True, False, None)] == ["held", "not held", OPEN]
    assert [Verdict.of(True, "").held, Verdict.of(False, "").held, Verdict(OPEN, "").held] == [True, False, None]
    with pytest.raises(ValueError, match="perhaps"):
        Verdict("perhaps", "")


def test_a_share_counts_the_cases_and_what_nobody_could_look_at():
    assert Share.of([True, None, False, True]) == Share(2, 3, 1)
    assert Share.of([True], 2) == Share(1, 1, 2)
    assert Share.of([]) == Share(0, 0, 0)
    assert [str(one) for one in (Share(2, 3, 1), Share(2, 3))] == ["2 of 3 (1 missing)", "2 of 3"]


@pytest.mark.parametrize(
    ("share", "reached"),
    [
        ((8, 10, 0), True), ((7, 10, 0), False), ((0, 0, 0), False),
        ((8, 9, 1), True), ((7, 9, 1), None), ((6, 9, 1), False),  # what is missing is put both ways
        ((0, 0, 5), None), ((1, 1, 0), True),
    ],
)  # fmt: skip
def test_a_share_reaches_its_bar_whatever_is_missing(share, reached):
    assert Share(*share).reaches(0.8) is reached


@pytest.mark.parametrize(
    ("bounds", "verdict"),
    [
        ((2.0, 2.1, 2.2), "false"), ((2.0, 2 + 1e-6, 2.2), "false"),
        ((2.0, 2 + 1e-9, 2 + 1e-9), "holds, with noise to spare"),
        ((2.0, 1.0, 2 + 1e-6), "unproved"), ((2.0, 1.0, 2.0), "holds, with noise to spare"),
    ],
)  # fmt: skip
def test_a_published_setting_has_no_more_slack_than_rounding(bounds, verdict):
    assert Case("", *bounds).verdict == verdict


def test_several_verdicts_as_one_and_what_they_depend_on():
    assert [all_of(True, None, False), all_of(True, None), all_of(True, True), all_of()] == [False, None, True, True]
    assert over_variants({"a": True, "b": True}) == (True, "")
    assert over_variants({"a": None}) == (None, "")
    assert over_variants({"a": False, "b": None, "c": False, "d": True}) == (
        None, "depends on our choice: held with d, not held with a and with c, open with b"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cases", "alone", "settings"),
    [
        ([""], BOTH, [BOTH]), ([""], PROVEN, [PROVEN]), (["", ""], BOTH, [BOTH, BOTH]),
        ([AS_PUBLISHED, ""], BOTH, [AS_PUBLISHED, PROVEN]), (["", f"{PROVEN}, n = 9"], BOTH, [AS_PUBLISHED, PROVEN]),
        ([AS_PUBLISHED, PROVEN, ""], BOTH, [AS_PUBLISHED, PROVEN, BOTH]),
        (["tree", PROVEN], BOTH, [AS_PUBLISHED, PROVEN]),
    ],
)  # fmt: skip
def test_each_verdict_of_a_claim_has_its_setting(cases, alone, settings):
    assert settings_of([Verdict(HELD, "", case) for case in cases], alone) == settings


def test_the_reason_of_a_verdict_is_that_of_its_word_and_case():
    whys = (Why(NOT_HELD, "first", "t", AS_PUBLISHED), Why(NOT_HELD, "second", "t"), Why(OPEN, "third", "t"))
    claim = Claim("c", "C", lambda context: [], why=whys)
    asked = [Verdict(NOT_HELD, "", AS_PUBLISHED), Verdict(NOT_HELD, "", PROVEN), Verdict(OPEN, ""), Verdict(HELD, "")]
    assert [claim.reason(one) for one in asked] == [*whys, None]
