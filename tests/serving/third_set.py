"""Methods of a third set of attacks, by somebody who did not write the server: what they try stands in a line each."""

import atexit
import ctypes
import gc
import os
import platform
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

from dpbench.algorithms.base import BaseSettings, Count
from dpbench.serving import wire
from tests.serving.strangers import Honest


class Complex(Honest):
    """Returns complex iterates, whose second half might carry more."""

    def taken(self, problem, W, mechanisms):
        return 1j


class Objects(Honest):
    """Returns an array of objects that compute when they are looked at."""

    def run(self, problem, W, mechanisms, settings, trace):
        super().run(problem, W, mechanisms, settings, trace)
        return np.array([[object()] * problem.d])


class Structured(Honest):
    """Returns records for numbers."""

    def run(self, problem, W, mechanisms, settings, trace):
        super().run(problem, W, mechanisms, settings, trace)
        return np.zeros((1, problem.d), dtype=[("w", float), ("row", float)])


class Nothing(Honest):
    """Returns None once it has its replies."""

    def run(self, problem, W, mechanisms, settings, trace):
        super().run(problem, W, mechanisms, settings, trace)


class Exits(Honest):
    """Leaves by SystemExit, which no `except Exception` sees."""

    def taken(self, problem, W, mechanisms):
        raise SystemExit(0)


class Searches(Honest):
    """Looks for the rows among all objects of its process."""

    def taken(self, problem, W, mechanisms):
        found = [one for one in gc.get_objects() if type(one).__name__ == "ExactProblem"]
        return found[0].X[0]


class Unpacks(Honest):
    """Calls what a handle would compute, under its private name."""

    def taken(self, problem, W, mechanisms):
        return problem.gradient(W)._integers.integers


class OfOtherModels(Honest):
    """Puts two models into one recipe of a sum."""

    def taken(self, problem, W, mechanisms):
        both = problem.gradient_sum(np.vstack([W, W + 1]))
        return mechanisms.gaussian(both, sensitivity=1.0, rho=0.01, label="gradient")[0]


class SignBits(Honest):
    """Divides a sum by a negative number, to turn its distance."""

    def taken(self, problem, W, mechanisms):
        return mechanisms.gaussian(problem.gradient(W) / -3.0, sensitivity=1e-9, rho=0.01, label="gradient")


class InExcess(Honest):
    """Tells by failing: another release than planned is refused, and so ends the run for all tables alike."""

    def taken(self, problem, W, mechanisms):
        if W[0, 0] > -1e9:
            mechanisms.gaussian(problem.gradient(W), sensitivity=1.0, rho=0.01, label="another")
        return 0.0


class Replanned(Honest):
    """Plans once more after what it was told."""

    def taken(self, problem, W, mechanisms):
        mechanisms.releases.server.ask(wire.PlanRequest(entries=[]))
        return 0.0


class Kept(Honest):
    """Keeps its first run in the class, for the next one: each run is a process of its own."""

    seen = 0

    def taken(self, problem, W, mechanisms):
        Kept.seen += 1
        return float(Kept.seen - 1)


class SeedOfTime(Honest):
    """Adds noise by a seed of the clock."""

    def taken(self, problem, W, mechanisms):
        return np.random.default_rng(time.time_ns()).normal()


class Hooked(Honest):
    """Hooks imports and its end, to write into the pipe when the run is over."""

    def taken(self, problem, W, mechanisms):
        sys.meta_path.insert(0, type("Hook", (), {"find_spec": staticmethod(lambda *_: None)}))
        atexit.register(lambda: [os.write(fd, b"\x00" * 64) for fd in range(3, 20)])
        return 0.0


class Descriptors(Honest):
    """Looks for descriptors beside its two pipes, and for words of the receiver in its environment."""

    def taken(self, problem, W, mechanisms):
        open_ = {fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2 and Path(f"/proc/self/fd/{fd}").exists()}
        pipes = {fd for fd in open_ if os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:")}
        odd = {name for name in os.environ if name.startswith(("DPBENCH", "PYTEST"))} - {"DPBENCH_DATA"}
        if len(pipes) > 2 or odd:
            raise RuntimeError(f"found {pipes} {odd}")
        return 0.0


class Threads(Honest):
    """Leaves threads that never end."""

    def taken(self, problem, W, mechanisms):
        for _ in range(8):
            threading.Thread(target=time.sleep, args=(600,), daemon=False).start()
        return 0.0


class Stopped(Honest):
    """Stops itself by a signal, and so holds the receiver."""

    def taken(self, problem, W, mechanisms):
        os.kill(os.getpid(), signal.SIGSTOP)
        return 0.0


class Sparse(Honest):
    """A file of a terabyte without a block."""

    def taken(self, problem, W, mechanisms):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with open("/tmp/sparse", "wb") as file:
            try:
                file.truncate(1 << 40)
            except OSError:
                return 0.0
        raise RuntimeError("a terabyte")


PARENT = os.getppid()
CALLS = {  # x86_64, aarch64, arguments
    "a namespace, with mounts of any size": (272, 97, 0x10000000 | 0x20000),
    "a ring that makes calls for it": (425, 425, 4, ctypes.create_string_buffer(200)),
    "a key of the session, which the next run finds": (248, 217, b"user", b"left", b"x", ctypes.c_long(1), -3),
    "the keyring that all runs of a login share": (250, 219, 0, -3, 0),
    "memory that counts for no process": (29, 194, 0, ctypes.c_long(1 << 20), 0o1600),
    "a queue of messages": (68, 186, 0, 0o1600),
    "semaphores": (64, 190, 0, 1, 0o1600),
    "a queue by name": (240, 180, b"left", 0o102, 0o600, 0),
    "a file without a folder": (319, 279, b"left", 0),
    "a lock on a file that all runs read": (73, 32, 0, 6),
    "a signal to the receiver": (62, 129, PARENT, 0),
    "a signal to a thread of the receiver": (200, 130, PARENT, 0),
    "a signal to that thread, of that process": (234, 131, PARENT, PARENT, 0),
    "a handle of the receiver": (434, 434, PARENT, 0),
    "the receiver's memory": (310, 270, PARENT, 0, 0, 0, 0, 0),
    "a change of the receiver's memory": (311, 271, PARENT, 0, 0, 0, 0, 0),
    "a debugger": (101, 117, 0, 0, 0, 0),
}


class Kernel(Honest):
    """Leaves something with the kernel, where the next run, or one beside it, would find it."""

    def taken(self, problem, W, mechanisms):
        call = ctypes.CDLL(None, use_errno=True).syscall
        place = {"x86_64": 0, "aarch64": 1}[platform.machine()]
        os.dup2(os.open(os.__file__, os.O_RDONLY), 0)  # what the lock is on
        made = [what for what, given in CALLS.items() if call(given[place], *given[2:]) >= 0]
        if made:
            raise RuntimeError("; ".join(made))
        return 0.0


# Controls: honest, and unusual


class Narrow(Honest):
    """Returns float32."""

    def run(self, problem, W, mechanisms, settings, trace):
        return super().run(problem, W, mechanisms, settings, trace).astype(np.float32)


class BigEndian(Honest):
    """Returns numbers of the other byte order, as a view from behind."""

    def run(self, problem, W, mechanisms, settings, trace):
        return super().run(problem, W, mechanisms, settings, trace).astype(">f8")[:, ::-1]


class Wordy(Honest):
    """Prints, warns and logs."""

    def taken(self, problem, W, mechanisms):
        print("x" * 10_000, file=sys.stderr)
        return 0.0


class Once(Honest):
    """One step."""

    class Settings(BaseSettings, frozen=True):
        T: Count = 1


class Averaged(Honest):
    """Returns the mean of its iterates, and clips it."""

    def run(self, problem, W, mechanisms, settings, trace):
        found = [W := W - self.gradient(problem, W, mechanisms, settings) for _ in range(settings.T)]
        return np.clip(np.mean(found, axis=0), -1, 1)


class Fewer(Honest):
    """Stops before its plan is used up."""

    def run(self, problem, W, mechanisms, settings, trace):
        return W - self.gradient(problem, W, mechanisms, settings)


class Scaled(Honest):
    """Scales a sum by a public number, and its sensitivity with it."""

    def gradient(self, problem, W, mechanisms, settings):
        return mechanisms.gaussian(
            problem.gradient(W) * 3.0, sensitivity=3 * problem.lipschitz / problem.n,
            rho=self.rho(mechanisms, settings), label="gradient",
        ) / 3  # fmt: skip


class Careful(Honest):
    """Declares twice the sensitivity, and pays with noise."""

    def gradient(self, problem, W, mechanisms, settings):
        return mechanisms.gaussian(
            problem.gradient(W),
            sensitivity=2 * problem.lipschitz / problem.n,
            rho=self.rho(mechanisms, settings),
            label="gradient",
        )
