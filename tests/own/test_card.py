"""The card of a saved model: the guarantee and what to expect, and nothing of the rows."""

import hashlib
import json
import re
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench.cli import main
from dpbench.errors import UserError
from dpbench.files import read_toml
from dpbench.own import card, planning, registry, worlds
from dpbench.own import statement as statements
from dpbench.privacy.ledger import CountedRelease, Gaussian, Laplace, listed
from dpbench.schema import Column, Schema, Target

FIELDS = Path(registry.__file__).with_name("registry.toml")
SCHEMA = Schema(
    target=Target(name="rich", classes=("no", "yes")),
    columns={"age": Column(bounds=(0, 100), missing="indicator"), "town": Column(categories=("Bonn", "Ulm"))},
)


def people(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 100, rows)
    return pd.DataFrame(
        {"age": age, "town": rng.choice(["Bonn", "Ulm"], rows), "rich": np.where(age > 50, "yes", "no")}
    )


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dpbench.PrivateClassifier(2.0, schema=SCHEMA).fit(people()).save("m.json")
    return tmp_path


@pytest.mark.thorough
def test_a_card_says_what_the_statement_says_and_what_to_expect(saved):
    text = dpbench.card("m.json", out="m.md", worlds=3, jobs=1, signal=0.9)
    assert (saved / "m.md").read_text(encoding="utf-8") == text
    statement, holds = dpbench.statement("m.json")
    assert statement.rows == 300
    assert all(line.strip() in text for line in statement.lines())
    assert all(line in text for line in holds)
    assert "| age | numbers, 0 to 100 | counts as the middle; one more input marks it |" in text
    assert "| town | one of: Bonn, Ulm |" in text
    plan = dpbench.plan(SCHEMA, 300, epsilon=2.0, delta=statement.delta, signal=0.9, worlds=3, algorithm="auto", jobs=1)
    middle, low, high = plan.forecasts[0].interval("AUC")
    assert f"| AUC | {middle:.2f} | {low:.2f} to {high:.2f} |" in text
    assert "- Guessed: AUC of 0.9 without privacy, right to 0.05." in text  # whoever reads it was not there


@pytest.mark.thorough
def test_a_card_has_nothing_of_the_rows(saved):
    """Other rows, and a model of the same statement: the same card."""
    text = dpbench.card("m.json", worlds=2, jobs=1)
    other = json.loads((saved / "m.json").read_text())
    dpbench.PrivateClassifier(2.0, schema=SCHEMA).fit(people(seed=1).assign(rich="no")).save("m.json")
    mine = json.loads((saved / "m.json").read_text())
    for place, key, told in (("statement", "made", "{}"), ("model", "bound", "{:.4g}")):  # the second is released
        old, new = (each[place][key] for each in (other, mine))
        assert told.format(old) in text
        text = text.replace(told.format(old), told.format(new))
    assert dpbench.card("m.json", worlds=2, jobs=1) == text


@pytest.mark.thorough
def test_names_stay_in_their_cells(saved):
    columns = {"a | b": Column(bounds=(0, 1)), "c\nd": Column(categories=("u|v", "w"))}
    schema = Schema(target=SCHEMA.target, columns=columns)
    table = pd.DataFrame({"a | b": [0.5] * 60, "c\nd": ["w"] * 60, "rich": ["no", "yes"] * 30})
    dpbench.PrivateClassifier(1.0, schema=schema).fit(table).save("o.json")
    text = dpbench.card("o.json", worlds=2, jobs=1)
    assert "| a \\| b | numbers, 0 to 1 |" in text
    assert "| c d | one of: u\\|v, w |" in text


def test_models_of_arrays_and_of_numbers_have_cards(saved):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (200, 3))
    dpbench.PrivateRegressor(1.0, bounds=(0, 10), target_bounds=(0, 30)).fit(X, X.sum(axis=1)).save("r.json")
    text = dpbench.card("r.json", worlds=2, jobs=1)
    assert "predicts the target, 0 to 30" in text
    assert "| x2 | numbers, 0 to 10 |" in text
    assert "and the released mean of its column taken off, a row longer than" in text
    assert "| R² |" in text
    assert "calibrated" not in text
    dpbench.PrivateClassifier(1.0, bounds=(0, 10), classes=[0, 1, 2]).fit(X, X[:, 0].astype(int) % 3).save("c.json")
    text = dpbench.card("c.json", worlds=2, jobs=1)
    assert "the class of the target: 0, 1, 2" in text
    assert "With each number scaled to [-1, 1], a row longer than" in text


@pytest.mark.thorough_for("*class_weight*")
@pytest.mark.parametrize(
    "given",
    [{"l2": 50.0}, {"fit_intercept": False}, {"settings": {"safety": 0.5}}, {"intervals": True},
     {"class_weight": {"no": 9.0}}],
    ids=str,
)  # fmt: skip
def test_a_card_foresees_the_fit_that_was_made_and_no_default_one(saved, monkeypatch, given):
    model = dpbench.PrivateClassifier(2.0, schema=SCHEMA, **given).fit(people())
    model.save("g.json")
    plans = []
    monkeypatch.setattr(card, "plan", lambda *of, **how: plans.append(planning.plan(*of, **how)) or plans[0])
    assert "| log loss |" in dpbench.card("g.json", worlds=2, jobs=1)
    (own,) = [one for one in plans[0].forecasts if one.method == model.algorithm_]
    assert own.releases == [f"{e.count} × {e.label}: {e.release}" for e in model.statement().composition]
    default = dpbench.plan(SCHEMA, 300, epsilon=2.0, worlds=2, algorithm=model.algorithm_, jobs=1).forecasts
    usual = next(one for one in default if one.method == model.algorithm_)
    assert not np.array_equal(own.scores["log loss"], usual.scores["log loss"])


def test_a_card_has_no_score_where_no_simulated_table_was_held_against_a_real_one(saved):
    schema = Schema(target=SCHEMA.target, columns={**SCHEMA.columns, "day": Column(date=("weekday",))})
    table = people().assign(day="2024-05-06")
    dpbench.PrivateClassifier(2.0, schema=schema).fit(table).save("d.json")
    text = dpbench.card("d.json", jobs=1)  # 40 tables are not simulated in vain
    assert "No score: simulated tables were never held against real ones with dates. Public" in text
    assert "| AUC |" not in text
    table.to_csv("older.csv", index=False)
    assert "| AUC |" in dpbench.card("d.json", like="older.csv", worlds=2, jobs=1)


def test_what_no_simulated_table_was_held_against_is_named():
    wide = {f"x{i}": Column(bounds=(0, 1)) for i in range(150)}
    many = {"town": Column(categories=tuple(f"t{i}" for i in range(41)))}
    assert worlds.outside(SCHEMA) == ""
    for columns, says in ((wide, "151 columns once encoded (at most 107)"),
                          (many, "41 categories in a column (at most 40)")):  # fmt: skip
        assert says in worlds.outside(Schema(target=SCHEMA.target, columns=columns))
    eleven = Schema(target=Target(name="c", classes=tuple("abcdefghijk")), columns=SCHEMA.columns)
    assert "11 classes" in worlds.outside(eleven)


def test_a_card_is_refused_where_the_statement_does_not_hold(saved):
    content = json.loads((saved / "m.json").read_text())
    content["statement"]["epsilon"] = 0.1
    (saved / "m.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match="digest"):
        dpbench.card("m.json", worlds=2, jobs=1)


def test_a_card_is_made_of_what_every_reader_checks(saved):
    """With a digest that fits: the card is refused where `load_model` is."""
    content = json.loads((saved / "m.json").read_text())
    content.pop("sha256")
    content["model"]["W"] = [[float("nan")] * len(content["model"]["W"][0])]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    (saved / "m.json").write_text(json.dumps(content | {"sha256": digest}))
    with pytest.raises(UserError, match="a weight is not finite"):
        dpbench.card("m.json", worlds=2, jobs=1)


def test_the_command_writes_a_card(saved, capsys):
    with pytest.raises(SystemExit) as end:
        main(["model", "card", "m.json", "--worlds", "2", "--jobs", "1", "--share", "yes=0.5"])
    out, _ = capsys.readouterr()
    assert not end.value.code
    assert out.startswith("# m.json\n\nA linear logistic model that predicts the class of rich: no, yes.")


HOLDER = """
url_slug = "people-2026"

[basic]
name = "Income"
data_curators = ["Example Institute"]
description = "Predicts income"
intended_use = "Teaching"
data_product_region = "Germany"
publication_date = "2026-11-26"

[administrative]
registry_authors = ["A. Person"]

[nist]
unit = "one row a person"
"""
DETAILS = {
    "deployment_model": {
        "model_name": "Central",
        "actors": "the institute",
        "release_type": "One release",
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    },
    "accounting": {"post_processing": "none"},
    "implementation": {"preprocessing_and_hyperparameter_tuning": "none", "justification": "defaults"},
}


def valid(whole):
    """What is wrong with an entry by the registry's schema, whose fields registry.toml lists with their source."""
    fields = {place: one for place, one in read_toml(FIELDS)["fields"].items() if "asks" not in one}
    tables = {place.rpartition(".")[0] for place in fields} | {""}

    def leaves(table, above=""):
        for name, value in table.items():
            place = f"{above}.{name}".strip(".")
            yield from leaves(value, place) if isinstance(value, dict) and place in tables else [(place, value)]

    found = dict(leaves(whole["deployment"])) | {"url_slug": whole["url_slug"]}
    wrong = [place for place in found if place not in fields]
    wrong += [place for place, one in fields.items() if one.get("required") and place not in found]
    for place, value in found.items():
        one = fields.get(place, {})
        kind = list if one.get("list") else float if one.get("number") else str
        wrong += [place] * (not isinstance(value, kind) or value not in one.get("values", [value]) or not value)
    return wrong + [key for key in ("url_slug", "status", "tier", "deployment") if key not in whole]


def written(saved, holder=HOLDER, out="entry.yaml"):
    (saved / "holder.toml").write_text(holder)
    statement, holds = dpbench.statement("m.json")
    text = registry.entry(statement, holds, SCHEMA, registry.read_holder("holder.toml"))
    return json.loads(text), statement


def test_an_entry_passes_the_registrys_schema_and_says_what_the_statement_says(saved):
    whole, statement = written(saved)
    assert valid(whole) == []
    assert (whole["status"], whole["tier"]) == ("Draft", 1)
    loss = whole["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": statement.epsilon, "delta": statement.delta}  # no ρ: no Gaussian
    assert statement.guarantee in loss["privacy_parameters_details"]
    assert "one row a person" not in json.dumps(whole)  # what NIST asks is for the card
    del whole["deployment"]["basic"]["name"]
    whole["deployment"]["dp_variant"]["variant_name"] = "ε-DP"
    whole["deployment"]["extra"] = "x"
    assert valid(whole) == ["extra", "basic.name", "dp_variant.variant_name"]


def test_the_tier_follows_from_what_is_filled(saved):
    def more(*tables):
        lines = [f"{name} = {json.dumps(value)}" for table in tables for name, value in DETAILS[table].items()]
        return "\n".join([f"[{tables[0]}]", *lines, ""])

    two = HOLDER + more("deployment_model")
    assert written(saved, two)[0]["tier"] == 2
    whole, _ = written(saved, two + more("accounting") + more("implementation"))
    assert (whole["tier"], valid(whole)) == (3, [])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('name = "Income"\n', ""), "state basic.name in the holder's file"),
        (('url_slug = "people-2026"', ""), "state url_slug in"),
        (('["Example Institute"]', '"Example"'), "basic.data_curators must be a list of texts"),
        (('"2026-11-26"', '"today"'), "basic.publication_date must be a date"),
        (('"2026-11-26"', '"2026-02-31"'), "basic.publication_date must be a date"),
        (('"2026-11-26"', '"20261126"'), "basic.publication_date must be a date"),
        (('intended_use = "Teaching"', 'use = "Teaching"'), "basic.use is no field"),
        (("[nist]", '[dp_variant]\nvariant_name = "Pure DP"\n[nist]'), "is said by the model's own file"),
        (('unit = "one row a person"', 'unit = "one\\nline"'), "nist.unit must be text on one line"),
        (("[nist]", '[deployment_model]\nmodel_name = "Mine"\n[nist]'), "must be one of Local, Central"),
    ],
)
def test_what_a_holder_states_is_refused_where_it_is_no_field(saved, change, says):
    with pytest.raises(UserError, match=re.escape(says)):
        written(saved, HOLDER.replace(*change))


def test_rho_is_stated_where_all_is_gaussian(saved):
    dpbench.PrivateClassifier(2.0, schema=SCHEMA, algorithm="dp-gd-average", row_bound=None).fit(people()).save(
        "m.json"
    )
    whole, statement = written(saved)
    rho = whole["deployment"]["privacy_loss"]["privacy_parameters"]["rho"]
    z = [(one.count, one.release.noise_multiplier) for one in statement.composition]
    assert rho == pytest.approx(sum(count / each**2 for count, each in z) / 2)


def test_the_command_writes_both(saved, capsys):
    (saved / "holder.toml").write_text(HOLDER)
    given = ["--holder", "holder.toml", "--registry", "entry.yaml", "--out", "m.md", "--worlds", "2", "--jobs", "1"]
    with pytest.raises(SystemExit, match="0"):
        main(["model", "card", "m.json", *given])
    assert valid(json.loads((saved / "entry.yaml").read_text(encoding="utf-8"))) == []
    text = (saved / "m.md").read_text(encoding="utf-8")
    assert "what a unit of privacy is beyond a row: one row a person." in text
    assert "- Who can read the rows, and whether they are kept: not stated." in text


def test_a_card_says_in_which_order_dates_are_read_and_no_settings_where_there_are_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    born = Column(date=("year",), years=(1920, 2020), order="dmy")
    schema = Schema(target=SCHEMA.target, columns={"born": born, "since": msgspec.structs.replace(born, order=None)})
    table = people()[["rich"]].assign(born="31/12/1990", since="1990-12-31")
    dpbench.PrivateClassifier(2.0, schema=schema, settings={}).fit(table).save("m.json")
    text = dpbench.card("m.json")
    assert "| born | dates (ISO 8601, or day first); year are used |" in text
    assert "| since | dates (ISO 8601); year are used |" in text
    assert re.search(r"^- Made \S+ by objpert$", text, re.MULTILINE)


def stated(**changes):
    """A statement of two releases, without a model."""
    composition = (CountedRelease(Gaussian(40.0), 3, "gradient"), CountedRelease(Gaussian(50.0), 1, "row bound"))
    given = {
        "made": "2026-11-26T10:00:00Z", "mechanism": "dp-gd", "settings": {"T": 3, "clip": 0.5}, "epsilon": 1.0,
        "delta": 1e-6, "relation": "replace-one", "public": ["n", "the schema"], "arithmetic": "bytes",
        "releases": listed(composition), "versions": {"dpbench": "0.3.0", "numpy": "2.0"}, "rows": 12_345,
    } | changes  # fmt: skip
    unit = given.get("unit", "")
    of = [given[name] for name in ("epsilon", "delta", "relation", "arithmetic", "public")]
    return statements.Statement(**{"guarantee": statements.sentence(*of, word_of=None, unit=unit)} | given)


def test_the_whole_statement_of_rows_and_of_persons():
    assert stated().lines() == [
        "Made 2026-11-26T10:00:00Z by dp-gd (T=3, clip=0.5)",
        "Guarantee: (ε = 1, δ = 1e-06)-DP under replace-one neighbours, holds for the bytes released; counts as "
        "public: n, the schema",
        "Neighbours: one row replaced by any other",
        "Counts as public: n, the schema (n = 12,345)",
        "Releases, and the noise of each:",
        "  3 × gradient: Gaussian, noise multiplier 40",
        "  1 × row bound: Gaussian, noise multiplier 50",
        "Libraries: dpbench 0.3.0, numpy 2.0",
        "Stated by the file, and impossible to check: n and the weights, settings that do not change the releases, "
        "that the weights came from these releases and from nothing else, the time, and the libraries",
    ]
    of_persons = stated(unit="id", settings={}, arithmetic="real", charge="a mark").lines()
    assert of_persons[0] == "Made 2026-11-26T10:00:00Z by dp-gd"
    assert of_persons[1].startswith("Guarantee: (ε = 1, δ = 1e-06)-DP under replace-one neighbours, protects all rows "
                                    "of one person (one value of id), in exact arithmetic; counts as pub")  # fmt: skip
    assert of_persons[2].endswith("all rows of one person (one value of id) replaced by any others, one or more")
    assert of_persons[3].endswith("(M = 12,345)")
    assert of_persons[-3] == "Charged to a data budget: a mark"
    assert "impossible to check: M, which rows are whose, and the weights" in of_persons[-1]
    assert stated(relation="add-remove", unit="id").neighbours == (
        "all rows of one person (one value of id) added or taken away")  # fmt: skip
    theirs = statements.sentence(0.5, 0.0, "add-remove", "real", ["n"], word_of="mine")
    assert theirs == ("(ε = 0.5, δ = 0)-DP under add-remove neighbours, in exact arithmetic; counts as public: n; that "
                      "it returns nothing but its releases is the word of mine alone")  # fmt: skip


@pytest.mark.parametrize(("changes", "said"), [
    ({}, ""), ({"rows": 2}, ""), ({"rows": 10**12}, ""),
    ({"rows": 1}, "n = 1 protects nobody: a model needs two rows at least"),
    ({"rows": 10**12 + 1}, "n is beyond 1e+12"),
    ({"epsilon": 0.0}, "ε = 0, δ = 1e-06 are no guarantee"), ({"epsilon": float("inf")}, "are no guarantee"),
    ({"delta": 1.0}, "ε = 1, δ = 1 are no guarantee"), ({"delta": -1e-9}, "are no guarantee"),
    ({"releases": []}, "it lists no release"),
    ({"epsilon": 0.17}, "its releases compose to ε = 0.179914 at δ = 1e-06, more than the 0.17 stated"),
    ({"guarantee": "(ε = 1, δ = 0)-DP"}, "its guarantee says '(ε = 1, δ = 0)-DP', but what it states amounts to '(ε"),
    ({"public": ["n\nx = 0"]}, "it has a line break or another control character in 'n\\nx = 0'"),
])  # fmt: skip
def test_what_a_statement_may_say_at_its_borders(changes, said):
    one = stated(**changes)
    if not said:
        assert statements.check_statement(one) == [
            "its releases compose to ε = 0.179914 at δ = 1e-06 (dp_accounting exact Gaussian)",
            "its guarantee claims no more than its ε, δ, neighbours, arithmetic and what counts as public",
            "its digest matches its content",
        ]
        return
    with pytest.raises(statements.DoesNotHold) as error:
        statements.check_statement(one)
    assert said in str(error.value)


def test_an_entry_has_all_that_a_models_file_says():
    told = registry.said(stated(unit="id"), ["one", "two"], SCHEMA)
    rho = (3 / 40**2 + 1 / 50**2) / 2
    assert told == {
        "basic.data_product_type": "Machine learning model",
        "dp_variant.variant_name": "Approximate DP",
        "dp_variant.data_domain": "Tables of 12345 persons, of one row or more, with the columns age, town, each "
        "within public bounds or categories",
        "dp_variant.unprotected_quantities": "n, the schema",
        "privacy_loss.privacy_unit": "One person, all rows",
        "privacy_loss.privacy_unit_details": "Neighbouring tables: all rows of one person (one value of id) replaced "
        "by any others, one or more",
        "privacy_loss.privacy_parameters.epsilon": 1.0,
        "privacy_loss.privacy_parameters.delta": 1e-6,
        "privacy_loss.privacy_parameters.rho": pytest.approx(rho),
        "privacy_loss.privacy_parameters_details": f"{stated(unit='id').guarantee}. Checked: one; two",
        "accounting.composition": "3 × gradient: Gaussian, noise multiplier 40; 1 × row bound: Gaussian, noise "
        "multiplier 50",
        "implementation.mechanisms": "dp-gd, dpbench 0.3.0, numpy 2.0; made 2026-11-26T10:00:00Z",
    }
    mixed = stated(delta=0.0, releases=listed((CountedRelease(Laplace(3.0), 1, "x"),)))
    told = registry.said(mixed, [], SCHEMA)
    assert "privacy_loss.privacy_parameters.rho" not in told
    assert told["dp_variant.variant_name"] == "Pure DP"
    assert told["privacy_loss.privacy_unit"] == "One row"
    assert told["dp_variant.data_domain"].startswith("Tables of 12345 rows with the columns age, town,")


def test_a_cell_of_a_card_is_one_line_without_a_bar_that_ends_it():
    assert card._cell("a | b\n  c") == "a \\| b c"
