"""Every cheat of `cheats` fails the audit by what it does, and what they are made from passes it."""

import pytest

from dpbench.algorithms.base import Diagnostic, RunResult
from dpbench.auditing import runs
from tests.auditing.cheats import FAILS, Honest, HonestOnSamples


@pytest.fixture
def audited(monkeypatch):
    def run(cls, **options):
        monkeypatch.setattr("dpbench.auditing.runs.algorithms.resolve", lambda name: (cls(), {}))
        return runs.audit("mine", 1.0, **{"near": False, "search": False} | options)

    return run


@pytest.mark.thorough_for("HonestOnSamples")
@pytest.mark.parametrize("cls", [Honest, HonestOnSamples], ids=lambda cls: cls.__name__)
def test_the_honest_ones_pass(audited, cls):
    done = audited(cls)
    assert done.passed, done
    assert done.moved["gradient"] == pytest.approx(1.0)


@pytest.mark.thorough_for("BehindADecoy*")  # others are in test_cheats_elsewhere.py
@pytest.mark.parametrize("cls", FAILS, ids=lambda cls: cls.__name__)
def test_every_cheat_fails_the_audit_in_one_line_that_says_what_it_does(audited, cls):
    done = audited(cls)
    assert not done.passed
    assert FAILS[cls] in done.defect
    assert "\n" not in done.defect
    assert bool(done.defect) or any(not verdict.passed for verdict in done.verdicts.values())


def test_the_cheats_are_many_and_each_does_one_thing():
    assert len(FAILS) >= 40
    assert len({cls.__doc__ for cls in FAILS}) == len(FAILS)


@pytest.mark.parametrize("of_data", [True, False])
def test_a_number_that_is_declared_to_depend_on_the_data_may_and_no_other(audited, of_data):
    class Diagnosed(Honest):
        diagnostics = (Diagnostic("mean", "of the labels", of_data=of_data),)

        def end(self, problem, W):
            return RunResult(W, columns={"mean": [float(problem.y.mean())] * len(W)})

    assert audited(Diagnosed, tests=False).passed == of_data
