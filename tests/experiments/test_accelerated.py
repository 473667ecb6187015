"""accelerated: the formulas of Figs. 1 and 2 by hand, and that artefacts and claims say what the rows say."""

import math
import re

import msgspec
import numpy as np
import pytest

from dpbench import experiments
from dpbench.experiments.accelerated import ALGORITHMS, errors_of, final_errors, formulas, rows_of
from dpbench.run.store import Store
from dpbench.study.claims import NOT_TESTABLE, OPEN
from dpbench.study.context import Context
from dpbench.study.plan import plan
from dpbench.study.style import figure_style
from tests.batches import write


def test_places_are_cited_with_the_pages_that_are_known():
    cited = experiments.get("accelerated").cited
    assert cited("Section 5, Figs. 3 and 4, top") == "Section 5, Figs. 3 and 4, top (pp. 812, 813)"
    assert cited("Section 5 (published code)") == "Section 5 (published code) (p. 810)"
    assert cited("Fig. 33") == "Fig. 33"
    assert experiments.get("zeroth_order").cited("Section 4.1") == "Section 4.1"  # no values of its own, so no file


@pytest.fixture(scope="module")
def experiment():
    return experiments.get("accelerated")


# Fig. 1


def test_rates_by_hand():
    assert formulas.rate(1.0, 0.0) == pytest.approx(0.5)  # 1 - αμ
    assert formulas.rate(0.1, 0.0) == pytest.approx(0.95)
    assert formulas.rate(1.0, 0.7) == pytest.approx(math.sqrt(0.7))  # complex roots
    assert formulas.rate(0.5, 0.25) == pytest.approx(0.5)  # a double root: 1 - √(αμ)
    assert formulas.rate(1.0, 0.05) == pytest.approx((0.55 + math.sqrt(0.55**2 - 0.2)) / 2)


@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.60279), (0.5, 0.25), (1.0, 0.085786)])
def test_the_best_beta_minimises_the_rate(alpha, beta):
    assert formulas.best_beta(alpha) == pytest.approx(beta, rel=1e-4)
    rates = [formulas.rate(alpha, b) for b in np.linspace(0, 0.999, 4000)]
    assert formulas.rate(alpha, formulas.best_beta(alpha)) <= min(rates) + 1e-12
    assert min(rates) == pytest.approx(1 - math.sqrt(alpha / 2), abs=0.02)


def test_bounds_by_hand():
    # α = 1, β = 0: ρ = 1/2, Σ 2/(λ(2 - λ)) = 2.6667 + 2. t = 1: (10 + 1e-4/0.75)/4 + 1e-4/2·4.6667.
    assert formulas.error_bound([1, 2], 1.0, 0.0, 1e-2) == pytest.approx([2.50026667, 2.50106667], rel=1e-8)
    # α = 0.5, β = 0.25, t = 10, c_w = 1e-4: ρ = 1/2, σ² = 1e-6; (10 + 1e-6·0.25/0.75)·100/2^20 is 9.53674e-4;
    # Σ 2·0.5·1.25/(0.75 λ (2.5 - 0.5 λ)) = 1.48148 + 0.83333, times 5e-7.
    assert formulas.error_bound(10, 0.5, 0.25, 1e-4) == pytest.approx(9.53674348e-4 + 5e-7 * 2.31481481, rel=1e-8)


# Fig. 2


def test_optimal_noise_by_hand_for_two_stages():
    """Geometric sums: r₁ = 1 - √(1/20), r₂ = 1 - √(1/320), 13 and 40 iterations."""
    r1, r2 = 1 - math.sqrt(1 / 20), 1 - math.sqrt(1 / 320)
    jump = 2 * r2**40 * (1 / 20 * 2) / (1 / 320 * (1 + 1 / 16))  # a_{53,13}/a_{53,53}
    q1, q2 = r1 ** (1 / 3), r2 ** (1 / 3)
    last = (1 - q2**40) / (1 - q2) + jump ** (1 / 3) * (1 - q1**13) / (1 - q1)
    noise = formulas.optimal_noise(2)
    assert noise[-1] == pytest.approx(last)
    assert noise[12] == pytest.approx(last / jump ** (1 / 3))
    assert noise[0] == pytest.approx(last / jump ** (1 / 3) / q1**12)
    assert noise[13] == pytest.approx(last / q2**39)
    assert last == pytest.approx(43.1875, abs=1e-4)


@pytest.mark.parametrize(("K", "T"), [(2, 53), (3, 133), (4, 293), (5, 613)])
def test_optimal_noise_spends_the_whole_budget(K, T):
    noise = formulas.optimal_noise(K)
    assert len(noise) == T
    assert np.sum(1 / noise) == pytest.approx(1, abs=1e-12)


# Grid, artefacts and claims


def test_the_full_grid_is_the_papers(experiment):
    cases = set()
    for block in experiment.blocks("full", "best_errors"):
        assert (block.seeds, block.epsilon, block.problems) == (20, [1.0], ["accelerated"])
        assert block.settings["T"] == [100, 200, 500, 1000]
        assert block.settings["c"] == [0.1, 0.5, 1]
        cases |= {(name, block.settings["m"]) for name in block.algorithms}
    assert cases == {(name, m) for name in ALGORITHMS for m in (1_000, 100_000)}


FLOORS = dict(zip(ALGORITHMS, (0.3, 0.03, 0.025, 0.028, 0.010, 0.011), strict=True))


def made_up(name, m, c, T):
    """Errors for which every claim holds but the one of small c under sampling."""
    if c == 0.1:
        at_last = {"dp-hb": 0.09} if T == 1000 else {}  # its best T is another than at c = 1
        return ({"dp-gd-laplace": 20, "dp-masg": 2, "dp-masg-opt": 5, "dp-nag-opt": 0.02} | at_last).get(name, 0.1)
    slope = {"dp-hb": 5, "dp-nag": 5, "dp-masg": 1.2}.get(name, 1)
    return FLOORS[name] * (slope if T >= 500 else 1) ** 2 * (2 if m == 1_000 else 1) * (0.9 if T == 100 else 1)


def write_rows(store, experiment, error, skip=()):
    runs, traces = [], []
    for job in plan(experiment.blocks("quick"), store).jobs:
        settings = job.parsed()
        if job.algorithm in skip:
            continue
        T = {"dp-nag-opt": 106, "dp-masg-opt": 89}.get(job.algorithm, settings.T)
        flawed = settings.noise_scale != "laplace"
        mean = error(job.algorithm, settings.m, settings.c, settings.T) / (2 if flawed else 1)
        excess = mean * (1 + 0.02 * (job.seed - 1))
        values = {name: getattr(settings, name) for name in settings.__struct_fields__}
        runs.append(
            {
                "key": job.key, "problem": job.problem, "algorithm": job.algorithm, "epsilon": job.epsilon,
                "seed": job.seed, "settings": msgspec.json.encode(values).decode(), "T": min(T, settings.T),
                "excess": excess, "status": "done", "accounting": "pure", "timed": 0, "private": not flawed,
                "epsilon_planned": math.sqrt(2) if flawed else 1.0,
            }
        )  # fmt: skip
        traces += [
            {"key": job.key, "iteration": t, "passes": float(t), "excess": e} for t, e in ((0, 29.09), (T, excess))
        ]
    write(store, runs, traces)


@pytest.fixture
def context(experiment, tmp_path):
    store = Store(tmp_path, "quick", "accelerated")
    write_rows(store, experiment, made_up)
    return Context(experiment, "quick", store)


def artefact(context, name):
    (one,) = [a for a in context.experiment.artefacts if a.name == name]
    with figure_style():
        return one.render(context)


def verdicts(context):
    return {claim.name: claim.judge(context)[0] for claim in context.experiment.claims}


def test_claims_that_hold_on_made_up_rows(context):
    found = verdicts(context)
    assert all(verdict.held for verdict in found.values())
    assert "106 and 89" in found["2"].numbers
    assert "at T = 100" in found["3"].numbers


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("claim", "case", "value"),
    [
        ("1", ("dp-hb", 100_000, 0.1, 500), 25.0),
        ("2", ("dp-hb", 100_000, 1.0, 200), 0.005),
        ("2", ("dp-nag-opt", 100_000, 1.0, 100), 0.001),
        ("2b", ("dp-nag", 1_000, 0.1, 200), 0.001),
        ("2c", ("dp-masg-opt", 1_000, 1.0, 100), 0.5),
        ("2d", ("dp-masg", 100_000, 0.1, 1000), 0.03),
        ("3", ("dp-gd-laplace", 100_000, 1.0, 500), 0.001),
        ("4", ("dp-gd-laplace", 100_000, 1.0, 1000), 3.0),
        ("5", ("dp-nag", 1_000, 1.0, 100), 0.001),
        ("5", ("dp-nag", 100_000, 1.0, 100), 0.0005),
        ("5", ("dp-hb", 1_000, 1.0, 1000), 0.6),
    ],
)
def test_one_row_against_a_claim_is_seen(experiment, tmp_path, claim, case, value):
    store = Store(tmp_path, "quick", "accelerated")
    write_rows(store, experiment, lambda *args: value if args == case else made_up(*args))
    (one,) = [each for each in experiment.claims if each.name == claim]
    (verdict,) = one.judge(Context(experiment, "quick", store))
    assert verdict.held is False, verdict.numbers


def test_a_claim_has_the_interval_of_its_ratio_and_says_which_wrong_noise_passes(experiment, tmp_path):
    store = Store(tmp_path, "quick", "accelerated")
    write_rows(store, experiment, made_up)
    context = Context(experiment, "quick", store)
    honest = errors_of(context)
    context.found_before.update({(errors_of.__wrapped__, (factor,)): honest for factor in (0.0, 0.5)})
    third = next(claim for claim in experiment.claims if claim.name == "3").judge(context)[0]
    assert re.search(r"ratio 0\.1 \[0\.09\d+, 0\.10\d+\]", third.numbers)
    assert "under: half the noise, no noise (a property of the optimiser); with the two step sizes" in third.numbers


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        (lambda name, m, c, T: made_up(name, m, 1.0, T), NOT_TESTABLE),  # at either step size
        (lambda name, *at: 0.0272 if (name, *at[:2]) == ("dp-gd-laplace", 100_000, 1.0) else made_up(name, *at), OPEN),
    ],
)
def test_what_holds_exchanged_is_not_testable_and_what_other_seeds_turn_is_open(experiment, tmp_path, rows, word):
    store = Store(tmp_path, "quick", "accelerated")
    write_rows(store, experiment, rows)
    (third,) = (claim for claim in experiment.claims if claim.name == "3")
    assert third.judge(Context(experiment, "quick", store))[0].word == word


@pytest.mark.thorough
def test_missing_rows_are_not_enough_data_and_visible_gaps(experiment, tmp_path):
    store = Store(tmp_path, "quick", "accelerated")
    write_rows(store, experiment, made_up, skip=["dp-hb"])
    context = Context(experiment, "quick", store)
    found = verdicts(context)
    assert found["3"].held is None
    assert "dp-hb" in found["3"].numbers
    assert found["2d"].held
    for name in ("fig3", "fig4", "best_errors"):
        gaps = artefact(context, name).gaps
        assert gaps
        assert all("dp-hb" in gap and f"dpbench run --experiment accelerated/{name}" in gap for gap in gaps)


@pytest.mark.thorough
def test_without_rows_everything_renders(experiment, tmp_path):
    context = Context(experiment, "quick", Store(tmp_path, "quick", "accelerated"))
    for one in experiment.artefacts:
        assert bool(artefact(context, one.name).gaps) == (one.name not in ("fig1", "fig2"))
    assert {verdict.held for verdict in verdicts(context).values()} == {None}


def test_a_table_without_any_row_has_one_gap(experiment, tmp_path):
    (gap,) = artefact(Context(experiment, "quick", Store(tmp_path, "quick", "accelerated")), "best_errors").gaps
    assert "every row" in gap


def test_the_table_of_best_errors_is_the_minimum_over_T(context):
    table = artefact(context, "best_errors")
    best = table.data.set_index(["algorithm", "m", "c"])
    assert best.loc[("dp-hb", 100_000, 1.0), "mean"] == pytest.approx(0.03 * 0.9)
    assert best.loc[("dp-hb", 100_000, 1.0), "T"] == 100
    assert best.loc[("dp-hb", 100_000, 1.0), "se"] == pytest.approx(0.027 * 0.02 / math.sqrt(3))
    cells = table.frame.set_index("algorithm")
    assert cells.loc["DP-HB", "m = n, c = 1"] == "0.027 ± 0.0003 (T = 100)"
    assert list(cells.columns) == ["m = n, c = 0.1", "m = n, c = 1", "m = 1,000, c = 0.1", "m = 1,000, c = 1"]


def test_runs_of_one_chosen_T_count_together(context):
    """dp-nag-opt runs T' = 106 for T = 200, 500 and 1,000: one method, three times the seeds."""
    table = final_errors(rows_of(context, "fig3"), pooled=True)
    rows = table[(table["algorithm"] == "dp-nag-opt") & (table["c"] == 1)].set_index("T")
    assert rows["seeds"].to_dict() == {100: 3, 106: 9}
    asked = final_errors(rows_of(context, "fig3"))
    asked = asked[(asked["algorithm"] == "dp-nag-opt") & (asked["c"] == 1) & (asked["T"] == 106)]
    assert len(asked) == 3
    assert rows.loc[106, "mean"] == pytest.approx(asked["mean"].mean())


def test_the_chosen_T_stands_beside_the_published_one(context):
    table = artefact(context, "chosen_T")
    frame = table.frame.set_index(["algorithm", "c"])
    assert frame.loc[("DP-NAG-opt", "1"), "T = 1,000"] == "106"
    assert frame.loc[("DP-NAG-opt", "1"), "published code, T = 1,000"] == "136"
    assert frame.loc[("DP-MASG-opt", "0.5"), "T = 1,000"] == "–"  # c = 0.5 is in the full profile only
    assert len(table.gaps) == 2


@pytest.mark.thorough
def test_figures_leave_the_published_scale_out(context):
    assert set(rows_of(context, "fig3")["set.noise_scale"].dropna()) <= {"laplace"}
    figure = artefact(context, "fig3")
    assert set(figure.data["m"]) == {100_000}
    assert "Every curve starts at 29.09" in figure.method
    assert set(artefact(context, "fig4").data["m"]) == {1_000}


def test_a_diverged_replicate_is_an_infinite_error(experiment, tmp_path):
    store = Store(tmp_path, "quick", "accelerated")
    write_rows(store, experiment, made_up)
    runs = store.runs()
    one = runs[(runs["algorithm"] == "dp-hb") & (runs["T"] == 100)].iloc[0].dropna().to_dict()
    write(store, [one | {"status": "diverged", "excess": None}], [])
    table = final_errors(rows_of(Context(experiment, "quick", store), "best_errors"))
    assert np.isinf(table.loc[table["algorithm"] == "dp-hb", "mean"]).sum() == 1


def test_the_published_code_s_weights_give_the_published_T():
    published = experiments.get("accelerated").published()["chosen_T"]
    for algorithm in ("dp-nag-opt", "dp-masg-opt"):
        assert [formulas.published_code_T(algorithm, c, 1000) for c in published["c"]] == published[algorithm]


def test_the_weights_of_the_published_code_are_a_setting_that_gives_its_T(experiment):
    """T' at T = 1,000 on the authors' own draw: 396, 191, 136 and 89, 225, 89; the paper's weights give others."""
    from dpbench import algorithms
    from dpbench.problems import catalogue

    problem, chosen = catalogue.build("accelerated-2020"), experiment.published()["chosen_T"]
    for name in ("dp-nag-opt", "dp-masg-opt"):
        method = algorithms.get(name)
        for c, theirs in zip(chosen["c"], chosen[name], strict=True):
            found = {}
            for weights in ("paper", "as-published-code"):
                settings = method.complete(problem, method.Settings(T=1000, c=c, weights=weights))
                alpha, _, stage = method.schedule(problem, settings)
                budgets = method.budgets(problem, settings, 1.0, alpha, stage)
                assert budgets.sum() == pytest.approx(1)  # the switch keeps its ε
                found[weights] = len(budgets)
            assert found["as-published-code"] == theirs
            assert (found["paper"] == theirs) is (name == "dp-masg-opt" and c != 0.5)
