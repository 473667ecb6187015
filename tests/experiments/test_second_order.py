"""second_order: the grid is the issue's, the formulas are right, tables say what the rows say."""

import numpy as np
import pytest

from dpbench import experiments
from dpbench.experiments.base import plan
from dpbench.experiments.second_order.figures import logistic_approximations
from dpbench.report import Context
from dpbench.results import Store

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
                if not block.tuned and not block.timed:
                    grid.setdefault((algorithm, epsilon), set()).update(block.settings["T"])
                    assert block.seeds == 15
    epsilons = [0.01, 0.03, 0.1, 0.3, 1, 3, 10]
    for epsilon in epsilons:
        assert grid["dp-gd", epsilon] == GD | ({10_000, 30_000} if epsilon >= 1 else set())
        for variant in ("hess-clip", "hess-add", "qu-clip", "qu-add"):
            assert grid[f"dp-newton-{variant}", epsilon] == NEWTON


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


def row(key, algorithm, T, epsilon=1.0, seed=0, excess=0.1, timed=0, seconds=None, problem="synthetic"):
    return {
        "key": key, "problem": problem, "algorithm": algorithm, "epsilon": epsilon, "seed": seed, "excess": excess,
        "T": T, "timed": timed, "seconds": seconds, "status": "done", "accounting": "bs16",
        "settings": f'{{"T":{T},"theta":0.3,"gamma":0.1,"beta":1.0}}',
    }  # fmt: skip


def rows_for(experiment, store, excess):
    """Rows of the quick grid on synthetic, with made-up numbers excess(algorithm, T) and seconds."""
    for _ in range(2):  # the second pass plans the timed runs
        for block in experiment.blocks("quick"):
            block = type(block)(**{f: getattr(block, f) for f in block.__struct_fields__} | {"problems": ["synthetic"]})
            rows = []
            for job in plan([block], store).jobs:
                from dpbench import algorithms

                settings = job.parsed()
                name = algorithms.display_name(job.algorithm, settings)
                made = row(job.key, name, settings.T, job.epsilon, job.seed, excess(name, settings.T), job.timed)
                made["seconds"] = (10.0 if name == "dp-gd" else 2.0) + job.timed if job.timed else None
                rows.append(made)
            store.write(rows, [])


@pytest.fixture
def context(experiment, tmp_path):
    store = Store(tmp_path, "quick", "second_order")
    rows_for(experiment, store, lambda name, T: abs(np.log(T / (1000 if name == "dp-gd" else 7))) + 0.01)
    return Context(experiment, "quick", store)


def artefact(context, name):
    (one,) = [a for a in context.experiment.artefacts if a.name == name]
    return one.render(context)


def test_table1_is_the_ratio_of_medians_with_its_spread(context):
    table = artefact(context, "table1")
    data = table.data.set_index(["problem", "epsilon"]).loc[("synthetic", 1.0)]
    assert data["ratio"] == pytest.approx(12 / 4)  # medians of 11, 12, 13 and 3, 4, 5
    assert data["low"] == pytest.approx(11 / 5)
    assert data["high"] == pytest.approx(13 / 3)
    assert (data["dp_gd_T"], data["dp_newton_T"]) == (1000, 7)
    text = table.frame.to_string()
    assert "2.90×" in text  # the paper's value beside ours
    assert any("a1a" in gap for gap in table.gaps)


def test_a_best_T_at_the_end_of_its_grid_is_marked(context):
    frame = artefact(context, "best_T").frame
    by_algorithm = frame[frame["data set"] == "synthetic"].set_index("algorithm")
    assert by_algorithm.loc["DP-GD", "ε = 1"] == "1000↑"
    assert by_algorithm.loc["DP-Newton, hess clip", "ε = 1"] == "7"


def test_fig2_shows_gaps_where_there_are_no_rows(context):
    from dpbench.report.style import figure_style

    with figure_style():
        figure = artefact(context, "fig2")
    assert {gap.split(":")[0] for gap in figure.gaps} == {"a1a", "adult", "covertype"}
    assert set(figure.data["problem"]) == {"synthetic"}
    assert (figure.data["seeds"] == 3).all()


def test_published_values_are_complete(experiment):
    published = experiment.published()
    for problem, ratios in published["table1"]["ratio"].items():
        assert len(ratios) == len(published["table1"]["epsilon"])
        assert len(published["table1"]["seconds"][problem]) == 2
    assert published["table1"]["ratio"]["covertype"][2] == 35.70
