"""private-tuning: inside its ε, one release, a clipped score, and no way around its budget."""

import json

import numpy as np
import pytest

from dpbench import algorithms
from dpbench.algorithms.base import no_trace
from dpbench.algorithms.private_tuning import LABEL, PrivateTuning
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import BestOfRuns, Relation
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.verify import spent
from dpbench.problems import Problem

TUNING = algorithms.get("private-tuning")


def problem(n=400, d=5, **weights):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d)) / np.sqrt(d)
    return Problem(X, np.where(X @ np.ones(d) > 0, 1.0, -1.0), row_bound=1.0, **weights)


def run(target, budget, k=8, **settings):
    given = PrivateTuning.Settings(**settings)
    mechanisms = Mechanisms([f"key {i}" for i in range(k)], budget, declared=TUNING.relation)
    outcome = TUNING.run(target, np.zeros((k, target.d)), mechanisms, TUNING.complete(target, given), no_trace)
    return outcome, mechanisms.ledger


TIGHT = Budget(2.0, 1e-6, Relation.REPLACE_ONE, "tight")
CANDIDATES = json.dumps([{"T": 3}, {"T": 30}])


@pytest.mark.parametrize("method", ["dp-gd", "dp-newton-hess-clip", "dp-cd"])
def test_one_release_within_the_budget_that_spends_it(method):
    some = CANDIDATES if method != "dp-cd" else json.dumps([{"clip": 0.1}, {"clip": 1.0}])
    outcome, ledger = run(problem(), TIGHT, method=method, candidates=some)
    assert np.isfinite(outcome.W).all()
    for i in range(8):
        (entry,) = ledger.of(i)
        assert (entry.label, entry.count, type(entry.release)) == (LABEL, 1, BestOfRuns)
        assert 0.99 * 2 < spent(ledger.of(i), 1e-6, Relation.REPLACE_ONE).epsilon <= 2
    told = set(outcome.columns["notes"])
    assert told <= {json.dumps(one) for one in json.loads(some)} | {"no run: the start"}


def test_pure_dp_is_three_times_one_run():
    pure = Budget(3.0, 0.0, Relation.REPLACE_ONE, "pure")
    some = json.dumps([{"T": 5, "c": 0.1}, {"T": 5, "c": 0.01}])
    _, ledger = run(problem(l2=0.1), pure, method="dp-nag", candidates=some)
    assert spent(ledger.of(0), 0.0, Relation.REPLACE_ONE).epsilon == pytest.approx(3.0)
    with pytest.raises(UserError, match="dp-nag is pure DP; use accounting pure"):
        run(problem(l2=0.1), TIGHT, method="dp-nag", candidates=some)


def test_it_finds_the_better_setting_where_noise_is_small():
    loud = Budget(1000.0, 1e-6, Relation.REPLACE_ONE, "tight")
    some = json.dumps([{"T": 1, "step": 1e-6}, {"T": 50}])
    outcome, _ = run(problem(), loud, method="dp-gd", candidates=some, mean=20.0)
    assert set(outcome.columns["notes"]) == {json.dumps({"T": 50})}


def test_a_score_moves_by_no_more_than_its_sensitivity():
    target = problem()
    X, y = np.array(target.X), np.array(target.y)
    y[0] = -y[0]
    neighbour = Problem(X, y, row_bound=1.0)
    for w in (1e6 * np.ones(5), np.zeros(5), np.full(5, np.inf)):
        with np.errstate(all="ignore"):
            moved = target.clipped_value(w[None], 1.0) - neighbour.clipped_value(w[None], 1.0)
        assert abs(moved[0]) <= 1.0 / target.n + 1e-15
    assert (
        abs(target.value(1e6 * np.ones((1, 5))) - neighbour.value(1e6 * np.ones((1, 5))))[0] > 1
    )  # unclipped: no bound


def test_a_run_that_spends_more_or_what_is_not_covered_is_refused(monkeypatch):
    method = type(algorithms.get("dp-gd"))
    honest = method.run

    def greedy(self, problem, W, mechanisms, settings, trace):
        honest(self, problem, W, mechanisms, settings, trace)
        return honest(self, problem, W, mechanisms, settings, trace)

    monkeypatch.setattr(method, "run", greedy)
    with pytest.raises(PrivacyError, match="more than its part"):
        run(problem(), TIGHT, candidates=CANDIDATES)
    monkeypatch.undo()
    with pytest.raises(PrivacyError, match="no Gaussian on all rows"):
        run(problem(), TIGHT, method="dp-sgd", candidates=CANDIDATES)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"candidates": "[]"}, "candidates is empty"),
        ({"candidates": "T=3"}, "no JSON list"),
        ({"candidates": '[{"steps": 3}]'}, "unknown setting 'steps'"),
        ({"method": "dp-gd-oracle"}, "is not private"),
        ({"method": "adassp"}, "loss logistic is not covered"),
    ],
)
def test_mistakes_are_one_line(settings, message):
    with pytest.raises(UserError, match=message):
        TUNING.complete(problem(), PrivateTuning.Settings(**settings))


def test_a_delta_that_covers_a_run_without_any_epsilon_is_one_line():
    with pytest.raises(UserError, match=r"private-tuning: delta = 0\.25 alone covers a run"):
        run(problem(), Budget(1.0, 0.25, Relation.REPLACE_ONE, "tight"), candidates=CANDIDATES)


def test_what_it_planned_is_no_function_of_the_runs_it_made():
    """The ledger of a release told of all K runs: ε planned was 0.45 where 1 was, as some method had stopped early."""
    _, ledger = run(problem(), TIGHT, k=12, candidates=CANDIDATES, mean=1.5)
    assert len({ledger.planned(i) for i in range(12)}) == 1


def test_what_its_method_counts_as_public_it_counts_too():
    assert "M_j" in TUNING.public(PrivateTuning.Settings(method="dp-cd", candidates='[{"passes": 1}]'))
    assert TUNING.public(PrivateTuning.Settings()) == ""
