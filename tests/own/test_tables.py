"""The estimators on tables: categories, dates, missing cells and strange labels, by a public schema."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dpbench import PrivateClassifier, PrivateRegressor
from dpbench.errors import UserError
from dpbench.schema import Column, Schema, Target

COLUMNS = {
    "age": Column(bounds=(0, 100), missing="indicator"),
    "town": Column(categories=("Bonn", "Ulm")),
    "born": Column(date=("year",), years=(1920, 2020)),
    "id": Column(drop=True),
}
SCHEMA = Schema(target=Target(name="rich", classes=("no", "yes")), columns=COLUMNS)


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    n = 4000
    age = rng.uniform(0, 100, n)
    town = rng.choice(["Bonn", "Ulm", "Kiel"], n)
    rich = np.where(age / 50 - 1 + (town == "Ulm") + 0.3 * rng.normal(size=n) > 0.5, "yes", "no").astype(object)
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.05, np.nan, age),
            "town": town,
            "born": [f"{year}-06-01" for year in rng.integers(1920, 2021, n)],
            "id": [f"p{i}" for i in range(n)],
            "rich": rich,
        }
    )


def test_a_table_with_everything_in_it_becomes_a_model_that_predicts(people):
    people.loc[[3, 4], "rich"] = [None, "perhaps"]
    model = PrivateClassifier(10.0, schema=SCHEMA).fit(people)
    assert list(model.classes_) == ["no", "yes"]
    assert model.encoded_names_ == ["intercept", "age", "age missing", "town=Bonn", "town=Ulm", "born (year)"]
    assert list(model.feature_names_in_) == ["age", "town", "born"]
    features = people.drop(columns="rich")
    assert np.mean(model.predict(features) == people["rich"]) > 0.85
    assert model.guarantee_.endswith("counts as public: n, the schema, the column types")
    same = clone(model).fit(features, people["rich"])
    assert same.model_.weights.shape == model.model_.weights.shape == (1, 6)
    names = dict(zip(model.encoded_names_[1:], model.coef_[0], strict=True))
    assert names["age"] > 0 < names["town=Ulm"] - names["town=Bonn"]


def test_more_classes_and_numbers(people):
    three = Schema(target=Target(name="town", classes=("Bonn", "Kiel", "Ulm")), columns={"age": COLUMNS["age"]})
    model = PrivateClassifier(5.0, schema=three).fit(people[["age", "town"]])
    assert model.predict_proba(people[["age"]]).shape == (len(people), 3)
    old = Schema(target=Target(name="age", bounds=(0, 100)), columns={"born": COLUMNS["born"], "town": COLUMNS["town"]})
    regression = PrivateRegressor(5.0, schema=old).fit(people[["age", "born", "town"]])
    predicted = regression.predict(people[["born", "town"]])
    assert ((predicted >= 0) & (predicted <= 100)).all()
    assert "counts as public: n, the schema" in regression.guarantee_


def test_a_score_reads_the_target_as_the_fit_does(people):
    raw = pd.DataFrame({"age": people["age"].fillna(50), "spend": [f"{20 * i:,}.5" for i in range(len(people))]})
    raw["rich"] = np.where(np.arange(len(raw)) % 3, "1", "0")
    columns = {"age": COLUMNS["age"]}
    money = Schema(target=Target(name="spend", bounds=(0, 1e5), thousands=","), columns=columns)
    model = PrivateRegressor(1.0, schema=money, random_state=0).fit(raw[["age", "spend"]])
    assert model.score(raw[["age"]], raw["spend"]) == model.score(raw[["age"]], 20.0 * np.arange(len(raw)) + 0.5)
    codes = Schema(target=Target(name="rich", classes=(0, 1)), columns=columns)
    classes = PrivateClassifier(1.0, schema=codes, random_state=0).fit(raw[["age", "rich"]])
    assert classes.score(raw[["age"]], raw["rich"]) == classes.score(raw[["age"]], raw["rich"].astype(int)) > 0.5


def test_rows_without_a_label_move_no_model(people):
    people["rich"] = people["rich"].where(people.index > 1000)
    model = PrivateClassifier(2.0, schema=SCHEMA, random_state=1, algorithm="dp-gd")
    first = model.fit(people).coef_
    people.loc[:900, "age"] = 1e9
    people.loc[:900, "town"] = "Atlantis"
    np.testing.assert_array_equal(first, model.fit(people).coef_)


def test_bounds_by_name_are_a_schemas(people):
    for bounds in ({"age": (0, 100)}, {"age": (1, 0)}):
        with pytest.raises(UserError, match=r"bounds: give \(low, high\), .* by names they are a schema's"):
            PrivateClassifier(bounds=bounds, classes=["no", "yes"]).fit(people[["age"]].fillna(50), people["rich"])


@pytest.mark.parametrize(
    ("parameters", "change", "message"),
    [
        ({"schema": SCHEMA, "bounds": (0, 1)}, None, "bounds: the schema says it; leave it out"),
        ({"schema": SCHEMA}, lambda t: t.to_numpy(), "X: give a pandas DataFrame"),
        ({"schema": SCHEMA}, lambda t: t.drop(columns="rich"), "y: there is no column 'rich' in X"),
        ({"schema": SCHEMA}, lambda t: t.drop(columns="age"), "there is no column 'age', which the schema has"),
        ({"schema": SCHEMA}, lambda t: t.assign(more=1), "does not have the column 'more'"),
        ({"schema": "none.toml"}, None, "none.toml"),
        ({"bounds": (1, 2)}, lambda t: t[["age"]].fillna(50), "requires y to be passed, but the target y is None"),
        (
            {"schema": Schema(target=Target(name="rich", bounds=(0, 1)), columns=COLUMNS)},
            None,
            "its target has no classes, which PrivateClassifier needs",
        ),
        (
            {"schema": Schema(target=SCHEMA.target, columns={"age": Column(bounds=(0, 9), decide=("bounds",))})},
            None,
            "columns.age: bounds came from the data; set what",
        ),
    ],
)
def test_a_mistake_is_one_line(people, parameters, change, message):
    with pytest.raises(UserError, match=message) as caught:
        PrivateClassifier(**parameters).fit(people if change is None else change(people))
    assert "\n" not in str(caught.value)
