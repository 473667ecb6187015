"""The list of `tests.mutants` cannot rot: every text is there once, every mutant is code, every test exists."""

import ast
import fnmatch
import re

import pytest

from tests import mutants
from tests.mutants import MUTANTS, ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=[f"{i}-{one.file}" for i, one in enumerate(MUTANTS)])
def test_a_mutant_can_be_made_and_its_test_is_there(mutant):
    ast.parse(mutant.mutated())
    assert mutant.text != mutant.instead
    file, _, name = mutant.test.partition("::")
    assert f"\ndef {name.partition('[')[0]}(" in (ROOT / "tests" / file).read_text()


@pytest.mark.parametrize("test", sorted({one.test for one in MUTANTS}))
def test_no_mutant_waits_for_a_test_that_make_test_leaves_out(test):
    """Its test is neither thorough nor slow, nor thorough in some cases, unless the mutant names a case that stays."""
    file, _, name = test.partition("::")
    name, _, case = name.rstrip("]").partition("[")
    tree = ast.parse((ROOT / "tests" / file).read_text())
    (function,) = (one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name)
    for mark in function.decorator_list:
        left_out = re.match(r"pytest\.mark\.(slow|thorough\w*)", ast.unparse(mark))
        assert not left_out or (case and "_" in left_out[1] and left_out[1] != "slow"), left_out
        if left_out:
            fits = any(fnmatch.fnmatchcase(case, pattern.value) for pattern in mark.args)
            assert fits == (left_out[1] == "thorough_but"), case


def test_the_list_is_long_covers_the_rooms_and_says_what_each_breaks():
    assert len(MUTANTS) >= 60
    assert len({one[:3] for one in MUTANTS}) == len({one.breaks for one in MUTANTS}) == len(MUTANTS)
    rooms = {one.file.partition("/")[0] for one in MUTANTS}
    assert rooms >= {
        "comparing",
        "datasets",
        "submitting",
        "reporting",
        "study",
        "leaderboard",
        "schema",
        "run",
        "algorithms",
        "own",
    }


@pytest.mark.parametrize(("status", "became"), [(0, mutants.SURVIVES), (1, mutants.NOTICED), (2, mutants.BROKEN)])
def test_a_mutant_is_noticed_by_a_failure_alone(monkeypatch, capsys, status, became):
    """Its own tree is left as it is; a test that fails without the mistake, or does not run, notices nothing."""
    one = MUTANTS[0]
    before = (ROOT / "dpbench" / one.file).read_text()

    def ended(copy, *tests, keep=True):
        assert (ROOT / "dpbench" / one.file).read_text() == before
        return 0 if (copy / "dpbench" / one.file).read_text() == before else status

    monkeypatch.setattr(mutants, "COPIED", ("dpbench/comparing",))
    monkeypatch.setattr(mutants, "_ended", ended)
    assert [word for _, word in mutants.tried([one])] == [became]
    monkeypatch.setattr(mutants, "_ended", lambda copy, *tests, keep=True: 1)
    assert [word for _, word in mutants.tried([one])] == [mutants.BROKEN]
    monkeypatch.setattr(mutants, "MUTANTS", [one])
    assert mutants.main([]) == 1
    assert "1 mutants, 0 noticed, 1 left" in capsys.readouterr().out
