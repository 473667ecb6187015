"""second_order: the grid is the issue's, the formulas are right, tables say what the rows say."""

import json

import numpy as np
import pytest

from dpbench import experiments
from dpbench.experiments.second_order.figures import logistic_approximations
from dpbench.run.results import Store
from dpbench.study.context import Context
from dpbench.study.plan import plan

GD = {3, 10, 30, 100, 300, 1000, 3000}
NEWTON = {1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 80}


@pytest.fixture
def experiment():
    return experiments.get("second_order")


def test_the_full_grid_is_the_papers(experiment):
    grid = {}
    for block in experiment.blocks("full", "fig2"):
        for algorithm in block.algorithms:
            for epsilon in block.epsilon:
                grid.setdefault((algorithm, epsilon), set()).update(block.settings.get("T", []))
                assert block.seeds == 15 or min(block.settings["T"]) >= 150  # only the longest runs have fewer
    epsilons = [0.01, 0.03, 0.1, 0.3, 1, 3, 10]
    for epsilon in epsilons:
        first = {1} if epsilon <= 0.03 else set()
        assert grid["dp-gd", epsilon] == GD | first | {T for T, least in ((10_000, 1), (30_000, 3)) if epsilon >= least}
        longer = {T for T, least in ((150, 1), (300, 1), (1000, 1), (3000, 10)) if epsilon >= least}
        for variant in ("hess-clip", "hess-add", "qu-clip", "qu-add"):
            more = {("qu-add", 0.1): {50}, ("qu-clip", 0.3): {150}, ("hess-clip", 3): {3000}}.get(
                (variant, epsilon), set()
            )
            expected = NEWTON - ({50, 80} if epsilon <= 0.1 else set()) | longer | more
            assert grid[f"dp-newton-{variant}", epsilon] == expected
        for algorithm in ("aop", "damped-newton", "dp-sgd"):
            assert (algorithm, epsilon) in grid


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_every_artefact_but_those_without_rows_has_blocks(experiment, profile):
    for one in experiment.artefacts:
        blocks = experiment.blocks(profile, one.name)
        assert bool(blocks) == (one.name not in ("fig5", "table3", "tuning_rule", "tuning_rules")), one.name
        tuned = {(a, p, e) for b in blocks if b.tuned for a in b.algorithms for p in b.problems for e in b.epsilon}
        tunable = {
            (a, p, e) for b in blocks if not b.tuned for a in b.algorithms for p in b.problems for e in b.epsilon
        }
        assert tuned <= tunable, one.name


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_every_block_plans_and_names_known_artefacts(experiment, profile, tmp_path):
    planned = plan(experiment.blocks(profile), Store(tmp_path, profile, "second_order"))
    assert planned.jobs or planned.missing_data
    assert planned.waiting  # Table 1 waits for the tuned T


@pytest.mark.parametrize("x0", [-7.0, -0.5, 0.0, 1e-3, 3.0, 9.0])
def test_the_quadratic_bound_lies_between_the_loss_and_the_smoothness_bound(x0):
    """Claim 6 and Fig. 5, at many points of contact."""
    x = np.linspace(-20, 20, 4001)
    curves = logistic_approximations(x, x0)
    bound = curves["quadratic upper bound (Lemma 5.1)"]
    assert (bound >= curves["log(1 + eˣ)"] - 1e-12).all()
    assert (bound <= curves["smoothness bound"] + 1e-12).all()
    at = logistic_approximations(np.array([x0]), x0)
    assert all(value[0] == pytest.approx(np.logaddexp(0, x0)) for value in at.values())


def rows_for(experiment, store, excess, seconds, curve, problems, luck):
    """Rows of the quick grid with made-up numbers: excess(name, T, ε), seconds(name), and traces curve(name, ε, T).

    luck(name): what the excess of a timed replicate is multiplied by.
    """
    from dpbench import algorithms

    for _ in range(2):  # the second pass plans the tuned runs
        rows, traces = [], []
        for block in experiment.blocks("quick"):
            fields = {f: getattr(block, f) for f in block.__struct_fields__}
            fields["problems"] = [p for p in block.problems if p in problems]
            for job in plan([type(block)(**fields)], store).jobs:
                settings = job.parsed()
                full = {name: getattr(settings, name) for name in settings.__struct_fields__}
                if "step" in full:
                    full["step"] = full["step"] or 4.0
                name, T = algorithms.display_name(job.algorithm, settings), full.get("T")
                rows.append(
                    {"key": job.key, "problem": job.problem, "algorithm": name, "epsilon": job.epsilon,
                     "seed": job.seed, "T": T, "timed": job.timed,
                     "excess": excess(name, T or 1, job.epsilon) * (luck(name) if job.timed else 1),
                     "seconds": seconds(name) + job.timed if job.timed else None, "status": "done",
                     "accounting": job.accounting if job.accounting != "paper" else "bs16",
                     "epsilon_planned": 0.28 if job.accounting != "paper" else job.epsilon,
                     "settings": json.dumps(full),
                     "measured": 3 * 2**20 if full.get("measure_memory") else None,
                     "notes": f"peak of the process {40 * 2**20} bytes" if full.get("measure_memory") else None}
                )  # fmt: skip
                if job.trace:
                    values = curve(name, job.epsilon, T)
                    traces += [
                        {"key": job.key, "iteration": t, "passes": float(t), "excess": value,
                         "seconds": seconds(name) * t / T if job.timed else None}
                        for t, value in enumerate(values)
                    ]  # fmt: skip
        store.write(rows, traces)


def log_distance(name, T, epsilon):
    """Lowest at T = 300 for DP-GD, at 7 for everything else."""
    return abs(np.log(T / (300 if name == "dp-gd" else 7))) + 0.01


def fabricate(tmp_path, excess=log_distance, seconds=None, curve=None, problems=("synthetic",), luck=lambda name: 1.0):
    experiment = experiments.get("second_order")
    store = Store(tmp_path, "quick", "second_order")
    seconds = seconds or (lambda name: 10.0 if name == "dp-gd" else 2.0)
    curve = curve or (lambda name, epsilon, T: np.geomspace(1.0, 0.01, T + 1))
    rows_for(experiment, store, excess, seconds, curve, problems, luck)
    return Context(experiment, "quick", store)


@pytest.fixture
def context(tmp_path):
    return fabricate(tmp_path)


def artefact(context, name):
    (one,) = [a for a in context.experiment.artefacts if a.name == name]
    return one.render(context)


def test_table1_is_the_ratio_of_medians_with_its_spread(context):
    table = artefact(context, "table1")
    data = table.data.set_index(["problem", "epsilon"]).loc[("synthetic", 1.0)]
    assert data["ratio"] == pytest.approx(11 / 3)
    assert (data["dp_gd_T"], data["dp_newton_T"]) == (300, 7)
    assert data["iterations"] == pytest.approx(300 / 7)
    assert data["timed"]
    text = table.frame.to_string()
    assert "2.90×" in text  # the paper's value beside ours
    assert any("a1a" in gap for gap in table.gaps)


def test_a_best_T_at_the_end_of_its_grid_is_marked(context):
    frame = artefact(context, "best_T").frame
    by_algorithm = frame[frame["data set"] == "synthetic"].set_index("algorithm")
    assert by_algorithm.loc["DP-GD", "ε = 1"] == "300↑"
    assert by_algorithm.loc["DP-Newton, hess clip", "ε = 1"] == "7"


def test_fig2_shows_gaps_where_there_are_no_rows(context):
    from dpbench.study.style import figure_style

    with figure_style():
        figure = artefact(context, "fig2")
    assert {gap.split(":")[0] for gap in figure.gaps} == {"a1a", "adult", "covertype"}
    assert set(figure.data["problem"]) == {"synthetic"}
    assert set(figure.data["seeds"]) == {1}  # those that did not choose T


def test_published_values_are_complete(experiment):
    published = experiment.published()
    for problem, ratios in published["table1"]["ratio"].items():
        assert len(ratios) == len(published["table1"]["epsilon"])
        assert len(published["table1"]["seconds"][problem]) == 2
    assert published["table1"]["ratio"]["covertype"][2] == 35.70


def test_rows_are_reported_without_the_data_they_came_from(context, monkeypatch):
    """A clone with committed results and no data draws the same figures; what has no data cannot run."""
    monkeypatch.setattr("dpbench.datasets.available", lambda name: False)
    assert set(context.rows("fig2")["problem"]) == {"synthetic"}
    planned = plan(context.blocks("fig2"), context.store)
    assert planned.jobs
    assert not planned.runnable


def test_an_unfinished_grid_is_told(context):
    """Points drawn from part of a grid must not pass for the whole of it."""
    assert "runs of its grid are not there yet: dpbench run" in context.unfinished("fig2")


def falls_with_T(name, T, epsilon):
    """DP-GD as good as its T is large, DP-Newton as good at 7 iterations as DP-GD at 50."""
    return 1 / T if name == "dp-gd" else 1 / 50 if T == 7 else 1.0


def test_the_rule_for_the_rivals_T_decides_who_wins(tmp_path):
    table = artefact(fabricate(tmp_path, falls_with_T), "tuning_rules").data.set_index("rule")
    assert set(table["cells"]) == {4}
    wins = table["dp-newton-hess-clip"]
    assert [wins[f"T of DP-GD up to {cap}"] for cap in (3, 10, 30, 100, 300)] == [4, 4, 4, 0, 0]
    assert (wins["T of DP-GD as long as it helps"], wins["T of DP-GD = 100, as released"]) == (0, 0)
    assert (wins["equal T"], wins["equal passes over the data"]) == (4, 4)
    assert wins["equal seconds"] == 4  # 300 iterations in 11 s, 7 in 3 s: T up to 81, of which 30 was tried
    assert (table["best of the four"] == wins).all()


def test_seconds_of_a_T_that_was_not_timed_are_in_proportion(context):
    from dpbench.experiments.second_order.tuned import run_seconds

    exact, timed = run_seconds(context, "synthetic", "dp-gd", 300)
    scaled, other = run_seconds(context, "synthetic", "dp-gd", 600)
    assert (timed, other) == (True, False)
    assert np.median(scaled) == pytest.approx(2 * np.median(exact))


def test_what_is_timed_or_traced_has_the_T_of_the_tables(tmp_path):
    """The planner's "best" and the tables' are chosen by one rule, seeds apart: here the two halves disagree."""
    context = fabricate(tmp_path)
    untimed = context.runs["timed"].eq(0)
    rows = context.runs[untimed & context.runs["algorithm"].isin(["dp-gd", "dp-newton-hess-clip"])]
    turned = rows.assign(excess=rows["excess"] * np.where(rows["seed"] % 2, rows["T"] ** 2.0, rows["T"] ** -2.0))
    context.store.write(turned.astype(object).where(turned.notna(), None).to_dict("records"), [])
    context = Context(context.experiment, "quick", context.store)
    table = artefact(context, "best_T").data.set_index(["problem", "algorithm", "epsilon"])
    planned = [
        job for name in ("table1", "fig1", "fig3", "fig4") for job in context.jobs(name) if job.trace or job.timed
    ]
    compared = set()
    for job in planned:
        cell = job.problem, algorithm_of(job), float(job.epsilon)
        if cell in table.index:
            assert table.loc[cell, "T"] == job.parsed().T, cell
            compared.add(cell[1])
    assert compared >= {"dp-gd", "dp-newton-hess-clip"}
    assert (table.xs("dp-gd", level="algorithm")["T"] == 300).all()  # the half that chooses has the longest best


def algorithm_of(job):
    from dpbench import algorithms

    return algorithms.display_name(job.algorithm, job.parsed())


def test_seconds_are_those_of_the_same_rates(context):
    """An iteration on samples of another size takes another time: such runs stand in only where there are no others."""
    from dpbench.experiments.second_order.tuned import run_seconds

    name = "dp-newton-minibatch-hess-clip"
    (settings,) = context.runs.query("algorithm == @name and timed > 0")["settings"].unique()
    T = json.loads(settings)["T"]
    assert run_seconds(context, "synthetic", name, T, settings)[1]
    other = json.dumps(json.loads(settings) | {"gradient_rate": 0.2})
    seconds, exact = run_seconds(context, "synthetic", name, T, other)
    assert (len(seconds) > 0, exact) == (True, False)


def test_a_timed_run_stands_in_where_no_seed_was_traced(context):
    from dpbench.experiments.second_order.convergence import traced

    runs, _ = traced(context, "fig4")
    assert set(runs["timed"]) == {0}
    assert set(runs["seed"]) == {0, 1}
    context.__dict__["runs"] = context.runs[context.runs["timed"] > 0]
    runs, traces = traced(context, "fig4")
    assert set(runs["timed"]) == {1}
    assert set(traces["key"]) == set(runs["key"])
    assert not runs.duplicated(["problem", "algorithm", "epsilon"]).any()


def test_the_conversion_as_released_is_marked_with_what_it_spends(context):
    table = artefact(context, "released_table")
    assert set(table.data["epsilon_planned"]) == {0.28}
    assert "0.28" in table.frame.to_string()
    assert {gap.split(" at ")[0] for gap in table.gaps} == {"a1a", "adult", "covertype"}


def test_tuning_beta_cannot_lose_where_seeds_agree(context):
    data = artefact(context, "beta").data
    assert set(data["problem"]) == {"synthetic"}
    assert (data["excess"] <= data["beta_1_excess"]).all()
    assert set(data["beta_1_T"]) == {7}
