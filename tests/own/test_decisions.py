"""What an estimator decides beside its fit: labels and their order, what its budget is told, what rows it hands on."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

import dpbench
from dpbench import PrivacyWarning, PrivateClassifier, PrivateRegressor, load_model
from dpbench.errors import UserError
from dpbench.own import arguments, inputs
from dpbench.privacy.data_budget import DataBudget
from dpbench.schema import Column, Schema, Target

LINE = np.linspace(0, 1, 60)[:, None]


def spied(monkeypatch):
    """The (rows, labels) that an algorithm would get; every fit ends there."""
    given = []

    def spy(X, y, **of):
        given.append((X.copy(), y.copy()))
        raise InterruptedError

    monkeypatch.setattr(inputs, "problem_of", spy)
    return given


def test_the_second_of_two_classes_has_the_positive_scores():
    model = PrivateClassifier(1e4, bounds=(0, 1), classes=["a", "b"]).fit(LINE, np.where(LINE[:, 0] > 0.5, "b", "a"))
    assert model.coef_[0, 0] > 0
    assert model.predict([[0.0], [1.0]]).tolist() == ["a", "b"]
    p = 1 / (1 + np.exp(-model.decision_function([[0.0], [1.0]])))
    np.testing.assert_allclose(model.predict_proba([[0.0], [1.0]]), np.column_stack([1 - p, p]))


def test_classes_are_sorted_and_a_label_beyond_makes_its_row_zeros(monkeypatch):
    given = spied(monkeypatch)
    y = np.array(["e", "d", "zz", "c", "a", "0"])
    model = PrivateClassifier(bounds=(0, 1), row_bound=None, classes=["c", "a", "e"], algorithm="dp-gd-average")
    with pytest.raises(InterruptedError):
        model.fit(LINE[:6], y)
    ((rows, labels),) = given
    assert rows.any(axis=1).tolist() == [True, False, False, True, True, False]
    assert labels[[0, 3, 4]].tolist() == [2, 1, 0]


@pytest.mark.parametrize("odd", [None, np.nan, "x", "1.5", 10**400, Decimal("sNaN"), [], object(), 1 + 2j, b"\xff"])
@pytest.mark.parametrize("as_list", [True, False])
def test_a_label_of_any_type_stops_no_fit_and_changes_no_other_row(monkeypatch, odd, as_list):
    given, y = spied(monkeypatch), [0, 1] * 30
    for last in (1, odd):
        labels = np.empty(60, dtype=object)
        labels[:] = [*y[:-1], last]
        model = PrivateClassifier(bounds=(0, 1), row_bound=None, classes=[0, 1])
        with pytest.raises(InterruptedError):
            model.fit(LINE, list(labels) if as_list else labels)
    (before, labels), (after, others) = given
    np.testing.assert_array_equal(before[:-1], after[:-1])
    np.testing.assert_array_equal(labels[:-1], others[:-1])
    assert not after[-1].any()


@pytest.mark.thorough_for("True-classes[04]", "False-classes[123]")
@pytest.mark.parametrize("classes", [[0, 1], [False, True], ["no", "yes"], [1.0, 2.0], [3, 5, 7]])
@pytest.mark.parametrize("by_schema", [True, False])
def test_labels_keep_their_type_through_predict_score_and_a_file(classes, by_schema, tmp_path, monkeypatch):
    y = np.array(classes)[(LINE[:, 0] * len(classes)).astype(int).clip(max=len(classes) - 1)]
    table = pd.DataFrame({"a": LINE[:, 0]})
    schema = Schema(target=Target(name="y", classes=tuple(classes)), columns={"a": Column(bounds=(0, 1))})
    given = {"schema": schema} if by_schema else {"bounds": (0, 1), "classes": classes}
    model = PrivateClassifier(1e4, **given).fit(table, y)
    assert model.classes_.tolist() == classes
    assert model.predict(table).dtype == y.dtype
    assert model.score(table, y) > 0.9
    model.save(tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    assert [type(one) for one in again.classes_.tolist()] == [type(one) for one in classes]
    assert again.score(table, y) == model.score(table, y)
    monkeypatch.setattr(arguments, "_WARNED", set())
    with pytest.warns(PrivacyWarning, match="several fits"):
        assert not np.isnan(cross_val_score(model, table, y, cv=3)).any()


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_a_fit_is_charged_for_what_it_releases(classes):
    budget = DataBudget.create(None, epsilon=5, delta=1e-3)
    y = np.arange(60) % 3 % len(classes)
    given = {"bounds": (0, 1), "classes": classes, "algorithm": "dp-gd", "settings": {"T": 5}, "budget": budget}
    model = PrivateClassifier(2.0, delta=1e-4, **given).fit(LINE, y)
    (charge,) = budget.charges
    assert charge.composition == model.releases_
    assert charge.releases
    assert model.statement().charge == budget.mark


def test_a_refit_on_one_budget_says_what_all_of_them_cost():
    budget = DataBudget.create(None, epsilon=5, delta=1e-3)
    model = PrivateClassifier(1.0, delta=1e-4, bounds=(0, 1), classes=[0, 1], budget=budget)
    assert "charged" not in model.fit(LINE, np.arange(60) % 2).guarantee_
    said = model.fit(LINE, np.arange(60) % 2).guarantee_
    assert said.endswith(f"; 2 fits charged to its budget cost ε = {budget.epsilon_spent:.4g} at δ = 0.001 together")


@pytest.mark.parametrize(
    "odd", ["secret-cell", {"secret-cell": 1}, 10**400, None], ids=["text", "dict", "huge", "none"]
)
@pytest.mark.parametrize(
    "made", [list, lambda X: np.array(X, dtype=object), lambda X: pd.DataFrame(X, columns=["u", "v"])]
)
def test_a_cell_that_is_no_number_is_refused_before_the_charge_in_words_that_name_its_column(odd, made):
    budget = DataBudget.create(None, epsilon=5, delta=1e-3)
    model = PrivateClassifier(1.0, bounds=(0, 1), classes=[0, 1], delta=1e-4, budget=budget)
    X = made([[0.0, 1.0], [0.5, odd]] * 30)
    if odd is None:  # a missing cell
        model.fit(X, [0, 1] * 30)
        assert len(budget.charges) == 1
        return
    with pytest.raises(
        (UserError, TypeError), match=r"X\[(:, 1|'v')\]: every cell of the argument must be a number"
    ) as e:
        model.fit(X, [0, 1] * 30)
    assert "secret" not in str(e.value)
    assert "\n" not in str(e.value)
    assert budget.charges == []


@pytest.mark.parametrize("wrong", ["missing", "more", "twice", "dates", "seed"])
def test_a_mistake_in_what_is_public_is_refused_before_the_charge(wrong):
    budget = DataBudget.create(None, epsilon=5, delta=1e-3)
    table = pd.DataFrame({"u": LINE[:, 0], "v": LINE[:, 0]})
    table = {
        "missing": table[["u"]],
        "more": table.assign(w=1.0),
        "twice": pd.concat([table, table[["u"]]], axis=1),
        "dates": table.assign(v=pd.Timestamp("2020-01-01")),
        "seed": table,
    }[wrong]
    columns = {name: Column(bounds=(0, 1)) for name in "uv"}
    schema = Schema(target=Target(name="y", classes=(0, 1)), columns=columns)
    model = PrivateClassifier(
        1.0, delta=1e-4, schema=schema, budget=budget, random_state=-1 if wrong == "seed" else None
    )
    with pytest.raises((UserError, ValueError), match=r"column|dates have no bounds|Seed must be"):
        model.fit(table, np.arange(len(table)) % 2)
    assert budget.charges == []


def test_what_is_refused_before_the_charge_counts_as_public():
    """That all cells of a list are numbers decides whether there is a fit; a type of numbers decides it by itself."""
    given, y = {"bounds": (0, 1), "classes": [0, 1]}, [0, 1] * 30
    said = {name: PrivateClassifier(1.0, **given).fit(X, y).statement().public for name, X in {
        "list": [[0.0, 1.0]] * 60, "objects": np.full((60, 2), 0.5, dtype=object),
        "table": pd.DataFrame({"a": ["1"] * 60}),
        "array": np.zeros((60, 2)), "numbers": pd.DataFrame({"a": [1] * 60})}.items()}  # fmt: skip
    assert {name: "the column types" in public for name, public in said.items()} == {
        "list": True, "objects": True, "table": True, "array": False, "numbers": False}  # fmt: skip


def test_clones_that_scikit_learn_fits_to_the_same_rows_are_warned_of_once(recwarn, monkeypatch):
    model = PrivateClassifier(1.0, bounds=(0, 1), classes=[0, 1])
    monkeypatch.setattr(arguments, "_WARNED", set())
    model.fit(LINE, np.arange(60) % 2)
    assert not recwarn.list
    cross_val_score(model, LINE, np.arange(60) % 2, cv=3)
    assert {one.category for one in recwarn.list} == {PrivacyWarning}
    assert "give budget=, a dpbench.DataBudget" in str(recwarn.list[0].message)
    assert len(recwarn.list) == 1


def told_of_clones(recwarn, monkeypatch, fit, **given):
    """The warnings of what fits clones of a classifier to the same rows."""
    monkeypatch.setattr(arguments, "_WARNED", set())
    recwarn.clear()
    fit(PrivateClassifier(1.0, delta=1e-4, bounds=(0, 1), classes=[0, 1], **given))
    return [str(one.message) for one in recwarn.list if one.category is PrivacyWarning]


@pytest.mark.parametrize("given", [{}, {"random_state": 0}, {"budget": True}])
@pytest.mark.parametrize(
    "within", [lambda one: one, make_pipeline, lambda one: GridSearchCV(one, {"l2": [0, 1]}, cv=2)]
)
def test_an_ensemble_that_seeds_its_clones_is_warned_of_once(within, given, recwarn, monkeypatch):
    """Its seeds are not the user's: a bagging of fits without one took all of them for his own, and was silent."""
    if given == {"budget": True}:
        given = {"budget": DataBudget.create(None, epsilon=20, delta=1e-2)}

    def fit(model):
        bag = BaggingClassifier(within(model), n_estimators=3, random_state=0).fit(LINE, np.arange(60) % 2)
        last = getattr(bag.estimators_[0], "best_estimator_", bag.estimators_[0])
        last = last[-1] if hasattr(last, "steps") else last
        assert last.guarantee_ == "reproducible: not a release"

    (told,) = told_of_clones(recwarn, monkeypatch, fit, **given)
    assert "none of them a release: their ensemble gives each a seed" in told


def test_a_seed_of_ones_own_or_a_budget_is_not_warned_of(recwarn, monkeypatch):
    y = np.arange(60) % 2

    def voting(model):
        VotingClassifier([("a", model), ("b", model)]).fit(LINE, y)

    assert len(told_of_clones(recwarn, monkeypatch, voting)) == 1
    assert not told_of_clones(recwarn, monkeypatch, voting, random_state=0)
    budget = DataBudget.create(None, epsilon=20, delta=1e-2)
    assert not told_of_clones(recwarn, monkeypatch, voting, budget=budget)
    assert len(budget.charges) == 2
    (told,) = told_of_clones(
        recwarn, monkeypatch, lambda model: MultiOutputClassifier(model).fit(LINE, np.c_[y, 1 - y])
    )
    assert "give budget=" in told


def test_a_regressors_bagging_is_warned_of_too(recwarn, monkeypatch):
    monkeypatch.setattr(arguments, "_WARNED", set())
    BaggingRegressor(PrivateRegressor(1.0, bounds=(0, 1), target_bounds=(0, 1)), n_estimators=2).fit(LINE, LINE[:, 0])
    assert [one.category for one in recwarn.list] == [PrivacyWarning]


@pytest.mark.parametrize("how", [{"row_bound": None}, {"row_bound": 0.5}, {"row_bound": "rule"}])
@pytest.mark.parametrize("kind", [PrivateClassifier, PrivateRegressor])
def test_what_is_fitted_of_a_row_does_not_depend_on_other_rows(monkeypatch, kind, how):
    """The released vector may depend on every row; what the method is given of one row on that row alone."""
    given = spied(monkeypatch)
    more = {"classes": [0, 1]} if kind is PrivateClassifier else {"target_bounds": (0, 1)}
    model = kind(bounds=(0, 1), **how, **more)
    rng = np.random.default_rng(0)
    X, y = 0.4 + 0.2 * rng.random((20, 3)), np.resize([0.0, 1.0], 20)
    for first in (X[0], np.zeros(3), np.full(3, 1e9), np.full(3, np.nan)):
        with pytest.raises(InterruptedError):
            model.fit(np.vstack([first, X[1:]]), y)
    for rows, targets in given[1:]:
        np.testing.assert_array_equal(rows[1:], given[0][0][1:])
        np.testing.assert_array_equal(targets, given[0][1])
    assert any((rows[0] != given[0][0][0]).any() for rows, _ in given)


@pytest.mark.parametrize("how", [{}, {"row_bound": None}, {"precision": "float32"}, {"algorithm": "dp-gd"}])
def test_no_fit_writes_to_what_it_is_given(how):
    """Rows are shortened and rounded in place, in an array of the fit's own."""
    X, y = np.random.default_rng(0).uniform(-1, 1, (200, 3)), np.arange(200) % 3
    before = X.copy()
    PrivateClassifier(1.0, bounds=(-1, 1), classes=[0, 1, 2], **how).fit(X, y)
    np.testing.assert_array_equal(X, before)
    rows = X / 4
    before = rows.copy()
    dpbench.fit(rows, np.where(y, 1.0, -1.0), algorithm="dp-gd", epsilon=1.0)
    np.testing.assert_array_equal(rows, before)


def test_at_delta_0_several_classes_work_or_the_message_names_methods_that_do():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = np.digitize(X[:, 0], [-0.3, 0.3])
    of = {"bounds": (-1, 1), "classes": [0, 1, 2]}
    assert "δ = 0" in PrivateClassifier(1.0, 0.0, **of).fit(X, y).guarantee_
    with pytest.raises(ValueError, match="delta: dp-gd needs delta > 0; at 0 take") as error:
        PrivateClassifier(1.0, 0.0, algorithm="dp-gd", **of).fit(X, y)
    for name in str(error.value).partition("one of ")[2].split(", "):
        assert "δ = 0" in PrivateClassifier(1.0, 0.0, algorithm=name, **of).fit(X, y).guarantee_
