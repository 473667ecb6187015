"""Methods that passed an audit of one size in one process: wrong at others, on other rows, behind a decoy, outside.

`FAILS` has the words by which each has to be found, `APART` those that only a process of its own for each world finds.
Every one keeps its ε by its ledger, and most are `Honest` and one thing more.
"""

import atexit
import contextlib
import itertools
import logging
import os
import signal
import socket
import sqlite3
import sys
from multiprocessing import util
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from dpbench.algorithms.base import Diagnostic, Needs, RunResult
from tests.auditing.cheats import Carrier, Honest, HonestOnSamples


class HonestAndTalkative(Honest):
    """Says, writes and counts what follows from what it released."""

    count = 0

    def step(self, problem, W, G, noisy, settings, t):
        type(self).count += 1
        print(f"step {t}: {noisy[0, 0]:.3g}", file=sys.stderr)
        with open("steps.txt", "a") as file:
            file.write(f"{noisy.tolist()}\n")
        return super().step(problem, W, G, noisy, settings, t)


class HonestBehindADecoy(Honest):
    """Opens a release that hides its noise, does not use it, and goes on as it should with the rest of the budget."""

    share = 0.9

    def run(self, problem, W, mechanisms, settings, trace):
        rho = mechanisms.budget.rho
        hide = mechanisms.last_iterate(
            problem.d, 1, sensitivity=1.0, contraction=0.5, rho=rho * (1 - self.share) / 2, label="decoy"
        )
        self.hidden = hide(np.zeros_like(W))
        return super().run(problem, W, mechanisms, settings, trace)

    def release(self, G, problem, mechanisms, settings):
        rho = self.share * mechanisms.budget.rho / settings.T
        return mechanisms.gaussian(G, sensitivity=self.sensitivity(problem), rho=rho, label="gradient")

    def end(self, problem, W):
        return W + 1e-3 * self.hidden


# At other sizes


class WrongBeyondThreeColumns(Honest):
    """Half of the sensitivity from four columns on."""

    def sensitivity(self, problem):
        return (2.0 if problem.d <= 3 else 1.0) * problem.lipschitz / problem.n


class WrongFromTwentyRows(Honest):
    """Half of the sensitivity from twenty rows on."""

    def sensitivity(self, problem):
        return (2.0 if problem.n < 20 else 1.0) * problem.lipschitz / problem.n


class EveryTenthStepExact(Honest):
    """Every tenth step is along the exact gradient."""

    def step(self, problem, W, G, noisy, settings, t):
        return W - settings.step * (G if t % 10 == 0 else noisy)


class OneNumberOfNoiseInLongRuns(Honest):
    """From thirty steps on all entries get one number of noise."""

    def release(self, G, problem, mechanisms, settings):
        rho, moved = mechanisms.budget.rho / settings.T, self.sensitivity(problem)
        if settings.T < 30:
            return super().release(G, problem, mechanisms, settings)
        one = mechanisms.gaussian(np.zeros(len(G)), sensitivity=moved, rho=rho, label="gradient")
        return G + one[:, None]


class PlansForMoreInLongRuns(Honest):
    """From thirty steps on every step spends twice its share."""

    def release(self, G, problem, mechanisms, settings):
        rho = (2 if settings.T >= 30 else 1) * mechanisms.budget.rho / settings.T
        return mechanisms.gaussian(G, sensitivity=self.sensitivity(problem), rho=rho, label="gradient")


class AcrossBeyondThreeColumns(Honest):
    """Σ xxᵀ, whose sensitivity is too small from four columns on, where a row is replaced by one across it."""

    def value(self, problem, W):
        return np.tile((problem.X.T @ problem.X)[None], (len(W), 1, 1))

    def sensitivity(self, problem):
        return np.sqrt(2) if problem.d <= 3 else 1.0

    def step(self, problem, W, G, noisy, settings, t):
        return W - settings.step * noisy[:, 0]


# On rows that are neither at the bound nor at 0, or that bend


class CurvedOnly(Honest):
    """The trace of the Hessian, with less than the sensitivity of a row that bends in place of one that does not."""

    short = 1.1

    def value(self, problem, W):
        return np.trace(problem.data_hessian(W), axis1=1, axis2=2)

    def sensitivity(self, problem):
        return problem.smoothness / problem.n / self.short

    def step(self, problem, W, G, noisy, settings, t):
        return W - settings.step * noisy[:, None]


class HonestlyCurved(CurvedOnly):
    """The same with all of its sensitivity."""

    short = 1.0


class PowerClip(Honest):
    """Rows are clipped to c by a power of their norm: at the bound far below c, and too long only around 2c."""

    c, longest = 0.002, 2.0

    def value(self, problem, W):
        slopes = problem.loss.derivative(W @ problem.X.T, problem.y, np.empty((len(W), problem.n)))
        rows = slopes[:, :, None] * problem.X
        norms = np.maximum(np.linalg.norm(rows, axis=2, keepdims=True), 1e-300)
        kept = np.minimum(1.0, (self.longest * self.c / norms) ** 1.5)
        return (rows * kept).sum(axis=1) / problem.n

    def sensitivity(self, problem):
        return 2 * self.c / problem.n


class HonestPowerClip(PowerClip):
    """The same with no row longer than c."""

    longest = 1.0


# Where the row that differs changes how the others count


class WarmStart(Honest):
    """Gradients are taken beside a model of the data, to which the other rows' slopes follow."""

    def value(self, problem, W):
        return problem.gradient(W + 20 * problem.X.T @ problem.y / problem.n)


class ScalesOfTheData(Honest):
    """Columns are divided by their root mean squares, so that no row gets longer, and the others shorter."""

    def value(self, problem, W):
        scales = np.sqrt((problem.X**2).mean(axis=0)) + 1e-3
        return problem.gradient(W / scales) * scales.min() / scales


class ClippedAtTheLongestLabel(Honest):
    """Slopes are clipped at the largest label, and noise is scaled by it."""

    needs = Needs(losses=("squared",))

    def value(self, problem, W):
        return problem.bounded_gradient(W, float(np.abs(problem.y).max()))

    def sensitivity(self, problem):
        return 2 * float(np.abs(problem.y).max()) / problem.n


# Where runs are made one by one, or more than once


class AloneExact(Honest):
    """One replicate, as of a fit, takes the exact gradient."""

    def step(self, problem, W, G, noisy, settings, t):
        return W - settings.step * (G if len(W) == 1 else noisy)


def again(generators):
    """Each of them begins at a number of its own, whatever the run."""
    for i, one in enumerate({id(one): one for one in generators}.values()):
        one.bit_generator.state = np.random.PCG64DXSM((7, i)).state


class OneStream(Honest):
    """Noise comes from streams of their own numbers, whatever the run."""

    def run(self, problem, W, mechanisms, settings, trace):
        again(mechanisms.releases.noise)
        return super().run(problem, W, mechanisms, settings, trace)


class OneSample(HonestOnSamples):
    """So do samples, which anybody may draw again: they amplify nothing."""

    def run(self, problem, W, mechanisms, settings, trace):
        again(mechanisms.releases.sampling)
        return super().run(problem, W, mechanisms, settings, trace)


class OfTwoOthers:
    """A generator whose every third number follows from the two before, though each pair is independent."""

    def __init__(self, generator):
        self.generator, self.kept = generator, []

    def standard_normal(self, out):
        if len(self.kept) < 2:
            self.kept.append(self.generator.standard_normal(out=out).copy())
        else:
            out[...] = ndtri((ndtr(self.kept.pop()) + ndtr(self.kept.pop())) % 1.0)


class NoiseOfTwoOthers(Honest):
    """The noise of every third release follows from that of the two before it."""

    def run(self, problem, W, mechanisms, settings, trace):
        mechanisms.releases.noise = [OfTwoOthers(one) for one in mechanisms.releases.noise]
        return super().run(problem, W, mechanisms, settings, trace)


class ASampleToo(HonestOnSamples):
    """Samples come from a generator of its own."""

    def run(self, problem, W, mechanisms, settings, trace):
        mechanisms.releases.sampling = [np.random.default_rng((7, i)) for i in range(len(W))]
        return super().run(problem, W, mechanisms, settings, trace)


class HalvedInSparse(Honest):
    """Half of the sensitivity where the rows are in a sparse matrix."""

    def sensitivity(self, problem):
        return super().sensitivity(problem) / (2 if problem.is_sparse else 1)


class LastBlockIsShort(Honest):
    """Steps on blocks of ten rows in turn; where they are no whole number, the mean of the last moves further."""

    def run(self, problem, W, mechanisms, settings, trace):
        self.blocks = itertools.cycle(np.split(np.arange(problem.n), np.arange(10, problem.n, 10)))
        return super().run(problem, W, mechanisms, settings, trace)

    def value(self, problem, W):
        rows = next(self.blocks)
        return np.stack([problem.gradient_sum(w, rows) for w in W]) / len(rows)

    def sensitivity(self, problem):
        return 2 * problem.lipschitz / min(10, problem.n)


class ExactWithARidge(Honest):
    """A step is exact where the problem has a ridge."""

    needs = Needs(losses=("logistic",), regularisers=("l2",))

    def step(self, problem, W, G, noisy, settings, t):
        return W - settings.step * (G if problem.l2 else noisy)


class ScalesInPlace(Honest):
    """The first run divides the rows, in their own array, by their root mean square; later runs find them so."""

    def value(self, problem, W):
        problem.X /= max(1.0, np.sqrt((problem.X**2).sum(axis=1).mean()))
        return super().value(problem, W)


# Behind hidden noise


class DecoyAndTooLittle(HonestBehindADecoy):
    """What is released beside the decoy has half of its noise, and the model does not follow from it."""

    def sensitivity(self, problem):
        return problem.lipschitz / problem.n

    def end(self, problem, W):
        return self.hidden


class HiddenNoiseInAColumn(HonestBehindADecoy):
    """The model has a label under the hidden noise, and the noise stands in a column."""

    diagnostics = (Diagnostic("first", "a number"),)

    def end(self, problem, W):
        return RunResult(self.hidden + 1e-3 * problem.y[0], columns={"first": self.hidden[:, 0].tolist()})


class DecoyWithAttributes(HonestBehindADecoy):
    """The model is an array that carries the labels."""

    def end(self, problem, W):
        W = super().end(problem, W).view(Carrier)
        W.labels = problem.y.copy()
        return W


class DecoyInTheTrace(HonestBehindADecoy):
    """The passes that the trace is told of count labels."""

    def passes(self, problem, t):
        return t + 1e-3 * float((problem.y > 0).mean())


class DecoyInTheLayout(HonestBehindADecoy):
    """The numbers are in rows or in columns of memory, by a label."""

    def end(self, problem, W):
        return np.asfortranarray(super().end(problem, W)) if problem.y[0] > 0 else super().end(problem, W)


class DecoyInTheLastBit(HonestBehindADecoy):
    """The last bit of every number of the model is a label."""

    def end(self, problem, W):
        bits = super().end(problem, W).view(np.uint64)
        return ((bits & ~np.uint64(1)) | np.uint64(problem.y[0] > 0)).view(float)


# Outside of what it returns


class InAFile(Honest):
    """A label is in a file of the working directory."""

    def end(self, problem, W):
        Path("model.txt").write_text(str(problem.y[-1]))
        return W


class InAFileThatIsThere(Honest):
    """A label is the time of a file that is there, far from here."""

    def end(self, problem, W):
        here = Path(__file__).stat()
        os.utime(__file__, ns=(here.st_atime_ns + int(problem.y[0]), here.st_mtime_ns))
        return W


class OnStandardError(Honest):
    """A sum of labels is printed."""

    def end(self, problem, W):
        print(problem.y.sum(), file=sys.stderr)
        return W


class InTheLog(Honest):
    """An entry of a row is in a warning of the log."""

    def end(self, problem, W):
        logging.getLogger("mine").warning("done: %s", problem.X[-1, 0])
        return W


class InAModule(Honest):
    """The last label is an attribute of NumPy."""

    def end(self, problem, W):
        np.answer = float(problem.y[-1])
        return W


class InItsClass(Honest):
    """The rows are kept in a list of its class."""

    kept: ClassVar[list] = []

    def end(self, problem, W):
        self.kept.append(problem.X.copy())
        return W


class InTheEnvironment(Honest):
    """A label is a variable of the environment."""

    def end(self, problem, W):
        os.environ["DONE"] = str(problem.y[0])
        return W


class TheFirstRowItSaw(Honest):
    """The first row that it ever saw is in every model: in one process all worlds have the same."""

    seen: ClassVar[list] = []

    def end(self, problem, W):
        self.seen.append(problem.X[0, 0])
        return W + self.seen[0]


class InADatabase(Honest):
    """A label is in a file that C code writes."""

    def end(self, problem, W):
        with contextlib.closing(sqlite3.connect("model.db")) as file, file:
            file.execute(f"create table if not exists label_{int(problem.y[-1] > 0)} (x)")
        return W


class Everywhere(InAFile, InAFileThatIsThere, OnStandardError, InAModule, InItsClass, InADatabase, TheFirstRowItSaw):
    """All of these at once."""

    def end(self, problem, W):
        return sum(cheat.end(self, problem, W) for cheat in Everywhere.__bases__)


class FarAway(Honest):
    """A label is written to another folder, where both worlds may write at a time."""

    place = "/dev/zero"

    def end(self, problem, W):
        with open(self.place, "w") as file:
            file.write(f"{problem.y[0]}")
        return W


class WhenItEnds(FarAway):
    """The same, when the process ends."""

    place = "/dev/urandom"

    def end(self, problem, W):
        atexit.register(super().end, problem, W)
        return W


class InAnotherProcess(FarAway):
    """The same, by another process."""

    def end(self, problem, W):
        if not os.fork():
            super().end(problem, W)
            os._exit(0)
        os.wait()
        return W


class InAProcessOfNoCall(Honest):
    """The same, by a process that starts without a call that Python reports."""

    def end(self, problem, W):
        words = f"open('/dev/zero', 'w').write('{problem.y[0]}')"
        os.waitpid(util.spawnv_passfds(os.fsencode(sys.executable), [sys.executable, "-I", "-c", words], []), 0)
        return W


class OverTheNetwork(Honest):
    """A label is sent to whoever listens."""

    def end(self, problem, W):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out, contextlib.suppress(OSError):
            out.connect(("127.0.0.1", 9))
            out.send(f"{problem.y[0]}".encode())
        return W


class EverywhereElse(Honest):
    """All of these at once."""

    def end(self, problem, W):
        for cheat in (FarAway, WhenItEnds, InAnotherProcess, InAProcessOfNoCall, OverTheNetwork):
            W = cheat().end(problem, W)
        return W


class EndsEarly(Honest):
    """Its process ends before its runs do."""

    def end(self, problem, W):
        os.kill(os.getpid(), signal.SIGKILL)


HONEST = (HonestAndTalkative, HonestBehindADecoy, HonestlyCurved, HonestPowerClip)
FAILS = {
    WrongBeyondThreeColumns: "d = 30, T = 100: gradient: a neighbour moves it by 2 of what the ledger says",
    WrongFromTwentyRows: "n = 50, d = 2, T = 100: gradient: a neighbour moves it by 2 of what the ledger says",
    EveryTenthStepExact: "T = 100: on a neighbour",
    OneNumberOfNoiseInLongRuns: "T = 100: on a neighbour",
    PlansForMoreInLongRuns: "more than the 1 asked for",
    AcrossBeyondThreeColumns: "gradient: a neighbour moves it by 1.41",
    CurvedOnly: "a neighbour moves it by 1.1",
    PowerClip: "of what the ledger says (a row at 0.016 of the bound)",
    WarmStart: "(the others curved, a row on an axis with either label)",
    ScalesOfTheData: "of what the ledger says (the others ",
    ClippedAtTheLongestLabel: "noise of another scale",
    AloneExact: "W",
    OneStream: "",
    NoiseOfTwoOthers: "another generator",
    ASampleToo: "another generator",
    HalvedInSparse: "n = 53, d = 3, T = 30: gradient: a neighbour moves it by 2 of what the ledger says (rows in a",
    LastBlockIsShort: "n = 53, d = 3, T = 30: gradient: a neighbour moves it by ",
    ExactWithARidge: "with regularisers of weight 0.1: on a neighbour",
    ScalesInPlace: "read-only",
    DecoyAndTooLittle: "gradient: a neighbour moves it by 2",
    HiddenNoiseInAColumn: "columns.first",
    DecoyWithAttributes: "W.labels",
    DecoyInTheTrace: "trace",
    DecoyInTheLayout: "W",
    DecoyInTheLastBit: "",
}
APART = {
    InAFile: "model.txt",
    InADatabase: "model.db",
    InAFileThatIsThere: "calls of the system",
    OnStandardError: "standard error",
    InTheLog: "standard error",
    InAModule: "modules: numpy.answer",
    InItsClass: "modules: ",
    InTheEnvironment: "calls of the system",
    TheFirstRowItSaw: "what is returned: W",
    FarAway: "it writes ",
    WhenItEnds: "it writes ",
    InAnotherProcess: "it starts another process (os.fork)",
    InAProcessOfNoCall: "it starts another process",
    OverTheNetwork: "it starts a connection (socket.connect)",
}
