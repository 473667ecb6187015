"""The sandbox: what bubblewrap is asked for, and, with a stand-in for it, how code in it starts, speaks and ends."""

import time
from pathlib import Path

import pytest

from dpbench.errors import UserError
from dpbench.serving import process, sandbox, wire

# Reads bubblewrap's options and runs the command in the environment and folder that they name, without a sandbox.
BUBBLEWRAP = """#!/bin/sh
while :; do
  case "$1" in
    --clearenv) for name in $(env | cut -d= -f1); do unset "$name"; done; shift;;
    --setenv) export "$2=$3"; shift 3;;
    --ro-bind) [ "$3" = /tmp/given ] && cd "$2"; shift 3;;
    --ro-bind-try) shift 3;;
    --proc|--dev|--tmpfs|--size|--remount-ro|--chdir|--cap-drop) shift 2;;
    --*) shift;;
    *) break;;
  esac
done
"""
LIMITS = sandbox.Limits(seconds=20, wall=20)


@pytest.fixture
def instead_of_bubblewrap(tmp_path, monkeypatch):
    """Write the end of the stand-in's script."""

    def write(end):
        (tmp_path / "bwrap").write_text(BUBBLEWRAP + end)
        (tmp_path / "bwrap").chmod(0o755)
        sandbox.at_hand.cache_clear()

    monkeypatch.setattr(sandbox.shutil, "which", lambda name: str(tmp_path / "bwrap"))
    yield write
    sandbox.at_hand.cache_clear()


def asked(source, limits=LIMITS):
    """What the process of a class Mine in this text says of it."""
    code = process.MethodCode("Mine", source.encode())
    return process.ask(code, wire.DescribeMethod(reference=code.called), wire.DescribedMethod, limits)


def test_code_has_no_environment_and_nothing_that_it_prints_is_read(monkeypatch, instead_of_bubblewrap):
    instead_of_bubblewrap('exec "$@"')
    assert process.isolation() == process.SERVED
    monkeypatch.setenv("SECRET", "told")
    shows = "import os\nprint('x' * 70_000)\nos.write(1, b'forged')\nraise RuntimeError(sorted(os.environ))"
    with pytest.raises(UserError, match="RuntimeError") as caught:
        asked(shows)
    assert "PYTHONPATH" in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_what_hangs_is_ended_and_what_does_not_work_is_no_sandbox(instead_of_bubblewrap):
    instead_of_bubblewrap('[ "$2" = -m ] || exec "$@"; exec sleep 60')
    began = time.monotonic()
    with pytest.raises(UserError, match="ended before"):
        asked("", sandbox.Limits(1, 1))
    assert time.monotonic() - began < 30
    # Without bubblewrap, and where it starts what it is asked to but no filter of calls works in it.
    for end in ("exit 1", 'case "$*" in *sandbox.py) exit 1;; esac; exec "$@"'):
        instead_of_bubblewrap(end)
        assert sandbox.at_hand() is None
        assert process.isolation() == process.OPEN


def test_every_limit_is_set_and_a_user_s_own_stays(monkeypatch):
    import resource

    set_to = {}
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: set_to.update({kind: limits}))
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (7, resource.RLIM_INFINITY))
    sandbox._limit(600)
    ours = {"CPU": 600, "AS": sandbox.MEMORY, "FSIZE": sandbox.WRITTEN, "CORE": 0, "NOFILE": sandbox.FILES}
    assert set_to == {getattr(resource, f"RLIMIT_{name}"): (most, most) for name, most in ours.items()}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (5, 5))
    sandbox._limit(600)
    assert set_to[resource.RLIMIT_CPU] == (5, 5)


def test_bubblewrap_shares_nothing_and_shows_no_folder_to_write(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)  # as the folder is from which python -m dpbench is called
    words = sandbox._bubblewrap("bwrap", Path("/given"))
    assert {"--unshare-all", "--die-with-parent", "--new-session", "--clearenv"} <= set(words)
    assert words[words.index("--cap-drop") + 1] == "ALL"
    assert not {"--bind", "--bind-try", "--dev-bind", "--share-net", "--dev-bind-try"} & set(words)
    # All that can be written is memory: it has a size, and the code no other folder.
    assert [words[i - 2 : i + 2] for i, word in enumerate(words) if word == "--tmpfs"] == [
        ["--size", str(sandbox.WRITTEN), "--tmpfs", where] for where in ("/tmp", "/dev/shm")
    ]
    shown = [words[i + 1] for i, word in enumerate(words) if word.startswith("--ro-bind")]
    assert not {"/", "/etc", "/root", "/home", "/var", "/run", str(tmp_path)} & set(shown)
