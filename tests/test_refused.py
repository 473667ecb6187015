"""Wrong arguments that no other test gives: each is refused in one line that names it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import dpbench
from dpbench import algorithms, experiments, files
from dpbench.algorithms.base import make_settings
from dpbench.cli.options import parse_pairs, parse_shares
from dpbench.datasets.loading import check_content
from dpbench.datasets.spec import DatasetSpec
from dpbench.errors import DataError, PrivacyError, UserError, names_arguments
from dpbench.own.arguments import sorted_labels
from dpbench.privacy.data_budget import DataBudget
from dpbench.privacy.disclosure import Disclosure
from dpbench.problems import Declaration
from dpbench.problems.catalogue import declare
from dpbench.run import executors
from dpbench.schema import Column, Schema, Target
from dpbench.study.printed import Number
from dpbench.submitting import checking

TWO = Schema(target=Target(name="y", classes=("a", "b")), columns={"x": Column(bounds=(0, 1))})
TEN = Schema(target=Target(name="y", bounds=(0, 10)), columns={"x": Column(bounds=(0, 1))})
TABLE = pd.DataFrame({"x": [0.1, 0.7, 0.4, 0.9], "y": [1.0, 7.0, 4.0, 9.0]})
X, Y = np.diag([0.5] * 4), np.array([1.0, -1.0, 1.0, -1.0])


def completed(name, **values):
    method, fixed = algorithms.resolve(name)
    return method.complete(Declaration(100, 4, row_bound=1.0), make_settings(method, {**fixed, **values}))


def fit(X=X, **options):
    return dpbench.fit(X, Y, **{"epsilon": 1.0, "seed": 0, "algorithm": "dp-gd", **options})


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: completed("dp-sgd", rate=0.03, batches="allocated"), UserError, "rate = 0.03: .* need 1/rate whole"),
    (lambda: completed("o2nc", T=6, M=11), UserError, "T = 6 needs 12 rows, M is 11"),
    (lambda: fit(sparse.csr_array(X), precision="float32"), UserError, "sparse rows are kept as float64"),
    (lambda: fit(sparse.csr_array(X), precision="float32", arithmetic="real"), UserError, "sparse rows are kept as"),
    (lambda: dpbench.PrivateClassifier().fit(X, Y, weight=1), TypeError, "no 'weight'"),
    (lambda: dpbench.PrivateClassifier().fit(X, Y, sample_weight=Y), ValueError, "sample_weight"),
    (lambda: dpbench.PrivateClassifier(bounds=(-1, 1)).fit(X, [0.1, 0.7, 1.3, 2]), ValueError, "type: continuous"),
    (lambda: dpbench.PrivateClassifier(bounds=(-1, 1), classes="yes").fit(X, Y), ValueError, "classes: give a list of"),
    *[(lambda name=name: fit(np.zeros((4, 4)), algorithm=name), UserError, "^X: every cell is 0.*give l2 > 0")
      for name in ("dp-cd", "dp-gcd", "dp-gd-laplace")],
    (lambda: sorted_labels([1.0, np.nan]), ValueError, "nan can be no class"),
    (lambda: sorted_labels([np.inf, 1.0]), ValueError, "inf can be no class"),
    (lambda: sorted_labels([None, "a"]), ValueError, "None can be no class"),
    (lambda: dpbench.plan(9999, 200, epsilon=1), UserError, "^give the name of a TOML file, got 9999"),
    (lambda: dpbench.plan(TWO, 200, epsilon="one"), UserError, "^epsilon must be a positive number, got 'one'"),
    (lambda: dpbench.plan(TWO, 200, epsilon=[]), UserError, "^epsilon: give one at least"),
    (lambda: dpbench.plan(TWO, 200, epsilon=1, share=0.2), UserError, "^share must be {class: share}, got 0.2"),
    (lambda: dpbench.plan(TWO, 200, epsilon=1, share={"a": "few"}), UserError, "^share: a must be a positive number"),
    (lambda: dpbench.plan(TWO, 200, epsilon=1, signal="big"), UserError, "^signal must be a positive number"),
    (lambda: dpbench.compare(X, Y, epsilon="one"), UserError, "^epsilon must be a positive number, got 'one'"),
    (lambda: dpbench.run_algorithm("dp-gd", settings=[1]), UserError, "^settings must be {name: value}, got \\[1\\]"),
    (lambda: dpbench.draft_schema({"x": [1, 2]}, "x"), UserError, "^data: give the name of a file"),
    (lambda: dpbench.PrivateRegressor(settings={1: 2}, schema=TEN).fit(TABLE), UserError, "unknown setting 1"),
    (lambda: dpbench.PrivateClassifier().save("m.json"), ValueError, "^This PrivateClassifier instance is not fitted"),
    (lambda: DataBudget.create(None, epsilon=1, delta=1e-5, unit=True), UserError, '^unit must be .*"groups"'),
    (lambda: dpbench.run_experiment(3), UserError, "^reference must be a text, got 3$"),
    (lambda: dpbench.report([3]), UserError, "^reference must be a text or None, got \\[3\\]$"),
    (lambda: dpbench.status(results=None), UserError, "^results must be a text or a path, got None$"),
    (lambda: dpbench.results("dp-gd", 3), UserError, "^profile must be a text, got 3$"),
    (lambda: dpbench.diff(3, "."), UserError, "^first must be a text or a path, got 3$"),
    (lambda: dpbench.run_algorithm("dp-gd", 3), UserError, "^problems must be a text or a list, got 3$"),
    (lambda: dpbench.compare("rows.csv", "y", holdout="half"), UserError, "^holdout must be a number, got 'half'$"),
    (lambda: dpbench.audit(None), UserError, "cannot be called; an audit takes a function"),
    (lambda: DataBudget.create(3, epsilon=1, delta=1e-5), UserError, "^file must be a text or a path or None, got 3$"),
    (lambda: dpbench.schema.draft("rows.csv", "y"), UserError, "^table must be a DataFrame; dpbench.draft_schema"),
    (lambda: declare("synthetic:logistic,l2=much"), UserError, "'l2=much' is not NAME=WEIGHT"),
    (lambda: declare("synthetic:logistic,l2"), UserError, "'l2' is not NAME=WEIGHT"),
    (lambda: executors.check("threads", 1, None), UserError, "unknown backend 'threads'"),
    (lambda: executors.check("loky", 0, None), UserError, "jobs"),
    (lambda: parse_pairs("--set", "KEY=VALUE", ["T"]), UserError, "--set takes KEY=VALUE, got 'T'"),
    (lambda: parse_pairs("--set", "KEY=VALUE", ["=1"]), UserError, "--set takes KEY=VALUE"),
    (lambda: parse_pairs("--set", "KEY=VALUE", ["T=1", "T=2"]), UserError, "--set T is given twice"),
    (lambda: parse_shares(("yes",)), UserError, "--share takes CLASS=SHARE"),
    (lambda: parse_shares(("=0.1",)), UserError, "--share takes CLASS=SHARE"),
    (lambda: parse_shares(("yes=few",)), UserError, "--share takes CLASS=SHARE"),
    (lambda: Column(date=("year", "week")), ValueError, "date: unknown part 'week'"),
    (lambda: Disclosure("w", "the iterate", mechanism="Gauss"), PrivacyError, "w: unknown mechanism"),
    (lambda: Number("loss", "0.7x"), ValueError, "'0.7x' is no decimal number"),
    (lambda: Number("loss", "NaN"), ValueError, "is not finite"),
    (lambda: Number("ends", "no", law="ALL"), ValueError, "no law"),
    # Under the argument's name, which the command line turns into --dataset.
    (lambda: checking._tasks("dp-gd", "quick", ["nope"], {}), UserError, "^problems: there is no 'nope' on the quick"),
    (lambda: experiments.get("acelerated"), UserError, "unknown experiment 'acelerated'.*accelerated"),
    (lambda: experiments.get("accelerated").blocks("quick", "fig9"), UserError, "has no artefact 'fig9'"),
    (lambda: experiments.get("accelerated").blocks("quik"), UserError, "unknown profile 'quik'.*quick"),
])  # fmt: skip
def test_it_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_an_error_of_a_call_whose_arguments_have_their_types_is_left_as_it_is():
    def broken(name: "str", rows: "list[int]" = ()):
        raise TypeError("of the code")

    with pytest.raises(TypeError, match="of the code"):
        names_arguments(broken)("a", rows=3)  # what is annotated by another type is not judged
    with pytest.raises(UserError, match=r"^name must be a text, got 3$"):
        names_arguments(broken)(3)
    for given, told in (
        ({}, r"broken\(\) missing 1 required"),
        ({"nam": "a"}, r"broken\(\) got an unexpected keyword"),
    ):
        with pytest.raises(TypeError, match=told):
            names_arguments(broken)(**given)
    assert pickle.loads(pickle.dumps(dpbench.fit)) is dpbench.fit  # joblib sends it to other processes


@pytest.mark.parametrize(("path", "message"), [
    (3, "^path must be a text or a path, got 3$"), (".", r"^\.: is a folder; name a file in it$"),
    ("", r"^\.: is a folder"),
])  # fmt: skip
def test_a_model_is_saved_under_the_name_of_a_file(path, message):
    with pytest.raises(UserError, match=message):
        dpbench.PrivateClassifier(bounds=(-1, 1), classes=[-1, 1]).fit(X, Y).save(path)


def test_a_folder_is_refused_before_the_work_whose_file_it_should_be(tmp_path):
    with pytest.raises(UserError, match=r"^out: .* is a folder; name a file in it$"):
        files.writable("out", tmp_path)
    assert not [*tmp_path.parent.glob(".*.tmp")]


@pytest.mark.parametrize(("kind", "labels", "message"), [
    ("classes", ["no", None, "yes", "no"], "^y: a row that is scored needs a label.*: 1 of 4 have none$"),
    ("classes", [0.5, 1.0, 2.0, 3.0], "^y: no label is one of the classes 'no', 'yes'"),
    ("classes", ["no"], "^y: give one label for each row"),
    ("numbers", [np.nan, np.nan, 0.5, 0.0], "^y: a row that is scored needs a finite number.*: 2 of 4 have none$"),
    ("numbers", [1.0, "high", 0.5, 0.0], "^y: a row that is scored needs a finite number"),
    ("numbers", [1.0, np.inf, 0.5, 0.0], "^y: a row that is scored needs a finite number"),
])  # fmt: skip
def test_labels_that_no_score_can_be_of_are_refused_by_name(kind, labels, message):
    if kind == "classes":
        model = dpbench.PrivateClassifier(bounds=(-1, 1), classes=["no", "yes"]).fit(X, ["no", "yes"] * 2)
        assert model.score(X, ["no", "maybe", "yes", "maybe"]) <= 0.5  # another label is an error of the model
    else:
        model = dpbench.PrivateRegressor(bounds=(-1, 1), target_bounds=(-1, 1), row_bound=None).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        model.score(X, labels)


def test_a_cell_of_a_table_that_is_no_number_is_told_of_with_its_column():
    table = TABLE.assign(y=["1", "n/a", "4", "9"])
    with pytest.raises(ValueError, match=r"finite number; leave out those without: 1 of 4 have none in y$"):
        dpbench.PrivateRegressor(schema=TEN).fit(table).score(table, None)


@pytest.mark.parametrize(("text", "message"), [
    ("class Other: ...", "defines no 'Mine'.*Other"), ("Mine = 3", "is not a subclass of"),
    ("from dpbench.algorithms.base import Algorithm\nclass Mine(Algorithm): ...", "set the class attribute `name`"),
    ("1 / 0", "cannot be imported: ZeroDivisionError"),
    ("raise SystemExit(0)", "cannot be imported: SystemExit"),  # as a script does that was not meant to be imported
])  # fmt: skip
def test_a_file_without_the_method_says_what_it_has(tmp_path, text, message):
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UserError, match=message):
        algorithms.resolve(f"{tmp_path / 'mine.py'}:Mine")


def test_a_served_file_without_the_method_is_not_called_by_the_folder_of_its_process(tmp_path):
    (tmp_path / "mine.py").write_text("class Other: ...")
    with pytest.raises(UserError, match=r"^mine\.py defines no 'Mine': known: Other"):
        algorithms.resolve(f"{algorithms.SERVED}{tmp_path / 'mine.py'}:Mine")


@pytest.mark.parametrize(("X", "y", "message"), [
    (X[:3], Y[:3], "3 rows found, 4 expected"), (X[:, :3], Y, "3 columns found, 4 expected"),
    (X, Y[:3], "y of shape"), (X.astype(np.float32), Y, "float32"), (X, Y.astype(int), "int64"),
    (np.where(X > 0, np.nan, X), Y, "NaN or infinite"),
    (sparse.csr_array(np.where(X > 0, np.inf, X)), Y, "NaN or infinite"),
])  # fmt: skip
def test_a_recipe_gives_what_its_data_set_says(X, y, message):
    with pytest.raises(DataError, match=message):
        check_content(DatasetSpec("demo", "Demo", lambda raw: (X, y), 4, 4, "as it is"), X, y)


ASKING = """
from dpbench.algorithms.gradient_descent import DPGradientDescent
class Mine(DPGradientDescent):
    name = "my-own"
    def run(self, problem, W, mechanisms, settings, trace):
        for _ in range(settings.T + 1):
            W = W - mechanisms.gaussian(
                problem.gradient(W), sensitivity=1 / problem.n, rho=mechanisms.budget.rho / 2, label="gradient")
        return W
"""


def test_a_served_method_that_is_refused_is_told_of_the_line_that_asked(tmp_path):
    (tmp_path / "mine.py").write_text(ASKING)
    with pytest.raises(PrivacyError, match=r"release: gradient: beyond its plan \(mine\.py:7\)$"):
        fit(algorithm=f"{tmp_path / 'mine.py'}:Mine", seed=None, T=2)


@pytest.mark.parametrize("what", ["plan", "run"])
def test_a_served_method_that_raises_is_told_by_the_file_and_line_of_its_author(tmp_path, what):
    text = "from dpbench.algorithms.gradient_descent import DPGradientDescent as GD\n\n"
    text += f"class Mine(GD):\n    name = 'mine-own'\n\n    def {what}(self, problem, *others):\n        1 / 0\n"
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UserError, match=r"^ZeroDivisionError: division by zero \(mine\.py:7\)$"):
        fit(algorithm=f"{tmp_path / 'mine.py'}:Mine", seed=None)
