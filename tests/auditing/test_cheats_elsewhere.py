"""Every cheat of `cheats_elsewhere` fails the audit by what it does, at a size or in a process where that shows."""

import sys
from pathlib import Path

import pytest

from dpbench import algorithms
from dpbench.auditing import clean, runs
from dpbench.auditing.transcript import Leak
from tests.auditing import cheats_elsewhere
from tests.auditing.cheats_elsewhere import APART, FAILS, HONEST, HonestOnSamples


def audited(cls, **options):
    """By the file, as a user has it: an own process finds the method there again."""
    return runs.audit(f"{cheats_elsewhere.__file__}:{cls.__name__}", 1.0, near=False, **options)


@pytest.mark.thorough
@pytest.mark.parametrize("cls", HONEST, ids=lambda cls: cls.__name__)
def test_the_honest_ones_pass(cls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = audited(cls)
    assert done.passed, done


@pytest.mark.thorough_for("WrongFromTwentyRows", "WrongBeyondThreeColumns", "OneNumberOfNoiseInLongRuns")
@pytest.mark.parametrize("cls", FAILS, ids=lambda cls: cls.__name__)
def test_every_cheat_fails_the_audit_by_what_it_does(cls):
    done = audited(cls, tests=not FAILS[cls])
    assert not done.passed
    assert FAILS[cls] in done.defect
    assert bool(done.defect) or any(not verdict.passed for verdict in done.verdicts.values())


def test_samples_that_all_runs_share_are_noticed():
    done = audited(cheats_elsewhere.OneSample, runs=2000, inspect=False)
    assert done.defect == "gradient: runs of other seeds have the same samples"
    assert audited(HonestOnSamples, runs=2000, inspect=False).passed


def in_processes(cls):
    return clean.told_apart(f"{cheats_elsewhere.__file__}:{cls.__name__}", 1.0, 0)


def test_every_place_outside_is_looked_at(monkeypatch):
    """Each place of one pair of processes by itself, where `told_apart` ends at the first that differs."""
    differ = []

    def compared(one, other):
        names = {**one, **other} if isinstance(one, dict) else {}
        parts = {Path(name).name for name in names if one.get(name) != other.get(name)}
        differ.append(parts or one != other)
        return ""

    monkeypatch.setattr(clean, "_different", compared)
    assert not in_processes(cheats_elsewhere.Everywhere)
    returned, calls, modules, _, output, error, files = differ
    assert (calls, output, error) == (True, False, True)
    assert returned == {f"W 71 (case {i})" for i in (1, 2, 3)}
    assert modules == {"numpy.answer", "cheats_elsewhere.InItsClass", "cheats_elsewhere.TheFirstRowItSaw"}
    assert files == {"model.txt", "model.db"}


@pytest.mark.parametrize(("other", "where"), [
    ({"W": "1"}, ""), ({"W": "2"}, "W"), ({"W": "1", "V": "1"}, "V"), ({}, "W"), (True, "one has more"),
])  # fmt: skip
def test_the_first_place_in_which_two_worlds_differ_is_named(monkeypatch, other, where):
    """Of two processes whose reports are these."""

    def ended(folder, asked):
        return {
            "beyond": [],
            "calls": False,
            "what is returned": {"W": "1"} if asked[-1] == 0 else other,
            "files": asked[-1],
        }

    monkeypatch.setattr(clean, "_ended", ended)
    what = f"what is returned: {where}" if where else "files: one has more"
    assert in_processes(cheats_elsewhere.Everywhere) == f"in processes of their own, two data sets differ in {what}"


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")  # of modules that other tests have loaded, whose attributes are looked at
def test_a_module_that_a_run_imports_is_to_be_imported_before():
    """joblib keeps a random name, so an honest method that imports it in its run failed without a word on why."""
    method = algorithms.get(f"{cheats_elsewhere.__file__}:HonestAndTalkative")
    told = clean._state(method, set(sys.modules) - {"json"})
    (late,) = [name for name in told if name.startswith("json.dumps")]
    assert late.endswith("import it, or what does, at the top of the file")
    assert "json.decoder.JSONDecoder" in told  # of a module that was there before


def test_a_world_that_ends_early_has_not_passed(tmp_path):
    with pytest.raises(Leak, match="ends before its runs do"):
        clean._ended(tmp_path / "one", [f"{cheats_elsewhere.__file__}:EndsEarly", "", 1.0, 0, 0])


def test_what_goes_beyond_its_process_is_heard(tmp_path):
    made = clean._ended(tmp_path / "one", [f"{cheats_elsewhere.__file__}:EverywhereElse", "", 1.0, 0, 0])
    assert set(made["beyond"]) == {
        "writes /dev/zero", "writes /dev/urandom", "starts another process (os.fork)", "starts another process",
        "starts a connection (socket.connect)",
    }  # fmt: skip


@pytest.mark.thorough_but("HonestAndTalkative")
@pytest.mark.parametrize("cls", [*HONEST[:2], *APART], ids=lambda cls: cls.__name__)
def test_a_process_of_its_own_tells_what_one_process_does_not(cls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    differ = in_processes(cls)
    assert APART.get(cls, "") in differ, differ
    assert bool(differ) == (cls in APART)


@pytest.mark.thorough
def test_what_differs_in_processes_of_their_own_is_a_defect_and_what_does_not_is_none(tmp_path, monkeypatch):
    """And what one process shows of the methods above is none."""
    monkeypatch.chdir(tmp_path)
    for words in ("two data sets differ in the files written", ""):
        monkeypatch.setattr(runs, "told_apart", lambda *given, words=words: words)
        done = audited(cheats_elsewhere.TheFirstRowItSaw, tests=False, clean=True, inspect=not words)
        assert (done.defect, done.passed) == (words, not words)


def test_what_a_function_keeps_in_its_closure_is_looked_at():
    def keeping(held):
        if not held:
            del held  # so that there is nothing in it yet
        return lambda: held

    assert len({repr(clean._outline(keeping(held), 2)) for held in (1, 2, 0)}) == 3
