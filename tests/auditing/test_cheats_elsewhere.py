"""Every cheat of `cheats_elsewhere` fails the audit by what it does, at a size or in a process where that shows."""

import pytest

from dpbench.auditing import runs
from tests.auditing import cheats_elsewhere
from tests.auditing.cheats_elsewhere import APART, FAILS, HONEST


def audited(cls, **options):
    """By the file, as a user has it: an own process finds the method there again."""
    return runs.audit(f"{cheats_elsewhere.__file__}:{cls.__name__}", 1.0, near=False, **options)


@pytest.mark.parametrize("cls", HONEST, ids=lambda cls: cls.__name__)
def test_the_honest_ones_pass(cls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = audited(cls)
    assert done.passed, done


@pytest.mark.parametrize("cls", FAILS, ids=lambda cls: cls.__name__)
def test_every_cheat_fails_the_audit_by_what_it_does(cls):
    done = audited(cls, tests=not FAILS[cls])
    assert not done.passed
    assert FAILS[cls] in done.defect
    assert bool(done.defect) or any(not verdict.passed for verdict in done.verdicts.values())


@pytest.mark.thorough_for("HonestBehindADecoy", "InAFile", "OnStandardError", "InAModule", "InItsClass", "InThe*")
@pytest.mark.parametrize("cls", [*HONEST[:2], *APART], ids=lambda cls: cls.__name__)
def test_a_process_of_its_own_tells_what_one_process_does_not(cls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = audited(cls, tests=False, clean=True)
    assert APART.get(cls, "") in done.defect, done.defect
    assert bool(done.defect) == (cls in APART)
