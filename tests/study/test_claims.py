"""What modules declare is found in their order, and a claim is judged to verdicts whatever becomes of it."""

import types

import pytest

from dpbench.study.claims import NOT_ENOUGH, OPEN, Artefact, Claim, NotEnough, Verdict, declared, each
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
