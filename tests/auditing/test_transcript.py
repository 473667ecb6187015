"""What a replay answers and writes down, and that scores are the log-likelihood ratios they claim to be."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from dpbench.auditing import noise, scores
from dpbench.auditing.transcript import Leak, Recorder, no_numbers
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Gaussian, ObjectivePerturbation, Poisson, Relation, WithoutReplacement
from dpbench.privacy.mechanisms import Mechanisms
from tests.privacy.laws import follows

BUDGET = Budget(1.0, 0.01, Relation.REPLACE_ONE, "standard")
K = 4000


def recorder(k=K, factor=1.0):
    made = Recorder(k, BUDGET, 0)
    made.releases.planted = factor
    return made


def test_noise_is_that_of_the_mechanisms_unless_weakened():
    for factor in (1.0, 0.5):
        m = recorder(factor=factor)
        normal = m.gaussian(np.zeros((K, 2)), sensitivity=2.0, noise_multiplier=1.5, label="g")
        laplace = m.laplace(np.zeros(K), sensitivity=2.0, epsilon=0.5, label="l")
        assert follows(normal[:, 0], stats.norm(0, 3.0)) == (factor == 1.0)
        assert follows(laplace, stats.laplace(0, 4.0)) == (factor == 1.0)


def test_a_replay_answers_what_was_recorded_and_writes_down_its_own_value():
    run = recorder(3)
    output = run.gaussian(np.zeros((3, 2)), sensitivity=1.0, rho=0.5, label="g")
    replay = run.replay()
    answer = replay.gaussian(np.ones((3, 2)), sensitivity=1.0, rho=0.5, label="g")
    np.testing.assert_array_equal(answer, output)
    assert (replay.tape[None][0].value == 1).all()
    with pytest.raises(Leak, match="something else"):
        replay.gaussian(np.ones((3, 2)), sensitivity=1.0, rho=0.5, label="g")


def ratio(act):
    """Scores of a run of `act(mechanisms, 1.0)`, and the run."""
    run = recorder()
    act(run, 1.0)
    replays = [run.replay() for _ in range(3)]
    for replay, s in zip(replays, (1.0, 0.0, 0.0), strict=True):
        act(replay, s)
    return scores.likelihood_ratio(run, *replays), run


def test_gaussian_laplace_and_radial_scores_are_exact():
    def act(m, s):
        m.radial(np.full((m.k, 3), s), sensitivity=1.0, epsilon=0.5, label="r")
        m.gaussian(np.full((m.k, 2), s), sensitivity=1.0, noise_multiplier=2.0, label="g")
        m.laplace(np.full(m.k, s), sensitivity=1.0, epsilon=1.0, label="l")

    score, run = ratio(act)
    r, g, l = (one.output for one in run.tape[None])
    expected = (stats.norm.logpdf(g, 1, 2) - stats.norm.logpdf(g, 0, 2)).sum(axis=1)
    expected += stats.laplace.logpdf(l, 1) - stats.laplace.logpdf(l, 0)
    expected += (np.linalg.norm(r, axis=1) - np.linalg.norm(r - 1, axis=1)) / 2  # density ∝ exp(-ε‖x‖/Δ)
    np.testing.assert_allclose(score, expected, atol=1e-12)


@pytest.mark.parametrize("magnitude", [False, True])
def test_the_score_of_a_noisy_max_is_its_log_odds(magnitude):
    values = {1.0: [1.0, 0.0, -0.5], 0.0: [0.2, 0.4, -1.5]}

    def act(m, s):
        m.noisy_argmax(np.tile(values[s], (m.k, 1)), sensitivity=0.5, epsilon=1.0, label="a", magnitude=magnitude)

    score, run = ratio(act)
    draws = 400_000
    noise = np.random.default_rng(1).laplace(size=(draws, 3))
    chance = {}
    for s, v in values.items():
        noisy = np.abs(noise + v) if magnitude else noise + v
        chance[s] = np.bincount(noisy.argmax(axis=1), minlength=3) / draws
    expected = np.log(chance[1.0] / chance[0.0])[run.tape[None][0].output]
    np.testing.assert_allclose(score, expected, atol=0.02)


@pytest.mark.thorough
def test_the_score_of_a_sparse_vector_is_its_log_odds():
    queries = {1.0: (0.0, 0.0, 1.0), 0.0: (1.0, 1.0, 0.0)}

    def answers(m, s):
        out = []
        for i in range(m.k):
            above = m.member(i).above_threshold(sensitivity=1.0, epsilon=1.0, label="v")
            out.append(next((t for t, q in enumerate(queries[s]) if above(q)), 3))
        return np.array(out)

    run = recorder()
    stopped = answers(run, 1.0)
    replays = [run.replay() for _ in range(2)]
    for replay, s in zip(replays, (1.0, 0.0), strict=True):
        np.testing.assert_array_equal(answers(replay, s), stopped)
    score = scores.likelihood_ratio(run, *replays, replays[1])
    generator, draws, chance = np.random.default_rng(1), 300_000, {}
    threshold, noise = 2 * generator.laplace(size=draws), 4 * generator.laplace(size=(draws, 3))
    for s, q in queries.items():
        above = np.column_stack([noise + q >= threshold[:, None], np.ones(draws, bool)])
        chance[s] = np.bincount(above.argmax(axis=1), minlength=4) / draws
    np.testing.assert_allclose(score, np.log(chance[1.0] / chance[0.0])[stopped], atol=0.03)


@pytest.mark.parametrize(("factor", "said"), [(1.0, ""), (0.1, "it fires more or less often than its noise has it")])
def test_a_sparse_vector_whose_noise_is_too_little_is_noticed_by_how_often_it_fires(factor, said):
    m = recorder(200, factor)
    for i in range(m.k):
        m.member(i).above_threshold(sensitivity=1.0, epsilon=1.0, label="v")(2.0)
    assert noise.fault(m) == (said and f"v: {said}")


def test_the_nodes_of_a_tree_are_independent_releases():
    m = recorder()
    tree = m.tree(4, sensitivity=1.0, rho=0.5, label="t")
    sums = [tree.release(np.full((K, 1), float(t))) for t in range(1, 5)]
    nodes = [one.output - one.value for one in m.tape[None]]
    for node in nodes:
        assert follows(node[:, 0], stats.norm(0, tree.std))
    correlation = np.corrcoef(np.hstack(nodes).T) - np.eye(4)
    assert np.abs(correlation).max() < 5 / np.sqrt(K)
    np.testing.assert_allclose(sums[2], 3 + nodes[1] + nodes[2])


def test_scores_of_members_and_of_a_batch_agree():
    def batch(m, s):
        m.gaussian(np.full((m.k, 2), s), sensitivity=1.0, noise_multiplier=2.0, label="g")

    def members(m, s):
        for i in range(m.k):
            m.member(i).gaussian(np.full((1, 2), s), sensitivity=1.0, noise_multiplier=2.0, label="g")

    np.testing.assert_allclose(ratio(batch)[0], ratio(members)[0])


def test_a_recorder_is_mechanisms_and_its_ledger_is_theirs():
    run, plain = recorder(2), Mechanisms(["a", "b"], BUDGET)
    for m in (run, plain):
        m.gaussian(np.zeros(2), sensitivity=1.0, rho=0.5, label="g")
        m.noisy_argmax(np.zeros((2, 3)), sensitivity=1.0, epsilon=0.5, label="a")
        m.linear_term(2, sensitivity=1.0, event=ObjectivePerturbation(3.0, 0.1, 0.01), label="b")
    assert run.ledger.of(1) == plain.ledger.of(1)


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (0.9, False), (1.1, False)])
def test_radial_noise_of_another_length_is_noticed(factor, right):
    run = recorder(factor=factor)
    run.radial(np.zeros((K, 3)), sensitivity=1.0, epsilon=0.5, label="r")
    assert ("not of the law" not in noise.fault(run)) == right


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("apart", [0.0, 1e-6])
def test_noise_that_is_used_twice_is_noticed_whatever_multipliers_replicates_have(fresh, apart):
    """Each replicate may have a multiplier of its own: releases are compared by their place, not by their ε."""
    run = recorder(400)
    for i in range(run.k):
        kept = run.releases.noise[0].bit_generator.state
        for label in ("one", "two"):
            if not fresh:
                run.releases.noise[0].bit_generator.state = kept
            value, z = np.zeros((1, 2)), 2.0 + apart * i
            run.member(i).gaussian(value, sensitivity=1.0, noise_multiplier=z, label=label)
    assert ("not fresh" in noise.fault(run)) != fresh


def of_one_label(act, **values):
    """Scores of the label "x" of a run of `act(mechanisms, value)` on the first data set, and the run."""
    run = recorder(50)
    act(run, values["first"])
    replays = [run.replay() for _ in range(3)]
    for replay, name in zip(replays, ("first", "second", "neither"), strict=True):
        act(replay, values[name])
    return scores.of_label("x", run, *replays), run


@pytest.mark.parametrize("event", [None, Poisson(0.25, Gaussian(2.0)), WithoutReplacement(8, 2, Gaussian(2.0))])
def test_the_score_of_a_label_is_that_of_one_number_on_the_line_between_its_values(event):
    """Two values 5 apart, of which the ledger has it that they are 1/z apart at most in units of the noise."""
    line, beside = np.array([0.6, -0.8]), np.array([1.6, 1.2])
    at = {"first": 4 * line + beside, "second": beside - line, "neither": line}

    def act(m, value):
        m.laplace(np.zeros(m.k), sensitivity=1.0, epsilon=1.0, label="another")
        m.gaussian(np.tile(value, (m.k, 1)), sensitivity=3.0, noise_multiplier=2.0, label="x")

    found, run = of_one_label(act, **at)
    output, kept = run.tape[None][1].output @ line, run.tape[None][1]
    if event is None:
        x = (output - 1.5) / 6.0
        expected = stats.norm.logpdf(x, 0.25, 1) - stats.norm.logpdf(x, -0.25, 1)
    else:
        missing = isinstance(event, Poisson)  # of Poisson samples the row is there or not; of others it is replaced
        run.tape[None][1] = dataclasses.replace(kept, event=event)
        others = []
        for name in at:
            replay = run.replay()
            replay.tape[None] = [run.tape[None][0], dataclasses.replace(kept, value=np.tile(at[name], (50, 1)))]
            others.append(replay)
        found = scores.of_label("x", run, *others)
        x = (output - (1.0 if missing else 1.5)) / 6.0
        low, high = (0.0, 0.5) if missing else (-0.25, 0.25)
        of = {shift: stats.norm.pdf(x, shift, 1) for shift in (low, 0.0, high)}
        expected = np.log(0.75 * of[0.0] + 0.25 * of[high]) - np.log(0.75 * of[0.0] + 0.25 * of[low])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_score_of_a_label_of_single_numbers_with_laplace_noise_is_by_its_law():
    found, run = of_one_label(
        lambda m, value: m.laplace(np.full(m.k, value), sensitivity=3.0, epsilon=0.5, label="x"),
        first=2.0, second=-1.0, neither=0.0,
    )  # fmt: skip
    x = (run.tape[None][0].output - 0.5) / 6.0
    np.testing.assert_allclose(found, np.abs(x + 0.25) - np.abs(x - 0.25), atol=1e-12)


@pytest.mark.parametrize(("values", "plain"), [
    ([1, 2.0, None, True], True), ([np.float64(1), np.int32(2), np.bool_(True)], True), (np.array([1.0, 2.0]), True),
    (["a"], False), ([1.0, type("Sly", (float,), {})(2.0)], False), ([np.str_("a")], False), ([[1.0]], False),
    (np.array([None, "x"], dtype=object), False),
])  # fmt: skip
def test_a_column_that_is_reported_holds_plain_numbers_and_no_other_object(values, plain):
    columns = {"also": [1], "mine": values, "unasked": ["text"]}
    assert no_numbers(columns, {"mine", "also", "absent"}) == ("" if plain else "mine")


def test_a_label_that_nothing_moves_is_scored_by_its_noise_along_the_first_axis():
    """A release that is equal on both data sets claims what its multiplier does, and its noise may be too little."""
    here = np.array([3.0, 4.0])
    found, run = of_one_label(
        lambda m, value: m.gaussian(np.tile(value, (m.k, 1)), sensitivity=1.0, noise_multiplier=2.0, label="x"),
        first=here, second=here, neither=here,
    )  # fmt: skip
    x = (run.tape[None][0].output[:, 0] - 3.0) / 2.0
    np.testing.assert_allclose(found, stats.norm.logpdf(x, 0.25) - stats.norm.logpdf(x, -0.25), atol=1e-12)
