import functools

import pytest

WRONG = """
from dpbench.algorithms.gradient_descent import DPGradientDescent

class TooLittle(DPGradientDescent):
    name = "too-little"

    def run(self, problem, W, mechanisms, settings, trace):
        for _ in range(settings.T):
            rho = mechanisms.budget.rho / settings.T
            W = W - mechanisms.gaussian(problem.gradient(W), sensitivity=0.5 / problem.n, rho=rho, label="gradient")
        return W
"""


MEAN = """
import numpy as np
from dpbench.algorithms.base import Algorithm, BaseSettings, Disclosure, Needs, Relation

class Mean(Algorithm):
    name, needs, relation = "mean", Needs(losses=("logistic",)), Relation.REPLACE_ONE
    discloses = (Disclosure("sum", "the sum of the rows", replace_one="2"),)

    def run(self, problem, W, mechanisms, settings, trace):
        value = np.tile(problem.X.sum(axis=0), (len(W), 1))
        return mechanisms.gaussian(value, sensitivity=2.0, rho=mechanisms.budget.rho, label="sum")
"""


@pytest.fixture
def call(call, one_process):
    return functools.partial(call, "audit")


@pytest.mark.thorough
def test_a_pass_is_said_to_be_no_proof(call):
    code, out, _ = call("--algo", "dp-gd", "--eps", 1, "--eps", 4)
    assert code == 0
    assert out.count("whole run") == 2
    assert "a pass proves nothing" in out


def test_too_few_runs_for_the_claim_say_how_many_could(call, one_process, monkeypatch):
    monkeypatch.setattr("dpbench.auditing.runs.at_sizes", lambda *_: None)  # which counts no runs, and takes seconds
    code, out, _ = call("--algo", "dp-nag", "--eps", 4, "--runs", 100)
    assert code == 0
    assert one_process == [("dp-nag", 4.0, 0, "")]  # it runs in processes of its own as well
    (line,) = [one for one in out.splitlines() if "cannot reach the claim" in one]
    assert line.startswith("dp-nag at ε = 4: 100 runs cannot reach the claim; --runs ")
    enough = line.split("--runs ")[1].split()[0]
    out = call("--algo", "dp-nag", "--eps", 4, "--runs", enough)[1]
    assert "cannot reach" not in out
    assert "dp-nag at ε = 4: not audited, as it counts as public: the top eigenvalue of XᵀX/n (L)" in out
    assert [line.split()[2:] for line in out.splitlines() if " gradient " in line] == [["gradient", "1"]]


def test_neighbours_that_were_searched_are_named(call, tmp_path):
    (tmp_path / "mine.py").write_text(MEAN)
    out = call("--algo", "mine.py:Mean", "--eps", 4, "--runs", 100, "--in-process")[1]
    assert "neighbours that were searched: " in out
    assert "or its opposite" in " ".join(out.split())


def test_a_plugin_with_too_little_noise_fails_with_exit_code_1(call, tmp_path):
    (tmp_path / "mine.py").write_text(WRONG)
    code, out, _ = call("--algo", "mine.py:TooLittle", "--eps", 4)
    assert code == 1
    assert "FAIL: mine.py:TooLittle at ε = 4: n = 4, d = 2, T = 4: release: gradient: sensitivity 0.25 is" in out
    code, out, _ = call("--algo", "mine.py:TooLittle", "--eps", 4, "--in-process")
    assert (code, out) == (
        1,
        "\nFAIL: mine.py:TooLittle at ε = 4: gradient: a neighbour moves it by 2 of what the ledger says\n",
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "needs --algo"),
        (("--algo", "dp-gdd"), "did you mean dp-gd?"),
        (("--algo", "damped-newton"), "not private"),
        (("--algo", "dp-gd", "--eps", "0"), "--eps must be a positive"),
        (("--algo", "dp-gd", "--runs", "3"), "runs must be at least 40"),
        (("--algo", "all", "--loss", "logistic"), "--loss: goes with one algorithm"),
        (("--algo", "dp-gd", "--seed", "-1"), "seed must be at least 0"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(call, args, message):
    code, out, err = call(*args)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
