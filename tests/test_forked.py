"""Values that a fork computes, and standings that are counted in one beside this process."""

import os
import signal

import pytest

import dpbench
from dpbench.errors import UserError
from dpbench.experiments import rows
from dpbench.forked import Died, Forked


def test_a_value_comes_from_another_process():
    one, other = Forked(os.getpid), Forked(os.getpid)
    assert len({one.value(), other.value(), os.getpid()}) == 3


def test_what_has_no_value_died():
    with pytest.raises(Died) as raised:
        Forked(lambda: 1 / 0).value()
    assert raised.value.signal == 0
    with pytest.raises(Died) as raised:
        Forked(lambda: os.kill(os.getpid(), signal.SIGKILL)).value()
    assert raised.value.signal == signal.SIGKILL


def test_standings_of_two_processes_are_those_of_one(tmp_path, monkeypatch):
    monkeypatch.setattr(rows.experiments, "names", lambda: ("accelerated", "zeroth_order"))
    alone = dpbench.standings(results=tmp_path)
    assert dpbench.standings(results=tmp_path, fork=True) == alone
    assert {one.artefact.partition("/")[0] for one in alone} == {"accelerated", "zeroth_order"}


def test_what_fails_in_the_fork_is_counted_here(tmp_path, monkeypatch):
    here, known = os.getpid(), rows.standing

    def elsewhere(one, profile, store):
        if os.getpid() != here:
            raise MemoryError
        return known(one, profile, store)

    monkeypatch.setattr(rows.experiments, "names", lambda: ("accelerated", "zeroth_order"))
    monkeypatch.setattr(rows, "standing", elsewhere)
    found = dpbench.standings(results=tmp_path, fork=True)
    monkeypatch.undo()
    monkeypatch.setattr(rows.experiments, "names", lambda: ("accelerated", "zeroth_order"))
    assert found == dpbench.standings(results=tmp_path)

    def nowhere(one, profile, store):
        raise UserError("no")

    monkeypatch.setattr(rows, "standing", nowhere)
    with pytest.raises(UserError, match="no"):
        dpbench.standings(results=tmp_path, fork=True)
