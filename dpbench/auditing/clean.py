"""Two worlds in a clean process each, and by what of the outside these processes can be told apart.

Releases are answered from a stream of their own, whatever the rows are (`Tape.answer`): all that a private method does
next follows from these answers, so two processes whose rows differ everywhere have to do the same. What is compared,
and what is not seen, is on docs/guides/audit.md.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import hashlib
import inspect
import json
import logging
import math
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import threading
import types
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from dpbench import algorithms
from dpbench.algorithms.base import Algorithm
from dpbench.auditing import transcript
from dpbench.auditing.neighbours import probes, replaced_everywhere
from dpbench.auditing.search import setups_of
from dpbench.auditing.transcript import Leak
from dpbench.auditing.worlds import INSPECTED, SPREAD, Setup, hides
from dpbench.run.execute import one_thread

SECONDS = 600
LARGEST = 2**24  # bytes of a file that are read
# Of the calls that Python reports to an audit hook, those that leave something outside of the process.
CALLS = ("os.", "shutil.", "socket.", "subprocess.", "sqlite3.", "ctypes.dlopen", "syslog.", "fcntl.", "mmap.",
         "signal.")  # fmt: skip
# Of these, calls after which more leaves than is heard.
BEYOND = {
    "another process": ("os.fork", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "subprocess."),
    "a connection": ("socket.bind", "socket.connect", "socket.send"),
}
READING = {"os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.getxattr", "os.listxattr"}
NEAR, FAR = 4, 1  # how deep the method's own modules and dpbench's are looked into, and how deep installed ones
ENTIRE, ARRAYS = (*transcript.PLAIN, float, complex), (np.ndarray, np.generic)  # whose outline is all that they hold
LATE = ", of a module that a run imports; import it, or what does, at the top of the file"
UNTOLD = ("__builtins__", "__spec__", "__loader__", "__cached__", "__weakref__", "path_importer_cache")


def told_apart(name: str, epsilon: float, seed: int, loss: str = "") -> str:
    """By what the processes of the two worlds of the method `name` differ, in words; "" where they do not.

    Leak where one of them does not come to an end. Arguments: as of `runs.audit`.
    """
    file, colon, cls = name.rpartition(":")
    name = f"{Path(file).resolve()}:{cls}" if colon and file.endswith(".py") else name
    with tempfile.TemporaryDirectory(prefix="dpbench-audit-") as folder, ThreadPoolExecutor(2) as both:
        one, other = both.map(lambda i: _ended(Path(folder) / str(i), [name, loss, epsilon, seed, i]), range(2))
    for done in [*one["beyond"], *other["beyond"]]:
        return f"in a process of its own it {done}, and what comes of that is not seen"
    for what in one:
        if where := _different(one[what], other[what]):
            return f"in processes of their own, two data sets differ in {what}: {where}"
    return ""


def _different(one: Any, other: Any) -> str:
    """Where two reports differ; "" where they are the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        return next((key for key in sorted({**one, **other}) if one.get(key) != other.get(key)), "")
    return "" if one == other else "one has more" if not isinstance(one, str) else one or str(other)


def _ended(folder: Path, asked: list[Any]) -> dict[str, Any]:
    """All that a world's process did, under what it is called in a message; Leak where it did not come to an end.

    It has a folder for its working directory, its home and its temporary files.
    """
    home, report = folder / "home", folder / "report"
    home.mkdir(parents=True)
    # The same hashes, and no compiled files that one world leaves for the other.
    fixed = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    modules = {"PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), *sys.path]))}
    environment = {**os.environ, **fixed, **dict.fromkeys(("HOME", "TMPDIR"), str(home)), **modules}
    command = [sys.executable, "-c", "import sys; from dpbench.auditing import clean; clean.main(*sys.argv[1:])"]
    command.append(json.dumps([*asked, str(report)]))
    try:
        done = subprocess.run(
            command, cwd=home, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise Leak(f"in a process of its own it does not end within {SECONDS} s") from None

    def shown(text: str) -> str:  # without the name of the folder, which no two processes share
        return text.replace(str(home), "~")

    # What could not be looked at has not passed.
    if not report.is_file():
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["without a word"]
        raise Leak(f"in a process of its own it ends before its runs do: {shown(last[0])[:200]}")
    streams = {"standard output": done.stdout, "standard error": done.stderr}
    words = {name: shown(text.decode(errors="backslashreplace")) for name, text in streams.items()}
    files = {str(each.relative_to(home)): _content(each) for each in home.rglob("*")}
    return {**json.loads(shown(report.read_text("utf-8"))), **words, "files": files}


def main(given: str) -> None:
    """The runs of one world, in this process; the report goes to a file, which is there only if they ended."""
    gc.set_threshold(100_000, 50, 50)  # outlines hold no cycle, for which the collector would look again and again
    name, loss, epsilon, seed, world, report = json.loads(given)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    algorithm, fixed = algorithms.resolve(name)
    setups, further, _ = setups_of(algorithm, fixed, epsilon, loss=loss)
    returned: dict[str, str] = {}
    before, known, children = _state(algorithm), set(sys.modules), _children()
    with one_thread(), _heard() as (made, beyond):
        # First and last the case in which every row differs: what is kept first or written last is of these.
        for i, setup in enumerate([*further, *setups, *further]):
            returned |= {f"{where} (case {i + 1})": told for where, told in _returned(setup, world, seed)}
        atexit._run_exitfuncs()  # noqa: SLF001  # they may write as well, and later nobody listens
        beyond += ["starts another process"] * (_children() > children)
    after = _state(algorithm, known)
    changed = {where: _digest(told) for where, told in after.items() if where not in before or before[where] != told}
    changed |= dict.fromkeys(before.keys() - after.keys(), "gone")
    told = {"what is returned": returned, "calls of the system": made, "modules": changed, "beyond": beyond}
    Path(report).write_text(json.dumps(told), "utf-8")


def _children() -> float:
    """How much memory the processes that this one made have asked for; of one that has not ended, no end of it.

    Some start without a call that Python reports.
    """
    with contextlib.suppress(ImportError, AttributeError):  # where a system has neither
        import resource

        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
            return math.inf
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    return 0.0


def _returned(setup: Setup, world: int, seed: int) -> Iterator[tuple[str, str]]:
    """What comes out of a run whose releases do not depend on the rows."""
    problem, start = setup.pair[:2][world], np.zeros((INSPECTED, setup.case.d))
    if not setup.case.steepest:
        pairs = probes(setup.algorithm, setup.case, setup.relation)
        # Nothing private follows from any row, so all may differ at once: whichever is read, it shows.
        problem = replaced_everywhere(pairs) if world else pairs[0].first
        start = np.random.default_rng(0).standard_normal(start.shape) * SPREAD
    run = setup.recorder(INSPECTED, seed, keyed=True)
    # Whatever the value is: any output of a release is a possible one.
    run.releases.answer = functools.partial(_answer, np.random.default_rng((seed, len("clean"))))
    try:
        came = setup.run(problem, run, start)
    except Leak as leak:
        yield "an exception", str(leak)
        return
    for i, fact in enumerate(came.visible if hides(run) else came.facts):
        yield f"{fact.where} {i}", _digest(fact.kind.__qualname__, fact.content)


def _answer(stream: np.random.Generator, kind: str, value: np.ndarray, scale: Any) -> np.ndarray:
    if kind.startswith("argmax"):
        return stream.integers(value.shape[1], size=len(value))
    if kind == "threshold":
        return stream.random(len(value)) < 0.1
    if kind == "depth":
        return np.zeros((len(value), value.shape[-1]))
    noise = stream.standard_normal(value.shape)
    noise = noise + np.swapaxes(noise, 1, 2) if kind in ("symmetric", "isometric") else noise
    return noise * transcript.column(scale, value.ndim)


@contextlib.contextmanager
def _heard() -> Iterator[tuple[list[str], list[str]]]:
    """Calls of the operating system that leave something outside, as Python reports them, while it is entered.

    And, in words, those of which more may come than is seen: other processes, and files elsewhere than in the working
    directory, which both worlds may write at a time.
    """
    made, beyond, home, on = list[str](), list[str](), Path.cwd(), [True]

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if not on or not (event == "open" or event.startswith(CALLS)) or _keeps_loops():
            return
        if event == "open":
            name, _, flags = arguments
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and not isinstance(name, int):
                path = Path(os.path.realpath(os.fsdecode(name)))
                if not path.is_relative_to(home) and str(path) != os.devnull:
                    beyond.append(f"writes {path}")
        elif event not in READING:
            beyond.extend(f"starts {what} ({event})" for what, calls in BEYOND.items() if event.startswith(calls))
            made.append(f"{event} {[_outline(each, 1) for each in arguments]}")

    sys.addaudithook(hear)  # for the rest of the process: hooks cannot be taken away
    yield made, beyond
    on.clear()


def _keeps_loops() -> bool:
    """Whether this call is Numba's, which keeps the loops that it compiled in files of random names."""
    frame = inspect.currentframe()
    while frame and frame.f_globals.get("__name__") != "numba.core.caching":
        frame = frame.f_back
    return frame is not None


def _state(algorithm: Algorithm, known: set[str] | None = None) -> dict[str, Any]:
    """Where → an outline of what modules, their classes and the settings of the process hold.

    known: modules that there were before; of others that are installed, the plain attributes alone.
    """
    settings = {
        "environment": dict(os.environ),
        "random numbers": (random.getstate(), np.random.get_state()),  # noqa: NPY002
        "settings of numpy": (np.geterr(), np.get_printoptions()),
        "logging": (logging.root.level, list(logging.root.handlers), sorted(logging.root.manager.loggerDict)),
        "folder and arguments": (os.getcwd(), sys.argv),  # which are of each world its own, so beside nothing else
        "the rest": (list(warnings.filters), sys.getrecursionlimit(), threading.active_count()),
    }
    outlines = {what: _outline(value, NEAR) for what, value in settings.items()}
    spaces = {name: vars(module) for name, module in list(sys.modules.items()) if isinstance(module, types.ModuleType)}
    # A class of a file is in no module that Python knows by name; what its functions see is one all the same.
    for cls in type(algorithm).__mro__:
        for each in vars(cls).values():
            if isinstance(each, types.FunctionType) and each.__module__ not in spaces:
                spaces[each.__module__] = each.__globals__
    standard = sysconfig.get_paths()["stdlib"]
    for name, space in spaces.items():
        file, depth, late = str(space.get("__file__") or standard), NEAR, ""
        if file.startswith(standard) or "-packages" in file:  # site-packages, dist-packages
            # What is imported in a run is set up then, with addresses of its own in every process.
            depth, late = (FAR, "") if known is None or name in known else (0, LATE)
        for attribute, value in list(space.items()):
            if attribute not in UNTOLD:
                outlines[f"{name}.{attribute}{late}"] = _outline(value, depth)
    return outlines


def _outline(value: Any, depth: int) -> Any:
    """What `value` holds down to a depth, without addresses."""
    kind = type(value).__qualname__
    if isinstance(value, ENTIRE):
        return kind, value
    if isinstance(value, ARRAYS) and not value.dtype.hasobject:
        return kind, str(value.dtype), value.shape, np.asarray(value).tobytes()
    if not depth:
        return kind, getattr(value, "__qualname__", "")
    if isinstance(value, types.FunctionType):
        cells = [each.cell_contents for each in value.__closure__ or () if each != types.CellType()]
        held: Any = [value.__dict__, value.__defaults__, value.__kwdefaults__, cells]
    elif type(value) in (dict, list, tuple, set, frozenset, deque):
        held = value
    else:
        held = {} if isinstance(value, types.ModuleType) else getattr(value, "__dict__", {})
    if isinstance(held, dict | types.MappingProxyType):
        inside = [(k, v) for k, v in list(held.items()) if not (isinstance(k, str) and k in UNTOLD)]
        return kind, [(_outline(k, 1), _outline(v, depth - 1)) for k, v in inside]
    parts = [_outline(each, depth - 1) for each in (held if isinstance(held, Iterable) else ())]
    return kind, sorted(parts, key=repr) if isinstance(held, set | frozenset) else parts


def _content(path: Path) -> str:
    """A digest of a file, or what it is beside one."""
    if not path.is_file():
        return "folder" if path.is_dir() else "gone"
    with path.open("rb") as file:
        return _digest(file.read(LARGEST))


def _digest(*parts: Any) -> str:
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
