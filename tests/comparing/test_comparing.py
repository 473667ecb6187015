"""dpbench compare, from a file of rows to code that runs."""

import json
import os
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench.algorithms.rules import public_settings
from dpbench.cli import main
from dpbench.comparing import ranking, rows
from dpbench.comparing.own_data import fit_arguments
from dpbench.comparing.ranking import lost
from dpbench.errors import UserError
from dpbench.leaderboard import entrants
from tests import processes
from tests.packages import installed

ROOT = Path(__file__).resolve().parent.parent.parent
MINE = f"{ROOT / 'examples' / 'my_algorithm.py'}:MyAlgorithm"
FEW = ["dp-gd", "dp-newton-hess-clip", "dp-nag", "dp-gcd", "dp-cd"]
N = 1500


@pytest.fixture
def call(call, tmp_path, monkeypatch):
    """Run the command line in tmp_path; returns (exit code, stdout, stderr). Few methods, for the time's sake."""
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(entrants, "entrants", lambda: FEW)

    def wide(*args, columns=120):
        monkeypatch.setenv("COLUMNS", str(columns))
        return call(*args)

    return wide


@pytest.fixture
def two(call, monkeypatch):
    """Two methods alone, where it does not matter which."""
    monkeypatch.setattr(entrants, "entrants", lambda: ["dp-gd", "dp-cd"])


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


def compare(*others):
    """`COMPARE` with other values for its options, which may each be given once."""
    mine = dict(zip(COMPARE[1::2], COMPARE[2::2], strict=True))
    kept = [word for option, value in mine.items() if option not in others for word in (option, value)]
    return (COMPARE[0], *kept, *others)


def methods_of(out):
    return [line.split()[1] for line in out.split("\n\n")[0].splitlines()[2:] if line[0].isdigit()]


@pytest.mark.thorough
def test_it_ranks_what_fits_says_what_does_not_and_counts_ones_own(call, csv):
    code, out, err = call(*COMPARE, "--algo", MINE)
    assert code == 0, err
    assert set(methods_of(out)) == {"dp-gd", "dp-newton-hess-clip", "dp-gcd", "dp-cd", "averaged-gd"}
    assert "averaged-gd (foreign code, trusted)" in out
    assert "left out: dp-nag: needs 0 < c·l2" in err
    assert "warning: not private: bounds, categories and classes are those found" in " ".join(err.split())
    assert "no ε above covers" in " ".join(err.split())
    assert f"use {methods_of(out)[0]}" in out
    assert "held out by position: exact, so not private" in " ".join(out.split())
    again = call(*COMPARE, "--algo", MINE)
    assert again[1] == out
    assert "runs  100 %" not in again[2]  # nothing was run anew


@pytest.mark.usefixtures("two")
def test_scores_are_of_rows_that_no_run_has_seen(call, csv, tmp_path):
    """The table's figures, computed again from the stored models' own inputs by a second route."""
    from sklearn.metrics import log_loss, roc_auc_score

    import dpbench
    from dpbench.comparing.references import references
    from dpbench.datasets import load
    from dpbench.problems import build

    found = dpbench.compare(csv, "label", seeds=2, jobs=1, results=tmp_path / "r")
    table = rows.read(csv, "label", None, holdout=0.2, precision="float64")
    assert (found.rows, found.held) == (len(table.y), len(table.held_out[1]))
    assert found.rows + found.held == N
    assert not {tuple(row) for row in table.X} & {tuple(row) for row in table.held_out[0]}
    kept = sorted(one.name.removesuffix("-v1") for one in (tmp_path / "cache" / "prepared").iterdir())
    name, *parts = sorted(kept, key=lambda one: "-fold" in one)
    problem = build(name)
    assert len(parts) == 3  # by which the method is chosen: the rows in use, and none that is held out
    for part in map(load, parts):
        both = {tuple(row) for row in np.vstack([part.X, part.held_out[0]])}
        assert both == {tuple(row) for row in table.X}
        assert not {tuple(row) for row in part.X} & {tuple(row) for row in part.held_out[0]}
    np.testing.assert_array_equal(problem.X, table.X)
    always, zero, optimum = references(problem, load(problem.name), table.classes)
    X, y = table.held_out
    w = problem.optimum().w
    assert optimum.mean == pytest.approx(log_loss(y, 1 / (1 + np.exp(-X @ w))))
    assert optimum.auc == pytest.approx(roc_auc_score(y, X @ w))
    assert optimum.accuracy == pytest.approx(np.mean(np.sign(X @ w) == y))
    assert zero.mean == pytest.approx(np.log(2))
    common = 1.0 if (table.y > 0).mean() > 0.5 else -1.0
    assert always.accuracy == pytest.approx(np.mean(y == common))
    assert always.name == f"always {table.classes[int(common > 0)]}"
    best = found.ranking.best
    assert best.gain == pytest.approx(best.accuracy - always.accuracy)
    assert optimum.mean - 0.02 < best.mean < zero.mean


@pytest.mark.thorough
def test_each_epsilon_has_its_ranking_at_settings_that_look_at_no_data(call, csv, tmp_path):
    found = dpbench.compare(csv, "label", epsilon=[0.5, 2], seeds=2, jobs=1, results=tmp_path / "r")
    assert [one.epsilon for one in found.rankings] == [0.5, 2.0]
    T = [json.loads(one.table.set_index("algorithm").loc["dp-gd", "settings"])["T"] for one in found.rankings]
    d = len(pd.get_dummies(pd.read_csv(csv)["job"]).columns) + 3
    assert T[0] == public_settings("dp-gd", found.rows, d, 0.5)["T"]
    assert T[1] == public_settings("dp-gd", found.rows, d, 2.0)["T"] > T[0]
    code, out, _ = call(*COMPARE, "--eps", 0.5, "--eps", 2)
    assert code == 0
    assert "\nε = 0.5\n" in f"\n{out}"
    assert "At ε = 2 use" in out


@pytest.mark.usefixtures("two")
def test_when_nothing_beats_the_majority_class_it_says_do_not_use(call, tmp_path):
    generator = np.random.default_rng(1)
    frame = pd.DataFrame(generator.uniform(0, 1, (400, 5)), columns=list("abcde"))
    frame["label"] = np.where(generator.random(400) < 0.3, "yes", "no")  # nothing to learn
    frame.to_csv(tmp_path / "my.csv", index=False)
    code, out, _ = call(*COMPARE)
    assert code == 0
    assert "Do not use any of these at ε = 1" in out
    assert "none is better than always no by two standard errors" in " ".join(out.split())
    assert "import dpbench" not in out


def test_the_printed_code_leaves_out_what_the_method_decides_itself():
    row = SimpleNamespace(settings='{"T": null}', epsilon=1.0, delta=1e-4, accounting="tight")
    assert "T" not in fit_arguments(row, "dp-accelerated-nesterov")


def decided(csv, target):
    """The schema of a file, as if somebody had decided that all it drafted is public."""
    lines = dpbench.draft_schema(csv, target)[0].toml().splitlines()
    csv.with_suffix(".toml").write_text("".join(f"{line}\n" for line in lines if not line.startswith("decide =")))


@pytest.mark.usefixtures("two")
def test_the_printed_code_runs_and_is_as_good_as_the_row(call, csv, capsys):
    _, out, _ = call(*COMPARE)
    code = out[out.index("import dpbench") :]
    assert "# First: dpbench schema my.csv --target label --out my.toml, and decide" in code
    with pytest.raises(UserError, match=r"my\.toml"):  # nothing is taken from the data in silence
        exec(compile(code, "snippet", "exec"), {})
    decided(csv, "label")
    space: dict = {}
    exec(compile(code, "snippet", "exec"), space)
    model, table = space["model"], space["table"]
    assert np.mean(model.predict(table) == table["label"].astype(str)) > 0.7
    assert 0.9 < model.epsilon_ <= 1 + 1e-6
    printed = capsys.readouterr().out
    assert "(ε = 1, δ = 4.44e-07)-DP under replace-one neighbours" in printed
    assert "counts as public: n, the schema" in printed
    assert f"algorithm={methods_of(out)[0]!r}" in code
    assert (model.model_.spec.l2, model.model_.bound) == (0, None)  # as it was ranked, which the defaults are not
    assert (dpbench.load_model("my.json").predict(table) == model.predict(table)).all()


@pytest.mark.usefixtures("two")
def test_by_a_schema_nothing_comes_from_the_data(call, csv):
    decided(csv, "label")
    code, out, err = call("compare", "--data", "my.csv", "--schema", "my.toml", "--seeds", 2, "--jobs", 1)
    assert code == 0, err
    assert "not private:" not in err
    assert "# First:" not in out
    assert "schema='my.toml'" in out
    refused = call("compare", "--data", "my.csv", "--schema", "my.toml", "--target", "age")
    assert (refused[0], refused[2]) == (2, "error: --target: the schema's is label, got age\n")


def test_a_numeric_target_takes_the_squared_loss_and_the_methods_for_it(call, csv):
    pd.read_csv(csv).drop(columns="wage").to_csv(csv, index=False)
    code, out, err = call("compare", "--data", "my.csv", "--target", "age", "--seeds", 2, "--jobs", 1)
    assert code == 0, err
    assert set(methods_of(out)) == {"dp-gcd", "dp-cd"}
    assert "loss squared is not covered by its privacy proof" in " ".join(err.split())
    assert "accuracy" not in out
    assert out.splitlines()[0].split()[:4] == ["#", "method", "RMSE", "R²"]
    assert "(the mean)" in out
    assert "(M_j) from the data" not in " ".join(out.split())  # their public rule takes it from the bound on the rows
    rmse = float(next(line for line in out.splitlines() if "(the mean)" in line).split()[2])
    assert rmse == pytest.approx(pd.read_csv(csv)["age"].std(), rel=0.1)  # in the file's own unit
    assert "dpbench.PrivateRegressor(" in out


def test_a_regulariser_lets_others_in_and_is_in_the_code(call, csv):
    _, out, err = call(*COMPARE, "--l2", 0.01)
    assert "dp-nag" in methods_of(out)
    assert "dp-newton-hess-clip: regulariser l2" in " ".join(err.split())
    assert "l2=0.01" in out


@pytest.mark.thorough
@pytest.mark.usefixtures("two")
def test_a_default_that_a_method_cannot_take_is_not_in_it_and_no_failure(call, csv, tmp_path):
    (tmp_path / "mine.py").write_text(
        (ROOT / "examples" / "my_algorithm.py").read_text()
        + """
    def complete(self, problem, settings):
        from dpbench.errors import UserError

        if settings.T * 20 > problem.n:
            raise UserError(f"{self.name}: T = {settings.T} is too many for {problem.n} rows")
        return settings
"""
    )
    code, out, err = call(*COMPARE, "--algo", "mine.py:MyAlgorithm")
    assert code == 0
    assert "averaged-gd" not in methods_of(out)
    assert "MyAlgorithm: T = 100 is too many" in " ".join(err.split())


@pytest.mark.usefixtures("two")
def test_an_exception_of_a_method_is_a_failure_with_its_line_and_debug_shows_the_traceback(call, csv, tmp_path):
    text = (ROOT / "examples" / "my_algorithm.py").read_text().replace("trace(0, W, passes=0)", "1 / 0")
    (tmp_path / "mine.py").write_text(text)
    code, _, err = call(*COMPARE, "--algo", "mine.py:MyAlgorithm", "--debug")
    assert code == 1
    assert "ZeroDivisionError: division by zero (mine.py:" in " ".join(err.split())
    assert "Traceback" in err


@pytest.mark.thorough
def test_an_overspender_is_a_defect_in_compare_as_in_run(call, csv, tmp_path):
    text = (ROOT / "examples" / "my_algorithm.py").read_text()
    (tmp_path / "mine.py").write_text(text.replace("rho=rho", "rho=4 * rho"))
    code, out, err = call(*COMPARE, "--algo", "mine.py:MyAlgorithm")
    assert code == 1
    assert "averaged-gd" not in methods_of(out)
    assert "the ledger composes to" in " ".join(err.split())
    assert call("run", "--algo", "mine.py:MyAlgorithm", "--dataset", "synthetic", "--eps", 1, "--seeds", 1)[0] == 1


def test_one_defect_takes_a_method_out_and_a_refusal_only_where_nothing_ended():
    rows = pd.DataFrame(
        [
            ("sly", "done", ""),
            ("sly", "defect", "the ledger composes to more"),
            ("picky", "refused", "DataError: rows of norm 2"),  # what looks like an exception is none
            ("half", "refused", "T is too large"),
            ("half", "diverged", ""),
            ("far", "out of reach", "no noise"),
            ("killed", "died", "its worker process died"),
            ("unlucky", "died", "its worker process died"),
            ("unlucky", "done", ""),
        ],
        columns=["algorithm", "status", "error"],
    )
    failed, refused = lost(rows)
    assert failed == {"sly": "the ledger composes to more", "killed": "its worker process died"}
    assert refused == {"picky": "DataError: rows of norm 2", "far": "no noise"}


@pytest.mark.thorough
def test_a_trial_on_a_tenth_cuts_what_is_hopeless_and_says_so(csv, call, monkeypatch):
    from dpbench.comparing import pilot

    frame = pd.concat([pd.read_csv(csv)] * 4)
    frame.to_csv(csv, index=False)
    plain = call(*COMPARE)
    monkeypatch.setattr(pilot, "FROM", 1000)
    monkeypatch.setattr(pilot, "ERRORS", 3.0)
    (csv.parent / "slow.py").write_text(
        (ROOT / "examples" / "my_algorithm.py").read_text().replace("return total / counted", "return -total / counted")
    )
    code, out, err = call(*COMPARE, "--algo", "slow.py:MyAlgorithm")
    assert code == 0
    assert "averaged-gd" not in methods_of(out)
    (why,) = (line for line in " ".join(err.split()).split("left out: ") if ": cut: on a tenth of the rows" in line)
    assert "slow.py:MyAlgorithm" in why.partition(": cut:")[0]
    assert methods_of(out)[0] in methods_of(plain[1])[:2]


@pytest.mark.thorough
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_table_fits_the_terminal(call, csv, columns):
    _, out, _ = call(*COMPARE, columns=columns)
    table = out.split("\n\n")[0]
    assert max(map(len, table.splitlines())) <= columns
    assert max(map(len, out.split("\nimport dpbench")[0].splitlines())) <= columns


@pytest.mark.usefixtures("two")
def test_an_interrupted_comparison_keeps_what_is_finished(call, csv, monkeypatch):
    from dpbench.run import cluster

    execute, done = cluster.execute, []

    def interrupted(jobs):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(len(jobs))
        return execute(jobs)

    monkeypatch.setattr(cluster, "execute", interrupted)
    code, _, err = call(*COMPARE)
    assert code == 130
    assert "repeats none of the runs that were kept" in err
    again = []
    monkeypatch.setattr(cluster, "execute", lambda jobs: again.append(len(jobs)) or execute(jobs))
    code, out, _ = call(*COMPARE)
    assert code == 0
    monkeypatch.setattr(cluster, "execute", execute)
    assert call(*COMPARE)[1] == out
    assert sum(done) + sum(again) == (3 + 3) * 2  # seeds on all rows and one on each of three folds, × methods


MISTAKES = [
    (("--target", "lable"), "did you mean label?"),
    (("--eps", "0"), "--eps must be a positive"),
    (("--seeds", "0"), "--seeds must be at least 1"),
    (("--l1", "-1"), "l1 must be a number >= 0"),
    (("--loss", "logistc"), "logistic"),
    (("--loss", "squared"), "2 classes"),
    (("--loss", "sigmoid"), "no held-out score"),
    (("--holdout", "0"), "holdout must be in (0, 0.5]"),
    (("--data", "none.csv"), "no such file"),
    (("--algo", "dp-gd-oracle"), "not private"),
    (("--algo", "nofile.py:Mine"), "does not exist"),
]


@pytest.mark.parametrize(("args", "message"), MISTAKES, ids=[" ".join(a) for a, _ in MISTAKES])
def test_a_mistake_is_one_line_on_stderr_and_exit_code_2(call, csv, args, message):
    code, out, err = call(*compare(*args))
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


LITTLE = {
    "two rows": (lambda f: f[f.index < 2].assign(label=["yes", "no"]), "2 rows are too few"),
    "one class": (lambda f: f.assign(label="yes"), "label has fewer than two different values"),
    "few of a class": (lambda f: f.assign(label=["yes"] * 3 + ["no"] * (N - 3)), "held out are yes, too few"),
    "three classes": (lambda f: f.assign(label=np.arange(N) % 3), "compare takes two"),
    "constant": (lambda f: f[["label"]].assign(a=1.0, b="x"), "no column besides the target can be used"),
}


@pytest.mark.parametrize("case", LITTLE)
def test_data_that_say_too_little_are_one_clear_line(call, csv, case):
    change, message = LITTLE[case]
    change(pd.read_csv(csv)).to_csv(csv, index=False)
    code, out, err = call(*COMPARE)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.usefixtures("two")
def test_a_constant_column_is_named(call, csv):
    pd.read_csv(csv).assign(unit=3).to_csv(csv, index=False)
    code, _, err = call(*COMPARE)
    assert code == 0, err
    assert "note: unit: the same in all rows; dropped" in err


PLUGIN = """
from dpbench.algorithms.base import Algorithm, Disclosure, Needs

class OneShot(Algorithm):
    '''Output perturbation of one gradient step from 0.'''
    name = "one-shot"
    title = "one shot"
    needs = Needs(losses=("logistic",))
    discloses = (Disclosure("gradient", "the mean gradient", count="1", add_remove="1/n"),)

    def run(self, problem, W, mechanisms, settings, trace):
        return W - 4 * mechanisms.gaussian(
            problem.data_gradient(W), sensitivity=1 / problem.n, rho=mechanisms.budget.rho, label="gradient")
"""


def with_installed(site, *commands):
    with installed(site, "oneshot"):
        assert "one-shot" in entrants.entrants()
        entrants.entrants = lambda: ["dp-gd", "one-shot"]
        for command in commands:
            try:
                main([str(word) for word in command])
            except SystemExit as end:
                if end.code:
                    raise
            print("\f", flush=True)


@pytest.mark.thorough
def test_an_installed_plugin_is_listed_run_and_compared(csv, tmp_path):
    """A package as pip leaves it: a module and a dist-info folder with its entry point."""
    site = tmp_path / "site"
    info = site / "oneshot-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "oneshot.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: oneshot\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dpbench.algorithms]\none-shot = oneshot:OneShot\n")
    run = ("run", "--algo", "one-shot", "--dataset", "synthetic", "--eps", 1, "--seeds", 2, "--jobs", 1)
    process = processes.start(
        *(tmp_path, with_installed, site, ("list", "algorithms"), run, COMPARE),
        log=tmp_path / "log",
        DPBENCH_DATA=str(tmp_path / "cache"),
    )
    process.join(120)
    said = (tmp_path / "log").read_text()
    assert process.exitcode == 0, said
    listed, ran, compared = (part.strip() for part in said.split("\f")[:3])
    assert "one-shot" in listed
    assert ["synthetic", "one-shot"] in [line.split()[:2] for line in ran.splitlines()]
    assert {"dp-gd", "one-shot"} == set(methods_of(compared[compared.index("#  ") :])), said


@pytest.mark.usefixtures("two")
def test_private_copies_are_for_their_owner_alone_and_can_be_forgotten(call, csv, tmp_path):
    umask = os.umask(0)
    try:
        code, out, err = call(*compare("--seeds", 1))
    finally:
        os.umask(umask)
    assert code == 0, err
    copies = list((tmp_path / "cache/prepared").glob("own-my-*"))
    (copy,) = (one for one in copies if "-fold" not in one.name)
    assert len(copies) == 4
    (runs,) = (tmp_path / "results/adhoc").glob("compare-own-my-*")
    assert str(copy) in err
    assert "dpbench compare --data my.csv --forget removes them" in " ".join(err.split())
    assert [place for place in (*copies, runs) if place.stat().st_mode & 0o077] == []
    assert [path for one in copies for path in one.iterdir() if path.stat().st_mode & 0o177] == []
    csv.unlink()
    code, out, _ = call("compare", "--data", "my.csv", "--forget")
    assert (code, str(copy) in out, str(runs.relative_to(tmp_path)) in out) == (0, True, True)
    assert not any(one.exists() for one in copies)
    assert not runs.exists()
    assert call("compare", "--data", "my.csv", "--forget")[1] == "nothing is kept of my.csv\n"


@pytest.mark.thorough
@pytest.mark.parametrize("served", [True, False])
def test_the_printed_code_of_a_foreign_method_is_a_fit_that_is_not_refused(call, csv, tmp_path, monkeypatch, served):
    looks = "class Looks(MyAlgorithm):\n    def run(self, problem, *more):\n        problem.X.sum()\n"
    looks = f"{Path(MINE.rpartition(':')[0]).read_text()}\n\n{looks}        return super().run(problem, *more)\n"
    (tmp_path / "looks.py").write_text(looks)
    monkeypatch.setattr(entrants, "entrants", lambda: [])
    schema = dpbench.draft_schema(csv, "label")[0].toml()
    (tmp_path / "my.toml").write_text("\n".join(line for line in schema.splitlines() if not line.startswith("decide")))
    args = compare("--seeds", 1, "--schema", "my.toml", "--algo", f"looks.py:{'MyAlgorithm' if served else 'Looks'}")
    code, out, err = call(*args)
    assert code == 0, err
    assert "use averaged-gd (foreign code, trusted)" in out
    snippet = out[out.index("import dpbench") :]
    assert ("in a process without the rows" in snippet, "trusted=True" in snippet) == (served, not served)
    exec(snippet, {})


@pytest.mark.thorough
@pytest.mark.usefixtures("two")
def test_two_without_a_cache_at_once_are_each_alone(csv, tmp_path, monkeypatch):
    """The second begins and ends while the first is at its runs; a copy that is kept stays."""
    rank, found = ranking.rank, []
    how = {"seeds": 1, "jobs": 1, "results": tmp_path / "r"}
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / "cache"))
    kept = dpbench.compare(csv, "label", **how)
    before = sorted((tmp_path / "cache/prepared").iterdir())

    def first(*args, **more):
        monkeypatch.setattr(ranking, "rank", rank)
        second = Thread(target=lambda: found.append(dpbench.compare(csv, "label", cache=False, **how)))
        second.start()
        second.join()
        assert len([*(tmp_path / "cache").glob("apart-*/prepared/own-my-*")]) == 4  # its own alone
        return rank(*args, **more)

    monkeypatch.setattr(ranking, "rank", first)
    found.append(dpbench.compare(csv, "label", cache=False, **how))
    assert len(found) == 2
    for one in found:
        pd.testing.assert_frame_equal(one.ranking.table, kept.ranking.table)
    assert sorted((tmp_path / "cache/prepared").iterdir()) == before
    assert [*(tmp_path / "cache").iterdir()] == [tmp_path / "cache/prepared"]


@pytest.mark.usefixtures("two")
def test_what_a_killed_call_without_a_cache_left_can_be_forgotten(call, csv, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.TemporaryDirectory.cleanup", lambda self: self._finalizer.detach())
    assert call(*compare("--seeds", 1, "--no-cache"))[0] == 0
    (left,) = (tmp_path / "cache").iterdir()
    assert left.stat().st_mode & 0o077 == 0
    assert call("compare", "--data", "my.csv", "--forget")[1] == f"removed {left}\n"
    assert not left.exists()


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("flawed", [False, True])
def test_without_a_cache_nothing_stays(call, csv, tmp_path, monkeypatch, flawed):
    if flawed:  # also where the comparison ends in an error
        monkeypatch.setattr("dpbench.comparing.ranking.rank", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            main([str(one) for one in compare("--seeds", 1, "--no-cache")])
    else:
        assert call(*compare("--seeds", 1, "--no-cache"))[0] == 0
    assert list((tmp_path / "cache").iterdir()) == []
    assert not (tmp_path / "results").exists()
