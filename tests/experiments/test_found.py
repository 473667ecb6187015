"""Papers of installed packages are found as the built-in ones are, and run into folders of their own."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

import dpbench
from dpbench import experiments
from dpbench.errors import UserError
from dpbench.experiments import running
from dpbench.reporting import errata_pages

PAPER = """
import subprocess
import sys
from dpbench.study.experiment import Experiment
from dpbench.study.output import Table
from dpbench.study.claims import Verdict
from tests.declared import artefact, claim

@artefact("table1", "Table 1: excess loss")
def table1(context):
    rows = context.rows("table1")
    return Table(rows[["seed", "excess"]].astype(str), caption="Two seeds.")

@claim("small", "The excess loss is below ten.", place="Table 1", shows="table1")
def small(context):
    return Verdict.of(context.rows("table1")["excess"].max() < 10, "of two seeds")

EXPERIMENT = Experiment(name="tiny_paper", title="A tiny paper", citation="Nobody 2026", package="tiny_paper",
                        modules=(sys.modules[__name__],), short="Tiny")
OTHER = Experiment(name="another", title="", citation="", package="tiny_paper")
TAKEN = Experiment(name="all", title="", citation="", package="tiny_paper")
NO_EXPERIMENT = "text"
"""
GRID = """
[[small]]
artefacts = ["table1"]
problems = ["synthetic"]
algorithms = ["dp-gd"]
epsilon = [1]
seeds = 2
settings.T = 5
"""
BIB = "@misc{tiny,\n  title = {A tiny paper},\n  doi = {10.1/tiny},\n}\n"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A function that installs entry points, name → what of the package they name."""
    package = tmp_path / "site" / "tiny_paper"
    package.mkdir(parents=True)
    for name, text in (("__init__.py", PAPER), ("grid.toml", GRID), ("paper.bib", BIB)):
        (package / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(package.parent)

    def clear():
        for one in (experiments.get, experiments.names, experiments._points, errata_pages.computed):
            one.cache_clear()

    def install(**points):
        found = [EntryPoint(name, f"tiny_paper:{what}", "dpbench.experiments") for name, what in points.items()]
        real = experiments.importlib.metadata.entry_points
        monkeypatch.setattr(
            "importlib.metadata.entry_points",
            lambda *, group: found if group == experiments.ENTRY_POINTS else real(group=group),
        )
        clear()

    yield install
    monkeypatch.undo()
    sys.modules.pop("tiny_paper", None)
    clear()


def test_every_verb_takes_the_paper_of_a_package(installed, tmp_path, monkeypatch):
    installed(tiny_paper="EXPERIMENT")
    monkeypatch.setattr(errata_pages, "computed", tuple)  # those of the built-in papers take seconds
    assert experiments.names() == (*experiments.BUILTIN, "tiny_paper")
    assert dpbench.listing("experiments")["experiment"].tolist()[-1] == "tiny_paper"
    results, figures = tmp_path / "results", tmp_path / "figures"
    runs = dpbench.run_experiment("tiny_paper", profile="small", results=results, jobs=1)
    assert dict(runs.summary.statuses) == {"done": 2}
    assert [one.name for one in (results / "small").iterdir()] == ["tiny_paper"]
    counted = dpbench.status(profile="small", results=results)  # of all: the built-in ones have no such profile
    assert counted[["artefact", "done", "missing"]].to_numpy().tolist() == [["tiny_paper/table1", 2, 0]]
    dpbench.report(results=results, figures=figures, profile="small")
    page = (figures / "small" / "tiny_paper" / "index.html").read_text(encoding="utf-8")
    assert "A tiny paper" in page
    assert "doi.org/10.1/tiny" in page
    assert "tiny_paper" in (figures / "small" / "index.html").read_text(encoding="utf-8")
    judged = dpbench.scorecard("tiny_paper", profile="small", results=results).verdicts
    assert judged["verdict"].tolist() == ["held"]
    assert "10.1/tiny" in dpbench.cite("tiny_paper")
    same = dpbench.diff(results / "small", results / "small")
    assert (same.compared, same.judged, len(same.moved), len(same.changed)) == (1, 1, 0, 0)


def test_one_that_is_gone_leaves_its_rows_and_takes_no_verb_along(installed, tmp_path):
    installed(tiny_paper="EXPERIMENT")
    dpbench.run_experiment("tiny_paper", profile="small", results=tmp_path, jobs=1)
    installed()
    assert experiments.names() == experiments.BUILTIN
    with pytest.raises(UserError, match="unknown experiment 'tiny_paper'"):
        dpbench.status("tiny_paper", results=tmp_path)
    assert len(dpbench.results("tiny_paper", "small", results=tmp_path)) == 2


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({"tiny_paper": "ABSENT"}, "tiny_paper:ABSENT.*AttributeError"),
        ({"tiny_paper": "NO_EXPERIMENT"}, "must be a dpbench"),
        ({"tiny_paper": "OTHER"}, "its name is 'another'"),
        ({"all": "TAKEN"}, "is none of: all"),
    ],
)
def test_a_broken_package_is_named_and_takes_no_other_along(installed, points, message):
    installed(**points)
    with pytest.warns(UserWarning, match=message):
        assert experiments.names() == experiments.BUILTIN
    with pytest.raises(UserError, match=message):
        experiments.get(*points)


def test_no_package_takes_the_name_of_a_built_in_one(installed):
    installed(second_order="EXPERIMENT")
    with pytest.warns(UserWarning, match="second_order .* the name is taken"):
        assert experiments.get("second_order").package == "dpbench.experiments.second_order"


def test_rows_of_a_grid_of_ones_own_stay_out_of_the_papers(installed, tmp_path):
    """Else they would be tuned on, and counted, as the paper's."""
    installed(tiny_paper="EXPERIMENT")
    mine, told = tmp_path / "mine.toml", []
    call = {"profile": "small", "config": mine, "results": tmp_path, "jobs": 1, "notify": told.append}
    mine.write_text(GRID.replace("settings.T = 5", "settings.T = [5, 6]"), encoding="utf-8")
    assert dpbench.run_experiment("tiny_paper", **call).store.folder == tmp_path / "adhoc" / "mine"
    assert any("dpbench report --profile adhoc" in line for line in told)
    assert not (tmp_path / "small").exists()
    mine.write_text(GRID.replace("seeds = 2", "seeds = 1"), encoding="utf-8")  # runs that the paper has itself
    assert dpbench.run_experiment("tiny_paper", **call).store.folder == tmp_path / "small" / "tiny_paper"


def test_an_artefact_without_runs_says_which_command_makes_the_rows_of_others(tmp_path):
    told = []
    call = {"results": tmp_path, "jobs": 1, "notify": told.append}
    assert not dpbench.run_experiment("second_order/fig5", **call).summary.statuses
    assert "second_order/fig5 has no runs of its own, profile quick" in told[0]
    assert told[0].endswith(": dpbench run --experiment second_order --profile quick")
    assert len(told) == 1


def test_papers_load_no_pandas_until_rows_are_drawn_or_judged():
    """Its import takes as long as all that `dpbench status` does."""
    code = (
        "import sys; from dpbench.cli.output import lazily; lazily('pandas'); from dpbench import experiments; "
        "[experiments.get(name) for name in experiments.names()]; print(type(sys.modules['pandas']).__name__)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "_Later\n"


MINE = """
from dpbench.algorithms.base import Algorithm
from dpbench.algorithms.gradient_descent import DPGradientDescent

class Mine(Algorithm):
    name = "mine"

class Homed(Algorithm):
    name, home = "homed", "second_order"

class Child(DPGradientDescent):
    name = "child"

class Grandchild(Homed):
    name = "grandchild"

class Lost(Algorithm):
    name, home = "lost", "no_such_paper"
"""


@pytest.mark.parametrize(
    ("algorithm", "home"),
    [("Mine", None), ("Lost", None), ("Homed", "second_order"), ("Child", None),
     ("Grandchild", "second_order"), ("dp-gd", "second_order"), ("opt", "nonconvex")],
)  # fmt: skip
def test_without_a_data_set_a_method_runs_on_those_of_its_papers_experiment(tmp_path, monkeypatch, algorithm, home):
    (tmp_path / "mine.py").write_text(MINE)
    begun, told = [], []
    monkeypatch.setattr(running.datasets, "available", lambda name: name in ("synthetic", "a1a", "covertype12"))
    monkeypatch.setattr(running.runner, "estimate", lambda jobs, store, workers: 0.0)
    monkeypatch.setattr(running.runner, "run", lambda jobs, store, **given: begun.extend(jobs))
    name = f"{tmp_path}/mine.py:{algorithm}" if algorithm[0].isupper() else algorithm
    runs = dpbench.run_algorithm(name, results=tmp_path / "results", notify=told.append, seeds=1)
    problems = list(dict.fromkeys(job.problem for job in begun))
    if home is None:
        assert (problems, runs.missing_data, told) == (["synthetic"], {}, [])
        return
    catalogue = running.catalogue
    wanted = experiments.get(home).problems()
    there = [one for one in wanted if catalogue.recipe_of(one).dataset in ("synthetic", "a1a", "covertype12")]
    assert problems == there
    assert 0 < len(there) < len(wanted)
    assert runs.missing_data == {one: catalogue.recipe_of(one).dataset for one in wanted if one not in there}
    assert told == [f"not fetched: {', '.join(runs.missing_data)} (dpbench fetch gets them)"]


def test_a_served_method_runs_under_its_own_name_and_leaves_no_trace(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(running.runner, "estimate", lambda jobs, store, workers: 0.0)
    monkeypatch.setattr(running.runner, "run", lambda jobs, store, **given: begun.extend(jobs))
    dpbench.run_algorithm("dp-gd", "synthetic", [1, 2], results=tmp_path, seeds=2, served=True)
    assert [(job.algorithm, job.epsilon, job.seed, job.trace) for job in begun] == [
        ("served:dp-gd", epsilon, seed, False) for epsilon in (1.0, 2.0) for seed in (0, 1)
    ]
    with pytest.raises(UserError, match="served: it does not go with trace"):
        dpbench.run_algorithm("dp-gd", "synthetic", results=tmp_path, served=True, trace=True)


def test_data_that_are_not_fetched_are_told_once_and_what_waits_by_name(tmp_path, monkeypatch):
    begun, told = [], []
    monkeypatch.setattr(running.datasets, "available", lambda name: name == "synthetic")

    def run(jobs, store, **given):
        begun.append(jobs)
        return running.RunSummary(found=1)

    monkeypatch.setattr(running.runner, "run", run)
    runs = dpbench.run_experiment("second_order", profile="full", results=tmp_path, notify=told.append)
    one = experiments.get("second_order")
    missing = {problem: running.catalogue.recipe_of(problem).dataset for problem in one.problems()}
    missing = {problem: dataset for problem, dataset in missing.items() if dataset != "synthetic"}
    assert runs.missing_data == missing
    lines = {f"data not fetched: {problem} (dpbench fetch {dataset}); its panels will show the gap"
             for problem, dataset in missing.items()}  # fmt: skip
    assert told[0] == f"second_order: {one.title} (full)"
    assert sorted(line for line in told if line.startswith("data")) == sorted(lines)
    assert [f"rows to decide on are missing: {what}" for what in runs.waiting] == [
        line for line in told if line.startswith("rows")
    ]
    assert len(begun) == runs.summary.found == 2  # what depends on no rows, then what does
    assert {job.problem for jobs in begun for job in jobs} == {"synthetic"}
    assert runs.waiting
