"""A saved model predicts as it did, says what its release was, and is not believed where that does not hold."""

import contextlib
import hashlib
import json

import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench.cli import main
from dpbench.errors import PrivacyError, UserError
from dpbench.own.model import load
from dpbench.own.statement import sentence
from dpbench.schema import Column, Schema, Target

SCHEMA = Schema(
    target=Target(name="y", classes=("no", "yes")),
    columns={"a": Column(bounds=(0, 1), missing="indicator"), "b": Column(categories=("u", "v"))},
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    a = rng.random(500)
    return pd.DataFrame({"a": a, "b": rng.choice(["u", "v"], 500), "y": np.where(a > 0.5, "yes", "no")})


@pytest.fixture(scope="module")
def saved(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m.json"
    model = dpbench.PrivateClassifier(2.0, schema=SCHEMA, algorithm="dp-gd").fit(table)
    model.save(path)
    np.save(path.with_suffix(".npy"), model.decision_function(table))
    return path


def forged(saved, path, change):
    """The file with `change` made to its content, and a digest that fits."""
    content = json.loads(saved.read_text())
    content.pop("sha256")
    change(content)
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    path.write_text(json.dumps(content | {"sha256": digest}))
    return path


def restated(content, **changes):
    """The statement with changes, and the sentence that goes with them."""
    one = content["statement"]
    one.update(changes)
    with contextlib.suppress(KeyError):
        of = (one["epsilon"], one["delta"], one["relation"], one["arithmetic"], one["public"])
        one["guarantee"] = sentence(*of, word_of=None)


def other_method(content, name):
    content["model"]["spec"]["algorithm"] = name
    restated(content, mechanism=name, settings={})


def test_a_classifier_of_a_table_predicts_as_it_did(saved, table):
    model = dpbench.load_model(saved)
    np.testing.assert_array_equal(model.decision_function(table), np.load(saved.with_suffix(".npy")))
    assert set(model.predict(table)) <= {"no", "yes"}
    assert model.n_features_in_ == len(model.feature_names_in_) == 2
    assert (model.epsilon, model.delta_, model.algorithm_) == (2.0, 500**-2.0, "dp-gd")
    assert "counts as public: n, the schema" in model.guarantee_
    assert 1.9 < model.epsilon_ <= 2 * (1 + 1e-6)
    assert "rows" not in json.loads(saved.read_text())["model"]


@pytest.mark.filterwarnings("ignore::dpbench.PrivacyWarning")
def test_arrays_more_classes_and_regression_go_there_and_back(tmp_path):
    rng = np.random.default_rng(1)
    X, label = rng.uniform(-1, 1, (400, 3)), rng.integers(0, 3, 400)
    three = dpbench.PrivateClassifier(3.0, bounds=(-1, 1)).fit(X, label)
    number = dpbench.PrivateRegressor(3.0, bounds=(-1, 1), target_bounds=(-2, 5)).fit(X, X[:, 0] * 3)
    for model in (three, number):
        model.save(tmp_path / "m.json")
        other = dpbench.load_model(tmp_path / "m.json")
        np.testing.assert_array_equal(model.predict(X), other.predict(X))
        np.testing.assert_array_equal(model.coef_, other.coef_)
        assert other.intercept_ == pytest.approx(model.intercept_)
    assert other.predict(X).dtype == float
    assert three.classes_.dtype.kind == "i"


def test_the_command_shows_and_checks_the_statement(saved, capsys):
    with pytest.raises(SystemExit) as end:
        main(["model", "statement", str(saved)])
    said = capsys.readouterr().out
    assert not end.value.code
    for line in ("by dp-gd", "Neighbours: one row replaced by any other", "Counts as public: n, the schema",
                 "checked: its releases compose to ε = ", "checked: its digest matches its content",
                 "checked: its guarantee claims no more than", "Stated by the file, and impossible to check: n and",
                 "checked: its releases are those of its plan: method, settings, n, columns"):  # fmt: skip
        assert line in said


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda c: c["statement"].update(epsilon=0.5), "compose to ε = .* more than the 0.5 stated"),
        (lambda c: c["statement"].update(releases=[]), "lists no release"),
        (lambda c: c["statement"].update(relation="none"), "its relation 'none'"),
        (lambda c: c["statement"].update(epsilon=float("inf")), "are no guarantee|not a model"),
        (lambda c: c["statement"]["releases"][0].update(count=400), "more than the 2 stated"),
        (lambda c: c["statement"]["releases"][0].update(count=-16), "count -16 is no whole number from 1 on"),
        (lambda c: c["statement"]["releases"][0].update(count=0.5), "count 0.5 is no whole number from 1 on"),
        (lambda c: c["statement"]["releases"][0].update(count=10**400), "count 1000.* is no whole number from 1 on"),
        (lambda c: restated(c, rows=10**400), "n is beyond 1e.12"),
        (lambda c: c["statement"]["releases"][0]["release"].update(kind="Magic"), "not a release"),
        (lambda c: c["statement"].pop("mechanism"), "not a model that dpbench saved"),
        (lambda c: c["model"].update(kind="os.system"), "not a model that dpbench saved"),
        (lambda c: c["model"].pop("labels"), "not a model that dpbench saved"),
        (lambda c: c["model"].update(W="x"), "not a model that dpbench saved"),
        (lambda c: c.update(format=99), "not a model of this version"),
        (lambda c: c.update(format=1), "not a model of this version of dpbench; fit and save it again"),
        # What it says of itself, and what it would have to say.
        (lambda c: c["statement"].update(guarantee="(ε = 0.1)-DP"), "its guarantee says .*amounts to"),
        (
            lambda c: c["statement"].update(guarantee=c["statement"]["guarantee"] + "; and no more"),
            "its guarantee says",
        ),
        (lambda c: restated(c, relation="add-remove"), "states relation .add-remove., where its plan makes"),
        (lambda c: restated(c, epsilon=3.0), "states epsilon 3.0, where its plan makes 2.0"),
        (lambda c: restated(c, delta=1e-3), "states delta 0.001, where its plan makes 4e-06"),
        (lambda c: restated(c, delta=0.0), "more than the 2 stated"),
        (lambda c: restated(c, rows=5000), "states rows 5000, where its plan makes 500"),
        (lambda c: restated(c, rows=1), "protects nobody"),
        (lambda c: restated(c, public=["n"]), "states public .'n'., where its plan makes .'n', 'the schema'"),
        (lambda c: restated(c, public=["the schema", "n"]), "where its plan makes .'n', 'the schema'"),
        (lambda c: restated(c, arithmetic="none"), "its arithmetic 'none'"),
        (lambda c: restated(c, mechanism="opt"), "states opt, and its model was fitted by dp-gd"),
        (lambda c: c["model"]["spec"].update(algorithm="aop"), "states dp-gd, and its model was fitted by aop"),
        (lambda c: other_method(c, "aop"), "aop"),
        (lambda c: other_method(c, "dp-gd-oracle"), "dp-gd-oracle is not private"),
        (lambda c: restated(c, mechanism="theirs.py:Gd"), "its guarantee says .* is the word of theirs.py:Gd alone"),
        (lambda c: restated(c, settings={"T": -1}), "states settings .*where its plan makes"),
        (lambda c: restated(c, made="x\nchecked: all of it"), "line break or another control character"),
        (lambda c: restated(c, versions={"dpbench": "1\x1b[2K"}), "line break or another control character"),
        (lambda c: c["statement"]["releases"][-1].update(label="gradients"), "dp-gd: .*gradients"),
        # A model that does not fit itself.
        (lambda c: c["model"].update(W=[[float("nan")] * 5]), "a weight is not finite"),
        (lambda c: c["model"].update(W=[[float("inf")] * 5]), "a weight is not finite"),
        (lambda c: c["model"].update(W=[[0.0] * 4]), "its weights are not 1 × 5"),
        (lambda c: c["model"].update(W=[[0.0] * 5] * 2), "its weights are not 1 × 5"),
        (lambda c: c["model"].update(W=[[[0.0]] * 5]), "not a model that dpbench saved"),
        (lambda c: c["model"].update(labels={"no": 0, "yes": 1}), "not a model that dpbench saved"),
        (lambda c: c["model"].update(labels=["no", "maybe"]), "its classes are not those of its schema"),
        (lambda c: c["model"].update(labels=None), "its spec is not that of its schema"),
        (lambda c: c["model"].update(schema=None), "not a model that dpbench saved"),
        (lambda c: c["model"].update(schema=[1]), "not a model that dpbench saved"),
        (lambda c: c["model"].update(features=["b", "a"]), "its features are not the columns of its schema"),
        (lambda c: c["model"].update(positional=True), "arrays have columns of numbers alone"),
        (lambda c: c["model"].update(written=False), "of a table without a schema, which this version does not read"),
        (lambda c: c["model"].update(classes_read=True), "its classes were not read off y"),
        (lambda c: c["model"].update(bound=2.0), "its row bound, 2, is none that can be found"),
        (lambda c: c["model"].update(bound=None), "its row bound is not that of its plan"),
        (lambda c: c["model"]["spec"].update(row_bound=None), "its row bound is not that of its plan"),
        (lambda c: c["model"]["spec"].update(reproducible=True), "with a random_state, so it is no release"),
        (lambda c: c["model"]["spec"].update(d=6), "its spec is not that of its schema"),
        (lambda c: c["model"]["spec"].update(most=9), "its spec is not that of its schema"),
        (lambda c: c["model"]["spec"].update(loss="ramp"), "its target, labels and loss do not fit"),
        (lambda c: c["model"]["spec"].update(T=3), "not a model that dpbench saved"),
        (lambda c: c["model"].update(loss="softmax-3"), "its target, labels and loss do not fit"),
        (lambda c: c["model"]["spec"].update(class_weights=[1.0]), "class_weight|dp-gd has no such fit|states"),
        (lambda c: c["model"]["spec"].update(class_weights=[1.0, 2.0]), "has no such fit|states settings"),
        (lambda c: c["model"].update(spec=[]), "not a model that dpbench saved"),
        (lambda c: c["model"].update(intercept="no"), "not a model that dpbench saved"),
        (lambda c: c["model"].update(intercept=False), "its spec is not that of its schema"),
        (lambda c: c["model"]["schema"]["columns"]["a"].update(decide=["bounds"]), "came from the data"),
        (lambda c: c.update(model=[]), "not a model that dpbench saved"),
        (lambda c: c.update(statement=[]), "not a model that dpbench saved"),
        (lambda c: c["statement"].update(releases={}), "not a model that dpbench saved"),
        (lambda c: c["statement"].update(releases=[3]), "not a model that dpbench saved"),
    ],
)
def test_a_statement_that_does_not_hold_is_refused(saved, tmp_path, change, line):
    line = rf"f\.json: .*(?:{line})"  # which of several files it is
    with pytest.raises((UserError, PrivacyError), match=line):
        dpbench.load_model(forged(saved, tmp_path / "f.json", change))
    with pytest.raises((UserError, PrivacyError), match=line):
        dpbench.statement(tmp_path / "f.json")


@pytest.mark.thorough
def test_a_method_whose_proof_is_of_another_loss_made_no_such_model(tmp_path):
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    two = dpbench.PrivateClassifier(2.0, bounds=(-1, 1), classes=[0, 1], algorithm="aop").fit(X, X[:, 0] > 0)
    two.save(tmp_path / "two.json")
    dpbench.PrivateRegressor(2.0, bounds=(-1, 1), target_bounds=(-1, 1)).fit(X, X[:, 0]).save(tmp_path / "one.json")
    other = json.loads((tmp_path / "two.json").read_text())["statement"]

    def change(content):
        content["model"]["spec"]["algorithm"] = "aop"
        restated(content, arithmetic="real", **{name: other[name] for name in ("mechanism", "settings", "releases")})

    with pytest.raises(PrivacyError, match="aop: loss squared is not covered by its privacy proof"):
        dpbench.statement(forged(tmp_path / "one.json", tmp_path / "f.json", change))


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Models whose releases follow from much of what they say of themselves."""
    folder, X = tmp_path_factory.mktemp("several"), np.random.default_rng(0).uniform(-1, 1, (300, 2))
    three, two = np.arange(300) % 3, (X[:, 0] > 0).astype(int)
    given = {"bounds": (-1, 1), "delta": 1e-6, "l2": 0.1}
    for name, y, more in (
        ("one", two, {"classes": [0, 1], "row_bound": None}),
        ("split", two, {"classes": [0, 1], "row_bound": "private"}),
        ("each", three, {"classes": [0, 1, 2], "row_bound": None, "algorithm": "dp-gd"}),
    ):
        dpbench.PrivateClassifier(2.0, **given, **more).fit(X, y).save(folder / f"{name}.json")
    return folder


def of_rows(content, n):
    """Of n rows, in all that the file says."""
    content["model"]["spec"].update(n=n)
    restated(content, rows=n)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("one", lambda c: of_rows(c, 600)),
        ("one", lambda c: c["model"]["spec"].update(l2=0.2)),
        ("split", lambda c: of_rows(c, 600)),
        ("split", lambda c: c["statement"]["releases"][0]["release"].update(noise_multiplier=90.0)),
        ("split", lambda c: c["statement"]["releases"][1]["release"].update(noise_multiplier=90.0)),
        ("each", lambda c: c["statement"]["releases"][1]["release"].update(noise_multiplier=90.0)),
    ],
)
def test_releases_that_do_not_follow_from_what_a_model_says_of_itself_are_not_its_own(several, tmp_path, name, change):
    """All of these keep to ε, so that nothing else finds them. The rules of another version may have been others."""
    assert any("those of its plan" in line for line in dpbench.statement(several / f"{name}.json")[1])
    with pytest.raises(PrivacyError, match=r"plans other releases|where its plan makes"):
        dpbench.load_model(forged(several / f"{name}.json", tmp_path / "f.json", change))


def test_releases_of_another_version_are_held_to_their_epsilon_alone(several, tmp_path):
    def change(content):
        content["statement"]["releases"][0]["release"].update(noise_multiplier=90.0)
        content["statement"]["versions"]["dpbench"] = "0.1"

    forged(several / "split.json", tmp_path / "f.json", change)
    assert not any("those of its plan" in line for line in dpbench.statement(tmp_path / "f.json")[1])


def leaves(content, path=()):
    """The path of every value of plain data."""
    if isinstance(content, dict | list):
        for key in content if isinstance(content, dict) else range(len(content)):
            yield from leaves(content[key], (*path, key))
    else:
        yield path


BELIEVED = {"W", "labels", "classes", "bounds", "categories", "name", "bound", "made", "versions", "charge", "l1", "l2",
            "rule", "row_bound", "classes_read", "features", "typed", "precision", "decide"}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["one", "split", "each"])
def test_no_change_of_a_value_is_a_traceback_and_few_are_believed(several, tmp_path, name):
    """Each value in five ways, and each key removed, with a digest that fits."""
    whole = json.loads((several / f"{name}.json").read_text())
    whole.pop("sha256")
    before, stated, _ = load(several / f"{name}.json")
    believed = set()
    for path in leaves(whole):
        for value in (None, "x", -1, 1e300, [], "gone"):

            def change(content, path=path, value=value):
                for key in path[:-1]:
                    content = content[key]
                if value == "gone" and isinstance(content, dict):
                    content.pop(path[-1])
                elif content[path[-1]] != value:
                    content[path[-1]] = value

            try:
                dpbench.load_model(forged(several / f"{name}.json", tmp_path / "f.json", change))
            except (UserError, PrivacyError):
                pass
            else:
                model, statement, _ = load(tmp_path / "f.json")
                if (model, statement) != (before, stated):
                    believed |= {key for key in path if isinstance(key, str)} & BELIEVED or {path}
    assert believed <= BELIEVED, believed - BELIEVED


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", "[" * 100_000])
def test_a_file_that_is_none_is_one_line(tmp_path, content):
    (tmp_path / "f.json").write_text(content)
    with pytest.raises(UserError, match="not a model"):
        dpbench.load_model(tmp_path / "f.json")
    with pytest.raises(UserError, match="No such file"):
        dpbench.load_model(tmp_path / "none.json")


@pytest.mark.parametrize("error", [MemoryError, OverflowError])
def test_releases_that_cannot_be_composed_are_one_line(saved, monkeypatch, error):
    monkeypatch.setattr("dpbench.own.statement.spent", lambda *_: (_ for _ in ()).throw(error()))
    with pytest.raises(PrivacyError, match=f"its releases are beyond all that can be composed .{error.__name__}"):
        dpbench.load_model(saved)


def test_the_command_ends_in_one_line_where_the_statement_does_not_hold(saved, tmp_path, capsys):
    wrong = forged(saved, tmp_path / "f.json", lambda c: c["statement"].update(epsilon=0.5))
    with pytest.raises(SystemExit) as end:
        main(["model", "statement", str(wrong)])
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_changed_weight_is_found_by_the_digest(saved, tmp_path):
    (tmp_path / "f.json").write_text(saved.read_text().replace('"n": 500', '"n": 501'))
    with pytest.raises(UserError, match="digest does not match"):
        dpbench.load_model(tmp_path / "f.json")


def test_what_is_no_release_is_not_saved(table, tmp_path):
    model = dpbench.PrivateClassifier(2.0, schema=SCHEMA, random_state=0).fit(table)
    with pytest.raises(UserError, match="random_state: a fit with one is no release"):
        model.save(tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()


def test_class_weights_are_kept_and_are_part_of_what_is_public(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (200, 2)), rng.integers(0, 2, 200)
    model = dpbench.PrivateClassifier(1.0, bounds=(-1, 1), classes=[0, 1], class_weight={1: 3.0}).fit(X, y)
    model.save(tmp_path / "m.json")
    other = dpbench.load_model(tmp_path / "m.json")
    assert other.class_weight == {0: 1.0, 1: 3.0}
    assert "class weights (0: 1, 1: 3)" in other.guarantee_
    other.save(tmp_path / "again.json")
    assert dpbench.load_model(tmp_path / "again.json").guarantee_ == model.guarantee_


def test_categories_delta_rules_and_one_model_per_class_go_there_and_back(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.random(300), "b": rng.choice(["u", "v"], 300)})
    y = rng.choice(["x", "y", "z"], 300)
    columns = {"a": Column(bounds=(0, 1)), "b": Column(categories=("u", "v"))}
    schema = Schema(target=Target(name="t", classes=("x", "y", "z")), columns=columns)
    for given in (
        {"delta": "n^-1", "row_bound": None},
        {"algorithm": "dp-gd", "epsilon": np.float32(2.5)},
        {"delta": 0, "algorithm": "objpert-pure"},
    ):
        model = dpbench.PrivateClassifier(schema=schema, **given).fit(table, y)
        model.save(tmp_path / "m.json")
        np.testing.assert_array_equal(dpbench.load_model(tmp_path / "m.json").predict(table), model.predict(table))


def test_settings_that_keep_no_epsilon_are_no_fit():
    """They were fitted, stated and saved as if they did."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 2))
    given = {"bounds": (-1, 1), "classes": [0, 1], "algorithm": "aop"}
    with pytest.raises(UserError, match=r"settings: so set, aop keeps no ε \(it sees rows of norms above 1"):
        dpbench.PrivateClassifier(1.0, settings={"rows": "undivided"}, **given).fit(X, X[:, 0] > 0)


@pytest.mark.thorough
def test_models_that_compose_by_shares_of_delta_are_saved(tmp_path):
    """One perturbed objective for each class, and a draw that takes all of δ beside the rows' bound."""
    X = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    three = dpbench.PrivateClassifier(4.0, bounds=(-1, 1), classes=[0, 1, 2], algorithm="objpert")
    draw = dpbench.PrivateRegressor(4.0, bounds=(-1, 1), target_bounds=(-1, 1), algorithm="tukey-em")
    for model in (three.fit(X, np.arange(3000) % 3), draw.fit(X, X[:, 0])):
        model.save(tmp_path / "m.json")
        assert dpbench.load_model(tmp_path / "m.json").epsilon_ <= 4.0 * (1 + 1e-6)


PLUG_INS = """
from dpbench.algorithms.gradient_descent import DPGradientDescent

class Gd(DPGradientDescent):
    \"\"\"As ours.\"\"\"
    name = "their-gd"

class Loud(DPGradientDescent):
    \"\"\"Tells of the data when it fails.\"\"\"
    name = "loud-gd"

    def run(self, problem, *others):
        raise ValueError(f"a row is {problem.n} {others}")

class Unbounded(DPGradientDescent):
    \"\"\"Says nothing of how long rows are.\"\"\"
    name = "unbounded-gd"

    def row_bound(self, loss, settings):
        return None
"""


@pytest.mark.thorough
def test_a_plug_in_is_served_and_its_file_is_not_run_to_read_a_model(tmp_path):
    file = tmp_path / "theirs.py"
    file.write_text(PLUG_INS, encoding="utf-8")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 2))
    given = {"bounds": (-1, 1), "classes": [False, True], "settings": {"T": 2}}
    model = dpbench.PrivateClassifier(1.0, algorithm=f"{file}:Gd", **given).fit(X, X[:, 0] > 0)
    assert model.guarantee_ == dpbench.PrivateClassifier(1.0, algorithm="dp-gd", **given).fit(X, X[:, 0] > 0).guarantee_
    assert model.algorithm_ == f"served:{file}:Gd"
    model.save(tmp_path / "m.json")
    file.unlink()  # the file is not looked for, still less run
    assert dpbench.load_model(tmp_path / "m.json").guarantee_ == model.guarantee_
    file.write_text(PLUG_INS, encoding="utf-8")
    with pytest.raises(UserError, match="ValueError"):  # its words: it has no data to say of
        dpbench.PrivateClassifier(1.0, algorithm=f"{file}:Loud", **given).fit(X, X[:, 0] > 0)
    trusted = {"epsilon": 1.0, "trusted": True, "T": 2}
    with pytest.raises(UserError, match="loud-gd: it raised ValueError, whose text is withheld") as caught:
        dpbench.fit(X / 2, np.sign(X[:, 0]), algorithm=f"{file}:Loud", **trusted)
    assert caught.value.__context__ is None
    with pytest.raises(UserError, match="no guarantee for bytes: it declares no bound on the rows"):
        dpbench.fit(X / 2, np.sign(X[:, 0]), algorithm=f"{file}:Unbounded", arithmetic="bytes", **trusted)


NUMBERS = {"target_bounds": (-2, 2)}
KNOWN = {  # what is given beside bounds and classes: what the loaded model has otherwise, beside the default's method
    "the default": ({"classes": [0, 1]}, {"l2": 1 / (300 * 3)}),
    "a ridge": ({"classes": [0, 1], "l2": 0.5, "row_bound": None}, {}),
    "a bound": ({"classes": [0, 1], "row_bound": 0.7, "fit_intercept": False}, {"l2": 1 / (300 * 2)}),
    "settings": ({"classes": [0, 1], "algorithm": "dp-gd", "settings": {"T": 3}, "precision": "float32"},
                 {"l2": 1 / (300 * 3)}),
    "weights": ({"classes": [0, 1, 2], "class_weight": {0: 1.0, 1: 2.0, 2: 0.5}, "l2": 0.1}, {}),
    "persons": ({"classes": [0, 1], "unit": True}, {"l2": 1 / (150 * 3)}),
    "intervals": (NUMBERS | {"intervals": True}, {"row_bound": None, "settings": {"intervals": True}}),
    "numbers": (NUMBERS | {"arithmetic": "bytes"}, {"l2": 0.0}),
}  # fmt: skip


@pytest.mark.thorough_for("the default", "a bound", "a ridge", "numbers")
@pytest.mark.parametrize("case", KNOWN)
def test_a_loaded_model_has_the_arguments_that_it_was_fitted_with(case, tmp_path):
    """Bounds and classes are in its schema; the method and the ridge are those that the default chose."""
    given, other = KNOWN[case]
    kind = dpbench.PrivateRegressor if "target_bounds" in given else dpbench.PrivateClassifier
    X = np.random.default_rng(1).uniform(-1, 1, (300, 2))
    y = X[:, 0] if "target_bounds" in given else np.arange(300) % len(given["classes"])
    model = kind(2.0, 1e-5, bounds=(-1, 1), **given)
    model.fit(X, y, **({"groups": np.arange(300) // 2} if "unit" in given else {})).save(tmp_path / "m.json")
    expected = {"algorithm": model.algorithm_} | other | dict.fromkeys(("bounds", "classes", "target_bounds"))
    asked, found = (one.get_params(deep=False) for one in (model, dpbench.load_model(tmp_path / "m.json")))
    assert found == {name: expected.get(name, value) for name, value in asked.items()} | {
        "l2": pytest.approx(found["l2"] if found["l2"] is None else {**asked, **expected}["l2"])
    }
