"""dpbench compare, from a file of rows to code that runs."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpbench.cli import main
from dpbench.cli.compare import parse_bounds
from dpbench.errors import UserError
from dpbench.experiments.leaderboard import entrants

ROOT = Path(__file__).resolve().parent.parent
MINE = f"{ROOT / 'examples' / 'my_algorithm.py'}:MyAlgorithm"
FEW = ["dp-gd", "dp-newton-hess-clip", "dp-nag", "dp-gcd", "dp-cd"]
N = 1500


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run the command line in tmp_path; returns (exit code, stdout, stderr). Few methods, for the time's sake."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(entrants, "entrants", lambda: FEW)

    def call(*args, columns=120):
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as exit_:
            main([str(a) for a in args])
        out, err = capsys.readouterr()
        return exit_.value.code or 0, out, err

    return call


@pytest.fixture
def csv(tmp_path):
    generator = np.random.default_rng(0)
    age, wage = generator.uniform(20, 80, N), generator.lognormal(0, 0.5, N)
    job = generator.choice(["clerk", "nurse"], N)
    margin = (age - 50) / 10 - wage + (job == "nurse") + generator.logistic(size=N)
    frame = pd.DataFrame({"age": age, "wage": wage, "job": job, "label": np.where(margin > 0, "yes", "no")})
    frame.to_csv(tmp_path / "my.csv", index=False)
    return tmp_path / "my.csv"


COMPARE = ("compare", "--data", "my.csv", "--target", "label", "--seeds", 3, "--jobs", 1)


def methods_of(out):
    return [line.split()[1] for line in out.split("\n\n")[0].splitlines()[2:]]


def test_it_ranks_what_fits_says_what_does_not_and_counts_ones_own(call, csv):
    code, out, err = call(*COMPARE, "--algo", MINE)
    assert code == 0, err
    assert set(methods_of(out)) == {"dp-gd", "dp-newton-hess-clip", "dp-gcd", "dp-cd", "averaged-gd"}
    assert "not in it: dp-nag: needs 0 < c·l2" in err
    assert "warning: not private: mean and deviation of age, wage come from the data" in " ".join(err.split())
    assert "no ε above covers" in " ".join(err.split())
    assert f"Use {methods_of(out)[0]}" in out
    again = call(*COMPARE, "--algo", MINE)
    assert again[1] == out
    assert "runs  100 %" not in again[2]  # nothing was run anew


def test_the_printed_code_runs_and_reproduces_the_row(call, csv, capsys):
    _, out, _ = call(*COMPARE, "--algo", MINE)
    code = out[out.index("import dpbench") :]
    space: dict = {}
    exec(compile(code, "snippet", "exec"), space)
    first = out.splitlines()[2]
    mean, error = (float(x) for x in re.search(r"(\S+) ± (\S+)", first).groups())
    fit = space["fit"]
    from dpbench.problems import Problem

    optimum = Problem(space["table"].X, space["table"].y).optimum().value
    spread = fit.objective.std(ddof=1) / np.sqrt(3)
    assert abs(fit.objective.mean() - optimum - mean) <= 6 * np.hypot(error, spread) + 0.02 * mean
    assert 0.9 < fit.epsilon_spent <= 1 + 1e-6
    printed = capsys.readouterr().out.split()
    assert float(printed[0]) == fit.objective.mean()
    best = MINE if methods_of(out)[0] == "averaged-gd" else methods_of(out)[0]
    assert all(f"{name}=" in code for name in entrants.candidates(best, "quick"))


def test_a_numeric_target_takes_the_squared_loss_and_the_methods_for_it(call, csv):
    code, out, err = call(
        "compare", "--data", "my.csv", "--target", "wage", "--drop", "label", "--seeds", 2, "--jobs", 1
    )
    assert code == 0, err
    assert set(methods_of(out)) == {"dp-gcd", "dp-cd"}
    assert "loss squared is not covered by its privacy proof" in " ".join(err.split())
    assert "accuracy" not in out
    assert "loss='squared'" in out
    assert "mean square of each column (M_j) from the data" in " ".join(out.split())
    code_ = out[out.index("import dpbench") :]
    exec(compile(code_, "snippet", "exec"), {})


def test_a_regulariser_lets_others_in_and_is_in_the_code(call, csv):
    _, out, err = call(*COMPARE, "--l2", 0.01)
    assert "dp-nag" in methods_of(out)
    assert "dp-newton-hess-clip: regulariser l2" in " ".join(err.split())
    assert "l2=0.01" in out


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_table_fits_the_terminal(call, csv, columns):
    _, out, _ = call(*COMPARE, columns=columns)
    table = out.split("\n\n")[0]
    assert max(map(len, table.splitlines())) <= columns
    assert max(map(len, out.split("\nimport dpbench")[0].splitlines())) <= columns


def test_an_interrupted_comparison_keeps_what_is_finished(call, csv, monkeypatch):
    from dpbench import runner

    execute, done = runner.execute, []

    def interrupted(jobs):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(len(jobs))
        return execute(jobs)

    monkeypatch.setattr(runner, "execute", interrupted)
    code, _, err = call(*COMPARE)
    assert code == 130
    assert "what was finished is kept" in err
    again = []
    monkeypatch.setattr(runner, "execute", lambda jobs: again.append(len(jobs)) or execute(jobs))
    code, out, _ = call(*COMPARE)
    assert code == 0
    monkeypatch.setattr(runner, "execute", execute)
    assert call(*COMPARE)[1] == out
    untimed = sum(done) + sum(n for n in again) - len(methods_of(out))  # one timed run for each method
    assert untimed == 3 * (2 + 2 + 4 + 3)  # seeds × candidates of tuning.toml


MISTAKES = [
    (("--target", "lable"), "did you mean label?"),
    (("--eps", "0"), "epsilon must be a positive"),
    (("--seeds", "0"), "--seeds must be at least 1"),
    (("--row-bound", "-1"), "row_bound must be"),
    (("--bounds", "age"), "COLUMN=LOW:HIGH"),
    (("--bounds", "age=9:1"), "bounds of age"),
    (("--loss", "logistc"), "logistic"),
    (("--loss", "squared"), "2 classes"),
    (("--profile", "fast"), "--profile must be"),
    (("--data", "none.csv"), "no such file"),
    (("--algo", "dp-gd-oracle"), "not private"),
    (("--algo", "nofile.py:Mine"), "does not exist"),
]


@pytest.mark.parametrize(("args", "message"), MISTAKES, ids=[" ".join(a) for a, _ in MISTAKES])
def test_a_mistake_is_one_line_on_stderr_and_exit_code_2(call, csv, args, message):
    code, out, err = call(*COMPARE, *args)
    assert (code, out) == (2, "")
    assert message in err
    assert err.splitlines()[-1].startswith("error: ")


def test_missing_values_are_one_line(call, csv):
    frame = pd.read_csv(csv)
    frame.loc[:4, "age"] = np.nan
    frame.to_csv(csv, index=False)
    code, _, err = call(*COMPARE)
    assert code == 2
    assert err == "error: my.csv: missing or infinite values in age (5); drop or fill them first\n"


def test_bounds_are_parsed():
    assert parse_bounds(["a=0:1", "b=c=-2:1e3"]) == {"a": (0.0, 1.0), "b=c": (-2.0, 1000.0)}
    with pytest.raises(UserError):
        parse_bounds(["a=0"])


PLUGIN = """
from dpbench.algorithms.base import Algorithm, Needs

class OneShot(Algorithm):
    '''Output perturbation of one gradient step from 0.'''
    name = "one-shot"
    title = "one shot"
    needs = Needs(losses=("logistic",))

    def run(self, problem, W, mechanisms, settings, trace):
        return W - 4 * mechanisms.gaussian(
            problem.data_gradient(W), sensitivity=1 / problem.n, rho=mechanisms.budget.rho, label="gradient")
"""


def test_an_installed_plugin_is_listed_run_and_compared(csv, tmp_path):
    """A package as pip leaves it: a module and a dist-info folder with its entry point."""
    import os
    import subprocess

    site = tmp_path / "site"
    info = site / "oneshot-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "oneshot.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: oneshot\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dpbench.algorithms]\none-shot = oneshot:OneShot\n")
    script = (
        "import sys\nfrom dpbench.cli import main\nfrom dpbench.experiments.leaderboard import entrants\n"
        "assert 'one-shot' in entrants.entrants()\n"
        "entrants.entrants = lambda: ['dp-gd', 'one-shot']\n"
        "main(sys.argv[1:])\n"
    )
    env = os.environ | {"PYTHONPATH": str(site), "DPBENCH_DATA": str(tmp_path / "cache")}

    def call(*args):
        done = subprocess.run(
            [sys.executable, "-c", script, *map(str, args)], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "one-shot" in call("list", "algorithms")
    run = call("run", "--algo", "one-shot", "--dataset", "synthetic", "--eps", 1, "--seeds", 2, "--jobs", 1)
    assert run.splitlines()[2].split()[:2] == ["synthetic", "one-shot"]
    assert set(methods_of(call(*COMPARE))) == {"dp-gd", "one-shot"}
