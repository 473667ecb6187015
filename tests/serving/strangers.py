"""Methods that a stranger might send: honest ones, and ones that look for the rows, the clock or another way out."""

import contextlib
import os
import random
import socket
import time
from pathlib import Path

import msgspec
import numpy as np

import dpbench
from dpbench.algorithms.base import Algorithm, BaseSettings, Count, Disclosure, Needs
from dpbench.algorithms.library import LibrarySolver
from dpbench.privacy.ledger import at_rho


class Honest(Algorithm):
    """Gradient steps, within its plan."""

    name = "honest-steps"
    needs = Needs(lipschitz=True, smooth=True, regularisers=("l2",))
    discloses = (Disclosure("gradient", "the gradient", add_remove="L₀/n"),)

    class Settings(BaseSettings, frozen=True):
        T: Count = 5

    def rho(self, mechanisms, settings):
        return mechanisms.budget.rho / settings.T

    def plan(self, problem, mechanisms, settings):
        mechanisms.plan("gradient", at_rho(self.rho(mechanisms, settings)), settings.T)

    def gradient(self, problem, W, mechanisms, settings):
        return mechanisms.gaussian(
            problem.gradient(W), sensitivity=problem.lipschitz / problem.n, rho=self.rho(mechanisms, settings),
            label="gradient",
        )  # fmt: skip

    def run(self, problem, W, mechanisms, settings, trace):
        for _ in range(settings.T):
            W = W - self.gradient(problem, W, mechanisms, settings)
        return W + self.taken(problem, W, mechanisms)

    def taken(self, problem, W, mechanisms):
        """What it adds beside the releases."""
        return 0.0


class OnePass(Honest):
    """Each row in one block: five releases at the price of one."""

    name = "one-pass"

    def plan(self, problem, mechanisms, settings):
        mechanisms.plan("gradient", at_rho(mechanisms.budget.rho), 1)

    def run(self, problem, W, mechanisms, settings, trace):
        rows, z = mechanisms.single_pass(problem.n, "gradient"), at_rho(mechanisms.budget.rho).noise_multiplier
        for _ in range(settings.T):
            gradient = problem.data_gradient(W, rows.take(8)[0])
            W = W - rows.gaussian(gradient, sensitivity=problem.lipschitz / 8, noise_multiplier=z)
        return W


class SymmetricPass(OnePass):
    """Asks a pass for noise that a served one does not draw, and would get another."""

    name = "symmetric-pass"

    def run(self, problem, W, mechanisms, settings, trace):
        rows, z = mechanisms.single_pass(problem.n, "gradient"), at_rho(mechanisms.budget.rho).noise_multiplier
        gradient = problem.data_gradient(W, rows.take(8)[0])
        return W - rows.gaussian(gradient, sensitivity=problem.lipschitz / 8, noise_multiplier=z, symmetric=True)


class TwoPasses(OnePass):
    """Begins anew where the rows are used up."""

    name = "two-passes"

    def run(self, problem, W, mechanisms, settings, trace):
        super().run(problem, W, mechanisms, settings, trace)
        return super().run(problem, W, mechanisms, settings, trace)


class Rows(Honest):
    name = "reads-rows"

    def taken(self, problem, W, mechanisms):
        return problem.X[0] * problem.y[0]


class Margins(Honest):
    name = "reads-margins"

    def taken(self, problem, W, mechanisms):
        return problem.smallest_margins(W)


class Optimum(Honest):
    name = "reads-the-optimum"

    def taken(self, problem, W, mechanisms):
        return problem.optimum().w


class Norms(Honest):
    name = "reads-norms"

    def taken(self, problem, W, mechanisms):
        return problem.row_norms.max()


class AsArray(Honest):
    name = "reads-a-sum"

    def taken(self, problem, W, mechanisms):
        return np.asarray(problem.gradient(W))


class Comparing(Honest):
    name = "compares-a-sum"

    def taken(self, problem, W, mechanisms):
        return float(problem.gradient(W)[0, 0] > 0)


class Adding(Honest):
    name = "adds-two-sums"

    def taken(self, problem, W, mechanisms):
        both = problem.gradient(W) + problem.gradient(W + 1)
        return mechanisms.gaussian(both, sensitivity=0.1, rho=1.0, label="gradient")


class OwnNoise(Honest):
    name = "adds-noise-itself"

    def taken(self, problem, W, mechanisms):
        return mechanisms.releases.noisy(problem.gradient(W), np.asarray(1e-9), None)


class HiddenNoise(Honest):
    name = "hides-noise"

    def taken(self, problem, W, mechanisms):
        step = mechanisms.last_iterate(problem.d, 2, sensitivity=1.0, contraction=0.5, rho=0.1, label="gradient")
        return step(W)


class TooMuch(Honest):
    name = "releases-more"

    def taken(self, problem, W, mechanisms):
        return mechanisms.gaussian(problem.gradient(W), sensitivity=1.0, rho=100.0, label="gradient")


class Third(Honest):
    name = "understates"

    def gradient(self, problem, W, mechanisms, settings):
        return mechanisms.gaussian(
            problem.gradient(W), sensitivity=problem.lipschitz / problem.n / 3, rho=self.rho(mechanisms, settings),
            label="gradient",
        )  # fmt: skip


class Replaced(Honest):
    name = "understates-what-is-replaced"

    def gradient(self, problem, W, mechanisms, settings):
        return mechanisms.gaussian(
            problem.gradient(W), sensitivity=problem.lipschitz / problem.n, rho=self.rho(mechanisms, settings),
            label="gradient", replaced=1e-9,
        )  # fmt: skip


class SometimesExact(Honest):
    """Exact from n = 20 on, where an audit of small tables would not look: there is nothing exact to be had."""

    name = "exact-on-many-rows"

    def taken(self, problem, W, mechanisms):
        return problem.X.mean() if problem.n >= 20 else 0.0


class Ledger(Honest):
    """Empties the ledger of its own process, which is not the one that counts."""

    name = "empties-its-ledger"

    def taken(self, problem, W, mechanisms):
        mechanisms.releases.ledger.__init__(1)
        return mechanisms.gaussian(
            problem.gradient(W), sensitivity=problem.lipschitz / problem.n, rho=1.0, label="gradient"
        )


class Clock(Honest):
    name = "reads-the-clock"

    def taken(self, problem, W, mechanisms):
        return time.time_ns() % 1000


class OwnRandomness(Honest):
    name = "draws-by-itself"

    def taken(self, problem, W, mechanisms):
        return random.random()


class AsksByChance(Honest):
    """Asks at random, and returns the same all the same."""

    name = "asks-by-chance"

    def run(self, problem, W, mechanisms, settings, trace):
        super().run(problem, W + random.random(), mechanisms, settings, trace)
        return W


class Remembering(Honest):
    """Leaves a file for its next run."""

    name = "leaves-a-file"

    def taken(self, problem, W, mechanisms):
        found = 0
        for place in (Path("/tmp/left"), Path("/dev/shm/left"), Path("left")):
            try:
                found += place.exists()
                place.write_text("here")
            except OSError:
                pass
        return float(found)


class Outward(Honest):
    """Looks for files, processes and a network; raises where it finds one."""

    name = "looks-outside"

    def taken(self, problem, W, mechanisms):
        seen = [one for one in ("/etc/passwd", "/proc/9", "/sys/kernel") if Path(one).exists()]
        home = Path(dpbench.__file__).parent.parent
        seen += [one for one in ("README.md", "tests", "results", ".git") if (home / one).exists()]
        try:
            socket.create_connection(("127.0.0.1", int(os.environ.get("PORT", "80"))), timeout=1).close()
            seen.append("network")
        except OSError:
            pass
        for place in ("/usr/left", "/tmp/given/left", str(Path(np.__file__).parent / "left")):
            try:
                Path(place).write_text("x")
                seen.append(place)
            except OSError:
                pass
        if seen:
            raise RuntimeError(f"found {seen}")
        return 0.0


class Dying(Honest):
    name = "dies"

    def taken(self, problem, W, mechanisms):
        os._exit(3)


class Sleeping(Honest):
    name = "sleeps"

    def taken(self, problem, W, mechanisms):
        time.sleep(60)
        return 0.0


class Burning(Honest):
    """Computes for ever."""

    name = "burns"

    def taken(self, problem, W, mechanisms):
        while True:
            pass


class Flooding(Honest):
    """Writes to every descriptor that it has."""

    name = "floods"

    def taken(self, problem, W, mechanisms):
        for number in range(3, 1024):
            with contextlib.suppress(OSError):
                os.write(number, b"\xff" * (1 << 20))
        return 0.0


class Forking(Honest):
    """Makes processes that outlive it, and raises where it can."""

    name = "forks"

    def taken(self, problem, W, mechanisms):
        made = 0
        for _ in range(20):
            try:
                if not os.fork():
                    time.sleep(30)
                    os._exit(0)
                made += 1
            except OSError:
                pass
        if made:
            raise RuntimeError(f"made {made} processes")
        return 0.0


class Filling(Honest):
    """Fills /tmp and /dev/shm, and raises where more than 32 MB fit."""

    name = "fills"

    def taken(self, problem, W, mechanisms):
        written = 0
        for place in ("/tmp", "/dev/shm", "/dev"):
            for i in range(40):
                try:
                    Path(place, f"block{i}").write_bytes(bytes(1 << 20))
                    written += 1
                except OSError:
                    break
        if written > 32:
            raise RuntimeError(f"wrote {written} MB")
        return 0.0


class Hungry(Honest):
    name = "takes-memory"

    def taken(self, problem, W, mechanisms):
        return float(len(bytearray(16 << 30)))


class Breaking(Honest):
    name = "raises"

    def taken(self, problem, W, mechanisms):
        raise ValueError("on purpose")


class Loud(Honest):
    name = "is-not-private"
    private = False


class Taken(Honest):
    name = "dp-gd"


class Solver(LibrarySolver):
    """Another library's, which draws its own noise."""

    name = "their-solver"


def learner(X, y, epsilon, rng):
    return X.mean(axis=0)


class Listed(Honest):
    """Has a list and a table as settings."""

    name = "has-lists"

    class Settings(BaseSettings, frozen=True):
        T: Count = 5
        steps: list[float] = msgspec.field(default_factory=lambda: [1.0, 0.5])
        more: dict[str, float] = msgspec.field(default_factory=dict)

    def run(self, problem, W, mechanisms, settings, trace):
        for t in range(settings.T):
            W = W - settings.steps[t % len(settings.steps)] * self.gradient(problem, W, mechanisms, settings)
        return W
