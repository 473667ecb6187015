"""Public weights of classes, from the argument to the saved model."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

import dpbench
from benchmarks import rare_classes
from dpbench.errors import UserError
from dpbench.schema import Column, Schema, Target

BOUNDS = {"bounds": (-3, 3), "classes": ["no", "yes"]}


def rare(rows=6000, seed=0):
    """Two columns; one row in thirty is "yes", where the first is large."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (rows, 2))
    y = np.where(rng.random(rows) < 1 / (1 + np.exp(6.5 - 2 * X[:, 0])), "yes", "no")
    return X, y


@pytest.mark.thorough
def test_a_rare_class_is_found_by_its_weight():
    X, y = rare()
    assert (y == "yes").mean() < 0.1
    plain, weighted = (
        dpbench.PrivateClassifier(3.0, random_state=0, class_weight=weights, **BOUNDS).fit(X, y)
        for weights in (None, {"yes": 10})
    )
    scores = [balanced_accuracy_score(y, model.predict(X)) for model in (plain, weighted)]
    assert scores[1] > scores[0] + 0.1
    assert weighted.epsilon_ <= 3 * (1 + 1e-6)


def test_weights_are_those_of_scikit_learn_where_there_is_next_to_no_noise():
    X, y = rare(20_000)
    weights = {"no": 0.5, "yes": 4.0}
    model = dpbench.PrivateClassifier(1e4, random_state=0, class_weight=weights, **BOUNDS).fit(X, y)
    exact = LogisticRegression(C=1e6, class_weight=weights).fit(X, y)
    assert model.coef_[0] == pytest.approx(exact.coef_[0], rel=0.1, abs=0.05)
    assert model.intercept_ == pytest.approx(exact.intercept_, rel=0.1)


@pytest.mark.thorough
def test_only_the_ratio_of_weights_counts():
    X, y = rare(500)
    one, other = (
        dpbench.PrivateClassifier(1.0, random_state=0, class_weight=weights, **BOUNDS).fit(X, y).coef_
        for weights in ({"no": 1, "yes": 4}, {"no": 3, "yes": 12})
    )
    assert one == pytest.approx(other)


def test_one_class_of_three():
    X, y = rare(3000)
    y = np.where(X[:, 1] > 0, np.where(y == "yes", "yes", "other"), y)
    counts = [
        (
            dpbench.PrivateClassifier(5.0, random_state=0, class_weight=weights, bounds=(-3, 3), classes=np.unique(y))
            .fit(X, y)
            .predict(X)
            == "yes"
        ).sum()
        for weights in (None, {"yes": 20})
    ]
    assert counts[1] > counts[0] + 50


def test_the_release_names_its_weights_and_is_saved_with_them(tmp_path):
    X, y = rare(500)
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=(y == "yes").astype(int))
    columns = {name: Column(bounds=(-3, 3)) for name in "ab"}
    schema = Schema(target=Target(name="y", classes=("0", "1")), columns=columns)
    budget = dpbench.DataBudget.create(None, epsilon=1.5, delta=1e-4)
    model = dpbench.PrivateClassifier(1.0, schema=schema, class_weight={1: 7.5}, budget=budget).fit(table)
    assert "class weights (0: 1, 1: 7.5)" in model.guarantee_
    assert 0 < budget.epsilon_spent <= 1 + 1e-6
    model.save(tmp_path / "m.json")
    again = dpbench.load_model(tmp_path / "m.json")
    assert (again.predict(table) == model.predict(table)).all()
    statement = json.loads((tmp_path / "m.json").read_text())["statement"]
    assert "class weights (0: 1, 1: 7.5)" in statement["public"]


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ("balanced", "counted in the data"),
        ({"yess": 2}, "there is no class 'yess'; did you mean"),
        ({"yes": 0}, "class_weight must be a positive number"),
        ({"yes": float("inf")}, "class_weight must be a positive number"),
        ([1, 2], "give public weights, as {class: weight}"),
    ],
)
def test_weights_that_are_none_are_one_line(weights, said):
    X, y = rare(100)
    with pytest.raises(UserError, match=said) as error:
        dpbench.PrivateClassifier(1.0, class_weight=weights, **BOUNDS).fit(X, y)
    assert "\n" not in str(error.value)


def test_a_method_that_fits_each_class_alone_takes_no_weights():
    X, y = rare(300)
    y = np.where(X[:, 1] > 0, "other", y)
    with pytest.raises(UserError, match="dp-gd fits each class against the rest; with weights leave algorithm out"):
        dpbench.PrivateClassifier(
            1.0, algorithm="dp-gd", class_weight={"yes": 2}, bounds=(-3, 3), classes=["no", "other", "yes"]
        ).fit(X, y)


def test_what_the_guide_says_of_weights_and_thresholds():
    """A threshold at the share of the class is at least as good as any weight, and weights cost AUC."""
    rows = rare_classes.read()
    assert rare_classes.table(rows) == (rare_classes.measured.RESULTS / "rare_classes.md").read_text(encoding="utf-8")
    frame = pd.DataFrame(rows).set_index(["data", "epsilon", "weight", "seed"]).astype(float)
    means = frame.groupby(["data", "epsilon", "weight"]).mean().unstack("weight")
    assert frame.groupby(["data", "epsilon", "weight"]).size().eq(rare_classes.SEEDS).all()
    weights = [f"{weight}" for weight in rare_classes.WEIGHTS[1:]]
    best = means["balanced_half"][weights].max(axis=1)
    assert (means["balanced_share"]["1.0"] > best - 0.02).all()
    assert (means["auc"]["1.0"] >= means["auc"][weights].max(axis=1) - 0.002).all()
    assert (means["balanced_half"]["1.0"] < best).all()
