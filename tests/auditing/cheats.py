"""Methods that give data away beside their releases, one way each, for the audit to find: see `test_cheats`.

`FAILS` has the words by which each has to be found. Every one keeps its ε by its ledger, and most are `Honest` and one
thing more.
"""

import copy
from types import SimpleNamespace

import msgspec
import numpy as np

from dpbench.algorithms.base import Algorithm, BaseSettings, Diagnostic, Disclosure, Needs, RunResult
from dpbench.privacy.ledger import Relation
from dpbench.privacy.noise import stream


class Honest(Algorithm):
    """Gradient descent with the noise that it owes."""

    name, needs, relation = "honest", Needs(losses=("logistic",)), Relation.REPLACE_ONE
    discloses = tuple(Disclosure(label, "the gradient", replace_one="2·L₀/n") for label in ("gradient", "decoy"))

    class Settings(BaseSettings, frozen=True):
        T: int = 4
        step: float = 0.5

    def run(self, problem, W, mechanisms, settings, trace):
        for t in range(1, settings.T + 1):
            G = self.value(problem, W)
            W = self.step(problem, W, G, self.release(G, problem, mechanisms, settings), settings, t)
            trace(t, W, passes=self.passes(problem, t))
        return self.end(problem, W)

    def value(self, problem, W):
        return problem.gradient(W)

    def sensitivity(self, problem):
        return 2 * problem.lipschitz / problem.n

    def release(self, G, problem, mechanisms, settings):
        return mechanisms.gaussian(
            G, sensitivity=self.sensitivity(problem), rho=mechanisms.budget.rho / settings.T, label="gradient"
        )

    def step(self, problem, W, G, noisy, settings, t):
        return W - settings.step * noisy

    def passes(self, problem, t):
        return t

    def end(self, problem, W):
        return W


class HonestOnSamples(Honest):
    """The sum of the gradients of a Poisson sample, every row with probability 1/4."""

    relation = Relation.ADD_REMOVE
    discloses = (Disclosure("gradient", "the gradients of a sample", add_remove="L₀"),)
    rate = 0.25

    class Settings(BaseSettings, frozen=True):
        T: int = 4
        step: float = 0.5

    def rows(self, problem, drawn):
        return drawn

    def run(self, problem, W, mechanisms, settings, trace):
        samples = mechanisms.poisson(problem.n, self.rate, label="gradient")
        z = samples.noise_multiplier(settings.T)
        for _ in range(settings.T):
            drawn = [self.rows(problem, rows) for rows in samples.draw()]
            total = np.stack([problem.gradient_sum(w, rows) for w, rows in zip(W, drawn, strict=True)])
            W = W - settings.step * samples.gaussian(total, sensitivity=problem.lipschitz, noise_multiplier=z)
        return W


# What was found before


class LeakInComplete(Honest):
    """The step is set from the labels before the run begins."""

    def complete(self, problem, settings):
        return msgspec.structs.replace(settings, step=0.5 + 0.01 * float(problem.y.mean()))


class RowOfX(Honest):
    """The first row of X is returned as the model."""

    def end(self, problem, W):
        return np.tile(problem.X[0], (len(W), 1))


class LabelInAColumn(Honest):
    """The number of positive labels stands in the table of results."""

    diagnostics = (Diagnostic("positives", "positive labels"),)

    def end(self, problem, W):
        return RunResult(W, columns={"positives": [int((problem.y > 0).sum())] * len(W)})


class CheatFromTheThird(Honest):
    """Two private iterations, then exact ones."""

    def step(self, problem, W, G, noisy, settings, t):
        return W - settings.step * (noisy if t < 3 else G)


class OneNoiseVector(Honest):
    """The noise of the first release is taken off it and added to all later gradients."""

    def step(self, problem, W, G, noisy, settings, t):
        if t == 1:
            self.noise = noisy - G
        return W - settings.step * (G + self.noise)


class NoiseByTheData(Honest):
    """The sensitivity is that of the data at hand, so the scale of the noise tells it."""

    def sensitivity(self, problem):
        return 2 * np.abs(problem.X).sum(axis=1).max() / problem.n * (1 + 0.01 * (problem.y > 0).mean())


class InTheLastDigits(Honest):
    """A label is written into the fifteenth digit of the model."""

    def end(self, problem, W):
        return W * (1 + 4e-15 * (problem.y[0] > 0))


class InTheTrace(Honest):
    """The passes that the trace is told of count labels."""

    def passes(self, problem, t):
        return t + 1e-3 * float((problem.y > 0).mean())


class BehindADecoy(Honest):
    """A release that hides its noise is opened for next to nothing: then W need not follow from what was published."""

    def release(self, G, problem, mechanisms, settings):
        rho = mechanisms.budget.rho
        hide = mechanisms.last_iterate(2, 1, sensitivity=1.0, contraction=0.5, rho=rho / 100, label="decoy")
        hide(np.zeros_like(G))
        return mechanisms.gaussian(G, sensitivity=2 / problem.n, rho=0.9 * rho / settings.T, label="gradient")

    def run(self, problem, W, mechanisms, settings, trace):
        settings = msgspec.structs.replace(settings, T=1)
        return super().run(problem, W, mechanisms, settings, trace) + 20 * problem.y[0]


class InTheEvidence(Honest):
    """What `measure` is given, and may store, holds the data."""

    def end(self, problem, W):
        return RunResult(W, evidence=SimpleNamespace(data=[problem.y.copy()]))


# One row of many, and it is not the first


class LastLabel(Honest):
    """The label of the last row decides a sign of the model."""

    def end(self, problem, W):
        return W * problem.y[-1]


class MiddleRow(Honest):
    """An entry of a row in the middle goes into the model."""

    def end(self, problem, W):
        return W + problem.X[problem.n // 2, 0]


class LastQuarter(HonestOnSamples):
    """Samples are drawn and thrown away: every step takes the last quarter of the rows."""

    def rows(self, problem, drawn):
        return np.arange(problem.n - problem.n // 4, problem.n)


class SampleAndTheLastRow(HonestOnSamples):
    """The last row is in every sample, whatever was drawn."""

    def rows(self, problem, drawn):
        return np.union1d(drawn, [problem.n - 1])


class SampleWithHeadroom(HonestOnSamples):
    """The rows of the sample and the one after each: twice the rate that is accounted."""

    def rows(self, problem, drawn):
        return np.union1d(drawn, (drawn + 1) % problem.n)


class BehindADecoyTheLastRow(BehindADecoy):
    """As `BehindADecoy`, with the label of the last row."""

    def run(self, problem, W, mechanisms, settings, trace):
        settings = msgspec.structs.replace(settings, T=1)
        return Honest.run(self, problem, W, mechanisms, settings, trace) + 20 * problem.y[-1]


# Whoever reads the noise


class NoiseReadAhead(Honest):
    """The generator is copied before the release; what it gives is taken off."""

    def release(self, G, problem, mechanisms, settings):
        self.ahead = [copy.deepcopy(generator) for generator in mechanisms.releases.noise]
        noisy = super().release(G, problem, mechanisms, settings)
        scale = self.sensitivity(problem) / np.sqrt(2 * mechanisms.budget.rho / settings.T)
        return noisy - scale * np.stack([each.standard_normal(G.shape[1]) for each in self.ahead])


class NoiseFromTheKey(Honest):
    """The stream of the job's key is opened again, and its noise taken off."""

    def release(self, G, problem, mechanisms, settings):
        keys = mechanisms.releases._distinct
        if not hasattr(self, "mine") or self.keys != keys:
            self.keys, self.mine = keys, [stream(key, "noise") for key in keys]
        noisy = super().release(G, problem, mechanisms, settings)
        scale = self.sensitivity(problem) / np.sqrt(2 * mechanisms.budget.rho / settings.T)
        noise = np.stack([np.resize(each.standard_normal(G.shape[1]), G.shape[1]) for each in self.mine])
        return noisy - scale * (noise if len(noise) == len(G) else noise[:1])


# Equal numbers that are not the same bytes


class SignOfZero(Honest):
    """A coordinate is zero, and its sign is a label."""

    def end(self, problem, W):
        W = W.copy()
        W[:, 0] = np.copysign(0.0, problem.y[1])
        return W


class PayloadOfNaN(Honest):
    """A coordinate is NaN, and its last bits count labels."""

    def end(self, problem, W):
        W = W.copy()
        bits = np.uint64(0x7FF8000000000000) + np.uint64((problem.y > 0).sum())
        W[:, 0] = np.array([bits]).view(float)[0]
        return W


class Carrier(np.ndarray):
    """An array with room for more."""


class ArraySubclass(Honest):
    """The model is an array that carries the labels."""

    def end(self, problem, W):
        W = W.view(Carrier)
        W.labels = problem.y.copy()
        return W


class Word(str):
    """A word with room for more."""


class WordSubclass(Honest):
    """A word in a column is the same, and carries a label."""

    diagnostics = (Diagnostic("word", "how it ended"),)

    def end(self, problem, W):
        word = Word("done")
        word.label = float(problem.y[0])
        return RunResult(W, columns={"word": [word] * len(W)})


class Layout(Honest):
    """The numbers are the same in rows or in columns of memory, by a label."""

    def end(self, problem, W):
        return np.asfortranarray(W) if problem.y[0] > 0 else np.ascontiguousarray(W)


class Precision(Honest):
    """A count is a Python int or one of NumPy, by a label."""

    diagnostics = (Diagnostic("count", "a constant"),)

    def end(self, problem, W):
        kind = int if problem.y[2] > 0 else np.int64
        return RunResult(W, columns={"count": [kind(4)] * len(W)})


class OneBuffer(Honest):
    """Every run returns one array, written over by the next: a label is in it."""

    buffer = np.zeros((1, 1))

    def end(self, problem, W):
        if self.buffer.shape != W.shape:
            type(self).buffer = W.copy()
        self.buffer[...] = W + 1e-3 * problem.y[0]
        return self.buffer


class Closure(Honest):
    """A function in the evidence knows the data."""

    def end(self, problem, W):
        y = problem.y.copy()
        return RunResult(W, evidence=lambda: y)


# Both rows at the bound hide it


class StepFromTheLongestRow(Honest):
    """The step is one over the largest norm of the rows."""

    def step(self, problem, W, G, noisy, settings, t):
        return W - settings.step / np.linalg.norm(problem.X, axis=1).max() * noisy


class SensitivityFromTheLongestRow(Honest):
    """The sensitivity is 2/n times the largest norm there is, as an author may take for the bound."""

    def sensitivity(self, problem):
        return 2 * np.linalg.norm(problem.X, axis=1).max() / problem.n


class ClippedAtTheMedian(Honest):
    """Rows are clipped at the median of their norms, and noise is scaled by it."""

    def median(self, problem):
        return float(np.median(np.linalg.norm(problem.X, axis=1)))

    def value(self, problem, W):
        c, norms = self.median(problem), np.linalg.norm(problem.X, axis=1)
        X = problem.X * np.minimum(1, c / np.maximum(norms, 1e-300))[:, None]
        slopes = -problem.y / (1 + np.exp(np.clip(problem.y * (W @ X.T), -500, 500)))
        return slopes @ X / problem.n

    def sensitivity(self, problem):
        return 2 * self.median(problem) / problem.n


class Standardised(Honest):
    """Every row is divided by the root mean square of all before anything is released."""

    def value(self, problem, W):
        return problem.gradient(W) / np.sqrt((problem.X**2).sum(axis=1).mean())


# Hooks beside `run`


class InIterations(Honest):
    """The number of iterations in the table counts labels; the run makes four."""

    def iterations(self, problem, settings):
        return settings.T + int((problem.y > 0).sum())


class InMeasure(Honest):
    """`measure` writes a column that was declared to be no data's."""

    diagnostics = (Diagnostic("measured", "a constant"),)

    def measure(self, problem, outcome, settings, generators):
        return {"measured": [float(problem.X[1, 0])] * len(outcome.W)}


class RowsInADiagnostic(Honest):
    """A diagnostic that depends on the data, as it may, is all of the labels."""

    diagnostics = (Diagnostic("measured", "how well it fits", of_data=True),)

    def measure(self, problem, outcome, settings, generators):
        return {"measured": [problem.y.tolist()] * len(outcome.W)}


class WordsInADiagnostic(Honest):
    """A diagnostic that depends on the data is a text that holds a row."""

    diagnostics = (Diagnostic("note", "how it went", of_data=True),)

    def end(self, problem, W):
        return RunResult(W, columns={"note": [str(problem.X[0])] * len(W)})


class DiagnosticsByTheData(Honest):
    """Which columns are declared is decided by the data."""

    extra = 0

    def complete(self, problem, settings):
        self.extra = int((problem.y > 0).sum())
        return settings

    @property
    def diagnostics(self):
        return tuple(Diagnostic(f"c{i}", "nothing") for i in range(self.extra))


class CountsPublicByTheData(Honest):
    """The words on what counts as public hold a label."""

    label = 0.0

    def complete(self, problem, settings):
        self.label = float(problem.y[0])
        return settings

    def public(self, settings):
        return "n" if self.label > 0 else "n "


class InTheTitle(Honest):
    """Its title in the legend is a label."""

    sign = ""

    def run(self, problem, W, mechanisms, settings, trace):
        self.sign = "+" if problem.y[3] > 0 else "-"
        return super().run(problem, W, mechanisms, settings, trace)

    @property
    def title(self):
        return f"Honest{self.sign}"


# Exceptions


class RaisesALabel(Honest):
    """An exception says what the labels are, where most are positive."""

    def end(self, problem, W):
        if problem.y[-1] > 0:
            raise ValueError(f"labels {problem.y.tolist()}")
        return W


class AlwaysRaises(Honest):
    """Every run ends in an exception with the data in it, on several lines."""

    def end(self, problem, W):
        raise RuntimeError(f"row\n{problem.X[0]}")


class Exits(Honest):
    """A run ends the process where a label is positive."""

    def end(self, problem, W):
        if problem.y[0] > 0:
            raise SystemExit(3)
        return W


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError


class RaisesTheUnprintable(Honest):
    """An exception cannot be printed."""

    def end(self, problem, W):
        raise Unprintable


# Nothing was audited


class MovesNothing(Honest):
    """What is released does not depend on any row: a pass would say nothing."""

    def value(self, problem, W):
        return np.zeros_like(W)


class HidesNothing(Honest):
    """A release whose noise is hidden, on nothing: what comes out is the same on all data."""

    def run(self, problem, W, mechanisms, settings, trace):
        noisy = mechanisms.last_iterate(
            problem.d, 1, sensitivity=1.0, contraction=0.5, rho=mechanisms.budget.rho, label="decoy"
        )
        return W - noisy(np.zeros_like(W))


FAILS = {
    LeakInComplete: "settings.step",
    RowOfX: "W",
    LabelInAColumn: "columns.positives",
    CheatFromTheThird: "W",
    OneNoiseVector: "W",
    NoiseByTheData: "noise of another scale",
    InTheLastDigits: "W",
    InTheTrace: "trace",
    InTheEvidence: "evidence.data",
    BehindADecoy: "",
    LastLabel: "W",
    MiddleRow: "W",
    LastQuarter: "a row moves it that is not in its sample",
    SampleAndTheLastRow: "a row moves it that is not in its sample",
    SampleWithHeadroom: "a row moves it that is not in its sample",
    BehindADecoyTheLastRow: "",
    NoiseReadAhead: "W",
    NoiseFromTheKey: "W",
    SignOfZero: "W",
    PayloadOfNaN: "W",
    ArraySubclass: "W.labels",
    WordSubclass: "columns.word.label",
    Layout: "W",
    Precision: "columns.count (its type)",
    OneBuffer: "W",
    Closure: "evidence.closure",
    StepFromTheLongestRow: "W",
    SensitivityFromTheLongestRow: "noise of another scale",
    ClippedAtTheMedian: "noise of another scale",
    Standardised: "of what the ledger says",
    InIterations: "iterations",
    InMeasure: "columns.measured",
    RowsInADiagnostic: "measured: a diagnostic that depends on the data has to be one number",
    WordsInADiagnostic: "note: a diagnostic that depends on the data has to be one number",
    DiagnosticsByTheData: "diagnostics",
    CountsPublicByTheData: "public",
    InTheTitle: "title",
    RaisesALabel: "it raises ValueError",
    AlwaysRaises: "it raises RuntimeError",
    Exits: "it raises SystemExit",
    RaisesTheUnprintable: "it raises Unprintable",
    MovesNothing: "no pair moves it",
    HidesNothing: "no pair moves it",
}
