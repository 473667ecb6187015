"""nonconvex: published values, distances to them, tables, figures and claims that say what the rows say."""

import math
from importlib import resources

import numpy as np
import pandas as pd
import pytest

from dpbench import experiments, toml
from dpbench.experiments.base import plan
from dpbench.experiments.nonconvex import figures, study, tables
from dpbench.experiments.nonconvex.study import EPSILONS, METHODS, TARGETS
from dpbench.report import Context
from dpbench.report.style import figure_style
from dpbench.results import Store

TABLE1, TABLE2, TABLE5 = TARGETS[0], TARGETS[1], TARGETS[4]


@pytest.fixture(scope="module")
def experiment():
    return experiments.get("nonconvex")


@pytest.fixture(scope="module")
def paper(experiment):
    return study.published_cells(experiment.published())


def claim(experiment, name):
    return next(one for one in experiment.claims if one.name == name).check


# ---- published values ----


def test_every_published_table_is_whole(paper):
    assert sorted(paper["table"].unique()) == list(range(1, 13))
    per_table = paper.groupby("table").size()
    assert per_table.sum() == 12 * 24 - 2
    assert set(per_table[[3, 4]]) == {23}  # 2opt-ls at ε = 0.2 is <NA>
    assert paper[["mean", "std", "runs"]].notna().all().all()
    assert paper["terminated"].eq(paper["seconds"].notna()).all()


def test_the_number_of_published_failures(paper):
    """× by table, counted by hand on the printed tables."""
    failures = paper[~paper["terminated"]].groupby("table").size()
    assert failures.to_dict() == {
        1: 3, 2: 10, 3: 10, 4: 16, 5: 9, 6: 9, 7: 16, 8: 16, 9: 14, 10: 14, 11: 16, 12: 16,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "algorithm", "epsilon", "values"),
    [
        (1, "opt-b", 0.2, (0.712, 0.018, 3.1, 2.9)),
        (2, "opt", 1.0, (0.592, 0.003, 1.8, 0.5)),
        (2, "2opt-ls", 0.2, (0.577, 0.008, 2.1, 1.0)),
        (3, "dp-tr-b", 1.0, (0.72, 0.043, 1.3, 1.6)),
        (8, "opt", 1.0, (372.6, 141.077, math.nan, math.nan)),
        (10, "opt", 1.0, (85.25, 47.647, math.nan, math.nan)),
        (11, "2opt-ls", 0.2, (3.504, 0.98, math.nan, math.nan)),
        (12, "2opt-ls", 1.0, (4.8, 4.97, 0.4, 0.4)),
    ],
)
def test_published_values(paper, table, algorithm, epsilon, values):
    row = paper[paper["table"].eq(table) & paper["algorithm"].eq(algorithm) & paper["epsilon"].eq(epsilon)].iloc[0]
    assert tuple(row[["mean", "std", "seconds", "seconds_std"]]) == pytest.approx(values, nan_ok=True)


def test_means_of_hessian_counts_fit_their_runs(paper):
    """Counts are integers, so their means are multiples of 1/runs: it tells the four runs of Table 10 from five."""
    counts = paper[paper["quantity"].eq("hessian_evaluations")]
    total = counts["mean"] * counts["runs"]
    assert np.allclose(total, total.round(), atol=1e-9)
    assert set(counts.loc[counts["table"].eq(10), "runs"]) == {4}


def test_tables_of_the_same_runs_agree(paper):
    on = ["algorithm", "epsilon"]
    for target in TARGETS:
        if target.hessians:
            first, second = (paper[paper["table"].eq(t)].set_index(on) for t in (target.table, target.hessians))
            assert first["terminated"].eq(second["terminated"]).all()
            assert np.allclose(first["seconds"], second["seconds"], equal_nan=True)


def test_targets_are_those_of_the_published_tables(experiment):
    published = experiment.published()
    for target in TARGETS:
        for number in filter(None, (target.table, target.hessians)):
            table = published[f"table{number}"]
            assert (table["problem"], table["alpha"]) == (target.problem, target.alpha)


# ---- grids ----


def test_the_full_grid_is_the_papers(experiment):
    for target in TARGETS:
        cells = {}
        for block in experiment.blocks("full", target.artefact):
            assert block.settings["alpha"] == target.alpha
            for method in block.algorithms:
                for epsilon in block.epsilon:
                    key = (method, epsilon, bool(block.timed))
                    cells[key] = max(block.seeds, cells.get(key, 0))
        assert {key[:2] for key in cells} == {(m, e) for m in METHODS for e in EPSILONS}
        assert all(cells[m, e, True] <= cells[m, e, False] for m, e, timed in cells if timed)


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_every_artefact_has_a_plan(experiment, profile, tmp_path):
    for one in experiment.artefacts:
        blocks = experiment.blocks(profile, one.name)
        assert blocks, one.name
        assert plan(blocks, Store(tmp_path, profile, "nonconvex")).jobs, one.name


# ---- rows made up ----


def ends_as(experiment, store, profile="quick", wanted=lambda job: True, **outcome):
    """Rows of a profile's grid with made-up ends. outcome: column → value or f(job)."""
    for _ in range(2):  # the second pass plans the timed runs
        rows, traces = [], []
        for job in plan(experiment.blocks(profile), store).jobs:
            if not wanted(job):
                continue
            settings = job.parsed()
            values = {name: value(job) if callable(value) else value for name, value in outcome.items()}
            row = {
                "key": job.key, "problem": job.problem, "algorithm": job.algorithm, "epsilon": job.epsilon,
                "seed": job.seed, "timed": job.timed, "status": "terminated", "objective": 0.7 + 0.01 * job.seed,
                "settings": f'{{"alpha":{settings.alpha}}}', "T": 400, "iterations": 10, "hessian_evaluations": 1,
                "seconds": 0.5 + 0.1 * job.seed if job.timed else None,
            } | values  # fmt: skip
            rows.append(row)
            if job.trace:
                losses = [(0, 1.0), (5, 0.8), (row["iterations"], row["objective"])]
                traces += [{"key": job.key, "iteration": i, "passes": float(i), "excess": v} for i, v in losses]
        store.write(rows, traces)


@pytest.fixture
def context(experiment, tmp_path):
    return Context(experiment, "quick", Store(tmp_path, "quick", "nonconvex"))


def only(*problems):
    return lambda job: job.problem in problems


def test_cells_count_seeds_and_time_only_whole_cells(experiment, context):
    fails = lambda job: "not terminated (cap)" if (job.algorithm, job.seed) == ("opt", 1) else "terminated"  # noqa: E731
    ends_as(experiment, context.store, wanted=only("ijcnn-logistic"), status=fails)
    table = study.cells(study.finished(context.rows("table3"))).set_index(["algorithm", "epsilon"])
    opt, other = table.loc[("opt", 0.2)], table.loc[("opt-b", 0.2)]
    assert (opt["terminated"], opt["capped"]) == (opt["seeds"] - 1, 1)
    assert math.isnan(opt["seconds"])  # the plan does not time it
    assert other["terminated"] == other["seeds"]
    seeds = np.arange(other["seeds"])
    assert other["loss"] == pytest.approx(np.mean(0.7 + 0.01 * seeds))
    assert other["loss_std"] == pytest.approx(np.std(0.01 * seeds, ddof=1))
    assert other["seconds"] == pytest.approx(np.mean(0.5 + 0.1 * seeds))


def test_distance_to_the_published_means(experiment, context, paper):
    """Equal rows are 0 apart, a shift by a standard error 1; the end has to be the same too."""
    published = paper[paper["table"].eq(3)].set_index(["algorithm", "epsilon"])
    shift = {0.2: 0.0, 0.6: 1.0, 1.0: -3.0}

    def seeds_of(job):
        return max(b.seeds for b in experiment.blocks("quick", "table3") if job.epsilon in b.epsilon and not b.timed)

    def loss(job):
        if (job.algorithm, job.epsilon) not in published.index:
            return 0.5
        row, n = published.loc[(job.algorithm, job.epsilon)], seeds_of(job)
        spread = np.arange(n) - (n - 1) / 2
        spread *= row["std"] / spread.std(ddof=1)
        error = math.sqrt(row["std"] ** 2 / n + row["std"] ** 2 / row["runs"] + 0.0005**2 / 3)
        return row["mean"] + shift[job.epsilon] * error + spread[job.seed]

    ends_as(experiment, context.store, wanted=only("ijcnn-logistic"), objective=loss)
    table = study.compared(context, TARGETS[2])
    known = table[table["paper_mean"].notna()]
    assert len(known) == 23
    assert known["apart"].to_list() == pytest.approx([shift[e] for e in known["epsilon"]], abs=1e-9)
    assert known["same_end"].eq(known["paper_terminated"]).all()  # ours all terminate
    frame = tables.differences(context).frame
    shown = {(row["method"], row["ε"]) for _, row in frame[frame["table"].eq("3")].iterrows()}
    expected = {
        (tables.look(row.algorithm).label, f"{row.epsilon:g}")
        for row in known.itertuples()
        if row.epsilon == 1.0 or row.paper_terminated is False
    }
    assert shown == expected


@pytest.mark.parametrize(
    ("number", "algorithm", "paper_terminated", "all_ended", "reason"),
    [
        (3, "opt", True, True, "scaling"),
        (1, "opt-b", True, False, "minibatch"),
        (1, "opt-b", True, True, "fit"),
        (9, "dp-tr", False, True, "trust-region"),
        (9, "dp-tr", False, False, "scaling"),
        (11, "2opt", True, False, "scaling"),
        (2, "2opt", False, False, "stopping"),
        (2, "opt", True, False, "unexplained"),
    ],
)
def test_reasons(number, algorithm, paper_terminated, all_ended, reason):
    row = pd.Series({"algorithm": algorithm, "epsilon": 0.2, "paper_terminated": paper_terminated,
                     "all_ended": all_ended})  # fmt: skip
    reasons = toml.read(resources.files(tables.__package__) / "reasons.toml")
    assert tables.reason_of(reasons, number, row) == reason
    assert reasons["text"][reason]


def test_tables_print_what_the_paper_prints(experiment, context):
    fails = lambda job: "not terminated" if job.algorithm == "opt" else "terminated"  # noqa: E731
    ends_as(experiment, context.store, wanted=only("ijcnn-sigmoid"), status=fails)
    frame = tables.loss(TARGETS[6], context).frame.set_index("method")
    assert frame.loc["OPT", "seconds"].startswith("× (0 of ")
    assert "±" in frame.loc["DP-TR", "seconds"]
    assert frame.loc["DP-TR", "paper s"] == "×"
    assert tables.loss(TARGETS[2], context).gaps  # no rows for the other loss
    assert set(tables.loss(TARGETS[2], context).frame["loss"]) == {"–"}


@pytest.mark.parametrize(
    ("mean", "std", "text"), [(0.71234, 0.018, "0.712 ± 0.018"), (0.5, math.nan, "0.500"), (math.nan, math.nan, "–")]
)
def test_numbers(mean, std, text):
    assert tables.mean_std(mean, std) == text


def test_without_rows_every_artefact_shows_its_gap(experiment, context):
    for artefact in experiment.artefacts:
        with figure_style():
            output = artefact.render(context)
        gaps = [*output.gaps, context.unfinished(artefact.name)]
        assert any("dpbench run --experiment nonconvex/" in gap for gap in gaps), artefact.name
    assert {one.check(context).held for one in experiment.claims} == {None}


def test_every_artefact_renders_and_saves(experiment, context, tmp_path):
    ends_as(experiment, context.store)
    for artefact in experiment.artefacts:
        with figure_style():
            output = artefact.render(context)
            output.save(tmp_path / artefact.name, artefact.title)
        assert not output.gaps, artefact.name


def test_an_ended_run_keeps_its_loss_in_the_mean_trace(experiment, context):
    lasts = {0: 10, 1: 30}
    ends_as(experiment, context.store, wanted=lambda job: job.problem == "ijcnn-sigmoid" and job.seed < 2,
            iterations=lambda job: lasts[job.seed], objective=lambda job: {0: 0.5, 1: 0.3}[job.seed])  # fmt: skip
    runs = study.finished(context.rows("convergence_ijcnn", timed=0, algorithm="opt", epsilon=1.0))
    runs = runs[runs["alpha"].eq(0.04)]
    line = figures.mean_trace(context.traces(runs), runs).set_index("iteration")["loss"]
    assert line[0] == pytest.approx(1.0)
    assert line[5] == pytest.approx(0.8)
    assert line[10] == pytest.approx((0.5 + 0.7) / 2)  # the second is at 0.7 on its way from 0.8 to 0.3
    assert line[30] == pytest.approx(0.4)


def test_the_cap_named_in_captions_is_the_algorithms(experiment, context):
    from dpbench import algorithms

    full = Context(experiment, "full", context.store)
    assert study.most_iterations(full, "table1") == f"{algorithms.get('opt').Settings().cap:,}"
    assert study.most_iterations(context, "differences") == "30 or 150"


def test_published_means_are_compared(experiment, context, paper):
    """One comparison for each published cell of the profile that is not a mean of 0; equal values match."""
    ends_as(
        experiment, context.store, wanted=only("ijcnn-sigmoid"), hessian_evaluations=lambda job: 1 + job.seed * 1e-9
    )
    found = {one.name: one.match.word for one in experiment.comparisons(context)}
    ijcnn = paper[paper["problem"].str.startswith("ijcnn")]
    quick = paper[paper["problem"].str.startswith("covertype") & paper["epsilon"].eq(1.0)]
    assert len(found) == (ijcnn["mean"].ne(0)).sum() + quick["mean"].ne(0).sum()
    assert found["Table 10, OPT-B at ε = 0.6: hessian evaluations"] == "match"
    assert found["Table 10, DP-TR at ε = 0.6: hessian evaluations"] == "differs"
    assert found["Table 1, OPT at ε = 1: loss"] == "not comparable"


# ---- claims ----


def verdict(experiment, tmp_path, name, **outcome):
    context = Context(experiment, "full", Store(tmp_path, "full", "nonconvex"))
    covertype = only("covertype12-logistic", "covertype12-sigmoid", "ijcnn-sigmoid")
    ends_as(experiment, context.store, "full", covertype, **outcome)
    return claim(experiment, name)(context).held


@pytest.mark.parametrize(
    ("seconds", "gain", "held"), [(5.0, 0.02, True), (1.0, 0.02, False), (5.0, -0.02, False), (5.0, 0.0, None)]
)
def test_the_claim_that_opt_beats_tr_can_fail(experiment, tmp_path, seconds, gain, held):
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.002, 5)
    noise -= noise.mean()
    assert verdict(
        experiment, tmp_path, "opt_beats_tr",
        seconds=lambda job: (seconds if job.algorithm == "dp-tr" else 0.5) if job.timed else None,
        objective=lambda job: 0.7 + 0.05 * job.seed - (gain + noise[job.seed] if job.algorithm == "opt" else 0),
    ) is held  # fmt: skip


@pytest.mark.parametrize(("seconds", "fails", "held"), [(5.0, None, True), (1.0, None, False), (5.0, 4, False)])
def test_the_claim_that_2opt_ls_is_consistent_can_fail(experiment, tmp_path, seconds, fails, held):
    assert verdict(
        experiment, tmp_path, "consistent",
        seconds=lambda job: (seconds if job.algorithm == "dp-tr" else 0.5) if job.timed else None,
        status=lambda job: "not terminated" if (job.algorithm, job.seed) == ("2opt-ls", fails) else "terminated",
    ) is held  # fmt: skip


@pytest.mark.parametrize(("opt", "tr", "held"), [(1, 10, True), (2, 10, False), (1, 9, False)])
def test_the_claim_on_hessians_can_fail(experiment, tmp_path, opt, tr, held):
    counts = {"opt": opt, "dp-tr": tr}
    assert verdict(experiment, tmp_path, "one_hessian",
                   hessian_evaluations=lambda job: counts.get(job.algorithm, 1)) is held  # fmt: skip


@pytest.mark.parametrize(("failing", "held"), [({"opt-ls"}, True), (set(), False), ({"opt-ls", "2opt-ls"}, False)])
def test_the_claim_on_two_phases_can_fail(experiment, tmp_path, failing, held):
    status = lambda job: "not terminated" if job.algorithm in failing and job.seed == 0 else "terminated"  # noqa: E731
    assert verdict(experiment, tmp_path, "two_phases", status=status) is held
