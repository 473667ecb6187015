"""The sandbox: what bubblewrap is asked for, and, with a stand-in for it, how code in it starts, speaks and ends."""

import errno
import platform
import subprocess
import sys
import time
from pathlib import Path

import msgspec
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


@pytest.mark.parametrize(("kind", "within", "beyond"), [
    (wire.WORD, ["", "x" * 80, "a b"], ["x" * 81, "a\nb", "\u202e"]),
    (wire.TEXT, ["", "x" * 400], ["x" * 401, "a\tb"]),
    (wire.NAME, ["ab", "a" * 40, "dp-gd-2"], ["a", "a" * 41, "Dp", "2d", "dp-", "dp--gd", "dp_gd", "dp-gd\n"]),
    (wire.COUNT, [1, 10**8], [0, 10**8 + 1]), (wire.INDEX, [0, 2**40], [-1, 2**40 + 1]),
    (wire.SETTING, ["T", "x_1", "a" * 80], ["a" * 81, "1a", "_a", "", "a-b", "T\n"]),
    (wire.POSITIVE, [2.0**-900, 2.0**900], [0.0, 2.0**-901, 2.0**901, float("inf"), float("nan"), -1.0]),
    (wire.WEIGHT, [0.0, 2.0**900], [-1e-9, 2.0**901, float("nan")]),
])  # fmt: skip
def test_words_and_numbers_that_are_sent_are_of_these_ranges(kind, within, beyond):
    assert [msgspec.convert(one, kind) for one in within] == within
    for one in beyond:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(one, kind)


# As the kernel's tables have them (asm/unistd_64.h, asm-generic/unistd.h): x86_64, aarch64.
NUMBERS = {
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281), "clone3": (435, 435),
    "unshare": (272, 97), "io_uring_setup": (425, 425), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
    "flock": (73, 32), "memfd_create": (319, 279), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
}  # fmt: skip
TRIED = """
import ctypes, sys
from dpbench.serving import sandbox
assert sandbox.alone()
libc = ctypes.CDLL(None, use_errno=True)
for number in map(int, sys.argv[1:]):
    came = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
    print(number, ctypes.get_errno() if came == -1 else 0)
"""


@pytest.mark.skipif(platform.machine() not in sandbox.CALLS, reason="system calls are filtered on two machines")
def test_calls_that_leave_the_process_are_refused_and_others_are_not():
    """At arguments that none of them takes: what passes the filter fails for another reason."""
    for place, (machine, clone) in enumerate({"x86_64": 56, "aarch64": 220}.items()):
        assert sandbox.CALLS[machine][1] == clone
        assert {*sandbox.CALLS[machine][2]} == {each[place] for each in NUMBERS.values()} - {None}
    mine = [*sandbox.CALLS].index(platform.machine())
    refused = {each[mine]: name for name, each in NUMBERS.items() if each[mine] is not None}
    clone, close, other_set = sandbox.CALLS[platform.machine()][1], (3, 57)[mine], 0x40000000
    command = [sys.executable, "-c", TRIED, *map(str, [*refused, clone, other_set, close])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found = {int(number): int(error) for number, error in map(str.split, done.stdout.splitlines())}
    falls_back = {"clone3", "memfd_create"}
    expected = {number: errno.ENOSYS if name in falls_back else errno.EPERM for number, name in refused.items()}
    assert found == expected | {clone: found[clone], other_set: errno.EPERM, close: errno.EBADF}


def test_a_process_without_a_filter_ends_with_an_error():
    """By its exit code alone is a sandbox found to work or not."""
    unknown = "import platform, runpy, sys\nplatform.machine = lambda: 'riscv64'\n"
    command = [sys.executable, "-c", f"{unknown}runpy.run_path(sys.argv[1], run_name='__main__')", sandbox.__file__]
    assert subprocess.run(command, timeout=60).returncode == 1
