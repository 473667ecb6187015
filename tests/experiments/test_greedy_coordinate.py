"""greedy_coordinate: the grid is the paper's, artefacts and claims say what the rows say and can say no."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpbench import experiments
from dpbench.cli import main
from dpbench.experiments import tuned
from dpbench.experiments.base import load_grid, plan
from dpbench.experiments.greedy_coordinate import claims, study
from dpbench.problems import build
from dpbench.report import Context
from dpbench.report.style import figure_style
from dpbench.results import Store
from dpbench.runner import run

ALL = study.ALGORITHMS


@pytest.fixture(scope="module")
def experiment():
    return experiments.get("greedy_coordinate")


def test_the_full_grid_is_the_papers(experiment):
    published = experiment.published()["grid"]
    jobs = [job for job in plan(experiment.blocks("full"), None).jobs if job.sweep and job.accounting == "paper"]
    for problem in ("madelon", "dorothea"):
        for algorithm, grid in published.items():
            passes = {job.parsed().passes for job in jobs if (job.problem, job.algorithm) == (problem, algorithm)}
            assert sorted(passes) == grid["passes"]
    jobs = [job for job in jobs if job.problem == "madelon"]
    for algorithm, grid in published.items():
        runs = [member for job in jobs if job.algorithm == algorithm for member in job.members()]
        runs = [job.parsed() for job in runs if getattr(job.parsed(), "selection", "proven") == "proven"]
        assert len(runs) == len(grid["passes"]) * 10 * 50 * 5
        assert sorted({one.passes for one in runs}) == grid["passes"]
        for name in ("step", "clip"):
            expected = np.logspace(*grid[name]["logspace"])
            np.testing.assert_allclose(sorted({getattr(one, name) for one in runs}), expected, rtol=6e-4)


def test_dp_sgd_has_another_name_under_the_accounting_that_covers_it():
    row = {"problem": "log1", "algorithm": "dp-sgd-1", "status": "done", "timed": 0, "sweep": None, "objective": 1.0,
           "excess": 0.5, "settings": json.dumps({"passes": 1})}  # fmt: skip
    rows = pd.DataFrame([row | {"accounting": "poisson"}, row | {"accounting": "rdp"},
                         row | {"accounting": "rdp", "algorithm": "dp-cd"}])  # fmt: skip
    runs = study.tuned_runs(SimpleNamespace(rows=lambda artefact: rows), "fig1")
    assert runs["algorithm"].tolist() == ["dp-sgd-1", study.COVERED, "dp-cd"]
    assert [study.style_of(name).line for name in runs["algorithm"]] == ["--", "-", "-"]
    assert [study.label(name).endswith("†") for name in runs["algorithm"]] == [True, False, False]


def test_dorothea_alone_is_thinned_and_holds_the_published_choices(experiment):
    published = experiment.published()["chosen"]["dorothea"]
    for block in experiment.blocks("full"):
        if block.sweep and "dorothea" not in block.problems:
            assert [len(block.values(name)) for name in ("step", "clip")] == [10, 50]
        elif block.sweep and block.algorithms[0] in published:
            passes, clip, step = published[block.algorithms[0]]
            assert passes in block.values("passes")
            assert min(abs(np.log10(np.array(block.values("clip")) / clip))) < 0.31  # half a coarse step
            assert min(abs(np.log10(np.array(block.values("step")) / step))) < 0.01


def test_every_artefact_has_jobs_but_the_computed_one(experiment):
    for artefact in experiment.artefacts:
        for profile in ("quick", "full"):
            planned = plan(experiment.blocks(profile, artefact.name), None)
            assert bool(planned.jobs) == (artefact.name != "tight_noise")


def test_without_rows_artefacts_show_gaps_and_claims_stay_open(experiment, tmp_path):
    context = Context(experiment, "quick", Store(tmp_path, "quick", "greedy_coordinate"))
    for artefact in experiment.artefacts:
        with figure_style():
            output = artefact.render(context)
            output.save(tmp_path / artefact.name, artefact.title)
        if artefact.name not in ("tight_noise", "table2"):
            assert any("dpbench run --experiment greedy_coordinate/" in gap for gap in output.gaps), artefact.name
    assert {one.check(context).held for one in experiment.claims} == {None}


SMALL = """
[[quick]]
artefacts = ["fig1", "fig2", "fig3", "fig4", "table1"]
problems = ["log1", "square"]
algorithms = ["probe-optimum"]
epsilon = [1.0]
seeds = 1

[[quick]]
artefacts = ["fig1", "fig4", "table2", "table4", "table3", "fig3", "selection_error"]
problems = ["log1", "square"]
algorithms = ["dp-gcd", "dp-cd", "dp-sgd-1"]
epsilon = [1.0]
seeds = 2
sweep = ["step", "clip"]
settings = { passes = [0.01, 1], step = [0.001, 1], clip = [1, 100] }

[[quick]]
artefacts = ["fig1", "table4", "table3", "fig3", "selection_error"]
problems = ["log1", "square"]
algorithms = ["dp-gcd", "dp-cd", "dp-sgd-1"]
epsilon = [1.0]
seeds = 2
trace = true
settings = { passes = "best", step = "best", clip = "best" }

[[quick]]
artefacts = ["fig4"]
problems = ["log1"]
algorithms = ["dp-gcd"]
epsilon = [1.0]
seeds = 1
timed = 1
trace = true
settings = { passes = "best", step = "best", clip = "best" }

[[quick]]
artefacts = ["published_selection"]
problems = ["log1"]
algorithms = ["dp-gcd"]
epsilon = [1.0]
seeds = 1
settings = { selection = ["proven", "published"], passes = [4, 20], step = 1, clip = 1 }
"""


@pytest.fixture(scope="module")
def small(experiment, tmp_path_factory):
    """A context whose grid is SMALL, with all of its rows."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "grid.toml").write_text(SMALL)
    grid = load_grid(folder / "grid.toml")
    store = Store(folder, "quick", "greedy_coordinate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(experiment), "grid", lambda self, config=None: grid)
        for waits in (False, True):
            blocks = [block for block in grid["quick"] if block.waits == waits]
            assert run(plan(blocks, store).jobs, store).failed == 0
        yield Context(experiment, "quick", store)


def test_rows_of_the_chosen_settings_repeat_the_sweeps(small):
    """What a tuned run reaches is what its sweep said, to the 7 digits kept there: common random numbers."""
    runs = small.rows("table4")
    sweeps = runs[runs["sweep"].notna() & runs["problem"].eq("log1") & runs["algorithm"].eq("dp-cd")]
    chosen = study.tuned_runs(small, "table4").query("problem == 'log1' and algorithm == 'dp-cd'")
    lowest = sweeps.assign(passes=[json.loads(text)["passes"] for text in sweeps["settings"]])
    means = lowest.groupby("passes")["values"].agg(lambda column: np.mean(np.stack(list(column)), axis=0).min())
    assert chosen["excess"].mean() == pytest.approx(means.min(), rel=1e-6)


def test_the_probe_says_what_the_problem_is(small):
    facts = study.facts(small, "table1")
    square = build("square")
    assert (facts["square"].n, facts["square"].d) == (1000, 1000)
    assert len(facts["square"].nonzero) == 7
    assert facts["square"].quasi_sparsity() == pytest.approx(np.sort(np.abs(square.optimum().w))[-6], rel=1e-6)
    assert facts["log1"].optimum == pytest.approx(build("log1").optimum().value)
    assert facts["log1"].start == pytest.approx(np.log(2) / facts["log1"].optimum - 1)


def test_artefacts_of_a_small_run(small, tmp_path):
    for artefact in small.experiment.artefacts:
        with figure_style():
            output = artefact.render(small)
            output.save(tmp_path / artefact.name, artefact.title)
        assert (tmp_path / f"{artefact.name}.md").read_text()
    table = pd.read_csv(tmp_path / "published_selection.csv")
    assert (table["False"] <= 1).all()
    assert table.set_index("T")["True"].loc[4] < 1 < table.set_index("T")["True"].loc[20]
    saved = pd.read_csv(tmp_path / "tight_noise.csv")
    assert (saved["noise_ratio"] < 1).all()
    assert saved.query("n == 1000")["noise_ratio"].is_monotonic_increasing


def test_tuned_settings_written_and_read_back(small, monkeypatch, tmp_path):
    found = tuned.find(small.experiment, str(small.store.folder.parent.parent))
    assert {(one.algorithm, one.problem) for one in found} == {(a, p) for a in ALL for p in ("log1", "square")}
    assert {one.profile for one in found} == {"quick"}
    (tmp_path / "tuned.toml").write_text(tuned.text(small.experiment, found))
    monkeypatch.setattr(tuned.resources, "files", lambda package: tmp_path)
    assert tuned.of(small.experiment) == found
    assert tuned.lookup("dp-gcd", "greedy_coordinate", "log1", 3.0) in found
    assert tuned.lookup("dp-gcd", "greedy_coordinate", "nowhere", 1.0) is None
    assert tuned.lookup("dp-gcd", "no_such_experiment", "log1", 1.0) is None


def found(**means):
    """`finals` as a claim sees it: problem__algorithm → (mean, se, T, wrong)."""
    rows = []
    for name, (mean, se, T, wrong) in means.items():
        problem, _, algorithm = name.partition("__")
        rows.append({"problem": problem.replace("_", "-"), "algorithm": algorithm.replace("_", "-"), "mean": mean,
                     "se": se, "T": T, "support_wrong": wrong})  # fmt: skip
    return pd.DataFrame(rows)


def judge(monkeypatch, name, rows, starts=None):
    monkeypatch.setattr(claims, "tuned_runs", lambda context, artefact: None)
    monkeypatch.setattr(claims, "finals", lambda runs: rows)
    facts = {p: SimpleNamespace(start=start) for p, start in (starts or {}).items()}
    monkeypatch.setattr(claims, "facts", lambda context, artefact: facts)
    jobs = [SimpleNamespace(key="k", count=9, sweep="{}", problem="log1")]
    context = SimpleNamespace(
        command=lambda artefact: "dpbench run", jobs=lambda artefact: jobs, runs=pd.DataFrame({"key": ["k"]})
    )
    return next(one for one in claims.CLAIMS if one.name == name).check(context).held


def three(problem, gcd, cd, sgd, T=2, wrong=(0, 0, 0)):
    names = ("dp_gcd", "dp_cd", "dp_sgd_1")
    return {f"{problem}__{n}": (m, 0.01, T, w) for n, m, w in zip(names, (gcd, cd, sgd), wrong, strict=True)}


def test_the_claim_on_progress_can_fail(monkeypatch):
    starts = {"square": 0.75, "dorothea": 0.78}
    held = three("square", 0.35, 0.75, 0.75) | three("dorothea", 0.64, 0.77, 0.78)
    assert judge(monkeypatch, "only_progress", found(**held), starts)
    for changed in (
        three("square", 0.74, 0.75, 0.75),
        three("square", 0.35, 0.5, 0.75),
        three("square", 0.35, 1, 1, 1),
    ):
        assert judge(monkeypatch, "only_progress", found(**held | changed), starts) is False


def test_the_claim_on_the_lowest_can_fail(monkeypatch):
    held = {k: v for p in ("log1", "log2", "madelon") for k, v in three(p, 0.1, 0.5, 0.6).items()}
    assert judge(monkeypatch, "lowest", found(**held))
    assert judge(monkeypatch, "lowest", found(**held | three("log1", 0.7, 0.5, 0.6))) is False
    assert judge(monkeypatch, "lowest", found(**held | three("log1", 0.49, 0.5, 0.6))) is None


def test_the_claim_on_a_par_can_fail(monkeypatch):
    starts = {"california": 0.09}
    held = three("california", 0.001, 0.002, 0.02) | three("mtp_qsar", 0.5, 0.4, 0.6)
    assert judge(monkeypatch, "on_a_par", found(**held), starts)
    assert judge(monkeypatch, "on_a_par", found(**held | three("california", 0.001, 0.05, 0.02)), starts) is False
    assert judge(monkeypatch, "on_a_par", found(**held | three("mtp_qsar", 0.2, 0.4, 0.6)), starts) is False


def test_the_claim_on_wrong_coordinates_can_fail(monkeypatch):
    held = {k: v for p in study.L1 for k, v in three(p.replace("-", "_"), 1, 1, 1, wrong=(0, 1, 3)).items()}
    assert judge(monkeypatch, "no_wrong_coordinate", found(**held))
    wrong = three("california", 1, 1, 1, wrong=(0.2, 1, 3))
    assert judge(monkeypatch, "no_wrong_coordinate", found(**held | wrong)) is False


def test_the_claim_on_the_rules_can_fail(monkeypatch):
    def rules(problem, *means):
        names = ("dp_gcd", "dp_gcd_gs_s", "dp_gcd_gs_q")
        return {f"{problem}__{n}": (m, 0.01, 2, 0) for n, m in zip(names, means, strict=True)}

    held = {k: v for p in study.L1 for k, v in rules(p.replace("-", "_"), 0.3, 0.3, 0.31).items()}
    apart = rules("california", 0.1, 0.2, 0.3)
    assert judge(monkeypatch, "rules_coincide", found(**held | apart))
    assert judge(monkeypatch, "rules_coincide", found(**held)) is False
    assert judge(monkeypatch, "rules_coincide", found(**held | apart | rules("square", 0.1, 0.2, 0.3))) is False


def test_run_without_settings_takes_the_tuned_ones_and_times_them(tmp_path, monkeypatch, capsys):
    settings = {"passes": 2.0, "step": 0.5, "clip": 3.0}
    shipped = [tuned.Tuned("dp-gcd", "square", 1.0, "full", settings)]
    monkeypatch.setattr(tuned, "of", lambda experiment: shipped)
    monkeypatch.chdir(tmp_path)
    command = ["run", "--algo", "dp-gcd", "--dataset", "square", "--eps", "1", "--seeds", "2", "--jobs", "1"]

    def call(*more):
        with pytest.raises(SystemExit) as end:
            main([*command, *more])
        assert not end.value.code
        return capsys.readouterr()

    out, err = call()
    assert "tuned (not privately) in greedy_coordinate at ε = 1" in err
    assert "clip 3, passes 2, step 0.5" in out
    assert "support found" in out
    runs = Store("results", "adhoc", "dp-gcd").runs()
    assert runs["timed"].tolist() == [1, 1]
    assert runs["seconds"].gt(0).all()
    out, err = call("--set", "clip=4")  # what is given comes first
    assert "clip 4, passes 2, step 0.5" in out
    out, err = call("--set", "clip=4", "--set", "passes=1", "--set", "step=1")
    assert "tuned" not in err
    assert "support found" not in out
