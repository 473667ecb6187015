"""`fit` reads a table by its schema as the estimators do, and says that the schema is public."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

import dpbench
from dpbench.errors import UserError
from dpbench.schema import Column, Schema, Target
from dpbench.schema.encoding import encoding_of

COLUMNS = {
    "age": Column(bounds=(0, 100), missing="indicator"),
    "town": Column(categories=("Bonn", "Ulm"), missing="drop"),
    "born": Column(date=("year",)),
}
TWO = Schema(target=Target(name="y", classes=("no", "yes")), columns=COLUMNS)
THREE = Schema(target=Target(name="y", classes=("a", "b", "c")), columns=COLUMNS)
NUMBER = Schema(target=Target(name="y", bounds=(-5, 15)), columns=COLUMNS)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    age = np.where(rng.random(300) < 0.1, np.nan, rng.uniform(-10, 120, 300))
    return pd.DataFrame({"age": age, "town": rng.choice(["Bonn", "Ulm", "Kiel"], 300), "born": "1990-02-03"})


@pytest.mark.parametrize(
    ("schema", "loss", "algorithm", "labels", "expected"),
    [
        (TWO, "logistic", "dp-gd", ["no", "yes", None], {"no": -1.0, "yes": 1.0}),
        (THREE, "softmax-3", "dp-gd-average", ["a", "b", "c", "d"], {"a": 0.0, "b": 1.0, "c": 2.0}),
        (NUMBER, "squared", "boosted-ssp", [-9.0, 5.0, 15.0, np.nan], {-9.0: -1.0, 5.0: 0.0, 15.0: 1.0}),
    ],
)
def test_a_table_is_fitted_as_the_rows_that_its_schema_makes(schema, loss, algorithm, labels, expected, people):
    labels = pd.Series(np.random.default_rng(1).choice(np.array(labels, dtype=object), 300))
    rows = encoding_of(schema, intercept=True).rows(people, fitting=True)
    rows[[one not in expected for one in labels]] = 0.0
    given = {"algorithm": algorithm, "epsilon": 1.0, "loss": loss, "T": 5}
    whole = dpbench.fit(people.assign(y=labels), schema=schema, row_bound=None, seed=3, **given)
    apart = dpbench.fit(people, labels, schema=schema, row_bound=None, seed=3, **given)
    by_hand = dpbench.fit(rows, [expected.get(one, 0.0 if loss != "logistic" else -1.0) for one in labels], seed=3,
                          bound="rescale", **given)  # fmt: skip
    np.testing.assert_array_equal(whole.w, apart.w)
    # With a schema the scores of several classes are calibrated; arrays get the minimiser that they asked for.
    length = np.linalg.norm(whole.w) / np.linalg.norm(by_hand.w)
    assert (length == pytest.approx(1.0, rel=1e-12)) == (schema is not THREE)
    np.testing.assert_allclose(whole.w, length * by_hand.w, rtol=1e-12)
    released = dpbench.fit(people.assign(y=labels), schema=schema, **given)
    assert released.guarantee.endswith(
        "holds for the bytes released; counts as public: n, the schema, the column types"
    )


def test_what_does_not_fit_the_schema_is_one_line(people):
    given = {"algorithm": "dp-gd", "epsilon": 1.0, "T": 2}
    drafted = Schema(target=TWO.target, columns={"age": Column(bounds=(0, 1), decide=("bounds",))})
    table = people.assign(y="no")
    for schema, more, X, said in (
        (THREE, {"loss": "logistic"}, table, "loss: logistic does not fit .* has 3 classes; leave loss out"),
        (NUMBER, {"loss": "logistic"}, table, "loss: logistic does not fit .* is a number; leave loss out"),
        (TWO, {"loss": "squared"}, table, "squared does not fit the schema's target, which has 2 classes"),
        (THREE, {"loss": "softmax-4"}, table, "softmax-4 does not fit the schema's target, which has 3 classes"),
        (TWO, {}, people, "y: there is no column 'y' in X; give y"),
        (TWO, {}, people.to_numpy(), "X: give a pandas DataFrame"),
        (TWO, {"y": ["no"]}, people, "y: give one label for each row of X"),
        (drafted, {}, table[["age", "y"]], "came from the data"),
        (None, {}, np.eye(3), "y: give the labels"),
    ):
        with pytest.raises(UserError, match=said) as caught:
            dpbench.fit(X, schema=schema, **given, **more)
        assert "\n" not in str(caught.value)


def test_dates_under_bounds_are_refused_with_the_cure(people):
    """All of them counted as missing."""
    dated = people.assign(born=pd.Timestamp("2020-01-01"), y="no")
    columns = {"born": Column(bounds=(1900, 2100)), "age": Column(bounds=(0, 1))}
    model = dpbench.PrivateClassifier(schema=Schema(target=Target(name="y", classes=(0, 1)), columns=columns))
    with pytest.raises(UserError, match=r'columns\.born: dates have no bounds; give date = \["year"'):
        model.fit(dated[["born", "age"]], [0, 1] * 150)
    for X in (dated[["age", "born"]], dated[["born"]].to_numpy()):
        with pytest.raises((UserError, TypeError), match="X: dates are no numbers; make numbers of them"):
            dpbench.PrivateClassifier(bounds=(0, 1), classes=[0, 1]).fit(X, [0, 1] * 150)


@pytest.mark.parametrize(
    ("written", "classes", "kind"),
    [
        ((0, 1), (0, 1), "i"),
        ((1.0, 2.0), (1.0, 2.0), "f"),
        (("FALSE", "t"), (False, True), "b"),
        ((0, 1), ("0", "1"), "U"),
    ],
)
def test_a_file_is_scored_by_scikit_learn_whatever_type_its_classes_have(tmp_path, written, classes, kind):
    """Read as text, labels of numbers and truth values made `score` raise and `cross_val_score` NaN."""
    x = np.linspace(0, 1, 90)
    frame = pd.DataFrame({"x": x, "y": np.where(x > 0.5, written[1], written[0])})
    frame.to_csv(tmp_path / "t.csv", index=False)
    target = Target(name="y", classes=classes)
    schema = Schema(target=target, columns={"x": Column(bounds=(0, 1))})
    table = dpbench.read_table(tmp_path / "t.csv", schema)
    model = dpbench.PrivateClassifier(1e4, schema=schema, random_state=0).fit(table)
    assert model.predict(table).dtype.kind == kind
    assert model.score(table, table["y"]) > 0.9
    assert cross_val_score(model, table, table["y"], cv=3).min() > 0.6
    # One label that is none of the classes changes no other cell, and is left to be seen.
    frame.astype({"y": object}).assign(y=["odd", *frame["y"][1:]]).to_csv(tmp_path / "t.csv", index=False)
    again = dpbench.read_table(tmp_path / "t.csv", schema)["y"]
    assert again[0] == "odd"
    assert again[1:].tolist() == table["y"][1:].tolist()
    assert {type(one) for one in again[1:]} == {type(one) for one in classes}


def test_a_files_numeric_target_is_scored_in_its_unit(tmp_path):
    x = np.linspace(0, 1, 90)
    pd.DataFrame({"x": x, "y": [f"$ {1000 * value:.1f}" for value in x]}).to_csv(tmp_path / "t.csv", index=False)
    schema = Schema(target=Target(name="y", bounds=(0, 1000), prefix="$"), columns={"x": Column(bounds=(0, 1))})
    table = dpbench.read_table(tmp_path / "t.csv", schema)
    model = dpbench.PrivateRegressor(1e4, schema=schema).fit(table)
    assert model.score(table, table["y"]) > 0.9


def test_a_fit_shows_what_it_released_and_nothing_else():
    """A notebook prints what a cell returns: diagnostics are not private, and a plan fills pages."""
    X, y = np.random.default_rng(0).uniform(-0.5, 0.5, (100, 2)), np.resize([1.0, -1.0], 100)
    fit = dpbench.fit(X, y, algorithm="dp-gd", epsilon=1.0)
    assert repr(fit) == f"Fit(released={fit.released!r}, guarantee={fit.guarantee!r}, settings={fit.settings!r})"


def test_a_method_without_noise_gets_no_bound_that_costs(people):
    labels = np.resize(["no", "yes"], len(people))
    fit = dpbench.fit(people.assign(y=labels), schema=TWO, algorithm="damped-newton", epsilon=1.0)
    assert fit.plan.bound is None
    assert "damped-newton looks at the data without paying" in fit.guarantee
