"""The command line as a user meets it: each mistake is one line, exit codes can be trusted."""

import dataclasses
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace as Made

import click
import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench.auditing.claims import AuditVerdict
from dpbench.auditing.runs import Audit
from dpbench.cli import VERBS, group, main, output, own, run
from dpbench.comparing.own_data import Comparison
from dpbench.comparing.ranking import Ranking
from dpbench.comparing.references import Reference
from dpbench.errors import UserError
from dpbench.own.forecast import Forecast, Forecasts, Needed
from dpbench.run.store import Store
from tests import processes
from tests.batches import write

RUN = ("run", "--algo", "dp-gd", "--dataset", "synthetic", "--jobs", 1)

MISTAKES = [
    (("rum",), "did you mean run?"),
    (("run",), "either --algo NAME or --experiment NAME"),
    (("run", "--algo", "dp-gdd"), "did you mean dp-gd?"),
    (("run", "--algo", "DP-GD"), "did you mean dp-gd?"),
    (("run", "--algo", "zzzz"), "the nearest of"),
    (("run", "--algo", "dp-gd", "--dataset", "a1b"), "did you mean a1a?"),
    ((*RUN, "--eps", "0"), "--eps must be a positive"),
    ((*RUN, "--eps", "-1"), "--eps must be a positive"),
    ((*RUN, "--eps", "nan"), "--eps must be a positive"),
    (("run", "--algo", "dp-gcd", "--dataset", "log1", "--eps", "-1"), "--eps must be a positive"),  # tuned settings
    ((*RUN, "--eps", "one"), "--eps"),
    ((*RUN, "--seeds", "0"), "--seeds must be at least 1"),
    ((*RUN, "--set", "T=0"), "setting T: must be a whole number >= 1, got '0'"),
    ((*RUN, "--set", "T=ten"), "setting T: must be a whole number, got 'ten'"),
    ((*RUN, "--eps", "1,2"), "with a decimal point: --eps 1.2; for several, repeat it: --eps 1 --eps 2\n"),
    ((*RUN, "--eps", "0,5"), "got '0,5'; with a decimal point: --eps 0.5\n"),
    ((*RUN, "--eps", "1 2"), "got '1 2'; for several, repeat it: --eps 1 --eps 2\n"),
    ((*RUN, "--seeds", "100001"), "--seeds must be at most 100,000, got 100,001"),
    (("run", "--algo", "dp-gd", "--dataset", "My.csv"), "for a file of yours use dpbench compare --data FILE"),
    (("run", "--algo", "dp-gd", "--dataset", "synthetic:logistic,l3=0.01"), "no regulariser 'l3'; known: l1, l2, w2"),
    (("run", "--algo", "dp-gd", "--dataset", "synthetic:squared"), "loss squared is not covered by its privacy proof"),
    (("report", "--profile", "nope"), "unknown profile 'nope': known: adhoc, full, quick"),
    (("report", "--check", "--profile", "adhoc"), "--profile adhoc goes without --check"),
    (("report", "--figures", "x"), "No such option '--figures'"),
    (("schema", "t.csv", "--schema", "x"), "No such option '--schema'"),
    (("run", "--algo", "dp-gd", "--out", "x"), "No such option '--out'"),
    (("status", "--results", "nowhere"), "--results nowhere: there is no such folder"),
    ((*RUN, "--set", "T"), "error: --set takes KEY=VALUE, got 'T'\n"),
    ((*RUN, "--set", "T=1", "--set", "T=2"), "error: --set T is given twice\n"),
    (("plan", "--schema", "s.toml", "--n", "9", "--share", "yes"), "error: --share takes CLASS=SHARE, got 'yes'\n"),
    (("plan", "--schema", "s.toml", "--n", "9", "--share", "yes=a"), "error: --share takes CLASS=SHARE, a share of"),
    ((*RUN, "--set", "stepp=4"), "did you mean step?"),
    ((*RUN, "--accounting", "tigth"), "did you mean tight?"),
    ((*RUN, "--accounting", "x"), "error: --accounting: 'x' does not"),
    ((*RUN, "--relation", "x"), "error: --relation: there is no 'x'"),
    ((*RUN, "--scheduler", "tcp://x:1"), "error: --scheduler: give an address with"),
    (("run", "--algo", "x.csv:X"), "given as path/to/file.py:Class"),
    ((*RUN, "--delta", "2"), "--delta must be in [0, 1)"),
    ((*RUN, "--relation", "replace"), "did you mean replace-one?"),
    (("run", "--algo", "opt", "--dataset", "synthetic", "--relation", "add-remove"), "opt is replace-one only"),
    ((*RUN, "--backend", "dusk"), "--backend"),
    ((*RUN, "--delta", "0"), "needs delta > 0"),
    (("run", "--algo", "dp-nag", "--dataset", "accelerated", "--delta", "1e-6"), "needs delta 0"),
    ((*RUN, "--delta", "n^2"), "--delta must be a number"),
    ((*RUN, "--config", "x.toml"), "--config goes with --experiment"),
    (("run", "--config", "x.toml"), "--config goes with --experiment NAME"),
    (("run", "--algo", "dp-gd", "--jobs", "0"), "--jobs must be at least 1"),
    (("run", "--algo", "nofile.py:Mine"), "nofile.py does not exist"),
    (("run", "--algo", "mine.py"), "name the class in it, mine.py:Class"),
    ((*RUN, "--profile", "full"), "--profile goes with --experiment"),
    (("run", "--experiment", "second_order", "--seeds", "3"), "--seeds goes with --algo"),
    (("run", "--experiment", "second_order", "--accounting", "tight"), "--accounting goes with --algo"),
    (("run", "--algo", "dp-newton-hess-clip", "--dataset", "synthetic", "--set", "curvature=qu"), "already fixes"),
    (("run", "--experiment", "second_ordre"), "did you mean second_order?"),
    (("run", "--experiment", "second_order/fig22"), "did you mean fig2?"),
    (("run", "--experiment", "second_order", "--profile", "fulll"), "did you mean full?"),
    (("run", "--experiment", "second_order", "--eps", "1"), "--eps goes with --algo"),
    (("run", "--experiment", "second_order", "--config", "none.toml"), "none.toml: No such file"),
    (("fetch", "a1aa"), "did you mean a1a?"),
    (("fetch",), "NAME"),
    (("list", "algorithm"), "algorithms"),
    (("report",), "no results in results"),
    (("report", "--experiment", "second_order/fig22", "--profile", "quick"), "did you mean fig2?"),
    (("status", "--experiment", "first_order"), "unknown experiment"),
    (("status", "--profile", "nope"), "unknown profile 'nope': known: full, quick"),
    (("status", "--experiment", "second_order", "--profile", "quik"), "did you mean quick?"),
    ((*RUN, "--seeds", "ten"), "--seeds must be a whole number, got 'ten'"),
    (("audit", "dp-gd"), "dpbench audit needs --algo; see dpbench audit --help"),
    (("plan", "--n", "9"), "dpbench plan needs --schema; see dpbench plan --help"),
    (("plan", "--schema", "s.toml"), "dpbench plan needs --n; see dpbench plan --help"),
    (("compare",), "dpbench compare needs --data; see dpbench compare --help"),
    (("model", "export", "m.json"), "dpbench model export needs --out; see dpbench model export --help"),
    ((*RUN, "--backend", "dusk"), "--backend must be one of 'loky', 'threading', 'dask'; got 'dusk'"),
    (("run", "--nonsense"), "No such option"),
    (("run", "--experiment", "accelerated", "--experiment=second_order"), "--experiment: given 2 times"),
    (("model", "card", "m.json", "--out", "a", "--out", "b"), "--out: given 2 times"),
    (("board", "nix"), "no verb 'nix': known: merge"),
    ((*RUN[:1], "--algo", "dp-sgd", "--dataset", "synthetic", "--set", "batches=alloc"), "did you mean allocated?"),
]


@pytest.mark.parametrize(("args", "expected"), MISTAKES, ids=[" ".join(map(str, a)) for a, _ in MISTAKES])
def test_a_mistake_is_one_line_and_writes_nothing(call, tmp_path, args, expected):
    code, out, err = call(*args)
    assert code == 2
    assert expected in err
    assert err.count("\n") == 1, err
    assert err.startswith("error: ")
    assert out == ""
    assert not list(tmp_path.iterdir())


def test_a_data_set_that_is_not_fetched_says_how_to_fetch_it(call, tmp_path, monkeypatch):
    monkeypatch.delenv("DPBENCH_MIRROR", raising=False)
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / "empty"))
    code, _, err = call("run", "--algo", "dp-gd", "--dataset", "a1a")
    assert code == 2
    assert err == "error: data set a1a is not fetched; run: dpbench fetch a1a\n"


def test_hours_are_not_started_without_being_asked_for(call, tmp_path):
    code, out, err = call(*RUN, "--set", "T=1e12")
    assert (code, out) == (2, "")
    assert "years; to start them all the same, add --yes" in err
    assert not list(tmp_path.iterdir())


def test_listings_fit_a_terminal_of_80_columns(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for what in ("algorithms", "datasets", "experiments"):
        _, out, _ = call("list", what)
        assert max(map(len, out.splitlines())) <= 80, what
    assert "    experiment: nonconvex; settings: alpha, cap, noise" in call("list", "algorithms")[1]
    out = call(*RUN, "--set", "T=5")[1]
    assert max(map(len, out.splitlines())) <= 80
    assert "checked by: dp_accounting" in " ".join(out.split())  # no number stands without its name
    for verbs in ("model", "board"):
        assert "..." not in call(verbs, "--help")[1].replace("[ARGS]...", "")


def test_a_scorecard_fits_a_terminal_of_80_columns_and_keeps_names_whole(monkeypatch, capsys):
    from dpbench.cli import output, report

    monkeypatch.setenv("COLUMNS", "80")
    report._line("held", "a claim of dp-gd-laplace " * 30, "dp-nag-opt and its numbers " * 30)
    output.print_table(["data set", "methods"], [["a1a", "dp-gd-laplace, dp-nag-opt, " * 9]])
    lines = capsys.readouterr().out.splitlines()
    assert 70 < max(map(len, lines)) <= 80
    monkeypatch.setenv("COLUMNS", "200")
    for first in ("x", "xx"):  # so that one of the two fills the line
        report._line("held", f"{first}{' x' * 300}", "")
    assert max(map(len, capsys.readouterr().out.splitlines())) == 132
    assert not [line for line in lines if line.endswith("-")]


def test_new_names_the_folder_to_install(call, tmp_path):
    assert "pip install -e 'a folder/log-cosh', then" in call("new", "loss", "log-cosh", "--out", "a folder")[2]
    assert (tmp_path / "a folder" / "log-cosh" / "pyproject.toml").is_file()


def test_names_are_completed():
    from dpbench.cli import options as completion

    assert "dp-newton-hess-clip" in completion.ALGORITHMS(None, None, "dp-n")
    assert all(name.startswith("dp-n") for name in completion.ALGORITHMS(None, None, "dp-n"))
    assert "covertype" in completion.DATASETS(None, None, "cover")
    assert "second_order/fig2" in completion.EXPERIMENTS(None, None, "second_order/")


def test_an_unknown_key_in_a_grid_is_named_with_its_path(call, tmp_path):
    (tmp_path / "grid.toml").write_text(
        '[[quick]]\nartefacts = ["fig2"]\nproblems = ["synthetic"]\nalgorithms = ["dp-gd"]\n'
        "epsilon = [1]\nseeds = 2\nsetings.T = 3\n"
    )
    code, _, err = call("run", "--experiment", "second_order", "--config", "grid.toml")
    assert code == 2
    assert "setings" in err
    assert "$.quick[0]" in err
    assert err.count("\n") == 1


def test_results_that_cannot_be_written_are_named_before_anything_runs(call, tmp_path):
    (tmp_path / "taken").write_text("")
    code, out, err = call(*RUN, "--set", "T=5", "--results", "taken")
    assert (code, out) == (2, "")
    assert "cannot write results to taken/adhoc/dp-gd" in err
    assert err.count("\n") == 1


def test_an_artefact_without_runs_is_told_of_in_one_line(call):
    code, out, err = call("run", "--experiment", "second_order/fig5")
    assert (code, out, err.count("\n")) == (0, "", 1)
    assert err.startswith("second_order/fig5 has no runs of its own")


def test_a_run_prints_a_table_and_is_found_finished_the_second_time(call):
    code, out, err = call(*RUN, "--eps", 1, "--seeds", 2, "--set", "T=5")
    assert code == 0, err
    header, _, line = out.splitlines()
    assert header.split()[:5] == ["problem", "algorithm", "ε", "T", "seeds"]
    assert line.split()[:5] == ["synthetic", "dp-gd", "1", "5", "2"]
    assert "2 done; 0 finished before" in err
    code, again, err = call(*RUN, "--eps", 1, "--seeds", 2, "--set", "T=5.0")
    assert code == 0
    assert "nothing to do; 2 finished before" in err
    assert again == out


def test_a_number_may_begin_or_end_with_its_point(call):
    """All spellings of 0.1 are one run."""
    run = ("run", "--algo", "dp-gd", "--dataset", "synthetic", "--seeds", 1, "--jobs", 1, "--set", "T=3")
    assert call(*run, "--set", "step=0.5")[0] == 0
    for spelled in (".5", "+.5", "5.e-1"):
        code, _, err = call(*run, "--set", f"step={spelled}")
        assert (code, "1 finished before" in err) == (0, True), err


def test_without_a_verb_there_are_three_commands_to_start_with(call):
    code, out, _ = call()
    lines = [line.split("#")[0].split() for line in out.splitlines() if line.startswith("  dpbench ")]
    assert code == 2
    assert len(lines) == 3
    for _, verb, *words in lines:
        command = group.get_command(None, verb)
        command.make_parser(click.Context(command)).parse_args(words)


def test_another_relation_is_another_run(call, tmp_path):
    from dpbench.run.store import Store

    settings = ("--set", "T=5", "--seeds", 1)
    assert "1 done; 0 finished before" in call(*RUN, *settings)[2]
    assert "1 done; 0 finished before" in call(*RUN, *settings, "--relation", "replace-one")[2]
    assert "nothing to do; 1 finished before" in call(*RUN, *settings, "--relation", "add-remove")[2]
    runs = Store(tmp_path / "results", "adhoc", "dp-gd").runs()
    assert sorted(runs["relation"]) == ["add-remove", "replace-one"]


def test_more_seeds_run_only_what_is_new(call):
    call(*RUN, "--seeds", 2, "--set", "T=5")
    _, _, err = call(*RUN, "--seeds", 3, "--set", "T=5")
    assert "1 done; 2 finished before" in err


def test_a_failing_algorithm_is_a_row_a_line_and_exit_code_1(call, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from dpbench.algorithms.base import Algorithm\n"
        "class Mine(Algorithm):\n"
        "    name = 'mine'\n"
        "    def run(self, problem, W, mechanisms, settings, trace):\n"
        "        raise ZeroDivisionError('on purpose')\n"
    )
    code, _, err = call("run", "--algo", "mine.py:Mine", "--dataset", "synthetic", "--seeds", 1, "--jobs", 1)
    assert code == 1
    assert "failed: mine on synthetic: ZeroDivisionError: on purpose (mine.py:5)\n" in err
    assert "Traceback" not in err
    code, _, err = call("run", "--algo", "mine.py:Mine", "--dataset", "synthetic", "--seeds", 1, "--jobs", 1, "--debug")
    assert code == 1
    assert "Traceback" in err
    assert "    raise ZeroDivisionError('on purpose')\n" in err


@pytest.mark.parametrize(
    ("algorithm", "private"), [("dp-gd", True), ("damped-newton", False), ("dp-gd-laplace-published", False)]
)
def test_every_line_of_a_run_marks_what_is_not_private(call, algorithm, private):
    problem = "accelerated" if "laplace" in algorithm else "synthetic"
    settings = ("--set", "noise_scale=as-published-code") if "laplace" in algorithm else ()
    name = algorithm.removesuffix("-published")
    _, out, err = call(
        "run", "--algo", name, "--dataset", problem, "--seeds", 1, "--jobs", 1, "--set", "T=3", *settings
    )
    lines = [line for line in (*out.splitlines()[2:], *err.splitlines()) if name in line and "rows in" not in line]
    assert len(lines) >= 2
    assert all(("not private" in line) != private for line in lines), lines


def test_a_loss_with_no_digit_of_the_data_in_it_is_diverged(call, tmp_path):
    from dpbench.run.store import Store

    code, out, _ = call(*RUN, "--eps", "1e-300", "--set", "T=5", "--seeds", 1)
    assert code == 0
    assert "inf" in out
    assert set(Store(tmp_path / "results", "adhoc", "dp-gd").runs()["status"]) == {"diverged"}


def test_a_file_algorithm_may_not_take_the_name_of_a_built_in_one(call, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from dpbench.algorithms.base import Algorithm\nclass Mine(Algorithm):\n    name = 'dp-gd'\n"
    )
    code, _, err = call("run", "--algo", "mine.py:Mine", "--dataset", "synthetic")
    assert (code, "the name dp-gd is taken" in err) == (2, True)
    code, _, err = call("run", "--algo", "mine.py:Mein", "--dataset", "synthetic")
    assert (code, "did you mean Mine?" in err) == (2, True)
    for odd in ("../../escape", "dp-gd\r", "dp\u2011gd"):  # another folder, a terminal's command, a look-alike
        (tmp_path / "odd.py").write_text(
            f"from dpbench.algorithms.base import Algorithm\nclass Odd(Algorithm):\n    name = {odd!a}\n"
        )
        code, _, err = call("run", "--algo", "odd.py:Odd", "--dataset", "synthetic")
        assert (code, "take letters, digits" in err, odd in err) == (2, True, odd.startswith("."))
    assert not (tmp_path / "results").exists()


@pytest.mark.thorough
def test_an_algorithm_that_overspends_is_a_failure(call, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from dpbench.algorithms.base import Algorithm, Disclosure\n"
        "class Mine(Algorithm):\n"
        "    name = 'mine'\n"
        "    discloses = (Disclosure('w', 'the iterate'),)\n"
        "    def run(self, problem, W, mechanisms, settings, trace):\n"
        "        return mechanisms.gaussian(W, sensitivity=1.0, rho=2 * mechanisms.budget.rho, label='w')\n"
    )
    code, _, err = call("run", "--algo", "mine.py:Mine", "--dataset", "synthetic", "--seeds", 1, "--jobs", 1)
    assert code == 1
    assert "the ledger composes to ε" in err


def test_editing_a_file_algorithm_makes_its_runs_new(call, tmp_path):
    source = (
        "from dpbench.algorithms.base import Algorithm, Disclosure\n"
        "class Mine(Algorithm):\n"
        "    name = 'mine'\n"
        "    discloses = (Disclosure('w', 'the iterate'),)\n"
        "    def run(self, problem, W, mechanisms, settings, trace):\n"
        "        return mechanisms.gaussian(W, sensitivity=1.0, rho=mechanisms.budget.rho, label='w')\n"
    )
    args = ("run", "--algo", "mine.py:Mine", "--dataset", "synthetic", "--seeds", 1, "--jobs", 1)
    (tmp_path / "mine.py").write_text(source)
    assert "1 done; 0 finished before" in call(*args)[2]
    assert "nothing to do; 1 finished before" in call(*args)[2]
    (tmp_path / "mine.py").write_text(source + "# changed\n")
    assert "1 done; 0 finished before" in call(*args)[2]


def test_lists_name_everything_registered(call):
    code, out, _ = call("list")
    assert code == 0
    for name in ("dp-gd", "dp-newton-qu-add", "covertype12", "synthetic", "second_order", "table3"):
        assert name in out
    assert [len(part.split()) > 3 for part in out.split("\n\n")] == [True] * 4  # a blank line between, none before


def test_from_a_table_to_a_decided_schema(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i},{20 + i % 40},{'ab'[i % 2]},{'yes' if i % 3 else 'no'}\n" for i in range(200))
    (tmp_path / "t.csv").write_text(",age,kind,label\n" + rows)
    code, out, err = call("schema", "t.csv", "--target", "label", "--out", "s.toml")
    assert (code, "decide 4 entries, then run: dpbench schema t.csv --check s.toml" in out) == (0, True), out
    assert "note: Unnamed: 0: a row number or identifier; dropped" in err
    assert (
        "dpbench schema t.csv --check 'my s.toml'\n"
        in call("schema", "t.csv", "--target", "label", "--out", "my s.toml")[1]
    )  # as a shell takes it
    code, out, _ = call("schema", "t.csv", "--target", "label")
    assert (code, out) == (0, (tmp_path / "s.toml").read_text())
    code, out, _ = call("schema", "t.csv", "--check", "s.toml")
    assert (code, out.count("came from the data: decide")) == (1, 4)
    text = (tmp_path / "s.toml").read_text().replace("20.0, 59.0", "0, 50")
    (tmp_path / "s.toml").write_text("".join(f"{line}\n" for line in text.splitlines() if "decide =" not in line))
    code, out, _ = call("schema", "t.csv", "--check", "s.toml")
    assert (code, out) == (1, "age: 45 of 200 values lie beyond 0 to 50\n")
    code, _, err = call("schema", "t.csv", "--target", "label", "--out", "s.toml")
    assert (code, "out: s.toml is there already" in err) == (2, True)
    assert call("schema", "t.csv", "--check", "none.toml")[0] == 2


def test_help_names_every_verb_and_imports_neither_solvers_nor_plots():
    script = (
        "import sys\nfrom dpbench.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'scipy', 'sklearn', 'dp_accounting', 'matplotlib', 'pandas', 'pyarrow', 'joblib'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for verb in ("fetch", "list", "run", "status", "report"):
        assert f"\n  {verb} " in done.stdout
    assert "HEAVY []" in done.stdout


def test_status_waits_for_no_pandas(tmp_path):
    """Which takes as long to load as a status: the papers' modules import it, and a status calls nothing of it."""
    older = {"key": "k", "problem": "synthetic", "algorithm": "dp-gd", "status": "done", "settings": '{"T":5}'}
    write(Store(tmp_path / "results", "quick", "second_order"), [older])  # of before some settings, which reading adds
    script = (
        "import sys\nfrom dpbench.cli import main\n"
        "try:\n    main(['status', '--profile', 'quick'])\nexcept SystemExit:\n    pass\n"
        "print('LOADED', sum(name.startswith('pandas.') for name in sys.modules))\n"
        "import pandas as pd\nprint('LATER', len(pd.DataFrame({'a': [1, 2]})), isinstance(pd.NA, type(pd.NA)))\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "leaderboard/places" in done.stdout
    assert done.stdout.endswith("LOADED 0\nLATER 2 True\n")


@pytest.mark.thorough
def test_interrupt_keeps_what_is_finished_and_exits_130(tmp_path):
    command = ["run", "--algo", "dp-gd", "--dataset", "synthetic", "--set", "T=1000000", "--jobs", "1", "--yes"]
    process = processes.start(tmp_path, main, command, log=tmp_path / "log")
    deadline = time.monotonic() + 60
    while not (tmp_path / "results/adhoc/dp-gd/runs").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.5)  # it iterates by now
    os.kill(process.pid, signal.SIGINT)
    process.join(60)
    said = (tmp_path / "log").read_text()
    assert process.exitcode == 130, said
    assert "interrupted" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("verb", list(VERBS))
def test_the_help_of_a_verb_has_an_example(verb, call):
    code, out, _ = call(verb, "--help")
    assert code == 0
    assert f"\n  dpbench {verb}" in out


# What a verb passes on, and the options that are of the terminal alone.
CALLS = {
    "fetch": ([dpbench.fetch], set()),
    "list": ([dpbench.listed], {"cite"}),
    "run": ([dpbench.run_algorithm, dpbench.run_experiment], {"debug", "yes"}),
    "compare": ([dpbench.compare, dpbench.forget], {"debug", "everything", "forget"}),
    "schema": ([dpbench.draft_schema, dpbench.check_data], set()),
    "plan": ([dpbench.plan], set()),
    "model card": ([dpbench.card], set()),
    "model export": ([dpbench.export], set()),
    "model statement": ([dpbench.statement], set()),
    "status": ([dpbench.status, dpbench.compact], {"compact"}),
    "report": ([dpbench.report, dpbench.scorecard], {"check"}),
    "diff": ([dpbench.diff], {"save"}),
    "new": ([dpbench.new], set()),
    "archive": ([dpbench.archive], set()),
    "verify": ([dpbench.verify], set()),
    "submit": ([dpbench.submit, dpbench.check_submission], set()),
    "reproduce": ([], set()),
    "board merge": ([dpbench.merge], set()),
    "audit": ([dpbench.audit], set()),
}
LISTENERS = {"progress", "notify", "reading", "estimated", "asked"}  # what no command line can say


@pytest.mark.parametrize("verb", CALLS)
def test_an_option_is_an_argument_of_the_function(verb):
    """Each has its argument of that name, and each argument its option."""
    first, _, second = verb.partition(" ")
    command = group.get_command(None, first)
    functions, own = CALLS[verb]
    command = command.commands[second] if second else command
    arguments = [one for function in functions for one in inspect.signature(function).parameters.values()]
    assert {one.name for one in command.params} - own == {one.name for one in arguments} - LISTENERS
    for one in (each for each in command.params if isinstance(each, click.Option)):
        assert one.multiple == ("may be repeated" in one.help or one.name == "accept"), one.name
        assert one.is_flag or " " not in (one.metavar or ""), one.name
        assert " " in one.help, one.name
        default = None if one.is_flag or one.multiple else one.default
        told = one.get_help_record(click.Context(command))[1]
        if isinstance(default, int | float | str) and default != "":
            assert f"[default: {default}]" in told, one.name
        else:
            assert "[default:" not in told.removesuffix("to catch halved noise]").partition("[default: enough")[0], (
                one.name
            )
    # What a user leaves out is what a caller leaves out.
    without = {one.name: one.get_default(click.Context(command)) for one in command.params if not one.required}
    given = {name: one[0] if isinstance(one, list) else one for name, one in without.items()}
    known = [one for one in arguments if isinstance(given.get(one.name), bool | int | float | str)]
    assert [(one.name, one.default) for one in known] == [(one.name, given[one.name]) for one in known]


def test_every_verb_has_its_calls():
    assert {verb.partition(" ")[0] for verb in CALLS} == VERBS.keys()


def test_reproduce_calls_the_other_verbs_and_stops_where_one_fails(monkeypatch, capsys):
    def stopped(name, **given):
        raise UserError("no room")

    called = []
    monkeypatch.setattr(dpbench, "fetch", lambda names, **given: called.append(names) or [])
    monkeypatch.setattr(dpbench, "run_experiment", stopped)
    with pytest.raises(SystemExit) as end:
        main(["reproduce"])
    assert (end.value.code, called) == (2, [("all",)])
    assert capsys.readouterr().err.splitlines() == [
        "$ dpbench fetch all",
        "$ dpbench run --experiment all --profile quick",
        "error: no room",
    ]


@pytest.mark.parametrize(("codes", "ended"), [([0, None, 0, 0], 0), ([0, 1], 1), ([0, 0, 0, 1], 1)])
def test_reproduce_ends_with_the_first_code_that_is_not_0(monkeypatch, codes, ended):
    called = []
    monkeypatch.setattr(group, "main", lambda words, **_: called.append(words[0]) or codes[len(called) - 1])
    assert group.get_command(None, "reproduce").callback() == ended
    assert called == ["fetch", "run", "report", "diff"][: len(codes)]


def test_too_little_memory_is_one_line(call, monkeypatch):
    def full(name):
        raise MemoryError

    monkeypatch.setattr(dpbench, "listed", full)
    told = "out of memory; take fewer rows, fewer processes (--jobs 1) or a machine with more of it"
    assert call("list", "losses") == (2, "", f"error: {told}\n")


def test_a_file_that_ends_too_early_is_not_taken_for_ctrl_d(monkeypatch):
    """click turns EOFError into the same Abort as Ctrl-C."""

    def cut(*arguments, **named):
        raise EOFError("cut")

    monkeypatch.setattr(dpbench, "standings", cut)
    with pytest.raises(EOFError, match="cut"):
        main(["status"])


def test_what_a_run_warns_of_is_said_behind_its_table(call):
    code, out, err = call(
        "run", "--algo", "dp-gd-oracle", "--dataset", "synthetic", "--jobs", 1, "--seeds", 1, "--set", "T=2"
    )
    assert (code, "not private: dp-gd-oracle" in err) == (0, True), err
    assert "dp-gd-oracle" in out


def test_a_reader_that_has_gone_gets_no_verdict_and_no_traceback():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "dpbench", "list", "losses"], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.thorough_for("latin-1", "cp1252")
@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252"])
def test_what_a_terminal_has_no_sign_for_is_no_error(encoding):
    command = [sys.executable, "-m", "dpbench", "list", "losses"]
    done = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": encoding})
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"pseudo-huber" in done.stdout


def test_code_of_others_that_exits_does_not_end_a_verb_with_its_own_code(monkeypatch, capsys):
    monkeypatch.setattr(dpbench, "listed", lambda *_: sys.exit(0))
    with pytest.raises(SystemExit, match="2"):
        main(["list", "losses"])
    assert "error: code that is not dpbench's ended the program, with 0" in capsys.readouterr().err


def page(text):
    """The lines of a page written in a test, without the indentation."""
    return textwrap.dedent(text).strip("\n") + "\n"


def verdict(bound, claim, unit="μ"):
    return AuditVerdict(bound, claim, 0.1, 0.2, 100, unit)


AUDITED = Audit(
    "dp-gd", 1.0, 1e-6, 100, {"whole run": verdict(0.1, 0.4), "gradient": verdict(0.3, 0.4)},
    moved={"gradient": 0.9871}, least=400,
)  # fmt: skip
LEAKY = Audit(
    "leaky", 4.0, 1e-6, 100, {"whole run": verdict(5.0, 4.0, "ε")}, moved={"sum": 2.0}, pair="a row of 1s", public="L"
)
SERVED = Audit("my.py:M", 1.0, 1e-6, 10, {}, served={"n = 4": "3 releases"}, code="served")


def test_an_audit_prints_each_test_what_the_columns_are_and_last_what_failed(call, monkeypatch):
    found = [AUDITED, LEAKY]
    monkeypatch.setattr(dpbench, "audit", lambda *_, **__: found)
    monkeypatch.setenv("COLUMNS", "120")
    failed = call("audit", "--algo", "all")
    assert failed[:2] == (1, page("""
        algorithm  ε  test       runs  moves    bound  claim  share  verdict
        ─────────  ─  ─────────  ────  ─────  ───────  ─────  ─────  ───────
        dp-gd      1  whole run   100         μ ≥ 0.1    0.4   0.25  pass
        dp-gd      1  gradient    100  0.987  μ ≥ 0.3    0.4   0.75  pass
        leaky      4  whole run   100           ε ≥ 5      4   1.25  FAIL
        leaky      4  sum                  2
        moves: how far a neighbour moves a release, over the sensitivity in the ledger; at most 1 if sound
        bound, claim: of the privacy loss, μ of Gaussian DP or ε; share: one over the other

        dp-gd at ε = 1: 100 runs cannot reach the claim; --runs 400 could
        leaky at ε = 4: not audited, as it counts as public: L
        leaky at ε = 4: neighbours that were searched: a row of 1s
        FAIL: leaky at ε = 4: a bound is above its claim
    """))  # fmt: skip
    found = [AUDITED]
    passed = call("audit", "--algo", "all")
    assert passed[0] == 0
    assert passed[1].endswith("could\npass: no bound is above its claim (at 99 %); a pass proves nothing\n")
    found = [AUDITED._replace(moved={}, defect="draws other noise")]
    assert call("audit", "--algo", "all")[1].endswith("pass\n\n" + page("""
        dp-gd at ε = 1: 100 runs cannot reach the claim; --runs 400 could
        FAIL: dp-gd at ε = 1: draws other noise
    """))  # fmt: skip


def test_an_audit_of_ones_own_code_says_where_it_ran_and_how_far_that_can_be_trusted(call, monkeypatch):
    found = [SERVED]
    monkeypatch.setattr(dpbench, "audit", lambda *_, **__: found)
    kept = "it keeps its ε, as the rows are in another process"
    assert call("audit", "--algo", "my.py:M")[:2] == (0, page(f"""
        algorithm  ε  served at  what it did
        ─────────  ─  ─────────  ───────────
        my.py:M    1  n = 4      3 releases

        pass: served: {kept}
    """))  # fmt: skip
    found = [SERVED._replace(code="unconfined")]
    without = "if it does not reach beyond its own: install\nbubblewrap to be sure"
    assert call("audit", "--algo", "my.py:M")[1].endswith(f"\n\npass: unconfined: {kept}, {without}\n")
    found = [SERVED._replace(defect="two runs differ", runs=0)]
    said = "\nFAIL: my.py:M at ε = 1: two runs differ; --in-process audits it beside the rows\n"
    assert call("audit", "--algo", "my.py:M")[:2] == (1, said)


FOLDER = {"results": "results"}
METHOD = Made(manifest=Made(method="mine", title="My method"))
PASSED = {"replicates": [Made(rows=[1, 2]), Made(rows=[3])], "how": "isolated", "left_out": {}, "problems": []}
CHECKED = Made(submission=METHOD, **PASSED, sound=True, placed=True)
HOLDS = {"manifest": Made(experiment="mine", title="My paper", profile="quick", distribution="my-paper 1.0"),
         "rows": 12345, "digest": "abc", "code_versions": ["0.1", "0.2", "0.3"], "outcome": "holds", "problems": [],
         "unchecked": [], "accepted": [], "checked": ["12 keys"]}  # fmt: skip
CHECK, ON_FULL = {"profile": "full", "problems": (), "trusted": False, "jobs": None, **FOLDER}, {"profile": "full"}
DONE = {"second_order": (1, 2345), "nonconvex": (1200, 0)}


@pytest.mark.parametrize(
    ("words", "function", "result", "given", "said"),
    [
        ("archive mine", "archive",
         Made(path="mine-full.zip", rows=1234, planned=23456, left_out=["data.bin"], digest="abc"),
         (("mine", "full"), {"out": None, **FOLDER}),
         (0, "mine-full.zip: 1,234 rows of the 23,456 runs of its grid\ndigest: abc\n",
          "left out, as too large for code: data.bin\n")),
        ("verify mine.zip --accept seconds", "verify", Made(**HOLDS),
         (("mine.zip",), {"sample": 5, "seed": None, "accept": ("seconds",)}),
         (0, "mine (My paper), quick profile: HOLDS\n12,345 rows of my-paper 1.0, by 0.1, 0.2, 0.3\ndigest: abc\n"
          "  checked      12 keys\n", "")),
        ("verify mine.zip --seed 7", "verify",
         Made(**HOLDS | {"outcome": "wrong", "problems": ["a", "b"], "unchecked": ["c"], "accepted": ["d"],
                         "code_versions": ["0.1", "0.2", "0.3", "0.4", "0.5"]}),
         (("mine.zip",), {"sample": 5, "seed": 7, "accept": ()}),
         (1, "mine (My paper), quick profile: WRONG\n"
          "12,345 rows of my-paper 1.0, by 0.1, 0.2, 0.3 and 2 others\ndigest: abc\n"
          "  WRONG        a\n  WRONG        b\n  NOT CHECKED  c\n  accepted     d\n  checked      12 keys\n", "")),
        ("verify mine.zip", "verify", Made(**HOLDS | {"outcome": "not checked"}), None,
         (3, "mine (My paper), quick profile: NOT CHECKED\n12,345 rows of my-paper 1.0, by 0.1, 0.2, 0.3\n"
          "digest: abc\n  checked      12 keys\n", "")),
        ("submit --check mine.zip", "check_submission", CHECKED, (("mine.zip",), CHECK),
         (0, "mine (My method): 3 runs on private copies; isolated\nmine.zip: sound, with a place\n", "")),
        ("submit --check mine.zip", "check_submission", Made(**vars(CHECKED) | {"placed": False}), None,
         (0, "mine (My method): 3 runs on private copies; isolated\nmine.zip: sound; without a sandbox (bubblewrap) "
          "around it, so it would have no place\n", "")),
        ("submit --check mine.zip", "check_submission",
         Made(**vars(CHECKED) | {"sound": False, "left_out": {"a1a": "not fetched"}, "problems": ["two runs differ"]}),
         None,
         (1, "  left out  a1a: not fetched\n  WRONG     two runs differ\n"
          "mine (My method): 3 runs on private copies; isolated\nmine.zip: its check fails\n", "")),
        ("fetch a1a adult", "fetch", [Made(name="a1a", status="ready", detail="")],
         ((("a1a", "adult"),), {"mirror": None}),
         (0, "data set  status  detail\n────────  ──────  ──────\na1a       ready\n", "")),
        ("fetch a1a", "fetch", [Made(name="a1a", status="missing", detail="x")], None,
         (1, "data set  status   detail\n────────  ───────  ──────\na1a       missing  x\n", "")),
        ("fetch all", "fetch", [Made(name="a1a", status="missing", detail="x")], None,
         (0, "data set  status   detail\n────────  ───────  ──────\na1a       missing  x\n", "")),
        ("fetch all", "fetch", [Made(name="a1a", status="failed", detail="x")], None,
         (1, "data set  status  detail\n────────  ──────  ──────\na1a       failed  x\n", "")),
        ("board merge mine.zip", "merge", "3 runs added",
         (("mine.zip",), {"replace": False, "trusted": False, "jobs": None, **ON_FULL, **FOLDER}),
         (0, "3 runs added; next: dpbench report --experiment leaderboard\n", "")),
        ("status --compact", "compact", DONE, (("all",), ON_FULL | FOLDER),
         (0, "second_order: 1 row kept, 2,345 dropped\nnonconvex: 1,200 rows kept, 0 dropped\n", "")),
        ("status --compact --experiment mine --profile quick", "compact", {},
         (("mine",), {"profile": "quick"} | FOLDER), (0, "", "")),
        ("list --cite", "cite", "@misc{x}\n", ((None,), {}), (0, "@misc{x}\n", "")),
        ("schema t.csv --check s.toml", "check_data", [], (("t.csv", "s.toml"), {}),
         (0, "t.csv: every cell is as s.toml says\n", "")),
        ("schema t.csv --check s.toml", "check_data", ["a: b"], None, (1, "a: b\n", "")),
        ("model export m.json --out m.onnx", "export", None, (("m.json",), {"out": "m.onnx"}),
         (0, "", "wrote m.onnx\n")),
        ("compare --data t.csv --forget", "forget", ["a", "b"], (("t.csv",), FOLDER),
         (0, "removed a\nremoved b\n", "")),
        ("compare --data t.csv --forget", "forget", [], None, (0, "nothing is kept of t.csv\n", "")),
        ("report --experiment mine", "report", None, (("mine",), {"profile": None, "figures": "figures", **FOLDER}),
         (0, "", "")),
        ("diff a --save s.json", "summarise", 12345, (("a", "s.json"), {}), (0, "s.json: 12,345 settings\n", "")),
        ("new loss log-cosh", "new", ["log-cosh/a", "log-cosh/b"], (("loss", "log-cosh"), {"out": "."}),
         (0, "log-cosh/a\nlog-cosh/b\n", "next: pip install -e ./log-cosh, then see its README.md\n")),
    ],
)  # fmt: skip
def test_a_verb_asks_its_function_once_and_tells_what_it_found(call, monkeypatch, words, function, result, given, said):
    asked = []
    monkeypatch.setattr(dpbench, function, lambda *parts, **named: asked.append((parts, named)) or result)
    assert call(*words.split()) == said
    ((parts, named),) = asked
    assert given is None or (parts, {name: one for name, one in named.items() if name not in LISTENERS}) == given


def forecast(method, epsilon, beats, kept):
    def worlds(middle, half):
        return middle + half * np.linspace(-1, 1, 39)

    scores = {"log loss": worlds(0.5, 0.1), "accuracy": worlds(0.8, 0.02), "AUC": worlds(0.7, 0.1)}
    releases = ["gradient: σ = 3 (5 times)"] if beats == beats else []
    settings = {"T": 5, "step": 1.0} if beats == beats else {}
    found = scores | {"kept": worlds(kept, 0.3)}
    return Forecast(method, epsilon, 1e-6, settings, releases, 0.98765 * epsilon, found, beats)


def test_a_plan_answers_in_a_sentence_then_in_tables(call, monkeypatch):
    """What a user decides by: the ε and n to ask for, and what would be released."""
    found = Forecasts(
        "classes", 1300, 12, 1300, 39,
        [forecast("objpert", 1.0, np.nan, 0.5), forecast("dp-gd", 1.0, 0.25, 0.4),
         forecast("objpert", 3.0, np.nan, -0.1)],
        {"one answer": {score: np.full(39, 0.6) for score in ("AUC", "accuracy", "log loss", "kept")}},
        {"aop": "slow", "dp-mf": "new", "dp-sgd": "slow"},
        [Needed("ε", 1300, 0.52, 0.3, 0.8, 10.0), Needed("ε", 1300, 0.52, 0.3, np.inf, 10.0),
         Needed("n", 1.0, 1234.0, 900.0, 5678.0, 1e6), Needed("n", 3.0, np.inf, 900.0, np.inf, 1e6)],
        ["the classes are balanced"],
    )  # fmt: skip
    monkeypatch.setattr(dpbench, "plan", lambda *_, **__: found)
    monkeypatch.setenv("COLUMNS", "110")
    code, out, err = call("plan", "--schema", "x.toml", "--n", 1300, "--reach", "auc=0.8")
    assert (code, err) == (0, "left out: aop, dp-sgd: slow\nleft out: dp-mf: new\nnote: the classes are balanced\n")
    assert out == page("""
        At ε = 1 expect AUC 0.70 of objpert (in 19 of 20 tables 0.61 or more): 50 % of what can be learned without
        privacy (at least 22 %).
        At ε = 3 expect AUC 0.70 of objpert (in 19 of 20 tables 0.61 or more): no better than one answer for all.
        For auc=0.8 at n = 1,300: ε = 0.52 is enough in half of the tables, ε = 0.8 in 19 of 20.
        For auc=0.8 at n = 1,300: ε = 0.52 is enough in half of the tables, in 1 of 20 or more not even 10.
        For auc=0.8 at ε = 1: n = 1,200 is enough in half of the tables, n = 5,700 in 19 of 20.
        For auc=0.8 at ε = 3 no n up to 1,000,000 is enough in half of the tables.

        1,300 rows, 12 columns once encoded; 39 simulated tables. Median [nine tenths of the tables]; kept: the share
        of what can be learned without privacy; beats it: the share of the tables in which a method has a lower loss
        than the default.

        ε  method             AUC                accuracy           log loss           kept                 beats it
        ─  ─────────────────  ─────────────────  ─────────────────  ─────────────────  ───────────────────  ────────
        1  objpert (default)  0.70 [0.61, 0.79]  0.80 [0.78, 0.82]  0.50 [0.41, 0.59]  0.50 [0.22, 0.78]
           dp-gd              0.70 [0.61, 0.79]  0.80 [0.78, 0.82]  0.50 [0.41, 0.59]  0.40 [0.12, 0.68]    25 %
        3  objpert (default)  0.70 [0.61, 0.79]  0.80 [0.78, 0.82]  0.50 [0.41, 0.59]  -0.10 [-0.38, 0.18]
           (one answer)       0.60 [0.60, 0.60]  0.60 [0.60, 0.60]  0.60 [0.60, 0.60]

        ε  method   planned ε  δ      settings       releases
        ─  ───────  ─────────  ─────  ─────────────  ─────────────────────────
        1  objpert  0.9877     1e-06  –              said while it runs
        1  dp-gd    0.9877     1e-06  T=5, step=1.0  gradient: σ = 3 (5 times)
        3  objpert  2.963      1e-06  –              said while it runs

    """) + "\n"  # fmt: skip


@pytest.mark.parametrize(
    ("interval", "shown"),
    [
        ((0.8149, 0.7749, 0.8451), "0.81 [0.77, 0.85]"),
        ((-0.001, -0.004, 0.004), "0.00 [0.00, 0.00]"),  # never -0.00
        ((19.0, 18.0, 19.994), "19.00 [18.00, 19.99]"),
        ((19.0, 18.0, 20.0), "19.0 [18.0, 20.0]"),
        ((-30.0, -199.96, 5.0), "-30.0 [-200.0, 5.0]"),
        ((1234.5, 200.0, 5678.9), "1,234 [200, 5,679]"),
        ((-100.0, -200.0, 5.0), "-100 [-200, 5]"),
        ((np.nan, np.nan, np.nan), "–"),
    ],
)
def test_a_score_has_the_digits_that_its_interval_has_in_common(interval, shown):
    assert own._interval(*interval) == shown


@pytest.mark.parametrize(
    ("columns", "kept"),
    [(25, ["method", "loss", "settings"]), (24, ["method", "loss"]), (12, ["method", "loss"]), (11, ["method"])],
)
def test_a_table_that_is_too_wide_by_one_sign_loses_its_least_column(monkeypatch, capsys, columns, kept):
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [["dp-gd", "0.5", "T=5, step=1"], ["e\u0301", "0.25", ""]]  # two code points, one column
    output.print_table(["method", "loss", "settings"], rows, right={1}, droppable=["settings", "loss"])
    head, rule, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == kept
    assert len(rule) == {3: 25, 2: 12, 1: 6}[len(kept)]
    assert first.split()[: len(kept)] == ["dp-gd", "0.5", "T=5,"][: len(kept)]
    if len(kept) > 1:
        assert second == "e\u0301       0.25"
        assert first.index("0.5") == 9  # its end stands under the end of 0.25


def ranked(*methods):
    """A ranking's table of (method, rank, beaten by, log loss, private, what it counts as public)."""
    columns = ["algorithm", "rank", "beaten_by", "mean", "private", "counts_public"]
    scores = {"spread": 0.02, "accuracy": 0.8, "auc": 0.85, "balanced": 0.7, "precision": 0.6, "calibration": 0.05}
    more = {"gain": 0.1, "gain_se": 0.01, "gain_spread": 0.02, "epsilon": 1.0, "delta": 1e-6, "accounting": "tight"}
    more |= {"loss_gain": 0.1, "loss_gain_se": 0.01}
    return pd.DataFrame(methods, columns=columns).assign(settings='{"T":5}', code="built in", **scores, **more)


def test_a_comparison_shows_the_five_best_the_strictly_private_first_and_who_is_left_out(call, monkeypatch):
    table = ranked(
        ("dp-gd", 1, 0, 0.5, True, "n, and the scales"), ("aop", 2, 0, 0.51, True, ""), ("dp-sgd", 3, 1, 0.6, True, ""),
        ("dp-mf", 4, 2, 0.61, True, ""), ("damped-newton", 5, 3, 0.62, False, ""), ("dp-cd", 6, 4, 0.63, True, ""),
        ("dp-gcd", 7, 5, 0.64, True, ""),
    )  # fmt: skip
    names = {name: name for name in table["algorithm"]}
    one = Ranking(1.0, table, {"dp-tr": "loss", "opt": "loss"}, {"dp-nag": "ValueError"}, names, ["a traceback"])
    other = Ranking(2.0, table[1:2], {"dp-tr": "loss", "opt": "loss", "dp-mf": "slow"}, {}, names)
    constant = Reference("always no", 0.7, accuracy=0.75)
    found = Comparison([one, other], "binary", [], [], [constant], 800, 200, 1.0, 0.5, "fit()", ["Take aop."], "Price.")
    monkeypatch.setattr(dpbench, "compare", lambda **_: found)
    monkeypatch.setenv("COLUMNS", "110")
    code, out, err = call("compare", "--data", "t.csv", "--seeds", 1)
    assert (code, err) == (1, page("""
        left out: dp-tr, opt: loss
        left out: dp-nag: ValueError (ε = 1)
        left out: dp-mf: slow (ε = 2)
        Price.
    """))  # fmt: skip
    assert out == page("""
        ε = 1
        #   method       log loss     accuracy  AUC   settings  accounting
        ──  ───────────  ───────────  ────────  ────  ────────  ──────────
        2=  aop          0.51 ± 0.02  0.8       0.85            tight
        3   dp-sgd       0.6 ± 0.02   0.8       0.85  T=5       tight
        4   dp-mf        0.61 ± 0.02  0.8       0.85            tight
        6   dp-cd        0.63 ± 0.02  0.8       0.85            tight
        7   dp-gcd       0.64 ± 0.02  0.8       0.85            tight
            (always no)  0.7          0.75      –
        and 2 more methods: --all shows every one

        ε = 2
        #   method       log loss     accuracy  AUC   settings  accounting
        ──  ───────────  ───────────  ────────  ────  ────────  ──────────
        2=  aop          0.51 ± 0.02  0.8       0.85            tight
            (always no)  0.7          0.75      –

        Scores are of 200 of 1,000 rows, held out by position: exact, so not private. Means over 1 seed ± the standard
        deviation of one fit's score on other such rows; "=": within two standard errors of the best. The recommended
        method is chosen on the other rows. Methods that count nothing of the data as public come first. Each is at
        its public rule in n, d and ε.
        counts as public, beside n: n, and the scales (dp-gd)
        Take aop.

        fit()
    """)  # fmt: skip
    assert call("compare", "--data", "t.csv", "--debug")[2].endswith("a traceback\nPrice.\n")
    assert "more method" not in call("compare", "--data", "t.csv", "--all")[1]
    code, out, err = call("compare", "--data", "t.csv", "--seeds", 2)
    assert "Means over 2 seeds ±" in out
    found = dataclasses.replace(found, rankings=[other], snippet="")
    code, out, err = call("compare", "--data", "t.csv")
    assert (code, err) == (0, "left out: dp-tr, opt: loss\nleft out: dp-mf: slow\n")
    assert out.startswith("#   method")
    assert out.endswith("Take aop.\n")
    found = dataclasses.replace(found, rankings=[dataclasses.replace(other, table=table[:0])])  # nothing to recommend
    assert call("compare", "--data", "t.csv")[0] == 1


def test_an_hour_is_started_and_more_is_not():
    run._refuse_long_runs(3600.0)
    with pytest.raises(UserError, match="these runs take about 1 hour; to start them all the same, add --yes"):
        run._refuse_long_runs(3601.0)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (True, "yes"),
        (False, "no"),
        (np.inf, "no bound"),
        (0.123456, "0.1235"),
        (None, "?"),
        (12345, "12,345"),
        ("a", "a"),
    ],
)
def test_a_cell_of_a_listing_says_what_there_is(value, told):
    assert run._cell(value) == told


@pytest.mark.parametrize(
    ("score", "kept", "told"),
    [
        ((-0.001, -0.004, 0.0), (0.004, -0.2, 0.0), "R² 0.00 of dp-gd (in 19 of 20 tables 0.00 or more): "
         "0 % of what can be learned without privacy (at least 0 %)."),
        ((0.126, 0.114, 0.5), (0.876, 0.754, 1.0), "R² 0.13 of dp-gd (in 19 of 20 tables 0.11 or more): "
         "88 % of what can be learned without privacy (at least 75 %)."),
        ((-0.126, -0.5, 0.5), (0.0, -0.1, 0.0), "R² -0.13 of dp-gd (in 19 of 20 tables -0.50 or more): "
         "no better than one answer for all."),
    ],
)  # fmt: skip
def test_what_to_expect_of_the_default_is_never_less_than_nothing_for_its_sign_alone(capsys, score, kept, told):
    one = Made(method="dp-gd", epsilon=0.5, interval=lambda name: kept if name == "kept" else score)
    other = Made(method="aop", epsilon=0.5, interval=None)
    own._answer(Made(forecasts=[one, other], scores=["R²", "kept"], needed=[]), None)
    assert " ".join(capsys.readouterr().out.split()) == f"At ε = 0.5 expect {told}"
