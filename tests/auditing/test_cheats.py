"""Algorithms that give data away beside their releases, one way each: every one fails the audit."""

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from dpbench.algorithms.base import Algorithm, BaseSettings, Diagnostic, Disclosure, Needs, Outcome
from dpbench.auditing.runs import audit
from dpbench.privacy.relation import Relation


class Honest(Algorithm):
    """Gradient descent with the noise that it owes: every cheat below is this and one thing more."""

    name, needs, relation = "honest", Needs(losses=("logistic",)), Relation.REPLACE_ONE
    discloses = tuple(Disclosure(label, "the gradient", replace_one="2·L₀/n") for label in ("gradient", "decoy"))

    class Settings(BaseSettings, frozen=True):
        T: int = 4
        step: float = 0.5

    def run(self, problem, W, mechanisms, settings, trace):
        for t in range(1, settings.T + 1):
            G = problem.gradient(W)
            W = self.step(problem, W, G, self.release(G, problem, mechanisms, settings), settings, t)
            trace(t, W, passes=self.passes(problem, t))
        return self.end(problem, W)

    def release(self, G, problem, mechanisms, settings):
        return mechanisms.gaussian(
            G, sensitivity=2 * problem.lipschitz / problem.n, rho=mechanisms.budget.rho / settings.T, label="gradient"
        )

    def step(self, problem, W, G, noisy, settings, t):
        return W - settings.step * noisy

    def passes(self, problem, t):
        return t

    def end(self, problem, W):
        return W


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

    def end(self, problem, W):
        return Outcome(W, columns={"positives": [int((problem.y > 0).sum())] * len(W)})


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

    def release(self, G, problem, mechanisms, settings):
        measured = 2 * np.abs(problem.X).sum(axis=1).max() / problem.n * (1 + 0.01 * (problem.y > 0).mean())
        return mechanisms.gaussian(G, sensitivity=measured, rho=mechanisms.budget.rho / settings.T, label="gradient")


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
        return Outcome(W, evidence=SimpleNamespace(data=[problem.y.copy()]))


CHEATS = {
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
}


@pytest.fixture
def audited(monkeypatch):
    def run(cls, **options):
        monkeypatch.setattr("dpbench.auditing.runs.algorithms.resolve", lambda name: (cls(), {}))
        return audit("mine", 1.0, **options)

    return run


def test_the_honest_one_passes(audited):
    done = audited(Honest, near=False)
    assert done.passed, done
    assert done.moved["gradient"] == pytest.approx(1.0)


@pytest.mark.parametrize("cls", CHEATS, ids=lambda cls: cls.__name__)
def test_every_cheat_fails_the_audit(audited, cls):
    done = audited(cls, near=False)
    assert not done.passed
    assert CHEATS[cls] in done.defect


def test_the_cheats_are_eight_or_more_and_private_by_their_ledgers(audited):
    assert len(CHEATS) >= 8
    assert len({cls.__doc__ for cls in CHEATS}) == len(CHEATS)


@pytest.mark.parametrize("column", ["diagnostic", "other"])
def test_a_declared_diagnostic_may_differ_and_nothing_else(audited, column):
    class Diagnosed(Honest):
        diagnostics = (Diagnostic("diagnostic", "a mean of labels", of_data=True), Diagnostic("other", "the same"))

        def end(self, problem, W):
            return Outcome(W, columns={column: [float(problem.y.mean())] * len(W)})

    assert audited(Diagnosed, tests=False).passed == (column == "diagnostic")
