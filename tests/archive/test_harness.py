"""Code of an archive in the sandbox: what comes back, how it ends, and what it can reach."""

import time

import msgspec
import numpy as np
import pytest

from dpbench.archive import harness
from dpbench.serving import sandbox

INSIDE = """
import os, socket
seen = []
try:
    socket.create_connection(("127.0.0.1", 9), timeout=1)
except OSError as error:
    seen.append(type(error).__name__)
seen.append(sorted(set(os.environ) & {"SECRET", "HOME"}))
seen.append(os.path.exists("{outside}"))
try:
    open("method.py", "a")
except OSError as error:
    seen.append(type(error).__name__)
print('{"task": 1}')
raise RuntimeError(repr(seen))
"""


def given(folder, code):
    """A folder with one task for the class X of `code`."""
    folder.mkdir()
    (folder / "method.py").write_text(code + "\nclass X: pass\n")
    np.savez(folder / "a.npz", X=np.eye(3), y=np.array([1.0, -1, 1]), start=np.zeros((1, 3)))
    task = harness.Task(task=7, data="a.npz", loss="logistic", l1=0.0, l2=0.0, epsilon=1.0, delta=1e-6,
                        accounting="tight", relation="replace-one", keys=["a"])  # fmt: skip
    (folder / "tasks.json").write_bytes(msgspec.json.encode(harness.Tasks("X", [task])))
    return folder


def test_the_sandbox_has_no_network_no_environment_and_nothing_to_write(tmp_path, monkeypatch):
    if sandbox.at_hand() is None:
        pytest.skip("bubblewrap is not installed, or does not work here")
    monkeypatch.setenv("SECRET", "told")
    outside = tmp_path / "outside"
    outside.write_text("x")
    monkeypatch.syspath_prepend(tmp_path)  # as the folder is from which python -m dpbench is called
    folder = given(tmp_path / "given", INSIDE.replace("{outside}", str(outside)))
    (frame,) = harness.frames(folder, sandbox.Limits(60, 120))
    assert frame.task == 7
    assert "'OSError', ['HOME'], False, 'OSError'" in frame.error.replace("ConnectionRefusedError", "OSError")


BUBBLEWRAP = """#!/bin/sh
while :; do
  case "$1" in
    --setenv) export "$2=$3"; shift 3;;
    --ro-bind) [ "$3" = /tmp/given ] && cd "$2"; shift 3;;
    --ro-bind-try) shift 3;;
    --proc|--dev|--tmpfs|--size|--remount-ro|--chdir|--cap-drop) shift 2;;
    --*) shift;;
    *) break;;
  esac
done
"""


@pytest.fixture
def instead_of_bubblewrap(tmp_path, monkeypatch):
    """Write the end of a script that reads bubblewrap's options and runs the command without a sandbox."""

    def write(end):
        (tmp_path / "bwrap").write_text(BUBBLEWRAP + end)
        (tmp_path / "bwrap").chmod(0o755)
        sandbox.at_hand.cache_clear()

    monkeypatch.setattr(sandbox.shutil, "which", lambda name: str(tmp_path / "bwrap"))
    yield write
    sandbox.at_hand.cache_clear()


def test_frames_come_over_a_descriptor_and_nothing_that_is_printed_is_read(
    tmp_path, monkeypatch, instead_of_bubblewrap
):
    instead_of_bubblewrap('exec "$@"')
    monkeypatch.setenv("SECRET", "told")
    code = "import os\nprint('x' * 70_000)\nos.system('echo forged')\nraise RuntimeError(os.environ.get('SECRET'))"
    (frame,) = harness.frames(given(tmp_path / "given", code), sandbox.Limits(60, 120))
    assert frame.task == 7
    assert frame.error.endswith("RuntimeError: None")


def test_what_hangs_is_ended_and_what_does_not_work_is_no_sandbox(tmp_path, instead_of_bubblewrap):
    instead_of_bubblewrap('[ "$1" = true ] || exec sleep 60')
    began = time.monotonic()
    assert list(harness.frames(tmp_path, sandbox.Limits(1, 1))) == []
    assert time.monotonic() - began < 30
    instead_of_bubblewrap("exit 1")
    assert sandbox.at_hand() is None


def test_bubblewrap_shares_nothing_and_shows_no_folder_to_write(tmp_path):
    words = sandbox._bubblewrap("bwrap", tmp_path)
    assert {"--unshare-all", "--die-with-parent", "--new-session", "--clearenv"} <= set(words)
    assert words[words.index("--cap-drop") + 1] == "ALL"
    assert not {"--bind", "--bind-try", "--dev-bind", "--share-net", "--dev-bind-try"} & set(words)
    shown = [words[i + 1] for i, word in enumerate(words) if word.startswith("--ro-bind")]
    assert not {"/", "/etc", "/root", "/home", "/var", "/run"} & set(shown)
