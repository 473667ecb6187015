"""The window around the target: its releases on neighbouring data, its noise, its plan and its model."""

import json
import math
import warnings
from types import SimpleNamespace

import msgspec
import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench import PrivateClassifier, PrivateRegressor
from dpbench.errors import UserError
from dpbench.own import model as saved
from dpbench.own import row_bound as row_bounds
from dpbench.own import window as windows
from dpbench.privacy.budget import Budget
from dpbench.privacy.exact_release import SeededMechanisms
from dpbench.privacy.ledger import BoundedRange, Relation
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.problems.persons import OfPersons
from dpbench.schema import Column, Schema, Target

BUDGET = Budget(1.0, 1e-6, Relation.REPLACE_ONE, "tight")
LENGTHS = row_bounds.Lengths(np.array([False, True, True, True]), 3, 0, 1)
UNIT, N = 2.0, 2000
NARROW = int(np.flatnonzero((windows.windows(True) == (-0.0625, 0.0)).all(axis=1))[0])
WAY = windows.split(N, LENGTHS, BUDGET, lambda *left: [])


def rows(z, y):
    """Rows of which the first is (z, y), and all others are the same in every call."""
    drawn = np.random.default_rng(1)
    Z, values = drawn.uniform(-0.9, 0.9, (N, 3)), drawn.uniform(-0.5, 0.5, N)
    Z[0], values[0] = z, y
    return np.hstack([np.ones((N, 1)), Z]) / UNIT, values


def seen(monkeypatch, kind, data):
    """(label, value before noise, sensitivity) of each release, what was released before it being the same for all."""
    found = []

    class Watched(kind):
        def exponential(self, values, *, sensitivity, epsilon, label):
            super().exponential(values, sensitivity=sensitivity, epsilon=epsilon, label=label)
            found.append((label, number(values), sensitivity))
            return np.array([NARROW])  # so that both canaries are beyond

        def gaussian(self, value, *, sensitivity, noise_multiplier, label):
            noisy = super().gaussian(value, sensitivity=sensitivity, noise_multiplier=noise_multiplier, label=label)
            found.append((label, number(value), sensitivity))
            return np.zeros_like(noisy)

    monkeypatch.setattr(row_bounds, "mechanisms_of", lambda *_: Watched)
    arithmetic = "real" if kind is Mechanisms else "bytes"
    windows.release(*data, LENGTHS, UNIT, WAY, row_bounds.Releasing(BUDGET, 3, arithmetic))
    return found


def number(value):
    return value if isinstance(value, np.ndarray) else value.integers * value.unit


ONCE = OfPersons.once
# A pair of rows (z, y) for each release that moves it as far as its sensitivity says.
CANARIES = {
    windows.WINDOW: (((0.1, 0.1, 0.1), -1.0), ((0.1, 0.1, 0.1), 1.0)),
    windows.MEAN: (((0.1, 0.1, 0.1), -1.0), ((0.1, 0.1, 0.1), 1.0)),
    windows.MIDDLES: (((-1, -1, -1), 0.0), ((1, 1, 1), 0.0)),
    windows.LABEL: (((0, 0, 0), 0.0), ((-1, 1, -1), 0.0)),
}


@pytest.mark.parametrize("kind", [Mechanisms, SeededMechanisms])
@pytest.mark.parametrize("label", CANARIES)
def test_a_replaced_row_moves_a_release_by_its_sensitivity_and_no_more(monkeypatch, kind, label):
    one, other = (seen(monkeypatch, kind, rows(*row)) for row in CANARIES[label])
    assert [entry[0] for entry in one] == [windows.WINDOW, windows.MEAN, windows.MIDDLES, windows.LABEL]
    for (name, here, sensitivity), (_, there, _) in zip(one, other, strict=True):
        apart = np.abs(here - there).max() if name == windows.WINDOW else np.linalg.norm(here - there)
        assert apart <= sensitivity * (1 + 1e-9)
        if name == label:
            assert apart > 0.99 * sensitivity


def test_a_middle_that_is_all_noise_counts_for_little():
    """Noise of standard deviation 3.5 alone would be cut off at the bounds, -1 or 1."""
    way = WAY._replace(middles=2000.0)
    found, _ = windows.release(*rows((0, 0, 0), 0.0), LENGTHS, UNIT, way, row_bounds.Releasing(BUDGET, 3, "real"))
    assert 0 < np.abs(found.middles).max() < 0.4


def test_any_replaced_row_moves_a_count_and_a_rank_by_one_at_most_ties_too():
    drawn, points = np.random.default_rng(0), np.linspace(-1, 1, 9)
    moved = []
    for _ in range(300):
        y = drawn.choice(points, 7)
        other = np.concatenate([y[1:], drawn.choice(points, 1)])
        pair = [(windows.counts(each, 2.0, ONCE(7)), windows.ranks(each, points, ONCE(7))) for each in (y, other)]
        moved.append([np.abs(one - two).max() for one, two in zip(*pair, strict=True)])
    assert np.max(moved, axis=0).tolist() == [1, 2]  # of 2u


@pytest.mark.parametrize("n", [94, 20_000])
def test_a_score_is_declared_to_lie_no_further_than_the_largest_does(monkeypatch, n):
    """By it the sensitivity of floating-point scores is checked; the largest is that of a narrow window of all rows."""
    found, scores = [], windows.Scores
    monkeypatch.setattr(windows, "Scores", lambda *given: found.append(given) or scores(*given))
    windows.choose(np.ones(n), 63 / n, 2, row_bounds.Releasing(BUDGET, 0, "real"))
    ((integers, most, within),) = found
    assert most == 1
    assert np.abs(integers).max() <= within <= 1.25 * np.abs(integers).max()


@pytest.mark.parametrize("y", [[-1, -0.5, 0.1, 0.5, 0.9], [0, 0, 0, 0.4, 1], [0.3] * 5, [1] * 5])
def test_a_median_has_the_law_of_the_exponential_mechanism(y):
    points, epsilon, draws = np.linspace(-1, 1, 7), 2.0, 1500
    u = [-max(0, sum(one < g for one in y) - 2.5, 2.5 - sum(one <= g for one in y)) for g in points]
    law = np.exp(epsilon * np.array(u) / 2)
    follows(windows.Scores(windows.ranks(np.array(y, float), points, ONCE(5)), 2, 10), law / law.sum(), epsilon, draws)


def test_a_window_has_the_law_of_the_exponential_mechanism_with_its_width_as_measure():
    y, choice = np.repeat([-0.9, -0.8, 0.1, 0.9], [20, 20, 10, 1]), 1.0
    places = windows.windows(False)
    widths = places[:, 1] - places[:, 0]
    held = [sum((low <= y) & (y <= high)) for low, high in places]
    law = widths**-windows.WIDTH * np.exp(choice * (np.array(held) - 51.0) / 2)
    follows(windows.Scores(windows.counts(y, choice, ONCE(51)), 1, 102), law / law.sum(), choice, 1500, near=0.25)


def follows(scores, law, epsilon, draws, near=0.0):
    """near: how far a probability may be off by rounding of the measure to rows, e^{ε/4} at most."""
    counts = np.zeros(len(law))
    for seed in range(draws):
        mechanisms = SeededMechanisms([f"{seed}"], BUDGET)
        counts[mechanisms.exponential(scores, sensitivity=1.0, epsilon=epsilon, label="q")] += 1
    off = 4.5 * np.sqrt(law * (1 - law) / draws) + (math.exp(epsilon * near) - 1) * law
    assert np.all(np.abs(counts / draws - law) <= off + 1 / draws)


@pytest.mark.parametrize("half", [1.0, 0.01, 1e-4])
def test_a_window_follows_the_target_to_either_end_of_its_bounds(half):
    for end in (-1, 1):
        y = end * (1 - half * np.random.default_rng(2).uniform(0, 1, 5000))
        score = windows.counts(y, 0.3, ONCE(5000))[0]
        low, high = windows.windows(True)[score.argmax()]
        assert ((low <= y) & (y <= high)).mean() > 0.9
        assert high - low <= 4.1 * half


def test_a_target_a_thousand_times_narrower_than_its_bounds_and_far_from_their_ends_is_fitted():
    drawn = np.random.default_rng(0)
    X = drawn.uniform(0, 1, (3000, 3))
    y = 1013 + X @ [2.0, -1.0, 0.5] + 0.4 * drawn.standard_normal(3000)
    made = PrivateRegressor(1.0, bounds=(0, 1), target_bounds=(0, 3000), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert made.fit(X, y).score(X, y) > 0.4


def test_the_public_numbers_alone_decide_how_narrow_a_window_may_be():
    for n, choice, places in ((186, 1.0, 156), (187, 1.0, 4099)):
        assert windows.counts(np.zeros(n), choice, ONCE(n)).shape == (1, places)
        assert len(np.unique(windows.windows(n * choice >= windows.DEEP), axis=0)) == places
    # Of 100 persons with four rows each: how many rows there are is not public, so they give no place more.
    four = OfPersons(np.ones(400, dtype=np.int64), 2, 100, np.repeat(np.arange(100), 4))
    assert windows.counts(np.zeros(400), 1.0, four).shape == (1, 156)


@pytest.mark.parametrize("exact", [False, True])
def test_the_noise_of_a_mean_has_its_variance(exact):
    drawn, m, z = [], 4, 3.0
    kind = SeededMechanisms if exact else Mechanisms
    for seed in range(300):
        found = windows._noisy(kind([f"{seed}"], BUDGET), np.zeros((50, 2), np.int64), m, ONCE(50), z, "means", exact)
        drawn.extend(found[0])
    assert np.std(drawn) == pytest.approx(2 * math.sqrt(m) / 50 * z, rel=0.1)


def table(width, n=4000, seed=0):
    drawn = np.random.default_rng(seed)
    X = drawn.uniform(0, 1, (n, 3))
    y = 40 + width * (X @ [2.0, -1.0, 0.5] + 0.4 * drawn.standard_normal(n))
    names = [f"a{i}" for i in range(3)]
    frame = pd.DataFrame(X, columns=names)
    frame["kind"] = np.where(X[:, 0] > 0.5, "long", "short")
    frame.loc[::9, "a1"] = np.nan
    return frame.assign(y=y)


def described(top):
    columns = {f"a{i}": Column(bounds=(0.0, 1.0)) for i in range(3)} | {"kind": Column(categories=("long", "short"))}
    return Schema(target=Target(name="y", bounds=(0.0, top)), columns=columns)


def model(frame, top, **given):
    rows = frame.drop(columns="y")
    made = PrivateRegressor(1.0, schema=described(top), **given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made.fit(rows, frame["y"])


@pytest.mark.parametrize("arithmetic", ["bytes", "real"])
def test_a_target_far_narrower_than_its_bounds_is_fitted(arithmetic):
    frame = table(1.0)
    found = [model(frame, top, random_state=1, arithmetic=arithmetic) for top in (100.0, 1000.0)]
    scores = [one.score(frame.drop(columns="y"), frame["y"]) for one in found]
    assert min(scores) > 0.2
    assert abs(scores[0] - scores[1]) < 0.15
    plain = model(frame, 1000.0, random_state=1, row_bound="private")
    assert plain.score(frame.drop(columns="y"), frame["y"]) < 0.1


def test_a_column_with_a_long_tail_is_not_cut_where_much_can_be_learnt():
    """With one column the rows of the tail say most; cut at 1.4 standard deviations, a model is behind a line."""
    x = np.minimum(np.random.default_rng(0).lognormal(-3.0, 0.9, 12_000), 1.0)
    y = np.sqrt(x) + np.random.default_rng(1).normal(0, 0.05, len(x))
    made = PrivateRegressor(1.0, bounds=(0, 1), target_bounds=(0, 1), random_state=0)
    assert made.fit(x[:, None], y).score(x[:, None], y) > np.corrcoef(x, y)[0, 1] ** 2


@pytest.mark.parametrize("kind", [Mechanisms, SeededMechanisms])
def test_a_replaced_row_moves_a_choice_alone_by_one_and_no_more(monkeypatch, kind):
    scores = []

    class Watched(kind):
        def exponential(self, values, *, sensitivity, epsilon, label):
            scores.append((number(values), sensitivity, epsilon, label))
            return super().exponential(values, sensitivity=sensitivity, epsilon=epsilon, label=label)

    monkeypatch.setattr(row_bounds, "mechanisms_of", lambda *_: Watched)
    arithmetic = "real" if kind is Mechanisms else "bytes"
    for first in (-1.0, 1.0):
        y = rows((0, 0, 0), first)[1]
        windows.choose(y, 0.3, 4, row_bounds.Releasing(BUDGET, 3, arithmetic))
    (one, sensitivity, epsilon, label), (other, *_) = scores
    assert (sensitivity, epsilon, label) == (1.0, 0.3, windows.WINDOW)
    assert np.abs(one - other).max() == pytest.approx(1.0)


@pytest.mark.parametrize("loss", ["quantile-0.5", "quantile-0.9", "pseudo-huber"])
def test_a_quantile_by_bounds_a_hundred_times_too_wide_is_fitted_in_a_window_that_is_chosen_first(loss):
    frame = table(1.0)
    columns = {f"a{i}": Column(bounds=(0.0, 1.0)) for i in range(3)} | {"kind": Column(categories=("long", "short"))}
    tau = float(loss[9:] or 0.5) if loss.startswith("quantile") else 0.5
    here, there = frame[::2], frame[1::2]
    given = {"loss": loss, "algorithm": "auto", "epsilon": 2.0, "rule": True}
    for bounds in ((35.0, 45.0), (0.0, 1000.0)):
        schema = Schema(target=Target(name="y", bounds=bounds), columns=columns)
        made = dpbench.fit(here, schema=schema, **given)
        assert [line["label"] for line in made.released.ledger][:2] == [windows.WINDOW, windows.LABEL]
        assert made.released.epsilon_planned <= 2.0
        assert made.released.arithmetic == "bytes"
        off = there["y"] - made.predict(there)
        constant = there["y"] - here["y"].quantile(tau)
        pinball = [np.maximum(tau * one, (tau - 1) * one).mean() for one in (off, constant)]
        assert pinball[0] < 0.9 * pinball[1]
        assert (off < 0).mean() == pytest.approx(tau, abs=0.15)
    few = dpbench.fit(here[:100], schema=schema, **given)
    assert few.released.window is None


def test_fit_by_the_rule_of_squared_loss_predicts_as_the_estimator():
    """Its w is of rows in a window, so <x, w> of the encoded rows is no prediction."""
    frame = table(1.0)
    columns = {f"a{i}": Column(bounds=(0.0, 1.0)) for i in range(3)} | {"kind": Column(categories=("long", "short"))}
    schema = Schema(target=Target(name="y", bounds=(0.0, 50.0)), columns=columns)
    made = dpbench.fit(frame, schema=schema, algorithm="auto", epsilon=3.0, rule=True, l2=None)
    off = ((made.predict(frame) - frame["y"]) ** 2).mean()
    assert off < 0.5 * frame["y"].var()


def test_a_saved_model_predicts_the_same_states_its_labels_and_cannot_be_edited(tmp_path):
    frame, file = table(1.0), tmp_path / "m.json"
    found = model(frame, 400.0)
    rows = frame.drop(columns="y")
    assert found.arithmetic_ == "bytes"
    assert found.epsilon_ <= 1
    assert {entry.label for entry in found.releases_} == {*windows.LABELS, "gradient"} - {windows.MEDIAN}
    assert found.releases_ == found.plan_.releases
    found.save(file)
    loaded = dpbench.load_model(file)
    assert np.array_equal(loaded.predict(rows), found.predict(rows))
    window = found.model_.window
    low, high = (200 + 200 * end for end in (window.low, window.high))
    assert found.predict(rows.assign(a0=1e9)).max() <= high
    assert found.predict(rows.assign(a0=-1e9)).min() >= low
    content = json.loads(file.read_text())
    place = (
        content if "window" in content else next(v for v in content.values() if isinstance(v, dict) and "window" in v)
    )
    for wrong in (None, {**place["window"], "low": 2.0}, {**place["window"], "middles": [0.0]}):
        place["window"] = wrong
        edited = tmp_path / "edited.json"
        edited.write_text(json.dumps(content))
        with pytest.raises(UserError):
            dpbench.load_model(edited)


def test_the_graph_clips_at_both_ends_as_the_model_does(tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    frame, file = table(1.0), tmp_path / "m.json"
    found = model(frame, 400.0)
    found.save(file)
    rows = frame.drop(columns="y").head(200).copy()
    rows.loc[:20, "a0"], rows.loc[20:40, "a0"] = 1e9, -1e9
    session = runtime.InferenceSession(dpbench.export(file), providers=["CPUExecutionProvider"])
    feeds = {name: rows[[name]].to_numpy(object if name == "kind" else float) for name in rows}
    assert np.allclose(session.run(["prediction"], feeds)[0], found.predict(rows), rtol=1e-9)


@pytest.mark.parametrize("given", [{"random_state": 1}, {}])
def test_few_rows_get_the_median_alone(given, tmp_path):
    frame, file = table(1.0, n=80), tmp_path / "m.json"
    rows = frame.drop(columns="y")
    found = model(frame, 1000.0, **given)
    assert [(entry.label, entry.count) for entry in found.releases_] == [(windows.MEDIAN, 1)]
    assert 0.9 < found.epsilon_ <= 1
    assert len(set(found.predict(rows))) == 1
    assert abs(found.predict(rows)[0] - frame["y"].median()) < 2
    assert not np.any(found.coef_)
    if not given:
        found.save(file)
        assert np.array_equal(dpbench.load_model(file).predict(rows), found.predict(rows))


@pytest.mark.parametrize("given", [{"random_state": 1, "arithmetic": "bytes"}, {}])
def test_few_rows_get_a_window_and_an_intercept_of_their_own(given, tmp_path):
    frame = table(1.0, n=130)
    frame["a1"] = frame["a1"].fillna(0.5)
    rows, found = frame.drop(columns="y"), model(frame, 100.0, **given)
    assert [entry.label for entry in found.releases_] == [windows.WINDOW, windows.LABEL, "gradient"]
    assert 0.9 < found.epsilon_ <= 1
    window = found.model_.window
    assert (window.intercept, window.mean, set(window.middles)) == (True, 0.0, {0.0})
    assert window.high - window.low < 0.6 or not given  # by chance it may be wider
    assert found.model_.weights[0, 0], "the model has its own"
    bound = window.bound
    Z = np.hstack([2 * rows[["a0", "a1", "a2"]] - 1, rows["kind"].eq("long").to_numpy()[:, None]])
    Z = np.hstack([np.ones((130, 1)), Z, 1 - Z[:, 3:]])
    Z *= np.minimum(1 / bound, 1 / np.linalg.norm(Z, axis=1))[:, None]
    low, high = 50 + 50 * window.low, 50 + 50 * window.high
    by_hand = low + (high - low) * (1 + np.clip(Z @ found.model_.weights[0], -1, 1)) / 2
    np.testing.assert_allclose(found.predict(rows), by_hand)
    inside = (np.linalg.norm(Z, axis=1) < 1 - 1e-9) & (np.abs(Z @ found.model_.weights[0]) < 1)
    assert inside.sum() > 5 or not given  # a short window clips many
    by_line = found.intercept_ + Z[:, 1:] * bound @ found.coef_
    np.testing.assert_allclose(by_line[inside], by_hand[inside])
    if not given:
        file = tmp_path / "m.json"
        found.save(file)
        assert np.array_equal(dpbench.load_model(file).predict(rows), found.predict(rows))
        pytest.importorskip("onnx")
        runtime = pytest.importorskip("onnxruntime")
        session = runtime.InferenceSession(dpbench.export(file), providers=["CPUExecutionProvider"])
        feeds = {name: rows[[name]].to_numpy(object if name == "kind" else float) for name in rows}
        assert np.allclose(session.run(["prediction"], feeds)[0], found.predict(rows), rtol=1e-9)


def test_a_file_whose_window_is_of_another_plan_is_refused():
    """Its digest aside, which whoever edits it can make again."""
    few, many = (model(table(1.0, n=n), 100.0) for n in (130, 400))
    for one in (few, many):
        window = one.model_.window
        other = msgspec.structs.replace(window, mean=0.0, middles=(0.0,) * 6, intercept=not window.intercept)
        with pytest.raises((saved.DoesNotHold, ValueError), match=r"window|row bound"):
            saved._plan(msgspec.structs.replace(one.model_, window=other), one.statement())
    with pytest.raises(ValueError, match="window"):
        msgspec.structs.replace(few.model_.window, mean=0.5)


@pytest.mark.parametrize("n", [120, 1000])
@pytest.mark.parametrize("what", ["target", "cell"])
def test_a_row_that_moves_no_model_says_nothing_of_where_the_window_is(n, what):
    """Of a target near an end of wide bounds: rows without one counted as the middle, dropped ones as they were."""
    drawn = np.random.default_rng(0)
    X = pd.DataFrame(drawn.uniform(-1, 1, (n, 2)), columns=["a", "b"])
    y, gone = (7 + 2 * X["a"]).to_numpy(), np.arange(n) < n // 4
    columns = {name: Column(bounds=(-1.0, 1.0), missing="drop") for name in X}
    schema = Schema(target=Target(name="y", bounds=(0.0, 100.0)), columns=columns)
    table = (
        X.assign(y=np.where(gone, np.nan, y))
        if what == "target"
        else X.mask(np.repeat(gone[:, None], 2, axis=1)).assign(y=y + 80 * gone)
    )
    off = []
    for seed in range(5):
        made = PrivateRegressor(1.0, schema=schema, random_state=seed, arithmetic="bytes").fit(table)
        assert made.model_.window is not None
        off.append(np.abs(made.predict(X[~gone]) - y[~gone]).mean())
    assert np.median(off) < 1.0


@pytest.mark.parametrize("n", [94, 300, 5000])
def test_of_few_rows_a_window_without_any_is_never_worth_as_much_as_one_with_all(n):
    """By e^12: one draw in some 160,000, at each of its places."""
    for needed in (windows.LEAST, windows.FEW, 60.0):
        choice = needed / n
        score = windows.counts(np.full(n, 0.3), choice, ONCE(n))[0]
        low, high = windows.windows(False).T
        holds = (low <= 0.3) & (high >= 0.3)
        # Of a target as wide as its bounds, all of these are the one window that holds every row.
        assert (low[0], high[0]) == (-1, 1)
        assert choice / 2 * (score[0] - score[~holds].max()) >= 12 - choice
        assert score[holds].max() > n, "a narrower one is worth more than all of the bounds"


def test_of_squared_loss_the_numbers_of_a_table_decide_and_steps_are_bounded():
    X = np.random.default_rng(0).uniform(0, 1, (3000, 3))
    given = {"bounds": (0, 1), "target_bounds": (0, 1)}
    for n, name in ((3000, "dp-gd-average"), (20_000, "dp-gd-average"), (20_001, "boosted-ssp")):
        schema = described(100.0)
        schema = Schema(target=schema.target, columns={key: schema.columns[key] for key in ("a0", "a1", "a2")})
        assert PrivateRegressor(1.0).plan(n, schema).name == name
    found = PrivateRegressor(60.0, random_state=0, **given).fit(X, X[:, 0])
    assert [entry.count for entry in found.releases_ if entry.label == "gradient"] == [windows.STEPS]
    assert found.settings_["clip"] == windows.CLIP
    assert found.settings_["safety"] == windows.SAFETY


def test_the_public_numbers_alone_decide_between_window_and_median():
    assert isinstance(WAY, windows.WindowSplit)
    for n, epsilon, released in (
        (105, 1.0, [windows.MEDIAN]), (106, 1.0, [windows.WINDOW, windows.LABEL]), (144, 1.0, [*CANARIES]),
        (378, 0.3, [windows.MEDIAN]), (511, 0.3, [windows.WINDOW, windows.LABEL]), (512, 0.3, [*CANARIES]),
    ):  # fmt: skip
        budget = Budget(epsilon, n**-2.0, Relation.REPLACE_ONE, "tight")
        way = windows.split(n, LENGTHS, budget, lambda *left: [])
        assert [entry.label for entry in way.planned] == released
        # Without a column of numbers rows are all of one length, so no bound is to be found.
        bare = windows.split(n, LENGTHS._replace(most=0), budget, lambda *left: [])
        assert [entry.label for entry in bare.planned][:1] == ([windows.MEDIAN] if len(released) < 4 else released[:1])
    X = np.linspace(0, 1, 300)[:, None]
    found = PrivateRegressor(1.0, 0.5, bounds=(0, 1), target_bounds=(0, 1)).fit(X, X[:, 0])
    assert found.plan_.bound.alone, "δ alone pays for all of it, so a model would be left with ε = 0"


def test_where_there_is_no_window_one_line_says_so():
    with pytest.raises(UserError, match="intercept"):
        model(table(1.0), 100.0, fit_intercept=False, row_bound="window")
    with pytest.raises(UserError, match="dp-gd-average or boosted-ssp"):
        model(table(1.0), 100.0, algorithm="adassp", row_bound="window")
    X, y = table(1.0)[["a0"]].to_numpy(), np.arange(4000) % 2
    with pytest.raises(UserError, match="PrivateRegressor"):
        PrivateClassifier(bounds=(0, 1), classes=[0, 1], row_bound="window").fit(X, y)


def test_a_text_is_no_number_and_is_in_no_message():
    frame = table(1.0)
    rows = frame.drop(columns="y")
    rows = rows.drop(columns="kind")
    made = PrivateRegressor(1.0, bounds=(0.0, 1.0), target_bounds=(0.0, 9.0), random_state=0)
    with pytest.raises(UserError) as raised:
        made.fit(rows, np.array(["secret-cell"] * 4000))
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)
    # Of objects each cell is read by itself: one that is no number moves no model, and says so to nobody.
    assert np.isfinite(made.fit(rows, np.array([1.0, "secret-cell"] * 2000, dtype=object)).predict(rows)).all()


@pytest.mark.parametrize("target", [np.full(4000, 7.0), np.arange(4000) % 2, np.full(4000, 1e9), np.full(4000, np.nan)])
def test_a_constant_a_two_valued_and_a_target_beyond_its_bounds_are_fitted(target):
    frame = table(1.0).assign(y=target)
    found = model(frame, 100.0, random_state=0)
    predicted = found.predict(frame.drop(columns="y"))
    assert np.isfinite(predicted).all()
    assert predicted.min() >= 0
    assert predicted.max() <= 100


def test_windows_are_all_of_the_range_by_halves_and_narrow_ones_at_its_ends():
    for deep, anywhere in ((False, 5), (True, 10)):
        by_width = {}
        for low, high in windows.windows(deep).tolist():
            by_width.setdefault(high - low, []).append(low)
        assert [*by_width] == [2.0**-j for j in range(-1, 14)]
        for width, lows in by_width.items():
            every = np.arange(-1, 1 - width / 2, width / 2) if width < 2 else np.array([-1.0])
            narrow = width < 2.0 ** (1 - anywhere)
            assert lows == (every[[0, 1, -2, -1]] if narrow else every).tolist()


@pytest.mark.parametrize("alone", [False, True])
def test_a_target_that_is_none_counts_as_the_middle_and_one_beyond_as_the_end(monkeypatch, alone):
    """Before anything is drawn: else one row could stop the fit, or move a count by more than one."""
    given, y = [], np.array([np.nan, np.inf, -np.inf, 7.0, -7.0, 0.25])
    monkeypatch.setattr(windows, "_drawn_window", lambda mechanisms, y, *more: given.append(y) or 1 / 0)
    monkeypatch.setattr(windows, "ranks", lambda y, *more: given.append(y) or 1 / 0)
    way = SimpleNamespace(alone=alone, planned=(), choice=0.1)
    lengths = SimpleNamespace(most=1, others=0)
    with pytest.raises(ZeroDivisionError):
        windows.release(np.zeros((6, 2)), y, lengths, 1.0, way, row_bounds.Releasing(BUDGET, 0))
    with pytest.raises(ZeroDivisionError):
        windows.choose(y, 0.1, 2, row_bounds.Releasing(BUDGET, 0))
    assert [one.tolist() for one in given] == [[0.0, 0.0, 0.0, 1.0, -1.0, 0.25]] * 2


def test_a_window_alone_is_planned_and_in_the_ledger_and_has_no_mean():
    found, lines = windows.choose(np.full(5000, 0.4), 0.5, 3, row_bounds.Releasing(BUDGET, 0))
    assert found.low <= 0.4 <= found.high
    assert found.high - found.low < 0.1
    assert (found.mean, found.middles, found.bound) == (0.0, (0.0,) * 3, 1.0)
    assert [(line["label"], line["count"]) for line in lines] == [("window", 1)]


def test_what_is_drawn_of_a_window_is_planned_first(monkeypatch):
    """So a draw that was not paid for ends the fit."""
    planned, plan = [], Mechanisms.plan
    monkeypatch.setattr(Mechanisms, "plan", lambda self, *of: planned.append(of) or plan(self, *of))
    windows.choose(np.full(500, 0.4), 0.5, 3, row_bounds.Releasing(BUDGET, 0, "real"))
    assert planned == [(windows.WINDOW, BoundedRange(0.5), 1)]
    planned.clear()
    windows.release(*rows([0.1, 0.2, 0.3], 0.1), LENGTHS, UNIT, WAY, row_bounds.Releasing(BUDGET, 0, "real"))
    assert planned == [(one.label, one.release, one.count) for one in WAY.planned]
