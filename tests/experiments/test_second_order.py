"""second_order: the grid is the issue's, the formulas are right, tables say what the rows say."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpbench import experiments
from dpbench.experiments.second_order.figures import logistic_approximations
from dpbench.run.store import Store
from dpbench.study.context import Context
from dpbench.study.plan import plan
from tests.batches import write

GD = {3, 10, 30, 100, 300, 1000, 3000}
NEWTON = {1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 80}


@pytest.fixture
def experiment():
    return experiments.get("second_order")


def test_the_full_grid_is_the_papers(experiment):
    """Seven ε and 15 seeds on the paper's data; T of DP-GD on both sides of where the noise model has its best."""
    grid = {}
    for block in experiment.blocks("full", "fig2"):
        for problem, algorithm, epsilon in block.combinations:
            grid.setdefault((problem, algorithm, epsilon), set()).update(block.settings.get("T", [0]))
            assert block.seeds == 15 or min(block.settings["T"]) >= 2500  # only the longest runs have fewer
    names = ("dp-gd", "dp-sgd", "aop", "damped-newton", "dp-newton-hess-clip", "dp-newton-hess-add",
             "dp-newton-qu-clip", "dp-newton-qu-add")  # fmt: skip
    for problem in ("a1a", "synthetic", "adult-max", "covertype-max"):
        for epsilon in (0.01, 0.03, 0.1, 0.3, 1, 3, 10):
            assert all((problem, name, epsilon) in grid for name in names)
    best = {("a1a", 0.1): 158, ("synthetic", 0.1): 14, ("adult-max", 0.1): 232, ("covertype-max", 0.1): 511,
            ("a1a", 0.3): 449, ("synthetic", 0.3): 84, ("adult-max", 0.3): 974, ("covertype-max", 0.3): 1902,
            ("a1a", 1): 1190, ("synthetic", 1): 242, ("adult-max", 1): 4590, ("covertype-max", 1): 7460,
            ("a1a", 10): 7700, ("synthetic", 10): 594}  # fmt: skip
    for (problem, epsilon), T in best.items():
        tried = grid[problem, "dp-gd", epsilon]
        assert min(tried) < T < max(tried), (problem, epsilon)


def test_no_published_value_is_of_standardised_columns(experiment):
    published = experiment.published()
    assert {"adult", "covertype"}.isdisjoint({*published["table1"]["ratio"], *published["table3"]})
    for profile in ("quick", "full"):
        for block in experiment.blocks(profile):
            if {"adult", "covertype"} & set(block.problems):
                assert block.artefacts == ["c7"]


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_every_artefact_but_those_without_rows_has_blocks(experiment, profile):
    for one in experiment.artefacts:
        blocks = experiment.blocks(profile, one.name)
        assert bool(blocks) == (one.name not in ("fig5", "table3", "tuning_rules")), one.name
        tuned = {(a, p, e) for b in blocks if b.tuned for a in b.algorithms for p in b.problems for e in b.epsilon}
        tunable = {
            (a, p, e) for b in blocks if not b.tuned for a in b.algorithms for p in b.problems for e in b.epsilon
        }
        assert tuned <= tunable, one.name


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_every_block_plans_and_names_known_artefacts(experiment, profile, tmp_path):
    planned = plan(experiment.blocks(profile), Store(tmp_path, profile, "second_order"))
    assert planned.jobs or planned.missing_data
    assert planned.waiting  # Fig. 3 waits for the tuned T


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

    for last in (False, True):  # the second pass plans the tuned runs
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
                     "accounting": "bs16" if job.accounting == "paper" else job.accounting,
                     "epsilon_planned": 0.28 if job.accounting.startswith(("as-", "rel")) else job.epsilon,
                     "settings": json.dumps(full),
                     "measured": 3 * 2**20 if full.get("measure_memory") else None,
                     "notes": f"peak of the process {40 * 2**20} bytes" if full.get("measure_memory") else None}
                )  # fmt: skip
                if job.trace and last:
                    values = curve(name, job.epsilon, T)
                    traces += [
                        {"key": job.key, "iteration": t, "passes": float(t), "excess": value,
                         "seconds": seconds(name) * t / T if job.timed else None}
                        for t, value in enumerate(values)
                    ]  # fmt: skip
        write(store, rows, traces)


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


def cell_of(context, epsilon=1.0, rule="published"):
    data = artefact(context, "table1").data
    return data.set_index(["problem", "rule", "epsilon"]).loc[("synthetic", rule, epsilon)]


@pytest.mark.thorough
def test_table1_is_the_best_T_times_what_an_iteration_takes(context):
    """Made up: 300 and 7 iterations; 11 s for 30 of DP-GD, 3 s for 3 of DP-Newton."""
    cell = cell_of(context)
    assert (cell["dp_gd_T"], cell["dp_newton_T"]) == (300, 7)
    assert cell["iterations"] == pytest.approx(300 / 7)
    assert cell["cost"] == pytest.approx((3 / 3) / (11 / 30))
    assert cell["ratio"] == pytest.approx(cell["iterations"] / cell["cost"])
    table = artefact(context, "table1")
    assert "2.90×" in table.frame.to_string()  # the paper's value beside ours
    assert any("a1a" in gap for gap in table.gaps)


def with_a_stale_row(context):
    """The context with one more timed run of DP-GD, at a T that an earlier tuning had, of absurd seconds."""
    from dpbench.run.job import make_job

    job = make_job(problem="synthetic", algorithm="dp-gd", epsilon=1.0, seed=0, settings={"T": 17}, timed=1)
    row = {"key": job.key, "problem": "synthetic", "algorithm": "dp-gd", "epsilon": 1.0, "seed": 0, "T": 17, "timed": 1,
           "excess": 0.5, "seconds": 1e6, "status": "done", "accounting": "bs16", "epsilon_planned": 1.0,
           "settings": '{"T":17,"step":4.0}'}  # fmt: skip
    write(context.store, [row], [])
    return Context(context.experiment, "quick", context.store)


@pytest.mark.thorough
def test_a_run_timed_at_a_T_tuned_before_enters_no_table_and_no_comparison(context):
    """Table 1 once had 2.83 where the comparison of the same cell had 0.364."""
    from dpbench.experiments.second_order.published import published_values

    before, stale = context, with_a_stale_row(context)
    assert 17 in set(stale.runs["T"])
    for epsilon in (0.01, 1.0, 10.0):
        assert cell_of(stale, epsilon)["ratio"] == cell_of(before, epsilon)["ratio"]
    told = {one.name: one.runs for one in published_values(stale)}
    assert told == {one.name: one.runs for one in published_values(before)}
    (shown,) = told["Table 1, synthetic, ε = 1"].values()
    assert shown["times faster"] == [cell_of(stale)["ratio"]]


@pytest.mark.thorough
def test_only_the_ends_of_the_figure_can_be_judged(context):
    """24 ratios, 6 pairs of seconds, 2 peaks of memory and 3 numbers of the text are of a machine; 10 never vary."""
    from dpbench.experiments.second_order.published import published_values
    from dpbench.study.value_verdict import judge

    judged = judge(published_values(context))
    assert len({one.value.name for one in judged}) == len(judged) == 48
    reasons = [one.outcome.reason for one in judged]
    assert reasons.count("other unit costs") == 35
    assert reasons.count("nothing printed that varies") == 10
    assert [one.value.name for one in judged if not one.outcome.reason] == [
        "Fig. 1, DP-Newton, hess clip, end", "Fig. 1, DP-Newton, qu clip, end", "Fig. 1, DP-GD, best loss (dashed)"
    ]  # fmt: skip


@pytest.mark.thorough
def test_the_ends_of_the_figure_would_have_noticed_wrong_noise(experiment):
    """On the committed rows: three matches, at a proven ε, that half and twice the noise fail."""
    from dpbench.study.value_verdict import judge

    committed = Context(experiment, "full", Store(Path(__file__).parents[2] / "results", "full", "second_order"))
    told = {
        one.value.name: one
        for one in judge(experiment.published_values(committed))
        if one.value.place.table == "Fig. 1"
    }
    assert {(one.word, one.survival, all(one.notices.values())) for one in told.values()} == {("match", "yes", True)}
    assert all({"half the noise", "twice the noise"} <= one.notices.keys() for one in told.values())


@pytest.mark.thorough
def test_one_run_stands_for_every_epsilon_of_februarys_floor(context):
    from dpbench.experiments.second_order.run_times import floored

    assert [floored("synthetic", e) for e in (0.01, 0.1, 0.27, 0.28, 1.0)] == [True, True, True, False, False]
    assert cell_of(context, 0.01)["dp_gd_T"] == cell_of(context, 0.1)["dp_gd_T"]


def test_a_best_T_at_the_end_of_its_grid_is_marked(context):
    frame = artefact(context, "best_T").frame
    by_algorithm = frame[frame["data set"] == "synthetic"].set_index("algorithm")
    assert by_algorithm.loc["DP-GD", "ε = 1"] == "300↑"
    assert by_algorithm.loc["DP-Newton, hess clip", "ε = 1"] == "7"


@pytest.mark.thorough
def test_time_to_an_equal_loss_is_that_of_the_shortest_run_as_low(tmp_path):
    """At T = 100 DP-GD is as low as DP-Newton at its best, 7; its own best is 300."""

    def excess(name, T, epsilon):
        if name == "dp-gd":
            return 0.3 if T < 100 else 0.1 - T / 10_000
        return 0.095 if T == 7 and epsilon != 10 else 0.2 if epsilon != 10 else 0.01

    context = fabricate(tmp_path, excess)
    assert cell_of(context)[["dp_newton_T", "equal_T", "dp_gd_T"]].tolist() == [7, 100, 300]
    assert np.isnan(cell_of(context, 10.0)["equal_T"])
    frame = artefact(context, "table1").frame
    shown = frame[frame[""].eq("iterations to an equal loss")][["ε = 1", "ε = 10"]].to_numpy().tolist()
    assert ["14.3×", "–"] in shown


def test_fig2_shows_gaps_where_there_are_no_rows(context):
    from dpbench.study.style import figure_style

    with figure_style():
        figure = artefact(context, "fig2")
    assert {gap.split(":")[0] for gap in figure.gaps} == {"a1a", "adult-max", "covertype-max"}
    assert set(figure.data["problem"]) == {"synthetic"}
    assert set(figure.data["seeds"]) == {1}  # those that did not choose T


def test_fig2_names_the_points_that_have_no_rows(context):
    from dpbench.study.style import figure_style

    context.__dict__["runs"] = context.runs[~(context.runs["algorithm"].eq("aop") & context.runs["epsilon"].eq(10))]
    with figure_style():
        figure = artefact(context, "fig2")
    (told,) = [gap for gap in figure.gaps if "synthetic" in gap]
    assert told.startswith("AOP (replace-one) on synthetic at ε = 10: dpbench run")


def test_published_values_are_complete(experiment):
    published = experiment.published()
    for problem, ratios in published["table1"]["ratio"].items():
        assert len(ratios) == len(published["table1"]["epsilon"])
        assert len(published["table1"]["seconds"][problem]) == 2
    assert published["table1"]["ratio"]["covertype-max"][2] == 35.70


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


@pytest.mark.thorough
def test_the_rule_for_the_rivals_T_decides_who_wins(tmp_path):
    table = artefact(fabricate(tmp_path, falls_with_T), "tuning_rules").data
    assert set(table["cells"]) == {4}
    won = table.pivot(index="rule", columns="variant", values="won")
    wins = won["dp-newton-hess-clip"]
    assert [wins[f"T of DP-GD up to {cap}"] for cap in (10, 30, 100, 300)] == [4, 4, 0, 0]
    assert wins["T of DP-GD as long as it helps"] == 0
    assert (wins["equal T"], wins["equal passes over the data"]) == (4, 4)
    assert wins["equal seconds"] == 4  # 30 iterations in 11 s, 3 in 3 s: T up to 19, of which 10 was tried
    four = won["best of the four"].dropna()  # the published rule has rows of one variant alone
    assert len(four) == 12
    assert (four == wins[four.index]).all()


def test_seconds_of_a_T_that_was_not_timed_are_in_proportion(context):
    from dpbench.experiments.second_order.rows import run_seconds

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
    write(context.store, turned.astype(object).where(turned.notna(), None).to_dict("records"), [])
    context = Context(context.experiment, "quick", context.store)
    table = artefact(context, "best_T").data.set_index(["problem", "algorithm", "epsilon"])
    planned = [job for name in ("fig3", "fig4") for job in context.jobs(name) if job.trace or job.timed]
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
    from dpbench.experiments.second_order.rows import run_seconds

    name = "dp-newton-minibatch-hess-clip"
    (settings,) = context.runs.query("algorithm == @name and timed > 0")["settings"].unique()
    T = json.loads(settings)["T"]
    assert run_seconds(context, "synthetic", name, T, settings)[1]
    other = json.dumps(json.loads(settings) | {"gradient_rate": 0.2})
    seconds, exact = run_seconds(context, "synthetic", name, T, other)
    assert (len(seconds) > 0, exact) == (True, False)


def test_a_timed_run_stands_in_where_no_seed_was_traced(context):
    from dpbench.experiments.second_order.figures import traced

    runs, _ = traced(context, "fig4")
    assert set(runs["timed"]) == {0}
    assert set(runs["seed"]) == {0, 1}
    context.__dict__["runs"] = context.runs[context.runs["timed"] > 0]
    runs, traces = traced(context, "fig4")
    assert set(runs["timed"]) == {1}
    assert set(traces["key"]) == set(runs["key"])
    assert not runs.duplicated(["problem", "algorithm", "epsilon"]).any()


def test_table1_marks_nothing_as_private_that_february_floored(context):
    from dpbench.experiments.second_order.run_times import PUBLISHED, rows_under

    rows = rows_under(context, "table1", PUBLISHED, "synthetic", 0.01)
    assert set(rows["accounting"]) == {"released-february"}
    assert set(rows["epsilon_planned"]) == {0.28}  # as the rows say, not the ε in the column


def test_the_figure_of_the_paper_ends_where_its_untimed_runs_do(tmp_path):
    from dpbench.experiments.second_order.figures import ends_of
    from dpbench.study.style import figure_style

    context = fabricate(tmp_path, problems=("covertype-max",))
    ends = ends_of(context)
    assert ends["dp-gd"].mean == pytest.approx(log_distance("dp-gd", 300, 1.0))
    assert ends["dp-newton-hess-clip"].mean == pytest.approx(log_distance("dp-newton-hess-clip", 7, 1.0))
    with figure_style():
        figure = artefact(context, "fig1")
        above, below = figure.figure.axes[:2]
        assert (above.get_xscale(), below.get_xscale()) == ("linear", "log")
        newton = max(line.get_xdata().max() for line in above.get_lines() if "hess clip" in line.get_label())
        gd = next(line for line in above.get_lines() if line.get_label() == "DP-GD")
        assert gd.get_xdata().max() <= newton  # cut where DP-Newton ends
        assert any("dashed" in str(line.get_linestyle()) or line.get_linestyle() == "--" for line in above.get_lines())
    assert not figure.gaps


def test_resets_stand_beside_runs_without(tmp_path):
    data = artefact(fabricate(tmp_path), "reset").data
    assert {"", "1000", "optimum"} == set(data["way"])
    assert set(data["problem"]) == {"synthetic"}


def test_tuning_beta_cannot_lose_where_seeds_agree(context):
    data = artefact(context, "beta").data
    assert set(data["problem"]) == {"synthetic"}
    assert (data["excess"] <= data["beta_1_excess"]).all()
    assert set(data["beta_1_T"]) == {7}


def test_the_peaks_of_memory_are_those_of_both_modifications_on_each_problem(tmp_path, experiment):
    problems = [problem for block in experiment.blocks("quick", "c7") for problem in block.problems]
    context = fabricate(tmp_path, problems=problems[:1])
    data = artefact(context, "c7").data.set_index(["problem", "modification"])
    assert {modification for _, modification in data.index} == {"clip", "add"}
    measured = data[data["runs"] > 0]
    assert len(measured)
    assert set(measured["extra_mib"]) == {3.0}
    assert set(measured["process_mib"]) == {40.0}


def test_points_that_are_missing_are_those_of_the_panel():
    from dpbench.experiments.second_order.figures import _note_missing_points

    asked = {("a1a", "dp-gd", 1.0), ("a1a", "dp-gd", 0.5), ("a1a", "dp-sgd", 0.5), ("a1a", "dp-gd", 3.0),
             ("adult", "aop", 1.0)}  # fmt: skip
    gaps, written = [], []
    page = SimpleNamespace(context=SimpleNamespace(combinations=lambda name: asked), note=gaps.append)
    axis = SimpleNamespace(text=lambda x, y, told, **_: written.append(told), transAxes=None)
    panel = pd.DataFrame({"algorithm": ["dp-gd", "aop"], "epsilon": [1.0, 1.0]})
    _note_missing_points(page, axis, "fig2", panel, "a1a")
    assert gaps == ["DP-GD on a1a at ε = 0.5, 3", "DP-SGD on a1a at ε = 0.5"]
    assert written == ["1 of 4 points have rows"]
    _note_missing_points(page, axis, "fig2", panel, "adult")
    assert (len(gaps), len(written)) == (2, 1)


@pytest.mark.parametrize(
    ("T", "settings", "seconds", "exact"),
    [
        (1000, "{}", [3.0, 10.0, 12.0], True),
        (1001, "{}", [20.0], True),  # a neighbour is another T
        (2002, "{}", [40.0], False),
        (50, "{}", [0.5], False),  # in proportion to the nearest on a logarithmic scale
        (1000, '{"rate":0.1}', [3.0], True),
        (1000, '{"rate":0.2}', [3.0, 10.0, 12.0], False),  # of other rates, which none has
    ],
)
def test_the_seconds_of_a_run_are_of_the_nearest_T_that_was_timed(T, settings, seconds, exact):
    from dpbench.experiments.second_order.rows import run_seconds

    lines = [(1000, 10.0, "{}"), (1000, 12.0, "{}"), (1001, 20.0, "{}"), (100, 1.0, "{}"), (1000, 3.0, '{"rate":0.1}')]
    left_out = [(1000, 99.0, '{"measure_memory":true}')]
    runs = pd.DataFrame([*lines, *left_out], columns=["T", "seconds", "settings"])
    runs = runs.assign(problem="a1a", algorithm="dp-gd", timed=1, status="done")
    other = pd.concat([runs.assign(problem="adult"), runs.assign(timed=0), runs.assign(status="defect")])
    context = SimpleNamespace(runs=pd.concat([runs, other.assign(seconds=77.0)], ignore_index=True))
    found, same = run_seconds(context, "a1a", "dp-gd", T, settings)
    assert (sorted(found), same) == (pytest.approx(seconds), exact)
    assert run_seconds(context, "a1a", "aop", T)[0].size == 0


@pytest.mark.parametrize("name", ["fig3", "fig8"])
def test_where_nothing_can_be_compared_one_panel_says_so(tmp_path, name):
    experiment = experiments.get("second_order")
    context = Context(experiment, "quick", Store(tmp_path, "quick", "second_order"))
    (artefact,) = (one for one in experiment.artefacts if one.name == name)
    assert len(artefact.render(context).figure.axes) == 1


def test_iterations_to_an_equal_loss_are_told_as_a_ratio():
    from dpbench.experiments.second_order.run_times import LINES

    assert LINES["iterations to an equal loss"][1](SimpleNamespace(equal_T=30.0, dp_newton_T=4.0)) == "7.5×"


@pytest.mark.parametrize("others", [(), ("dp-sgd",)])
def test_the_ends_on_covertype_are_compared_where_there_are_both(monkeypatch, others):
    from dpbench.experiments.second_order import claims

    ends = {name: SimpleNamespace(mean=mean, se=0.01) for name, mean in
            ((claims.NEWTON, 1.0), ("dp-gd", 2.0), *((one, 3.0) for one in others))}  # fmt: skip
    monkeypatch.setattr(claims, "ends_of", lambda context: ends)
    assert claims.better_on_covertype(None)[0] is True
    monkeypatch.setattr(claims, "ends_of", lambda context: {"dp-gd": ends["dp-gd"], "dp-sgd": ends["dp-gd"]})
    with pytest.raises(claims.NotEnough):
        claims.better_on_covertype(None)
