"""Intervals of coefficients: their two releases on neighbours, the step by hand, the rule, plan and file, coverage."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

import dpbench
from dpbench import PrivateClassifier, PrivateRegressor
from dpbench.algorithms import get, newton_step
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.newton_step import ReleasedStep, noisy_gram
from dpbench.errors import UserError
from dpbench.own import engine, intervals
from dpbench.own.engine import execute
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Relation
from dpbench.privacy.verify import spent
from dpbench.problems import Problem
from dpbench.problems.exact import ExactProblem
from dpbench.schema import Column, Schema, Target
from dpbench.schema.encoding import encoding_of
from tests.algorithms.conftest import run, small_problem
from tests.batches import run_batch

CLIP = 0.3


def value(total):
    """A sum as the numbers it stands for."""
    return total if isinstance(total, np.ndarray) else total.integers * total.unit


@pytest.mark.parametrize("kind", [Problem, ExactProblem])
def test_a_replaced_row_moves_the_two_releases_by_no_more_than_declared(kind):
    for seed in range(10):
        drawn = np.random.default_rng(seed)
        X = 0.5 * drawn.standard_normal((20, 3))
        X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
        y, w = 3 * drawn.standard_normal(20), drawn.standard_normal((1, 3))
        other, label = X.copy(), y.copy()
        other[0], label[0] = drawn.standard_normal(3), drawn.choice([-100.0, 100.0])
        other[0] *= (1 - 1e-12) / np.linalg.norm(other[0])
        one, two = (kind(A, b, loss="squared", row_bound=1.0) for A, b in ((X, y), (other, label)))
        moved = np.linalg.norm(value(one.score_moment(w, CLIP)) - value(two.score_moment(w, CLIP)))
        assert moved <= math.sqrt(2) * CLIP**2 / 20
        moved = np.linalg.norm(value(one.clipped_curvature(w, CLIP)) - value(two.clipped_curvature(w, CLIP)))
        assert moved <= math.sqrt(2) / 20
        scores = np.clip(X @ w[0] - y, -CLIP, CLIP)[:, None] * X
        np.testing.assert_allclose(value(one.score_moment(w, CLIP))[0], scores.T @ scores / 20, atol=2e-5)
        inside = X[np.abs(X @ w[0] - y) <= CLIP]
        np.testing.assert_allclose(value(one.clipped_curvature(w, CLIP))[0], inside.T @ inside / 20, atol=1e-4)


@pytest.mark.parametrize("kind", [Problem, ExactProblem])
def test_both_sensitivities_are_attained(kind):
    y, w = np.array([9.0, 0.0, 0.0]), np.zeros((1, 2))
    one, turned, near, over = (
        kind(np.eye(2)[rows], labels, loss="squared", row_bound=1.0)
        for rows, labels in (([0, 1, 1], y), ([1, 1, 1], y), ([0, 1, 1], 0 * y), ([1, 1, 1], 0 * y))
    )
    moved = np.linalg.norm(value(one.score_moment(w, CLIP)) - value(turned.score_moment(w, CLIP)))
    assert moved == pytest.approx(math.sqrt(2) * CLIP**2 / 3)
    moved = np.linalg.norm(value(near.clipped_curvature(w, CLIP)) - value(over.clipped_curvature(w, CLIP)))
    assert moved == pytest.approx(math.sqrt(2) / 3)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_the_noise_of_each_release_has_its_variance_and_the_step_says_it(relation):
    n, k, d = 50, 1500, 3
    problem, method = Problem(np.zeros((n, d)), np.ones(n), loss="squared", row_bound=1.0), get("boosted-ssp")
    budget, twice = Budget(1.0, 1e-5, Relation[relation.upper()], "tight"), relation == "replace_one"
    settings = make_settings(method, {"intervals": True, "T": 5})
    keys = [f"noise/{i}" for i in range(k)]
    steps = run_batch(problem, method, [settings] * k, np.zeros((k, d)), budget, keys).evidence
    root = math.sqrt(2) if twice else 1.0
    deviation = lambda name: np.std([getattr(step, name) for step in steps], axis=0)  # noqa: E731
    scale = lambda share: 1 / n / math.sqrt(2 * share * budget.rho)  # noqa: E731
    for name, sensitivity, share in (("gram", 1, 0.87 * 0.15), ("curvature", 1, 0.08), ("scores", CLIP**2, 0.05)):
        std = root * sensitivity * scale(share)
        assert deviation(name)[0, 0] == pytest.approx(std, rel=0.07)
        assert deviation(name)[0, 1] == pytest.approx(std / math.sqrt(2), rel=0.07)
    assert steps[0].curvature_std == pytest.approx(root * scale(0.08))
    together = np.array([(step.gram[0, 0], step.curvature[0, 0]) for step in steps])
    assert abs(np.corrcoef(together.T)[0, 1]) < 0.1
    moment = (2 if twice else 1) * CLIP * scale(0.87 * 0.85 / 5) / math.sqrt(3)
    assert steps[0].moment_std == pytest.approx(moment)
    assert deviation("moment")[0] == pytest.approx(moment, rel=0.07)


def test_the_releases_add_up_to_the_budget():
    result = run("boosted-ssp", small_problem(loss="squared"), intervals=True)
    ledger, budget = result.mechanisms.ledger.of(0), result.mechanisms.budget
    costs = {entry.label: entry.count / entry.release.noise_multiplier**2 / (2 * budget.rho) for entry in ledger}
    assert costs == {
        "gram": pytest.approx(0.87 * 0.15), "gradient": pytest.approx(0.87 * 0.85), "scores": pytest.approx(0.05),
        "curvature": pytest.approx(0.08),
    }  # fmt: skip
    assert spent(ledger, budget.delta, budget.relation).epsilon == pytest.approx(1.0, rel=1e-6)


def test_without_intervals_a_run_has_the_bytes_of_the_method_by_itself():
    """The loop as it is without them, by the same stream."""
    problem, method = small_problem(n=300, loss="squared"), get("boosted-ssp")
    budget = Budget(1.0, 1e-5, Relation.REPLACE_ONE, "tight")
    fitted = run_batch(problem, method, [method.Settings()], np.zeros((1, 5)), budget, ["a"])
    inner = fitted.mechanisms.inner(["a"], budget, Relation.ADD_REMOVE)
    rho, n = budget.rho, problem.n
    for_step = (1 - 0.15) * rho / 10
    gram = noisy_gram(inner, problem.data_hessian(np.zeros((1, 5))), 1.0, n, np.array([0.15 * rho]))
    s = math.sqrt(2) / n / np.sqrt(2 * np.array([0.15 * rho]))
    sigma = 2 * CLIP / n / np.sqrt(2 * np.array([for_step]))
    ridge = np.maximum(s * math.sqrt(5), sigma * math.sqrt(10 / 0.04))
    values, vectors = np.linalg.eigh(gram)
    inverse, W = 1 / (np.maximum(values, 0.0) + ridge[:, None] + problem.l2), np.zeros((1, 5))
    for _ in range(10):
        noisy = inner.gaussian(
            problem.bounded_gradient(W, CLIP), sensitivity=CLIP / n, rho=np.array([for_step]), label="gradient"
        )
        slope = np.einsum("kij,ki->kj", vectors, noisy + problem.l2 * W)
        W = W - np.einsum("kij,kj->ki", vectors, inverse * slope)
    assert fitted.W.tobytes() == W.tobytes()
    assert fitted.evidence is None


def released(X, y, w, clip=CLIP, std=0.0):
    """A step as if it had been released without noise, at w; std: what is said of the noise on its curvature."""
    r = np.clip(X @ w - y, -clip, clip)
    inside = X[np.abs(X @ w - y) <= clip]
    gram, curvature, scores = (A.T @ A / len(X) for A in (X, inside, r[:, None] * X))
    return ReleasedStep(w, r @ X / len(X), gram, curvature, scores, 0.0, std, std)


def test_without_noise_it_is_least_squares_with_its_sandwich():
    drawn = np.random.default_rng(0)
    X = np.hstack([np.ones((400, 1)), drawn.uniform(-1, 1, (400, 3))])
    y = X @ [0.1, 0.2, -0.1, 0.0] + 0.02 * (1 + np.abs(X[:, 1])) * drawn.standard_normal(400)
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    fitted = intervals.of(released(X, y, exact + 0.02), dict.fromkeys(range(4), ""), 400)
    np.testing.assert_allclose(fitted.centres, exact, rtol=1e-9)
    fitted = intervals.of(released(X, y, exact), dict.fromkeys(range(4), ""), 400)
    r, inverse = X @ exact - y, np.linalg.inv(X.T @ X)
    np.testing.assert_allclose(np.square(fitted.deviations), np.diag(inverse @ (X.T * r**2) @ X @ inverse), rtol=1e-9)


def test_the_deviation_has_a_part_for_each_noise():
    """By the law of what is added: draws of the three noises, pushed through the step, about its centre."""
    drawn, d, n = np.random.default_rng(3), 3, 10_000
    curvature = 0.7 * (np.diag([1.0, 0.5, 0.3]) + 0.1)
    w, moment, scores = np.array([0.3, -0.2, 0.1]), np.array([0.05, 0.02, -0.04]), 0.04 * curvature
    columns, std = dict.fromkeys(range(d), ""), 0.02
    step = ReleasedStep(w, moment, curvature / 0.7, curvature, scores, 0.01, std, std)
    theta, draws = w - np.linalg.solve(curvature, moment), []
    u = w - theta
    for _ in range(20_000):
        half = drawn.standard_normal((d, d))
        E = std * (np.tril(half, -1) + np.tril(half, -1).T) / math.sqrt(2) + std * np.diag(np.diag(half))
        noise = 0.01 * drawn.standard_normal(d) + np.linalg.cholesky(scores / n) @ drawn.standard_normal(d)
        draws.append((np.linalg.solve(curvature, noise), np.linalg.solve(curvature, E @ u)))
    plain, bent = np.var(draws, axis=0)
    intervals_of = intervals.of(step, columns, n)
    np.testing.assert_allclose(intervals_of.centres, theta)
    assert intervals_of.inside == pytest.approx(0.7)
    long = 1 - plain.sum() / (u @ u)
    assert 0.2 < long < 0.95
    np.testing.assert_allclose(np.square(intervals_of.deviations), plain + long * bent, rtol=0.05)


def test_a_category_is_compared_with_the_first_also_where_cells_are_missing():
    drawn, n = np.random.default_rng(1), 600
    kind = drawn.choice(["a", "b", "c"], n)
    frame = pd.DataFrame({"x": drawn.uniform(-1, 1, n), "kind": kind, "v": drawn.choice(["s", "t"], n)})
    y = 0.1 * frame["x"] + 0.05 * (kind == "c") + 0.01 * drawn.standard_normal(n)
    frame.loc[::7, "kind"] = None
    given = {"kind": Column(categories=("a", "b", "c")), "v": Column(categories=("s", "t"))}
    schema = Schema(target=Target(name="y", bounds=(-1, 1)), columns={"x": Column(bounds=(-1, 1))} | given)
    encoding = encoding_of(schema, intercept=True)
    X, columns = encoding.rows(frame), intervals.compared(encoding, windowed=False)
    assert columns == {0: "intercept", 1: "x", 3: "kind=b", 4: "kind=c", 6: "v=t"}
    assert [*intervals.compared(encoding, windowed=True)] == [1, 3, 4, 6]
    bare = intervals.compared(encoding_of(schema, intercept=False), windowed=False)
    assert [*bare.values()] == ["x", "kind=a", "kind=b", "kind=c", "v=t"]
    fitted = intervals.of(released(X, y.to_numpy(), 0.02 * drawn.standard_normal(7)), columns, n)
    np.testing.assert_allclose(fitted.centres, np.linalg.lstsq(X[:, [*columns]], y, rcond=None)[0], rtol=1e-7)


def test_without_a_clip_of_all_rows_it_is_the_least_huber_loss():
    drawn = np.random.default_rng(4)
    X = np.hstack([np.ones((900, 1)), drawn.uniform(-1, 1, (900, 2))])
    y = X @ [0.0, 0.3, -0.2] + 0.3 * (1 + (X[:, 1] > 0)) * drawn.standard_normal(900)
    exact = optimize.root(lambda w: np.clip(X @ w - y, -CLIP, CLIP) @ X, np.linalg.lstsq(X, y, rcond=None)[0]).x
    columns, n = dict.fromkeys(range(3), ""), len(X)
    np.testing.assert_allclose(intervals.of(released(X, y, exact), columns, n).centres, exact, atol=1e-9)
    np.testing.assert_allclose(intervals.of(released(X, y, exact + 0.01), columns, n).centres, exact, atol=2e-3)


def test_the_mean_is_of_iterates_that_have_arrived():
    """Of counts near the lower end of their bounds, where the first iterates cross other residuals than the last."""
    drawn, n = np.random.default_rng(5), 6000
    X = np.hstack([np.ones((n, 1)), drawn.uniform(-1, 1, (n, 2))]) / math.sqrt(3)
    y = np.minimum(drawn.negative_binomial(1, 0.2 + 0.1 * drawn.random(n) + 0.1 * X[:, 1]), 20) / 10 - 1
    problem, method = Problem(X, y, loss="squared", row_bound=1.0), get("boosted-ssp")
    budget = Budget(100.0, 1e-5, Relation.REPLACE_ONE, "tight")
    (step,) = run_batch(
        problem, method, [make_settings(method, {"intervals": True})], np.zeros((1, 3)), budget, ["a"]
    ).evidence
    made = intervals.of(step, dict.fromkeys(range(3), ""), n)
    exact = optimize.root(lambda w: np.clip(X @ w - y, -CLIP, CLIP) @ X, step.w).x
    assert (np.abs(np.array(made.centres) - exact) < 0.2 * np.array(made.deviations)).all()


def test_whether_there_are_intervals_is_read_off_the_other_matrix_alone():
    drawn = np.random.default_rng(2)
    X = drawn.uniform(-1, 1, (300, 3))
    step, columns = released(X, X @ [0.1, 0.0, 0.0], np.zeros(3), std=0.05), dict.fromkeys(range(3), "")
    least = 0.05 * math.sqrt(2 * 3)
    for gram, offered in ((np.eye(3) * least * 1.01, True), (np.eye(3) * least * 0.99, False)):
        assert bool(intervals.of(step._replace(gram=gram), columns, 300).centres) is offered
        assert (
            bool(intervals.of(step._replace(gram=gram, curvature=9 * step.curvature), columns, 300).centres) is offered
        )


def table(n=4000, seed=0):
    drawn = np.random.default_rng(seed)
    X = drawn.uniform(0, 10, (n, 3))
    return X, 50 + X @ [4.0, -2.0, 0.0] + 6 * drawn.standard_normal(n)


def model(X, y, **given):
    made = PrivateRegressor(**{"epsilon": 2.0, "bounds": (0, 10), "target_bounds": (0, 100), "intervals": True} | given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.fit(X, y)


def test_a_fit_has_them_in_units_of_the_table_and_its_file_too(tmp_path):
    X, y = table()
    fitted, file = model(X, y), tmp_path / "m.json"
    shown = fitted.intervals_
    assert list(shown) == ["name", "estimate", "low", "high"]
    assert (shown["high"] - shown["low"]).between(0.05, 3).all()
    assert np.abs(shown["estimate"] - [4, -2, 0]).max() < 1.5
    assert fitted.row_bound_ is None  # so that slopes are those of the features
    assert {entry.label for entry in fitted.releases_} == {"gram", "gradient", "scores", "curvature"}
    assert fitted.epsilon_ <= 2
    assert fitted.releases_ == fitted.plan_.releases
    stated = "\n".join(fitted.statement().lines())
    assert "1 × scores" in stated
    assert "1 × curvature" in stated
    fitted.save(file)
    loaded = dpbench.load_model(file)
    assert loaded.intervals_.equals(shown)
    assert loaded.intervals is True
    assert loaded.intervals_notes_ == fitted.intervals_notes_
    card = dpbench.card(file, worlds=2, jobs=1)
    assert f"| 0 | {shown['estimate'][0]:.3g} | {shown['low'][0]:.3g} to {shown['high'][0]:.3g} |" in card
    assert f"- {fitted.intervals_notes_[0]}." in card
    content = json.loads(file.read_text())
    for wrong in (None, {**content["model"]["intervals"], "centres": [1.0]}):
        edited = tmp_path / "edited.json"
        edited.write_text(json.dumps({**content, "model": {**content["model"], "intervals": wrong}}))
        with pytest.raises(UserError):
            dpbench.load_model(edited)


def test_the_table_is_of_the_weights_as_predict_uses_them():
    X, y = table()
    for given in ({}, {"row_bound": "window"}):
        made = model(X, y, epsilon=100.0, random_state=0, **given)
        np.testing.assert_allclose(made.intervals_["estimate"], made.coef_, atol=0.2)


def test_without_intervals_a_file_names_none(tmp_path):
    fitted = model(*table(), intervals=False)
    fitted.save(tmp_path / "m.json")
    assert "intervals" not in json.loads((tmp_path / "m.json").read_text())["model"]
    assert "intervals" not in fitted.settings_
    assert not hasattr(fitted, "intervals_")


def test_without_intervals_a_seed_draws_what_it_drew(monkeypatch):
    keys, inner = [], engine.stream
    monkeypatch.setattr(engine, "stream", lambda key, name: keys.append(key) or inner(key, name))
    model(*table(), intervals=False, random_state=1, row_bound="private", algorithm="boosted-ssp")
    model(*table(), random_state=1)
    assert ["intervals" in key for key in keys] == [False, True]
    assert "Settings(T=10, clip=0.3, share=0.15, safety=0.02)" in keys[0]


def test_collinear_columns_have_none_at_epsilon_one():
    X, y = table()
    X[:, 2] = X[:, 1]
    fitted = model(X, y, epsilon=1.0)
    assert fitted.intervals_ == intervals.NONE
    assert fitted.intervals_notes_ == [f"No intervals: {intervals.NONE}"]


def test_the_public_marks_are_told():
    X, y = table()
    notes = [" ".join(model(X, y, **given).intervals_notes_) for given in ({}, {"row_bound": "private"})]
    assert "shortened" not in notes[0]
    assert "shortened" in notes[1]
    assert "clipped" in " ".join(model(X, y + 40 * np.sign(np.sin(1e3 * y))).intervals_notes_)


def test_of_persons_they_are_of_their_number_and_wider_where_rows_repeat(tmp_path):
    X, y = table(1000)
    ids = np.arange(1000)
    how = {"epsilon": 20.0, "bounds": (0, 10), "target_bounds": (0, 100), "intervals": True, "unit": True}
    shown = []
    for times in (1, 4):  # each row four times says no more than once
        model_ = PrivateRegressor(**how, random_state=0)
        model_.fit(np.tile(X, (times, 1)), np.tile(y, times), groups=np.tile(ids, times))
        assert "over persons drawn at random" in model_.intervals_notes_[0]
        shown.append(model_.intervals_)
    assert shown[0].equals(shown[1])
    alone = model(np.tile(X, (4, 1)), np.tile(y, 4), epsilon=20.0, random_state=0).intervals_
    width = [one["high"] - one["low"] for one in (shown[1], alone)]
    assert (width[0] / width[1] > 1.6).all()
    released = PrivateRegressor(**how).fit(X, y, groups=ids)
    released.save(tmp_path / "m.json")
    loaded = dpbench.load_model(tmp_path / "m.json")
    assert loaded.intervals_.equals(released.intervals_)
    assert loaded.intervals_notes_ == released.intervals_notes_


def test_of_two_classes_and_persons_rows_that_repeat_say_no_more_than_once():
    X, y = classes(1500)
    shown = [
        classifier(np.tile(X, (times, 1)), np.tile(y, times), np.tile(np.arange(1500), times), epsilon=20.0, unit=True,
                   random_state=0)
        for times in (1, 4)
    ]  # fmt: skip
    assert shown[0].intervals_.equals(shown[1].intervals_)
    assert "over persons drawn at random" in shown[0].intervals_notes_[0]
    assert len(shown[0].intervals_notes_) == 1
    assert {"scores", "last gradient"} < {entry.label for entry in shown[0].releases_}
    alone = classifier(np.tile(X, (4, 1)), np.tile(y, 4), epsilon=20.0, random_state=0).intervals_
    width = [one["high"] - one["low"] for one in (shown[1].intervals_, alone)]
    assert (width[0] / width[1] > 1.6).all()


def test_where_none_are_derived_one_line_says_so():
    X, y = table()
    for given in ({"algorithm": "dp-gd-average"}, {"l2": 0.1}, {"intervals": "yes"}):
        with pytest.raises(UserError, match=r"^intervals"):
            model(X, y, **given)
    with pytest.raises(UserError, match=r"^intervals"):
        dpbench.fit(X / 20, y / 100, algorithm="boosted-ssp", loss="squared", epsilon=1.0, seed=0, intervals=True)
    X, y = classes()
    for given in ({"algorithm": "objpert"}, {"l2": 0.1}, {"class_weight": {"yes": 2}}, {"classes": ["no", "yes", "?"]},
                  {"settings": {"clip": 0.5}}):  # fmt: skip
        with pytest.raises(UserError, match=r"^intervals"):
            classifier(X, y, **given)


# Two classes: a step from the model, and gradient and curvature there.


class Watch:
    """Mechanisms that keep what they are asked for, and release it without noise."""

    def __init__(self):
        self.budget, self.doubled, self.seen = Budget(1.0, 1e-5, Relation.REPLACE_ONE, "tight"), True, {}

    def gaussian(self, given, *, sensitivity, rho, label, symmetric=False, replaced=None):
        self.seen[label] = value(given), replaced or 2 * sensitivity
        return np.eye(given.shape[1])[None] if symmetric else np.zeros(given.shape)


@pytest.mark.parametrize("kind", [Problem, ExactProblem])
def test_a_replaced_row_moves_the_releases_of_two_classes_by_no_more_than_declared(kind):
    for seed in range(10):
        drawn, worlds = np.random.default_rng(seed), []
        X, W = 0.3 * drawn.uniform(-1, 1, (20, 3)), drawn.standard_normal((1, 3)) * (seed > 1)
        W[0, 0] -= 9 * (seed == 2)  # where a slope is 1
        for x, label in ((np.eye(3)[0], 1.0), (np.eye(3)[seed % 2], -1.0)):
            watch = Watch()
            one = kind(np.vstack([x, X]), np.append(label, np.sign(X[:, 0])), loss="logistic", row_bound=1.0)
            newton_step.logistic_steps(one, watch, W, 0 * W, "clustered")
            worlds.append(watch.seen)
        # Of one row and two labels the gradients are half as far apart as any two vectors of their length.
        attained = {
            "last gradient": 0.49 * (seed == 0),
            **dict.fromkeys(("first curvature", "curvature"), 0.99 * (seed == 1)),
            "scores": 0.7 * (seed == 2),  # one of two orthogonal matrices
        }
        assert [*worlds[0]] == ["first curvature", "last gradient", "curvature", "scores"]
        for label, (here, declared) in worlds[0].items():
            apart = np.linalg.norm(here - worlds[1][label][0])
            assert apart <= declared * (1 + 1e-9)
            assert apart >= attained[label] * declared
        p = 1 / (1 + np.exp(-one.X @ W[0]))  # X and W of the last world: the first step is 0
        np.testing.assert_allclose(worlds[1]["curvature"][0][0], (one.X.T * p * (1 - p)) @ one.X / 21, atol=1e-3)
        r = p - (one.y + 1) / 2
        np.testing.assert_allclose(worlds[1]["scores"][0][0], (one.X.T * r**2) @ one.X / 21, atol=1e-3)


@pytest.mark.parametrize("asked", [True, "clustered"])
def test_the_noise_of_a_step_of_two_classes_is_what_it_says(asked):
    n, k, d = 50, 1000, 2
    problem, method = Problem(np.zeros((n, d)), np.ones(n), loss="logistic", row_bound=1.0), get("dp-gd-average")
    budget = Budget(1.0, 1e-5, Relation.REPLACE_ONE, "tight")
    settings = make_settings(method, {"intervals": asked, "T": 4, "clip": 1.0})
    run_ = run_batch(problem, method, [settings] * k, np.zeros((k, d)), budget, [f"noise/{i}" for i in range(k)])
    matrices = np.array([step.curvature for step in run_.evidence])
    gradients = np.array([step.moment for step in run_.evidence])
    assert np.std(matrices[:, 0, 0]) == pytest.approx(run_.evidence[0].curvature_std, rel=0.07)
    assert np.std(matrices[:, 0, 1]) == pytest.approx(run_.evidence[0].curvature_std / math.sqrt(2), rel=0.07)
    assert np.std(gradients) == pytest.approx(run_.evidence[0].moment_std, rel=0.07)
    first = np.std([step.gram[0, 0] for step in run_.evidence])
    assert run_.evidence[0].least == pytest.approx(newton_step.STRICT * first, rel=0.07)
    ledger = run_.mechanisms.ledger.of(0)
    costs = {entry.label: entry.count / entry.release.noise_multiplier**2 / (2 * budget.rho) for entry in ledger}
    shares = {"gradient": 0.45, "first curvature": 0.08, "last gradient": 0.37, "curvature": 0.10}
    if asked == "clustered":
        shares |= {"last gradient": 0.27, "scores": 0.10}
        scores = np.array([step.scores for step in run_.evidence])
        assert np.std(scores[:, 0, 0]) == pytest.approx(4 * np.std(matrices[:, 0, 0]), rel=0.1)  # R² and R²/4
    assert costs == {name: pytest.approx(cost) for name, cost in shares.items()}


def test_without_noise_it_is_logistic_regression_with_its_information():
    drawn = np.random.default_rng(0)
    X = np.hstack([np.ones((900, 1)), drawn.uniform(-1, 1, (900, 2))])
    y = np.where(drawn.random(900) < 1 / (1 + np.exp(-X @ [0.3, 1.0, -0.5])), 1.0, -1.0)
    exact = optimize.minimize(lambda w: np.logaddexp(0, -y * (X @ w)).sum(), np.zeros(3), tol=1e-10).x
    for off in (0.0, 0.05):
        p = 1 / (1 + np.exp(-X @ (exact + off)))
        curvature, moment = (X.T * p * (1 - p)) @ X / 900, X.T @ (p - (y + 1) / 2) / 900
        step = ReleasedStep(exact + off, moment, curvature, curvature, None, 0.0, 0.0, 0.0)
        made = intervals.of(step, dict.fromkeys(range(3), ""), 900)
        np.testing.assert_allclose(made.centres, exact, atol=1e-5 + off**2 / 2)
        np.testing.assert_allclose(np.square(made.deviations), np.diag(np.linalg.inv(curvature)) / 900, rtol=1e-9)
        assert made.inside == 1.0


def classes(n=4000, seed=0):
    drawn = np.random.default_rng(seed)
    X = drawn.uniform(0, 10, (n, 2))
    return X, np.where(drawn.random(n) < 1 / (1 + np.exp(-(X - 5) @ [0.4, -0.2])), "yes", "no")


def classifier(X, y, groups=None, **given):
    how = {"epsilon": 4.0, "bounds": (0, 10), "classes": ["no", "yes"], "intervals": True} | given
    return PrivateClassifier(**how).fit(X, y, groups=groups)


def test_a_classifier_has_them_in_log_odds_and_its_file_too(tmp_path):
    fitted, file = classifier(*classes()), tmp_path / "m.json"
    assert np.abs(fitted.intervals_["estimate"] - [0.4, -0.2]).max() < 0.15
    assert (fitted.intervals_["high"] - fitted.intervals_["low"]).between(0.03, 0.3).all()
    assert "log odds of yes" in fitted.intervals_notes_[0]
    assert fitted.row_bound_ is None
    assert fitted.algorithm_ == "dp-gd-average"
    assert fitted.epsilon_ == pytest.approx(4, rel=1e-6)
    assert fitted.releases_ == fitted.plan_.releases
    assert {"first curvature", "last gradient", "curvature"} < {entry.label for entry in fitted.releases_}
    fitted.save(file)
    loaded = dpbench.load_model(file)
    assert (loaded.l2, loaded.intervals) == (None, True)  # so that a clone of it can be fitted: a ridge is refused
    assert loaded.intervals_.equals(fitted.intervals_)
    assert loaded.intervals is True
    assert "1 × last gradient" in "\n".join(fitted.statement().lines())
    assert f"| 0 | {fitted.intervals_['estimate'][0]:.3g} |" in dpbench.card(file, worlds=2, jobs=1)
    assert classifier(*classes(300), epsilon=0.3).intervals_ == intervals.NONE


def test_without_intervals_a_classifier_draws_what_it_drew(monkeypatch):
    keys, inner = [], engine.stream
    monkeypatch.setattr(engine, "stream", lambda key, name: keys.append(key) or inner(key, name))
    for given in ({"intervals": False, "algorithm": "dp-gd-average"}, {}):
        classifier(*classes(300), random_state=1, **given)
    assert ["intervals" in key for key in keys] == [False, True]


@pytest.mark.slow
def test_two_hundred_fits_of_steep_slopes_cover():
    n, drawn, held = 20_000, np.random.default_rng(7), []
    schema = Schema(
        target=Target(name="y", classes=("no", "yes")), columns={f"x{i}": Column(bounds=(-1, 1)) for i in range(3)}
    )
    plan = PrivateClassifier(3.0, schema=schema, intervals=True, random_state=0, arithmetic="real").plan(n)
    columns, slopes = (
        intervals.compared(encoding_of(schema, intercept=True), windowed=False),
        2 * np.array([0, 5, -3, 0]),
    )
    for seed in range(200):
        X = np.hstack([np.ones((n, 1)), drawn.uniform(-1, 1, (n, 3))]) / 2
        y = np.where(drawn.random(n) < 1 / (1 + np.exp(-X @ slopes)), 1.0, -1.0)
        made = intervals.of(execute(plan, X, y, unit=2.0, seed=seed).step, columns, n)
        if made.centres:
            held.append(np.abs(np.array(made.centres) - slopes) <= intervals.WIDTH * np.array(made.deviations))
    assert len(held) > 150
    assert (np.abs(np.mean(held, axis=0) - 0.95) < 0.05).all()


@pytest.mark.slow
@pytest.mark.parametrize("arithmetic", ["real", "bytes"])
def test_three_hundred_fits_cover(arithmetic):
    n, drawn = 4000, np.random.default_rng(7)
    bounds = Schema(
        target=Target(name="y", bounds=(-1, 1)), columns={f"x{i}": Column(bounds=(-1, 1)) for i in range(3)}
    )
    made = PrivateRegressor(1.0, schema=bounds, intervals=True, random_state=0, arithmetic=arithmetic)
    plan, held = made.plan(n), []
    columns = intervals.compared(encoding_of(bounds, intercept=True), windowed=False)
    for seed in range(300):
        X = np.hstack([np.ones((n, 1)), drawn.uniform(-1, 1, (n, 3))]) / 2
        y = X @ [0.2, 0.4, -0.2, 0.0] + 0.1 * (1 + np.abs(X[:, 1])) * drawn.standard_normal(n)
        step = execute(plan, X, y, unit=2.0, seed=seed).step
        fitted = intervals.of(step, columns, n)
        if fitted.centres:
            off = np.abs(np.array(fitted.centres) - [0.2, 0.4, -0.2, 0.0])
            held.append(off <= intervals.WIDTH * np.array(fitted.deviations))
    assert len(held) > 250
    assert (np.abs(np.mean(held, axis=0) - 0.95) < 0.04).all()
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)
