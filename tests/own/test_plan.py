"""What is foreseen: releases are those of a fit, worlds are tables of the schema, scores follow the noise."""

import math
import shlex
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench.cli import main
from dpbench.errors import DataError, UserError
from dpbench.own import forecast as planning
from dpbench.own import planning as arguments
from dpbench.own import worlds
from dpbench.privacy.accounting.gaussian import gaussian_mu
from dpbench.schema import Column, Schema, Target, inspect
from dpbench.schema.encoding import encoding_of

COLUMNS = {
    "age": Column(bounds=(0, 100), missing="indicator"),
    "income": Column(bounds=(0, 200_000)),
    "town": Column(categories=("Bonn", "Kiel", "Ulm")),
    "level": Column(categories=("low", "middle", "high")),
    "born": Column(date=("year", "month"), years=(1950, 2010), missing="drop"),
    "id": Column(drop=True),
}
TWO = Schema(target=Target(name="y", classes=("no", "yes")), columns=COLUMNS)
THREE = Schema(target=Target(name="y", classes=("a", "b", "c")), columns=COLUMNS)
NUMBER = Schema(target=Target(name="y", bounds=(-5, 15)), columns=COLUMNS)
SMALL = {"worlds": 3, "algorithm": "auto", "jobs": 1}


def frame(schema, rows=400, **given):
    return planning.Simulation(
        schema, rows, *({"delta": None, "shares": {}, "signal": None, "like": None, "seed": 0} | given).values()
    )


def table(schema, rows, seed=0):
    """Cells of a world and a target."""
    rng = np.random.default_rng(seed)
    cells = worlds.cells_of(schema, rows, rng, rng)
    target = schema.target
    y = rng.choice(target.classes, rows) if target.classes else rng.uniform(*target.bounds, rows)
    return cells.assign(y=y)


# Releases


@pytest.mark.parametrize(("schema", "kind"), [(TWO, dpbench.PrivateClassifier), (THREE, dpbench.PrivateClassifier),
                                              (NUMBER, dpbench.PrivateRegressor)])  # fmt: skip
def test_what_is_planned_is_what_a_fit_releases(schema, kind):
    plan = dpbench.plan(schema, 200, epsilon=0.7, **SMALL)
    (told,) = plan.forecasts
    model = kind(0.7, schema=schema).fit(table(schema, 200))
    composition = model.statement().composition
    assert told.releases == [f"{e.count} × {e.label}: {e.release}" for e in composition]
    assert (told.method, told.delta) == (model.algorithm_, model.delta_)
    assert told.epsilon_planned == pytest.approx(model.epsilon_, rel=1e-9)
    assert told.settings.items() <= model.settings_.items()


def test_a_method_that_fits_each_class_alone_says_what_all_of_them_cost():
    plan = dpbench.plan(THREE, 200, epsilon=1.0, worlds=2, algorithm="dp-gd", jobs=1)
    told = plan.forecasts[1]
    model = dpbench.PrivateClassifier(1.0, algorithm="dp-gd", schema=THREE).fit(table(THREE, 200))
    assert told.releases[0].startswith("1 × row bound: ")
    assert told.releases[1].startswith("each of 3 models: ")
    assert told.epsilon_planned == pytest.approx(model.epsilon_, rel=1e-6)
    assert 0 <= told.beats <= 1
    assert math.isnan(plan.forecasts[0].beats)


# Worlds


@pytest.mark.parametrize("schema", [TWO, THREE, NUMBER])
def test_a_world_is_a_table_of_the_schema(schema):
    cells = table(schema, 500)
    assert all("cells are missing" in line for line in inspect(schema, cells))  # nothing beyond bounds or categories
    assert {line.split(":")[0] for line in inspect(schema, cells)} <= {"age", "born"}
    world = worlds.simulated(schema, 300, np.random.default_rng(1), shares={}, signal=None)
    assert world.X.shape == (300, len(encoding_of(schema, intercept=True).names))
    assert world.Xt.shape[0] == len(world.yt) == worlds.TEST
    assert np.linalg.norm(world.X, axis=1).max() <= 1 + 1e-12
    assert set(np.unique(world.y)) <= set(range(3)) if schema.target.classes else np.abs(world.y).max() <= 1


@pytest.mark.thorough
def test_a_world_of_more_rows_has_the_same_law():
    """But for directions that vary about as much as another: which of them counts is found in the rows."""
    alike = []
    for seed in range(6):
        few, many = (
            worlds.simulated(NUMBER, rows, np.random.default_rng(seed), shares={}, signal=0.8) for rows in (2000, 8000)
        )
        assert np.abs(few.X.mean(axis=0) - many.X.mean(axis=0)).max() < 0.03
        slopes = [np.linalg.lstsq(one.X, one.y, rcond=None)[0] for one in (few, many)]
        alike.append(np.corrcoef(few.X @ slopes[0], few.X @ slopes[1])[0, 1])
    assert np.median(alike) > 0.97


@pytest.mark.thorough_for("schema[12]*")
@pytest.mark.parametrize(("schema", "signal"), [(TWO, 0.7), (TWO, 0.9), (THREE, 0.8)])
def test_the_best_score_has_the_auc_that_was_guessed(schema, signal):
    for seed in range(4):
        world = worlds.simulated(schema, 100, np.random.default_rng(seed), shares={}, signal=signal, test=4000)
        found = worlds.mean_auc(world.yt, world.best)
        assert abs(found - signal) < worlds.GUESSED + 0.03


def test_the_best_prediction_has_the_r2_that_was_guessed():
    for seed in range(4):
        world = worlds.simulated(NUMBER, 100, np.random.default_rng(seed), shares={}, signal=0.6, test=4000)
        found = 1 - ((world.yt - world.best) ** 2).mean() / world.yt.var()
        assert abs(found - 0.6) < worlds.GUESSED + 0.1  # values are cut off at the bounds


def test_shares_that_are_guessed_are_had_but_for_a_quarter():
    world = worlds.simulated(TWO, 4000, np.random.default_rng(0), shares={"yes": 0.04}, signal=0.8)
    assert 0.04 * 0.7 < world.y.mean() < 0.04 * 1.4
    three = worlds.simulated(THREE, 4000, np.random.default_rng(0), shares={"a": 0.5}, signal=0.8)
    assert 0.35 < (three.y == 0).mean() < 0.67


def test_two_classes_are_nearly_even_as_often_as_in_tables_and_few_auc_lie_in_the_middle():
    rng = np.random.default_rng(0)
    rare = np.array([worlds._shares(("no", "yes"), {}, rng).min() for _ in range(1000)])
    assert 0.28 < (rare > 0.4).mean() < 0.38  # 0.33 of 82 development tables
    assert 0.25 < (rare < 0.2).mean() < 0.40  # 0.27
    assert (rare > 0.499).any()
    auc = np.array([worlds._drawn(None, worlds.AUC, 0.52, rng) for _ in range(1000)])
    assert 0.33 < (auc < 0.7).mean() < 0.46  # 0.32, and 0.42 without columns that follow from the class
    assert (auc < 0.59).mean() > 0.12  # a uniform law has 0.09


def test_the_auc_is_that_of_scikit_learn():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 3, 200), rng.random((200, 3)).round(1)  # with ties
    expected = np.mean([roc_auc_score(y == i, p[:, i]) for i in range(3)])
    assert worlds.mean_auc(y, p) == pytest.approx(expected)
    assert math.isnan(worlds.mean_auc(np.zeros(5, int), np.ones((5, 2))))


# Scores


@pytest.mark.parametrize("worlds_there", [19, 24, 40])
def test_one_more_table_lies_in_an_interval_with_probability_nine_tenths(worlds_there):
    draws = np.random.default_rng(0).standard_normal((4000, worlds_there + 1))
    held = np.mean([low <= one[-1] <= high for one in draws for _, low, high in [planning.quantiles(one[:-1])]])
    assert 0.885 < held < 0.935
    few = planning.quantiles(np.array([3.0, math.nan, 1.0, math.inf]))
    assert few == (3.0, 1.0, math.inf)


def test_fewer_rows_with_the_same_noise_beside_them():
    for epsilon, delta in ((0.1, 1e-8), (1.0, 1e-10), (5.0, 1e-6)):
        found = planning.matched(epsilon, delta, 0.25)
        assert gaussian_mu(found, delta) * 0.25 == pytest.approx(gaussian_mu(epsilon, delta), rel=1e-9)
    assert planning.matched(0.3, 0.0, 0.5) == 0.6
    assert planning.matched(0.3, 1e-6, 1) == 0.3


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("schema", "score"), [pytest.param(TWO, "AUC", marks=pytest.mark.slow), (NUMBER, "R²")], ids=("classes", "numbers")
)
def test_a_large_table_is_foreseen_by_a_small_world(schema, score, monkeypatch):
    whole = frame(schema, 8000, signal=0.85)._replace(row_bound="auto")
    name = next(iter(planning.chosen(whole, ["auto"], [0.2])[0]))
    pairs = []
    for number in range(3):
        world = whole.world(number, 8000)
        few = world._replace(X=world.X[:2000], y=world.y[:2000])
        pairs.append([
            np.mean([planning.fitted(whole, one, name, 0.2, 8000, seed)[score] for seed in range(8)])
            for one in (world, few)
        ])  # fmt: skip
    exact, foreseen = np.median(pairs, axis=0)  # as plan reports them: R² of a narrow target has a long tail
    assert abs(foreseen - exact) < 0.03
    monkeypatch.setattr(planning, "matched", lambda epsilon, delta, share: epsilon)  # the noise of 2,000 rows
    assert exact - np.mean([planning.fitted(whole, few, name, 0.2, 8000, seed)[score] for seed in range(8)]) > 0.05


def test_more_of_epsilon_is_foreseen_to_keep_more():
    plan = dpbench.plan(NUMBER, 1000, epsilon=[0.03, 30.0], signal=0.8, worlds=6, algorithm="auto", jobs=1)
    low, high = (one.interval("kept")[0] for one in plan.forecasts)
    assert low < 0.6 < high <= 1.02
    assert plan.table().query("score == 'R²'")["median"].is_monotonic_increasing
    assert plan.reference("one answer for all", "R²")[2] <= 0


def test_a_method_and_a_world_are_the_same_whoever_else_is_there():
    alone = dpbench.plan(NUMBER, 200, **SMALL).forecasts[0]
    beside = dpbench.plan(NUMBER, 200, epsilon=[0.5, 1.0], worlds=3, algorithm="adassp", jobs=1).forecasts[2]
    assert alone.method == beside.method
    assert np.array_equal(alone.scores["R²"], beside.scores["R²"])


@pytest.mark.parametrize(("target", "expected"), [(0.5, 10**-0.5), (0.05, 0.1), (2.0, math.inf), (1.0, 1.0)])
def test_where_a_score_reaches_its_target(target, expected):
    places = (0.1, 1.0, 10.0)
    curve = {0.1: 0.0 if target != 0.05 else 0.2, 1.0: 1.0, 10.0: 1.5}
    assert planning.sought(curve.__getitem__, places, target) == pytest.approx(expected)


def test_a_score_that_is_unknown_is_not_reached():
    assert planning.sought(lambda place: math.nan, (1.0, 2.0), 0.5) == math.inf
    assert planning.sought({1.0: -math.inf, 2.0: 0.6, 4.0: 0.7}.__getitem__, (1.0, 2.0, 4.0), 0.5) == 2.0


@pytest.mark.thorough
def test_the_epsilon_that_a_target_needs_reaches_it():
    plan = dpbench.plan(NUMBER, 5000, signal=0.7, reach="kept=0.7", worlds=5, algorithm="auto", jobs=1)
    of_epsilon, of_rows = plan.needed
    assert (of_epsilon.what, of_rows.what, of_rows.at) == ("ε", "n", 1.0)
    again = dpbench.plan(NUMBER, 5000, epsilon=[of_epsilon.median / 3, of_epsilon.median * 1.5], signal=0.7, worlds=5,
                         algorithm="auto", jobs=1)  # fmt: skip
    less, more = (one.interval("kept")[0] for one in again.forecasts)
    assert less < 0.7 < more + 0.02
    assert 0.3 < of_rows.median / (5000 * of_epsilon.median) < 3  # noise is set by nε, up to δ


@pytest.mark.thorough
def test_older_rows_take_the_place_of_worlds(tmp_path):
    rng = np.random.default_rng(0)
    income = rng.uniform(0, 200_000, 600)
    rows = table(TWO, 600).assign(income=income, y=np.where(income > 80_000, "yes", "no"))
    rows.to_csv(tmp_path / "old.csv", index=False)
    plan = dpbench.plan(TWO, 20_000, like=tmp_path / "old.csv", **SMALL)
    assert plan.forecasts[0].interval("AUC")[1] > 0.9
    assert "the tables are drawn from 600 public or older rows" in plan.notes
    rows.drop(columns="y").to_csv(tmp_path / "blind.csv", index=False)
    with pytest.raises(DataError, match="there is no column 'y'"):
        dpbench.plan(TWO, 1000, like=tmp_path / "blind.csv")
    with pytest.raises(UserError, match="signal: like takes it from the public rows"):
        dpbench.plan(TWO, 1000, like=tmp_path / "old.csv", signal=0.8)


# Mistakes, and the command


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n": 10}, "n must be a whole number from 50 to 1,000,000,000,000, got 10"),
        ({"n": 10**20}, "n must be a whole number from 50"),
        ({"n": "100"}, "n must be a whole number from 50"),
        ({"worlds": 1}, "worlds must be a whole number from 2"),
        ({"worlds": 10**20}, "worlds must be a whole number from 2"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"jobs": 0}, "jobs must be a whole number from 1"),
        ({"share": {"maybe": 0.1}}, "there is no class 'maybe'"),
        ({"share": {"yes": 1.5}}, "must be between 0 and 1"),
        ({"share": {"yes": 0.5, "no": 0.4}}, "add up to 0.9"),
        ({"signal": 0.4}, "the AUC without privacy must be between 0.5 and 1"),
        ({"reach": "auc=2"}, "give a number between 0 and 1"),
        ({"reach": "r2=0.2"}, "'r2' is no score of this target"),
        ({"algorithm": "dp-gdd"}, "dp-gd"),
        ({"epsilon": -1.0}, "epsilon"),
    ],
)
def test_a_mistake_is_one_line(given, said):
    with pytest.raises(UserError, match=said) as error:
        dpbench.plan(TWO, given.pop("n", 100), **({"worlds": 2, "algorithm": "auto", "jobs": 1} | given))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("plan --schema none.toml --n 10", "none.toml: No such file or directory"),
        ("plan --schema s.toml --n 10", "--n must be a whole number from 50"),
        ("plan --schema s.toml --n 100 --seed -1", "--seed must be a whole number from 0"),
        ("plan --schema s.toml --n 99999999999999999999", "--n must be a whole number from 50"),
    ],
)
def test_a_mistake_is_a_line_of_the_command(call, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(TWO.toml())
    with pytest.raises(SystemExit) as end:
        main(shlex.split(call))
    err = capsys.readouterr().err
    assert end.value.code == 2
    assert err.startswith(f"error: {said}")
    assert err.count("\n") == 1


@pytest.mark.thorough
def test_a_method_whose_plan_is_refused_is_left_out_with_the_reason():
    """At δ = 1e-20 two accountants part in the fourth digit, which was a traceback."""
    plan = dpbench.plan(TWO, 10**10, worlds=2, jobs=1, algorithm=["dp-sgd", "objpert", "dp-gd-average"])
    assert all("composes to" in why for why in plan.left_out.values())
    assert len(plan.forecasts) + len(plan.left_out) >= 3


def test_rows_that_a_fit_makes_zeros_are_zeros_in_a_world_and_are_scored_all_the_same():
    (name,) = [name for name, column in COLUMNS.items() if column.missing == "drop"]
    schema = Schema(target=TWO.target, columns={name: COLUMNS[name], "age": COLUMNS["age"]})
    world = next(
        one
        for one in (worlds.simulated(schema, 2000, np.random.default_rng(i), shares={}, signal=0.8) for i in range(20))
        if (~one.X.any(axis=1)).mean() > 0.03
    )
    assert world.Xt.any(axis=1).all()


def test_older_rows_without_a_label_are_zeros_in_a_world_and_are_not_scored():
    rows = table(TWO, 400)
    rows.loc[rows.index % 4 == 0, "y"] = None
    like = worlds.rows_of(TWO, rows, "old.csv")
    world = worlds.from_rows(like, 200, np.random.default_rng(0))
    assert 0.15 < (~world.X.any(axis=1)).mean() < 0.5  # some are dropped for a missing date, too
    assert len(world.yt) == like.labelled[np.random.default_rng(0).permutation(400)[: 400 // 3]].sum() < 133
    shares = planning.guess_of(frame(TWO, like=like), world)[0]
    assert shares[0] == pytest.approx((world.y[world.X.any(axis=1)] == 0).mean())


@pytest.mark.parametrize("rows", [266, 267, 268])
def test_older_rows_are_drawn_again_only_where_more_are_asked_for_than_are_left(rows):
    X = np.arange(400.0)[:, None]
    world = worlds.from_rows(worlds.Like(X, X, X[:, 0], X[:, 0] >= 0), rows, np.random.default_rng(0))
    assert len(world.X) == rows
    assert (len(np.unique(world.X)) == rows) == (rows <= 267)


def test_worlds_are_in_their_order_however_many_processes_there_are(monkeypatch):
    def pooled(function, tasks, jobs, *, ordered=False):  # the last world ends first
        return (function(*one) for one in (list(tasks) if ordered else reversed(list(tasks))))

    monkeypatch.setattr(planning, "pooled", pooled)
    assert planning._each(3, 2, lambda *told: None, "", lambda number: number) == [0, 1, 2]


def test_numbers_without_delta_have_no_method():
    with pytest.raises(UserError, match="no rule chooses one for squared loss at δ = 0"):
        dpbench.plan(NUMBER, 100, delta=0, worlds=2, jobs=1)
    assert dpbench.plan(TWO, 100, delta=0, **SMALL).forecasts[0].method == "objpert-pure"


def test_three_classes_without_delta_have_a_model_each_and_none_with_weights():
    made = dpbench.PrivateClassifier(1.0, delta=0, schema=THREE).plan(100)
    assert (made.name, made.models) == ("objpert-pure", 3)
    with pytest.raises(UserError, match="no rule chooses one for weighted softmax-3 loss at δ = 0"):
        dpbench.PrivateClassifier(1.0, delta=0, schema=THREE, class_weight={"a": 2.0}).plan(100)


CALL = "plan --schema s.toml --n 300 --eps 0.3 --eps 1 --worlds 3 --jobs 1 "


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("columns", "schema", "given", "first", "dropped"),
    [
        (120, TWO, "--share yes=0.2 --algo dp-gd", "AUC", ()),
        (80, TWO, "--algo dp-gd", "AUC", ("accuracy", "log loss")),
        (80, NUMBER, "--reach kept=0.5", "R²", ()),
    ],
)
def test_the_command_fits_its_terminal(columns, schema, given, first, dropped, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(columns))
    (tmp_path / "s.toml").write_text(schema.toml())
    with pytest.raises(SystemExit) as end:
        main(shlex.split(CALL + given))
    out, err = capsys.readouterr()
    assert not end.value.code, err
    assert max(map(len, out.splitlines())) <= columns
    assert out.startswith(f"At ε = 0.3 expect {first} ")
    assert ("For kept=0.5 at n = 300: " in out) == ("reach" in given)
    assert "Gaussian, noise multiplier" in " ".join(out.split())
    head = next(line for line in out.splitlines() if line.startswith("ε"))
    assert not [score for score in dropped if score in head]
    assert "-0.00" not in out


def test_a_draft_can_be_planned_with(tmp_path):
    pd.DataFrame({"a": [*range(50)] * 2, "y": ["u", "v"] * 50}).to_csv(tmp_path / "t.csv", index=False)
    schema, _ = dpbench.draft_schema(tmp_path / "t.csv", "y")
    plan = dpbench.plan(schema, 100, **SMALL)
    assert "2 entries are undecided in the schema; the plan takes them as they stand" in plan.notes


@pytest.mark.parametrize(("classes", "best", "fit", "kept"), [(True, 0.9, 0.7, 0.5), (False, 0.8, 0.4, 0.5)])
def test_what_is_kept_is_counted_from_chance(monkeypatch, classes, best, fit, kept):
    """Half of the way from an AUC of 0.5, or from an R² of 0, to what is possible without privacy."""
    name = "AUC" if classes else "R²"
    world = SimpleNamespace(X=np.zeros((4, 1)), y=np.zeros(4), _replace=lambda **new: None)
    made = SimpleNamespace(classes=classes, world=lambda number, rows: world)
    monkeypatch.setattr(planning, "best_of", lambda frame, world: best)
    monkeypatch.setattr(planning, "guess_of", lambda frame, world: 0.5 if classes else 0.0)
    monkeypatch.setattr(planning, "scores_of", lambda frame, world, score: {name: score})
    monkeypatch.setattr(planning, "fitted", lambda *task, seed: {name: fit})
    found = planning.one_world(0, made, [("dp-gd", 1.0, 4)], 4)
    assert [scores["kept"] for scores in found] == pytest.approx([1.0, 0.0, kept])


def test_without_a_label_no_class_is_likelier_than_another():
    world = worlds.World(np.zeros((5, 2)), np.zeros(5, dtype=int), np.ones((3, 2)), np.zeros(3, dtype=int), None)
    np.testing.assert_allclose(planning.guess_of(frame(THREE), world), np.full((3, 3), 1 / 3))


def test_dates_are_drawn_within_the_years_of_the_schema_and_not_heaped_at_their_end():
    schema = Schema(target=TWO.target, columns={"when": Column(date=("year", "month", "hour"), years=(1990, 2009))})
    drawn = [
        worlds.cells_of(schema, 500, np.random.default_rng(i), np.random.default_rng(i))["when"] for i in range(30)
    ]
    days = pd.concat(drawn).str[:10]
    assert (days.min(), days.max()) == ("1990-01-01", "2009-12-31")
    assert np.mean([(each == each.max()).mean() for each in drawn]) < 0.1
    assert {*pd.concat(drawn).str[11:13].astype(int)} == {*range(24)}


def test_a_world_is_the_same_whichever_sign_a_library_gives_an_eigenvector(monkeypatch):
    def drawn():
        return worlds.simulated(NUMBER, 60, np.random.default_rng(0), shares={}, signal=0.8, test=60).y

    plain, eigh = drawn(), np.linalg.eigh

    def turned(matrix):
        values, vectors = eigh(matrix)
        return values, -vectors

    monkeypatch.setattr(np.linalg, "eigh", turned)
    np.testing.assert_array_equal(drawn(), plain)


@pytest.mark.parametrize(
    ("column", "ends"),
    [(Column(date=("year",), years=(1900, 1999)), (1935, 1985)), (Column(bounds=(1900, 2000)), (1915, 1965))],
    ids=("dates", "numbers"),
)
def test_the_middle_of_dates_lies_late_in_their_range_and_that_of_numbers_early(column, ends):
    rng, factors = np.random.default_rng(0), np.zeros((5, worlds.FACTORS))
    skewed = float(column.date is not None)  # no upper tail of dates, ever
    alike = worlds.TableLaw(factors, factors[0] + 1, 0.5, -4.0, skewed=skewed)
    drawn = [worlds._cells(column, alike, rng, rng, False) for _ in range(50)]
    middles = [np.median(each.str[:4].astype(int) if column.date else each) for each in drawn]
    assert (min(middles), max(middles)) == pytest.approx(ends, abs=6)


# (X's mean and spread, y's mean, spread of the best prediction, y's mean of the rows scored on): four worlds of a law.
DRAWN = {
    "two": (TWO, {}),
    "two, guessed": (TWO, {"signal": 0.8, "shares": {"yes": 0.05}}),
    "three": (THREE, {}),
    "three, guessed": (THREE, {"shares": {"a": 0.5}}),
    "number": (NUMBER, {}),
    "number, guessed": (NUMBER, {"signal": 0.6}),
}
LAW = {
    "two": [
        (0.06896, 0.1993, 0.65, 0.2593, 0.8), (0.08391, 0.1839, 0.425, 0.4301, 0.3833),
        (0.07733, 0.2405, 0.5, 0.004852, 0.3833), (0.08679, 0.2091, 0.0000, 0.4873, 0.0000),
    ],
    "two, guessed": [
        (0.06896, 0.1993, 0.025, 0.4398, 0.05), (0.08391, 0.1839, 0.0000, 0.4563, 0.0000),
        (0.07733, 0.2405, 0.075, 0.4603, 0.03333), (0.08679, 0.2091, 0.025, 0.4494, 0.0000),
    ],
    "three": [
        (0.06896, 0.1993, 0.9, 0.203, 1.1), (0.08391, 0.1839, 0.375, 0.37, 0.55),
        (0.07733, 0.2405, 0.775, 0.4223, 1.233), (0.08679, 0.2091, 1, 0.2954, 1.017),
    ],
    "three, guessed": [
        (0.06896, 0.1993, 0.725, 0.4415, 0.55), (0.08391, 0.1839, 0.775, 0.4127, 0.85),
        (0.07733, 0.2405, 1.075, 0.2145, 0.9), (0.08679, 0.2091, 0.65, 0.4172, 0.8333),
    ],
    "number": [
        (0.04213, 0.2206, -0.9315, 0.08235, -0.9046), (0.0953, 0.1784, 0.1487, 0.00448, 0.1494),
        (0.06152, 0.2426, 0.3315, 0.01087, 0.3242), (0.03574, 0.2366, -0.9936, 0.002445, -0.9946),
    ],
    "number, guessed": [
        (0.04213, 0.2206, -0.9198, 0.07089, -0.9149), (0.0953, 0.1784, 0.1485, 0.005087, 0.1495),
        (0.06152, 0.2426, 0.3314, 0.03634, 0.3242), (0.03574, 0.2366, -0.9935, 0.003346, -0.9945),
    ],
}  # fmt: skip


@pytest.mark.thorough_for("*guessed", "three")
@pytest.mark.parametrize("name", DRAWN)
def test_tables_are_drawn_by_the_law_that_was_held_against_real_ones(name):
    """The intervals of a plan cover what they say for this law: another needs the comparison with real tables anew."""
    schema, given = DRAWN[name]
    given = {"signal": None, "shares": {}} | given
    for seed, expected in enumerate(LAW[name]):
        one = worlds.simulated(schema, 40, np.random.default_rng(seed), **given, test=60)
        found = one.X.mean(), one.X.std(), one.y.mean(), one.best.std(), one.yt.mean()
        assert found == pytest.approx(expected, rel=2e-3, abs=1e-4), seed


def test_scores_are_those_of_scikit_learn():
    """Of classes, of probabilities that need not add up to 1; of numbers, in the target's own unit."""
    from sklearn import metrics

    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    p[3] = [0.0, 0.0, 1.0]
    world = SimpleNamespace(yt=y)
    assert planning.scores_of(frame(THREE), world, p) == pytest.approx({
        "AUC": metrics.roc_auc_score(y, p, multi_class="ovr"),
        "accuracy": metrics.accuracy_score(y, p.argmax(axis=1)),
        "log loss": metrics.log_loss(y, np.clip(p, 1e-12, 1)),
    })  # fmt: skip
    y = rng.uniform(-1, 1, 50)
    predicted = 1.5 * y + rng.normal(0, 0.2, 50)  # some lie beyond the bounds, where the model's do not
    inside, (low, high) = np.clip(predicted, -1, 1), NUMBER.target.bounds
    unit = [low + (one + 1) * (high - low) / 2 for one in (y, inside)]
    found = planning.scores_of(frame(NUMBER), SimpleNamespace(yt=y), predicted)
    assert found == pytest.approx({"R²": metrics.r2_score(y, inside), "RMSE": metrics.root_mean_squared_error(*unit)})


def test_what_a_plan_can_be_set_against_is_the_best_and_one_answer_for_all():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(300), rng.uniform(-1, 1, (300, 2))])
    X[:30] = 0.0  # without a label
    for schema, y in ((NUMBER, 0.2 + X @ [0.1, 0.5, 0.0]), (THREE, np.digitize(X[:, 1], [-0.3, 0.5]))):
        of = worlds.World(X, y, X[30:90], y[30:90], None)
        best = planning.scores_of(frame(schema), of, planning.best_of(frame(schema), of))
        guess = planning.guess_of(frame(schema), of)
        assert best.get("R²", best.get("AUC")) > 0.98
        fair = [np.full(60, y[30:].mean())] if schema is NUMBER else np.bincount(y[30:]) / 270
        np.testing.assert_allclose(guess, fair[0] if schema is NUMBER else np.tile(fair, (60, 1)), atol=1e-6)
    known = of._replace(best=np.zeros((60, 3)))
    assert planning.best_of(frame(THREE), known) is known.best


@pytest.mark.parametrize(("schema", "given", "said"), [
    (TWO, {}, [
        "simulated tables were never held against real ones with dates",
        "rows without a label count in n, as in a fit; the tables have a label in every row",
        "the tables differ in what can be learned: AUC of 0.51 to 0.99; --signal narrows that",
        "the tables differ in the shares of the classes; --share narrows that",
    ]),
    (TWO, {"rows": 123_456, "signal": 0.8, "shares": {"yes": 0.05, "no": 0.95}}, [
        "simulated tables were never held against real ones with dates",
        "rows without a label count in n, as in a fit; the tables have a label in every row",
        "guessed: AUC of 0.8 without privacy, right to 0.05",
        "guessed: 0.05 of yes, 0.95 of no",
        "the tables have 10,000 rows, with as much noise beside them as 123,456 have",
    ]),
    (NUMBER, {"like": SimpleNamespace(y=np.zeros(1234))}, ["the tables are drawn from 1,234 public or older rows"]),
])  # fmt: skip
def test_a_plan_says_what_its_tables_are(schema, given, said):
    assert planning._notes(frame(schema, **given)) == said


@pytest.mark.parametrize(("shares", "said"), [
    ({"yes": 1.0}, "yes must be between 0 and 1, got 1"), ({"yes": 0.0}, "yes must be a positive number, got 0"),
    ({"yes": 0.5, "no": 0.499}, "the shares add up to 0.999"), ({"yes": 0.6, "no": 0.5}, "the shares add up to 1.1"),
    ({"yes": 1 / 3, "no": 0.6666666}, ""), ({"yes": 1 / 3, "no": 0.6666667}, ""), ({"yes": 0.3}, ""),
])  # fmt: skip
def test_shares_that_no_table_can_have_are_refused(shares, said):
    if not said:
        worlds.check_guesses(TWO, shares, 0.8)
        return
    with pytest.raises(UserError, match=said):
        worlds.check_guesses(TWO, shares, None)


@pytest.mark.parametrize(("schema", "signal", "said"), [
    (TWO, 0.5, "AUC without privacy must be between 0.5 and 1, got 0.5"), (TWO, 1.0, "got 1"), (TWO, 0.51, ""),
    (NUMBER, 0.0, "signal must be a positive number, got 0"), (NUMBER, 1.0, "got 1"), (NUMBER, 0.01, ""),
])  # fmt: skip
def test_a_signal_that_no_table_can_have_is_refused(schema, signal, said):
    if not said:
        worlds.check_guesses(schema, {}, signal)
        return
    with pytest.raises(UserError, match=said):
        worlds.check_guesses(schema, {}, signal)


def test_a_fit_that_ended_badly_has_no_score_and_the_others_keep_theirs(monkeypatch):
    world = worlds.simulated(NUMBER, 60, np.random.default_rng(0), shares={}, signal=0.8, test=60)
    made = SimpleNamespace(classes=0, world=lambda number, rows: world, schema=NUMBER)

    def fitted(frame, few, algorithm, *task, seed):
        if algorithm == "diverges":
            raise UserError("a run that diverged")
        return {"R²": 0.5, "RMSE": float(len(few.X))}

    monkeypatch.setattr(planning, "fitted", fitted)
    best, _, bad, good = planning.one_world(0, made, [("diverges", 1.0, 60), ("works", 1.0, 40)], 60)
    assert [*bad] == ["R²", "RMSE", "kept"]
    assert np.isnan([*bad.values()]).all()
    assert good == {"R²": 0.5, "RMSE": 40.0, "kept": pytest.approx(0.5 / best["R²"])}


@pytest.mark.parametrize(("name", "least", "most"), [
    ("n", 50, 10**12), ("worlds", 2, 100_000), ("seed", 0, 2**64), ("jobs", 1, 10_000)])  # fmt: skip
def test_whole_numbers_of_a_plan_have_ends_that_are_allowed(monkeypatch, name, least, most):
    monkeypatch.setattr(arguments, "make", lambda frame, *of: (frame, *of))
    for value in (least, most):
        dpbench.plan(TWO, **{"n": 100} | {name: value})
    for value in (least - 1, most + 1, float(least + 1)):
        with pytest.raises(UserError) as error:
            dpbench.plan(TWO, **{"n": 100} | {name: value})
        assert str(error.value) == f"{name} must be a whole number from {least:,} to {most:,}, got {value!r}"


def test_all_that_a_plan_is_asked_for_reaches_it(monkeypatch):
    monkeypatch.setattr(arguments, "make", lambda frame, *of: (frame, *of))
    given = {"epsilon": [2, 0.5, 2.0], "delta": 1e-7, "algorithm": "dp-gd", "share": {"yes": 0.2}, "signal": 0.8,
             "reach": "AUC=0.7", "worlds": 7, "seed": 3, "row_bound": None, "jobs": 2, "progress": print}  # fmt: skip
    made, *of = dpbench.plan(TWO, 100, **given)
    assert of == [[0.5, 2.0], ["dp-gd"], 7, ("AUC", 0.7), 2, print]
    assert made == planning.Simulation(TWO, 100, 1e-7, {"yes": 0.2}, 0.8, None, 3, None, None)
    made, *of = dpbench.plan(NUMBER, 100)
    assert of[:5] == [[1.0], [], 40, None, None]
    assert made == planning.Simulation(NUMBER, 100, None, {}, None, None, 0, "auto", None)


@pytest.mark.parametrize(("text", "task", "found"), [
    ("auc=0.8", "classes", ("AUC", 0.8)), ("Kept=0.5", "numbers", ("kept", 0.5)), ("r2=.3", "numbers", ("R²", 0.3)),
    ("accuracy=0.99", "classes", ("accuracy", 0.99)),
    ("auc=0", "classes", "between 0 and 1, as in auc=0.8, got 'auc=0'"), ("auc=1", "classes", "between 0 and 1"),
    ("auc=nan", "classes", "between 0 and 1"), ("auc", "classes", "between 0 and 1"), ("auc=x", "classes", "between"),
    ("auc=0.5", "numbers", "reach: 'auc' is no score of this target"), ("r2=0.5", "classes", "'r2' is no score"),
])  # fmt: skip
def test_what_a_plan_can_be_asked_to_reach(text, task, found):
    if isinstance(found, tuple):
        assert arguments.parse_target(text, task) == found
        return
    with pytest.raises(UserError, match=found):
        arguments.parse_target(text, task)
