"""A bound on the rows: what a row may move its release by, the noise, what is left, and what a model says of it."""

import math
import tempfile
from types import SimpleNamespace

import msgspec
import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench import PrivateClassifier, PrivateRegressor, load_model
from dpbench.auditing.functions import AuditTarget, audit_callable
from dpbench.errors import PrivacyError, UserError
from dpbench.own import row_bound, window
from dpbench.own.model import save
from dpbench.own.row_bound import BoundSplit, Lengths, Releasing, bound_of, by_rule, centred_mean, noisy_mean
from dpbench.own.spec import Spec, of_encoding
from dpbench.own.statement import DoesNotHold
from dpbench.privacy.accounting.gaussian import gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Gaussian, Laplace, Relation
from dpbench.schema import Column, Schema, Target
from dpbench.schema.encoding import encoding_of

REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_REMOVE
SCHEMA = Schema(
    target=Target(name="y", classes=("no", "yes")),
    columns={
        "age": Column(bounds=(0, 100), missing="indicator"),
        "pay": Column(bounds=(-1, 1)),
        "rank": Column(bounds=(0, 2)),
        "town": Column(categories=("a", "b", "c")),
    },
)


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 100, n)
    age[:9] = np.nan
    frame = {"age": age, "pay": rng.normal(0, 0.1, n), "rank": rng.choice([0, 1, 2], n)}
    frame |= {"town": rng.choice(["a", "b", "c"], n), "y": np.where(frame["pay"] > 0, "yes", "no")}
    return pd.DataFrame(frame)


def arrays(n=400, d=5, seed=0):
    X = np.random.default_rng(seed).normal(0, 0.2, (n, d))
    return X, (X[:, 0] > 0).astype(int)


def lengths_of(schema, intercept=True):
    return Spec(loss="logistic", **of_encoding(encoding_of(schema, intercept=intercept), 300, 2)).lengths


def test_the_columns_of_numbers_are_told_from_groups():
    lengths, encoding = lengths_of(SCHEMA), encoding_of(SCHEMA, intercept=True)
    assert encoding.names == ["intercept", "age", "age missing", "pay", "rank", *(f"town={c}" for c in "abc")]
    assert lengths.numbers.tolist() == [False, True, True, True, True, False, False, False]
    assert (lengths.most, lengths.others, lengths.intercept) == (3, 1, 1)
    assert lengths.unit == encoding.unit == math.sqrt(5)
    assert lengths_of(SCHEMA, intercept=False).unit == 2.0


def test_a_row_moves_the_mean_by_no_more_than_the_sensitivity():
    """Replaced: m/n, attained by a row of ones against one of zeros; removed, its place in n kept: m/2n."""
    rng, m, n = np.random.default_rng(0), 4, 7
    worst = 0.0
    for trial in range(300):
        Z = rng.uniform(-1, 1, (n, m))
        other = Z.copy()
        other[3] = rng.uniform(-1, 1, m) if trial else 0.0
        Z[3] = 1.0 if trial < 100 else Z[3]
        worst = max(worst, abs(float((centred_mean(Z, m, False) - centred_mean(other, m, False))[0])))
    assert worst == pytest.approx(m / n)
    for row in (np.zeros(m), np.ones(m), np.array([5.0, 0, 0, 0])):  # a longer one counts as m
        alone = float(centred_mean(row[None], m, False)[0])
        assert abs(alone) == m / 2
    made = centred_mean(rng.uniform(-1, 1, (n, m)), m, True)
    assert made.moved.l2(REPLACE) * made.unit == pytest.approx(m / n)
    assert made.moved.l2(ADD) * made.unit == pytest.approx(m / n / 2)
    assert made.moved.sum_of_sizes(REPLACE) * made.unit == pytest.approx(m / n)
    assert made.moved.sum_of_sizes(ADD) * made.unit == pytest.approx(m / n / 2)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -1e200])
@pytest.mark.parametrize("exact", [True, False])
def test_a_row_that_is_no_number_moves_the_mean_no_further(exact, odd):
    Z = np.full((3, 2), 0.5)
    Z[1, 1] = odd
    with np.errstate(over="ignore"):
        made = centred_mean(Z, 2, exact)
    value = made.integers * made.unit if exact else made
    assert abs(float(value[0]) + 1.0 / 3) <= 1.0 / 3  # two rows of -1/2 each over n, and one within ±1


def test_beside_a_large_delta_a_tiny_epsilon_is_split_too():
    given = {"delta": 1e-3, "algorithm": "dp-gd", "settings": {"T": 2}, "bounds": (-1, 1), "classes": [0, 1]}
    X, y = arrays()
    model = PrivateClassifier(1e-6, row_bound="private", **given).fit(X, y)
    assert model.plan_.bound == BoundSplit(Laplace(1 / (0.03 * 1e-6)), 0.97 * 1e-6, 1e-3)


@pytest.mark.parametrize("release", [Gaussian(20.0), Laplace(20.0)])
@pytest.mark.parametrize("relation", [REPLACE, ADD])
@pytest.mark.parametrize("exact", [True, False])
def test_noise_by_its_variance(release, relation, exact):
    Z, budget, runs = np.full((50, 3), 0.5), Budget(10.0, 1e-6, relation, "tight"), 600
    found, std = zip(
        *(noisy_mean(Z, 3, release, Releasing(budget, None if exact else seed))[:2] for seed in range(runs)),
        strict=True,
    )
    unit = 20 * 3 / 50 / (1 if relation is REPLACE else 2)
    expected = unit if isinstance(release, Gaussian) else unit * math.sqrt(2)
    assert std[0] == pytest.approx(expected)
    (entry,) = noisy_mean(Z, 3, release, Releasing(budget, 0))[2]
    assert (entry["count"], entry["planned"]) == (1, 1)  # what no plan has, no check of the plan has seen
    kurtosis = 3 if isinstance(release, Gaussian) else 6
    assert np.std(found) == pytest.approx(expected, rel=5 * math.sqrt((kurtosis - 1) / 4 / runs))
    assert np.mean(found) == pytest.approx(0.75, abs=5 * expected / math.sqrt(runs))


@pytest.mark.thorough
@pytest.mark.parametrize("halved", [False, True])
def test_the_audit_finds_the_claim_and_no_more_unless_noise_is_halved(halved):
    budget = Budget(5.0, 1e-6, REPLACE, "tight")

    def learner(X, y, epsilon, rng):
        release = Laplace((0.5 if halved else 1.0) / epsilon)
        return [noisy_mean(X, 1, release, Releasing(budget, int(rng.integers(2**60))))[0]]

    (found,) = audit_callable(AuditTarget(learner, low=0.0, sizes=(4,)), 2.0, runs=4000).verdicts.values()
    assert found.bound > 2.2 if halved else 1.6 < found.bound <= 2.0


@pytest.mark.parametrize("method", ["auto", "boosted-ssp", "dp-gd", "dp-gcd", "adassp"])
def test_what_is_left_and_the_release_compose_to_epsilon(method):
    X, y = arrays()
    made = PrivateRegressor if method in ("boosted-ssp", "adassp") else PrivateClassifier
    more = {"target_bounds": (0, 1)} if made is PrivateRegressor else {"classes": [0, 1]}
    model = made(epsilon=1.0, delta=1e-5, algorithm=method, bounds=(-1, 1), row_bound="private", **more).fit(X, y)
    plan = model.plan_
    assert (plan.whole.epsilon, plan.whole.delta) == (1.0, 1e-5)
    if method == "dp-gcd":  # whose two pure releases compose better without a Gaussian
        assert plan.bound == BoundSplit(Laplace(1 / 0.03), 0.97, 1e-5)
    else:
        assert plan.bound.release == Gaussian(1 / (gaussian_mu(1.0, 1e-5) * math.sqrt(0.03)))
    assert 0.9 < plan.each.epsilon < 0.99
    if method in ("dp-gd", "boosted-ssp"):
        assert gaussian_mu(plan.each.epsilon, 1e-5) ** 2 == pytest.approx(0.97 * gaussian_mu(1.0, 1e-5) ** 2)
    assert 0.96 < model.epsilon_ <= 1.0 + 1e-9
    assert model.arithmetic_ == "bytes"
    first = model.ledger_[0]
    assert (first["label"], first["count"], first["planned"], first["model"]) == ("row bound", 1, 1, "all")
    assert float(first["sensitivity"]) == pytest.approx(5 / 400, rel=1e-3)


def test_at_delta_0_and_beside_what_no_gaussian_composes_with_it_is_laplace():
    X, y = arrays()
    given = {"bounds": (-1, 1), "row_bound": "private"}
    model = PrivateClassifier(2.0, delta=0.0, classes=[0, 1], **given).fit(X, y)
    assert model.algorithm_ == "objpert-pure"
    assert model.ledger_[0]["release"] == "Laplace, noise multiplier 16.6667"
    assert model.epsilon_ == pytest.approx(2.0)
    draw = PrivateRegressor(2.0, target_bounds=(0, 1), algorithm="tukey-em", settings={"m": 30}, **given).fit(X, y)
    assert draw.ledger_[0]["release"] == "Laplace, noise multiplier 16.6667"
    assert draw.epsilon_ <= 2.0 + 1e-9
    three = PrivateClassifier(2.0, classes=[0, 1, 2], algorithm="objpert", **given).fit(X, y + (X[:, 1] > 0))
    assert three.ledger_[0]["release"].startswith("Gaussian")  # which composes with each at its share of δ
    assert len({line["model"] for line in three.ledger_}) == 4
    assert three.epsilon_ <= 2.0 + 1e-9


@pytest.mark.parametrize("name", ["dp-gd-laplace", "dp-hb", "dp-masg", "dp-masg-opt", "dp-nag", "dp-nag-opt"])
def test_a_pure_method_that_is_planned_is_fitted(name):
    """The bound's budget takes the method's own accounting: by another, its δ = 0 was refused after the plan."""
    X, y = arrays()
    model = PrivateClassifier(1.0, algorithm=name, bounds=(-1, 1), classes=[0, 1], row_bound="auto")
    schema = Schema(
        target=Target(name="y", classes=(0, 1)), columns={f"x{i}": Column(bounds=(-1, 1)) for i in range(5)}
    )
    planned = model.plan(len(X), schema)
    model.fit(X, y)
    assert model.delta_ == planned.whole.delta == 0
    assert model.epsilon_ <= 1 + 1e-9
    assert (model.row_bound_ is None) == (planned.bound is None)


def test_no_split_is_a_line():
    with pytest.raises(PrivacyError, match="only while it runs"):
        row_bound.first_within(
            row_bound.candidate_splits(1.0, 1e-6),
            Budget(1.0, 1e-6, REPLACE, "tight"),
            lambda epsilon, delta: [((), delta)],
        )


@pytest.mark.thorough
def test_rows_are_over_what_was_released_at_the_fit_and_after_it():
    X, y = arrays(20_000)
    model = PrivateClassifier(5.0, classes=[0, 1], bounds=(-1, 1), row_bound="private").fit(X, y)
    assert model.row_bound_ == pytest.approx(math.sqrt(1 + 5 * 0.04), abs=0.01)
    assert np.linalg.norm(model.model_.encoding.rows(X), axis=1).max() == pytest.approx(1.0)
    again = load_model(_saved(model))
    assert again.row_bound_ == model.row_bound_
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert again.epsilon_ == pytest.approx(model.epsilon_)


def test_the_rule_costs_nothing_and_releases_nothing():
    X, y = arrays()
    model = PrivateClassifier(1.0, classes=[0, 1], bounds=(-1, 1), row_bound="rule").fit(X, y)
    assert "row bound" not in {line["label"] for line in model.ledger_}
    assert model.row_bound_ == by_rule(model.plan_.spec.lengths) == max(1.0, 0.3 * math.sqrt(6))
    assert (load_model(_saved(model)).predict_proba(X) == model.predict_proba(X)).all()
    assert by_rule(Lengths(np.ones(3, bool), 99, 4, 1)) == math.sqrt(4 + 9)


def test_what_is_released_is_weighed_by_its_noise():
    lengths = Lengths(np.ones(10, bool), 10, 2, 1)
    assert bound_of(4.0, 0.0, lengths) == math.sqrt(7)
    assert bound_of(-5.0, 0.0, lengths) == math.sqrt(3.2)
    assert bound_of(1e9, 0.0, lengths) == math.sqrt(13)
    assert bound_of(8.0, 1e9, lengths) == pytest.approx(math.sqrt(3.9))
    assert bound_of(8.0, 1.5, lengths) == pytest.approx(math.sqrt(3 + (8 + 0.9) / 2))


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["private", "rule"])
def test_a_table_with_its_schema(how):
    frame = table()
    model = PrivateClassifier(3.0, schema=SCHEMA, row_bound=how).fit(frame)
    least = math.sqrt(2) if how == "private" else 1.0
    assert least <= model.row_bound_ < math.sqrt(5)
    path = _saved(model)
    assert (load_model(path).predict_proba(frame) == model.predict_proba(frame)).all()
    statement, _ = dpbench.statement(path)
    told = [entry.label for entry in statement.composition]
    assert told.count("row bound") == (how == "private")
    fitted = dpbench.fit(frame, schema=SCHEMA, algorithm="objpert", epsilon=3.0, row_bound=how)
    assert fitted.released.epsilon == 3.0
    assert fitted.released.epsilon_planned <= 3.0
    assert [line["label"] for line in fitted.released.ledger].count("row bound") == (how == "private")
    assert least <= fitted.released.row_bound < math.sqrt(5)
    assert fitted.released.arithmetic == "bytes"


def test_a_table_without_numbers_has_nothing_to_release():
    schema = Schema(target=SCHEMA.target, columns={"town": SCHEMA.columns["town"]})
    model = PrivateClassifier(3.0, schema=schema, row_bound="private").fit(table()[["town", "y"]])
    assert "row bound" not in {line["label"] for line in model.ledger_}
    assert model.plan_.bound is None
    load_model(_saved(model))


def told(model):
    return [line["label"] for line in model.ledger_].count("row bound")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("given", "schema", "found"),
    [
        ({}, SCHEMA, "private"),
        ({"row_bound": None}, SCHEMA, None),
        ({}, msgspec.structs.replace(SCHEMA, row_bound=1.7), 1.7),
        ({}, Schema(target=SCHEMA.target, columns={"town": SCHEMA.columns["town"]}), None),
    ],
)
def test_the_default_releases_a_bound_where_there_are_numbers_and_nobody_gave_one(given, schema, found):
    frame = table()[[*schema.columns, "y"]]
    model = PrivateClassifier(2.0, schema=schema, **given).fit(frame)
    fitted = dpbench.fit(frame, schema=schema, algorithm="objpert", epsilon=2.0, **given)
    planned = dpbench.plan(schema, 300, epsilon=2.0, worlds=2, jobs=1, algorithm="auto", **given)
    released = int(found == "private")
    assert told(model) == [line["label"] for line in fitted.released.ledger].count("row bound") == released
    assert planned.forecasts[0].releases[0].startswith("1 × row bound") == bool(released)
    if found == "private":
        assert math.sqrt(2) <= model.row_bound_ < math.sqrt(5)
        assert math.sqrt(2) <= fitted.released.row_bound < math.sqrt(5)
        assert load_model(_saved(model)).row_bound_ == model.row_bound_
    else:
        assert model.row_bound_ == found
        assert fitted.released.row_bound is None


def test_arrays_have_a_bound_too_and_a_fit_of_arrays_none():
    X, y = arrays()
    given = {"bounds": (-1, 1), "classes": [0, 1]}
    model = PrivateClassifier(1.0, **given).fit(X, y)
    assert told(model) == 1
    assert 1 <= model.row_bound_ < math.sqrt(6)
    model.set_params(row_bound=1.2).fit(X, y)
    assert (model.row_bound_, told(model)) == (1.2, 0)
    assert "bounds, classes, row_bound" in model.guarantee_
    model.set_params(row_bound=None).fit(X, y)
    assert (model.row_bound_, told(model), model.model_.encoding.unit) == (None, 0, math.sqrt(6))
    fitted = dpbench.fit(X / 4, np.where(y, 1, -1), algorithm="objpert", epsilon=1.0)
    assert fitted.released.row_bound is None


def test_a_method_whose_releases_do_not_compose_with_it_takes_the_rule_and_says_so(monkeypatch):
    def none(*of):
        raise PrivacyError("the method says what it releases only while it runs")

    monkeypatch.setattr(row_bound, "first_within", none)
    model = PrivateClassifier(2.0, schema=SCHEMA).fit(table())
    assert model.row_bound_ == by_rule(lengths_of(SCHEMA)) == load_model(_saved(model)).row_bound_
    assert "counts as public: n, the schema, the column types, a row bound by rule" in model.guarantee_
    fitted = dpbench.fit(table(), schema=SCHEMA, algorithm="objpert", epsilon=2.0)
    assert fitted.released.counts_public == "the schema, the column types, a row bound by rule"
    assert fitted.released.row_bound == model.row_bound_
    for fit in (
        lambda: PrivateClassifier(2.0, schema=SCHEMA, row_bound="private").fit(table()),
        lambda: dpbench.fit(table(), schema=SCHEMA, algorithm="objpert", epsilon=2.0, row_bound="private"),
    ):
        with pytest.raises(PrivacyError, match="only while it runs"):
            fit()


def test_what_has_no_noise_keeps_its_rows():
    found = dpbench.fit(table(), schema=SCHEMA, algorithm="dp-gd-oracle", epsilon=2.0)
    assert found.released.row_bound is None


@pytest.mark.filterwarnings("error")
@pytest.mark.thorough_for("1e-05", "1000000.0")
@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 1e6])
def test_few_rows_have_a_model_at_any_epsilon(epsilon):
    """At ε = 1e-6 δ = n⁻² is far above ε: a smaller μ leaves no ε at that δ, so the bound is released without it."""
    X, y = arrays(60)
    given = {"bounds": (-1, 1), "epsilon": epsilon}
    for model in (
        PrivateClassifier(classes=[0, 1], **given),
        PrivateClassifier(classes=[0, 1, 2], **given),
        PrivateRegressor(target_bounds=(0, 1), **given),
    ):
        assert model.fit(X, y).epsilon_ <= epsilon * (1 + 1e-6)
        alone = [entry.label for entry in model.releases_] == ["median"]  # few rows at a small ε
        assert told(model) == (0 if alone else 1)


def test_the_plan_and_the_card_list_the_release():
    planned = dpbench.plan(SCHEMA, 300, epsilon=2.0, worlds=2, jobs=1, algorithm="auto")
    forecast = planned.forecasts[0]
    model = PrivateClassifier(2.0, schema=SCHEMA).fit(table())
    assert forecast.releases[0] == f"1 × row bound: {model.ledger_[0]['release']}"
    assert forecast.epsilon_planned == pytest.approx(model.epsilon_)
    card = dpbench.card(_saved(model), worlds=2, jobs=1)
    assert "1 × row bound: Gaussian" in card
    assert f"a row longer than {model.row_bound_:.4g} is shortened" in card


def test_a_file_whose_bound_and_releases_do_not_agree_is_refused():
    model = PrivateClassifier(2.0, schema=SCHEMA, row_bound="private").fit(table())
    of, statement = model.model_, model.statement()
    without = msgspec.structs.replace(
        statement, releases=[one for one in statement.releases if one["label"] != "row bound"]
    )
    with pytest.raises(DoesNotHold, match="row bound"):
        save(_path(), of, without)
    public = msgspec.structs.replace(of, spec=msgspec.structs.replace(of.spec, row_bound=None))
    with pytest.raises(DoesNotHold, match="row bound"):
        save(_path(), public, statement)
    for wrong in (0.5, 9.0):
        with pytest.raises(ValueError, match="row bound"):
            msgspec.structs.replace(of, bound=wrong)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *[({"row_bound": odd}, "row_bound must be a number") for odd in ("short", b"private", True, [1.0], {})],
        ({"schema": SCHEMA, "row_bound": 2.0}, "leave it out"),
    ],
)
def test_what_is_no_bound_is_a_line(given, message):
    with pytest.raises(UserError, match=message):
        PrivateClassifier(
            1.0, **({"bounds": (-1, 1), "classes": [0, 1]} if "schema" not in given else {}), **given
        ).fit(*(arrays() if "schema" not in given else (table(),)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"row_bound": "private"}, "goes with a schema"),
        ({"row_bound": 2.0, "schema": SCHEMA}, "must be"),
        ({"row_bound": "rule", "schema": msgspec.structs.replace(SCHEMA, row_bound=2.0)}, "the schema says it"),
    ],
)
def test_a_fit_says_what_does_not_fit(given, message):
    with pytest.raises(UserError, match=message):
        dpbench.fit(table(), algorithm="objpert", epsilon=1.0, **given)


def _path():
    return tempfile.mkdtemp() + "/model.json"


def _saved(model):
    path = _path()
    model.save(path)
    return path


@pytest.mark.parametrize(("arithmetic", "seed", "persons", "exact"), [
    (None, None, False, True), (None, 0, False, False), ("bytes", None, False, True), ("bytes", 0, False, True),
    ("real", None, False, False), ("real", 0, False, False), (None, 0, True, True),
])  # fmt: skip
def test_what_is_released_first_is_for_the_bytes_wherever_it_is_a_release(
    monkeypatch, arithmetic, seed, persons, exact
):
    """A bound and a window from floating-point noise would not have the ε of the model that follows."""
    asked = []
    monkeypatch.setattr(row_bound, "mechanisms_of", lambda *of: asked.append(of) or 1 / 0)
    how = row_bound.Releasing(None, seed, arithmetic, SimpleNamespace(number=1) if persons else None)
    lengths = SimpleNamespace(most=1, others=0)
    with pytest.raises(ZeroDivisionError):
        row_bound.noisy_mean(np.zeros((2, 1)), 1, None, how)
    with pytest.raises(ZeroDivisionError):
        window.release(np.zeros((2, 1)), np.zeros(2), lengths, 1.0, None, how)
    with pytest.raises(ZeroDivisionError):
        window.choose(np.zeros(2), 0.5, 1, how)
    assert asked == [(exact, seed)] * 3
