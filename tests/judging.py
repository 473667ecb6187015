"""A pytest plugin that judges mistakes, each in a fork of the one process that has imported and collected the tests.

A mistake within a function is put into the function that is loaded already, so that to judge it costs what its tests
cost, and neither imports nor a collection of tests. It stands in the file too, for the processes that tests start.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

WORK, DONE = "DPBENCH_MISTAKES", "DPBENCH_JUDGED"  # a file of mistakes, and the pipe for what became of them
ASKED = "DPBENCH_ASKED"  # the pipe that asks for the next: who looks at a word may meanwhile use the copy
NOTICED, SURVIVES, NOWHERE = "noticed", "survives", "nowhere"  # NOWHERE: it is loaded, and in no function
LIMIT = 120  # processor seconds of the tests of a mistake; by the clock ten times as many


class Mistake(NamedTuple):
    """The text of `dpbench/file` in which it is, and the tests, by pytest's names, that judge it in this order."""

    file: str
    mutated: str
    tests: list[str]


def judged(copy: Path, mistakes: list[Mistake], marks: str) -> Iterator[str]:
    """NOTICED, SURVIVES or NOWHERE, for each mistake in turn; `copy` is a copy of the tree, and is left as it was."""
    files = sorted({test.partition("::")[0] for one in mistakes for test in one.tests})
    (copy / "mistakes.pickle").write_bytes(pickle.dumps([tuple(one) for one in mistakes]))
    (words, end), (asked, asks) = os.pipe(), os.pipe()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.judging", "-p", "no:cacheprovider", "-m", marks]
    work = {WORK: str(copy / "mistakes.pickle"), DONE: str(end), ASKED: str(asked)}
    with subprocess.Popen([*command, *(files or ["--version"])], cwd=copy, env=environment(copy) | work,
                          pass_fds=[end, asked], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL):  # fmt: skip
        os.close(end)
        os.close(asked)
        with os.fdopen(words) as lines, os.fdopen(asks, "wb", buffering=0) as ask:
            for one in mistakes:
                with contextlib.suppress(BrokenPipeError):
                    ask.write(b".")
                yield lines.readline().strip() or (NOWHERE if one.tests else SURVIVES)


def environment(copy: Path) -> dict[str, str]:
    """That of tests of a copy of the tree; what they compile is kept there, for the many processes that they start."""
    return {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
        "PYTHONPATH": str(copy)
    }


def pytest_runtestloop(session: Any) -> bool | None:
    """Instead of running what was collected, judge the mistakes of the file that WORK names."""
    if WORK not in os.environ:
        return None
    items, root, broken = {item.nodeid: item for item in session.items}, Path.cwd(), set[str]()
    for number, (file, mutated, tests) in enumerate(pickle.loads(Path(os.environ[WORK]).read_bytes()), 1):
        if not os.read(int(os.environ[ASKED]), 1):
            break
        path = root / "dpbench" / file
        whole, times = path.read_text(encoding="utf-8"), path.stat()
        word, left = "", [items[test] for test in tests if test in items and test not in broken]
        while not word:
            path.write_text(mutated, encoding="utf-8")
            # To the processes of tests a compiled file is known by its size and second, which two mistakes can share.
            os.utime(path, (times.st_mtime - number,) * 2)
            try:
                status, ran = _forked(session, path, whole, mutated, left)
            finally:
                path.write_text(whole, encoding="utf-8")
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            if status == 1 and _forked(session, path, whole, whole, [left[ran]])[0] == 1:  # without the mistake as well
                broken.add(left[ran].nodeid)
                left = left[ran + 1 :]
            else:
                word = {0: SURVIVES, 1: NOTICED}.get(status, NOWHERE)
        os.write(int(os.environ[DONE]), f"{word}\n".encode())
    return True


def _forked(session: Any, path: Path, whole: str, mutated: str, chosen: list[Any]) -> tuple[int, int]:
    """(0 where all tests pass with the mistake, 1 where one fails or takes too long, else 2; how many passed)."""
    passed, end = os.pipe()
    child = os.fork()
    if not child:
        status = 2
        try:
            status = _tried(session, path, whole, mutated, chosen, end)
        finally:
            os._exit(status)
    os.close(end)
    status = os.waitpid(child, 0)[1]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # processes that its tests left
    os.set_blocking(passed, False)
    with open(passed, "rb") as file:
        ran = len(file.read() or b"")
    late = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGXCPU)
    return (1 if late else os.waitstatus_to_exitcode(status)), ran


def _tried(session: Any, path: Path, whole: str, mutated: str, chosen: list[Any], passed: int) -> int:
    os.setsid()
    signal.alarm(10 * LIMIT)
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 10))
    loaded = {getattr(module, "__file__", None) for module in sys.modules.values()}
    if whole != mutated and not put(path, whole, mutated) and str(path) in loaded:
        return 2
    session.testsfailed = 0  # of files that cannot be collected
    for item, following in zip(chosen, [*chosen[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
        os.write(passed, b".")
    return 0


def put(path: Path, whole: str, mutated: str) -> int:
    """How many loaded functions of a file have got the code that they have in its mutated text."""
    codes = (list(_functions(compile(text, str(path), "exec", dont_inherit=True))) for text in (whole, mutated))
    changed = {old: new for old, new in zip(*codes, strict=True) if old != new}
    gc.unfreeze()  # what is frozen is not listed
    loaded = [one for one in gc.get_objects() if type(one) is types.FunctionType and one.__code__ in changed]
    here = [one for one in loaded if Path(one.__code__.co_filename).resolve() == path]
    for one in here:
        one.__code__ = changed[one.__code__]
    return len(here)


def _functions(code: types.CodeType) -> Iterator[types.CodeType]:
    """The codes of all functions that are within no other; a class's body is none."""
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from [one] if one.co_flags & 1 else _functions(one)  # 1: its variables are local
