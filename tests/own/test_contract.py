"""Every private method by every way to a model: planned, fitted, saved, exported, they say one thing.

That all ways agree does not say that they are right, so what each method plans stands in `planned.json` beside this
file. Where a rule changes a plan, `python -m tests.own.test_contract` writes it anew, and the change is a line of the
changelog.
"""

import dataclasses
import json
import pathlib
import re

import msgspec
import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench import algorithms
from dpbench.auditing.search import setups_of
from dpbench.errors import PrivacyError, UserError
from dpbench.leaderboard import entrants
from dpbench.own import inputs, row_bound
from dpbench.own.engine import Fitted
from dpbench.own.fit import Fit
from dpbench.own.spec import line as in_words
from dpbench.problems import Declaration
from dpbench.problems.persons import Persons
from dpbench.run.bind import bind_jobs
from dpbench.run.job import make_job
from dpbench.schema import Column, Schema, Target

RECORD = pathlib.Path(__file__).with_name("planned.json")
N = 400
RNG = np.random.default_rng(0)
A, B, E = RNG.uniform(0, 10, N), RNG.uniform(0, 1, N), RNG.normal(size=N)
COLUMNS = {"a": Column(bounds=(0, 10)), "b": Column(bounds=(0, 1))}
THREE = np.array(["A", "B", "C"])[np.clip(A / 5 + B * 0.3 + 0.3 * E, 0, 2.99).astype(int)]
TARGETS = {
    "two": (Target(name="y", classes=("A", "B")), np.where(A / 5 + B + E > 1.5, "A", "B")),
    "three": (Target(name="y", classes=("A", "B", "C")), THREE),
    "number": (Target(name="y", bounds=(0.0, 3.0)), np.clip(A / 5 + B, 0, 3)),
}
METHODS = [one for one in algorithms.names(plugins=False, wrappers=True) if algorithms.resolve(one)[0].private]
LONG = ("opt-b", "2opt-b", "dp-tr-b")  # dp-newton-minibatch has batches of a fixed size too, and is planned at once
QUICK = ("objpert-two", "dp-gd-three", "boosted-ssp-number", "dp-gcd-two", "adassp-two")  # the others are thorough


def marked(task, method):
    return pytest.param(
        task, method, id=f"{method}-{task}", marks=[] if f"{method}-{task}" in QUICK else [pytest.mark.thorough]
    )


def estimator(task, **given):
    kind = dpbench.PrivateRegressor if task == "number" else dpbench.PrivateClassifier
    return kind(given.pop("epsilon", 1.0), **given)


def of_arrays(task):
    target = TARGETS[task][0]
    return {"target_bounds": target.bounds} if task == "number" else {"classes": list(target.classes)}


def said(do):
    """What came out, or the one line of a refusal; any other error is a defect of the contract."""
    try:
        return do()
    except (UserError, PrivacyError) as error:
        return "refused: " + str(error).replace("\n", " (a second line) ")


def outcomes(method, task, file):
    """{way: the releases that it makes or plans, or why it is refused}."""
    target, y = TARGETS[task]
    table, X = pd.DataFrame({"a": A, "b": B, "y": y}), np.column_stack([A, B])
    schema = Schema(target=target, columns=COLUMNS)

    def fitted():
        return estimator(task, algorithm=method, schema=schema).fit(table)

    def saved():
        model = fitted()
        model.save(file)
        again = dpbench.load_model(file)
        np.testing.assert_array_equal(again.predict(table), model.predict(table))
        return again.releases_

    def exported():
        model = fitted()
        model.save(file)
        runtime = pytest.importorskip("onnxruntime").InferenceSession(dpbench.export(file))
        (found,) = runtime.run(["prediction" if task == "number" else "label"], {"a": A[:, None], "b": B[:, None]})
        if task == "number":
            np.testing.assert_allclose(found, model.predict(table))
        else:
            np.testing.assert_array_equal(found, model.predict(table))
        return model.releases_

    ways = {
        "plan": lambda: estimator(task, algorithm=method, schema=schema).plan(N).releases,
        "forecast": lambda: forecast(method, schema),
        "fit": lambda: dpbench.fit(
            table, schema=schema, algorithm=method, epsilon=1.0, rule=True, l2=None
        ).released.composition,
        "table": lambda: fitted().releases_,
        "arrays": lambda: estimator(
            task, algorithm=method, bounds=([0, 0], [10, 1]), **of_arrays(task)
        ).fit(X, y).releases_,
        "save": saved,
        "export": exported,
    }  # fmt: skip
    return {way: said(do) for way, do in ways.items()}


def forecast(method, schema):
    from dpbench.own.forecast import Simulation

    frame = Simulation(schema, N, None, {}, None, None, 0, "auto")
    return frame.plan(method, 1.0, N, delta=None).releases


@pytest.mark.parametrize(("task", "method"), [marked(task, method) for task in TARGETS for method in METHODS])
def test_all_ways_say_one_thing(task, method, tmp_path):
    found = outcomes(method, task, tmp_path / "m.json")
    planned = found.pop("plan")
    assert found.pop("forecast") == planned
    if planned == ():  # the method says its releases only while it runs
        assert all(isinstance(one, tuple) and one for one in found.values()), found
    else:
        assert all(one == planned for one in found.values()), (planned, found)


@pytest.mark.parametrize(("task", "method"), [marked(task, method) for task in TARGETS for method in METHODS])
def test_run_board_and_audit_take_what_a_fit_takes(task, method, monkeypatch):
    """Or refuse the loss in the same words: one proof says it, by four doors."""
    found = said(lambda: estimator(task, algorithm=method).plan(N, Schema(target=TARGETS[task][0], columns=COLUMNS)))
    algorithm, fixed = algorithms.resolve(method)
    if not isinstance(found, str):
        settings = {one: value for one, value in msgspec.structs.asdict(found.asked).items() if one not in fixed}
        each = found.each
        job = make_job(problem="synthetic", algorithm=method, epsilon=each.epsilon, seed=0, delta=each.delta,
                       settings=settings, accounting=each.accounting, relation="replace-one")  # fmt: skip
        bound = bind_jobs([job], build=lambda name: found.problem)
        mechanisms = bound.mechanisms()
        bound.plan(mechanisms)
        first = len(found.bound.planned) if found.bound else 0
        assert mechanisms.ledger.planned(0) * found.models == found.releases[first:]
    elif refusal := re.fullmatch(r"refused: ((?:[^:]*: )loss (\S+) is not covered by its privacy proof.*)", found):
        line, loss = refusal.groups()
        problem = Declaration(N, 3, loss=loss, row_bound=1.0)
        job = make_job(problem="synthetic", algorithm=method, epsilon=1.0, seed=0)
        assert said(lambda: bind_jobs([job], build=lambda name: problem)) == f"refused: {line}"
        assert said(lambda: setups_of(algorithm, fixed, 1.0, loss=loss)) == f"refused: {line}"
        monkeypatch.setattr(entrants, "declared", lambda name: problem)
        monkeypatch.setattr(entrants, "of_persons", lambda name: False)
        assert entrants.reason.__wrapped__("own", method) == line.removeprefix(f"{algorithm.name}: ")


def planned(method, task, delta):
    """What is released, or why it is refused, from public numbers alone."""
    schema = Schema(target=TARGETS[task][0], columns=COLUMNS)
    plan = said(lambda: estimator(task, delta=delta, algorithm=method).plan(N, schema))
    if isinstance(plan, str):
        return plan
    lines = [in_words(one) for one in plan.releases]
    return [plan.exact, plan.whole.delta, *lines]


@pytest.mark.thorough_but("two-None", "number-None")  # of the other cases one of each kind is in the test below
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("task", TARGETS)
def test_no_method_is_lost_and_no_noise_changes(task, delta):
    record = {key: one for key, one in json.loads(RECORD.read_text()).items() if key.endswith(f"/{task}/{delta}")}
    assert record.keys() == {f"{method}/{task}/{delta}" for method in METHODS}
    for method in METHODS:
        if method not in LONG:
            assert planned(method, task, delta) == record[f"{method}/{task}/{delta}"], method


@pytest.mark.thorough
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("task", TARGETS)
@pytest.mark.parametrize("method", LONG)
def test_no_noise_changes_that_takes_seconds_to_plan(method, task, delta):
    assert planned(method, task, delta) == json.loads(RECORD.read_text())[f"{method}/{task}/{delta}"]


@pytest.mark.parametrize("key", [
    "dp-gd-laplace/two/1e-06", "objpert/two/1e-06", "dp-gd/three/1e-06", "boosted-ssp/number/1e-06",
    "objpert/three/None", "dp-gd/three/None", "dp-newton/three/None", "dp-cd/three/None",
])  # fmt: skip
def test_a_delta_that_is_given_and_three_classes_are_recorded_too(key):
    method, task, delta = key.split("/")
    assert planned(method, task, None if delta == "None" else float(delta)) == json.loads(RECORD.read_text())[key]


def test_the_bound_is_released_within_the_whole_budget(monkeypatch):
    """One model of each class shares it; checked against a share, a release that the plan has would be refused."""
    seen, true = [], row_bound.release
    monkeypatch.setattr(row_bound, "release", lambda *given, **how: (seen.append(given), true(*given, **how))[1])
    X, y = np.column_stack([A, B]), TARGETS["three"][1]
    model = estimator("three", algorithm="objpert", bounds=([0, 0], [10, 1]), **of_arrays("three")).fit(X, y)
    ((_, _, _, split, how),) = seen
    assert (split, how.budget) == (model.plan_.bound, model.plan_.whole)
    assert (how.budget.epsilon, model.plan_.models) == (1.0, 3)


@pytest.mark.parametrize("task", TARGETS)
@pytest.mark.parametrize("how", [None, "rule", "private", 0.9])
def test_the_rows_of_a_fit_are_those_of_its_predictions(task, how, monkeypatch):
    seen, true = [], inputs.problem_of
    monkeypatch.setattr(inputs, "problem_of", lambda X, *a, **k: (seen.append(X.copy()), true(X, *a, **k))[1])
    X, y = np.column_stack([A, B]), TARGETS[task][1]
    model = estimator(task, bounds=([0, 0], [10, 1]), row_bound=how, **of_arrays(task)).fit(X, y)
    assert {rows.dtype for rows in seen} == {np.dtype(np.float32)}  # as they come before their grid
    assert all(np.linalg.norm(rows, axis=1).max() <= 1 + 1e-6 for rows in seen)
    assert all(np.allclose(rows, model.model_.encoding.rows(X), atol=1e-6) for rows in seen)


@pytest.mark.parametrize(
    ("task", "method", "least"),
    [("two", "auto", 0.68), ("two", "dp-gd", 0.68), ("three", "auto", 0.65), ("three", "dp-gd", 0.6),
     ("number", "auto", 0.9)],
)  # fmt: skip
def test_a_model_learns_at_a_large_epsilon(task, method, least):
    target, y = TARGETS[task]
    table = pd.DataFrame({"a": A, "b": B, "y": y})
    model = estimator(task, epsilon=100.0, algorithm=method, schema=Schema(target=target, columns=COLUMNS)).fit(table)
    assert model.score(table, y) > least


if __name__ == "__main__":
    found = {f"{m}/{t}/{d}": planned(m, t, d) for t in TARGETS for m in METHODS for d in (None, 1e-6)}
    RECORD.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


@pytest.mark.parametrize(("of", "kept_back"), [
    (Fit, {"diagnostics", "plan", "_of_table"}), (Fitted, {"diagnostics"}),
    (Persons, {"codes"}),
])  # fmt: skip
def test_what_no_guarantee_covers_is_in_no_repr(of, kept_back):
    """A notebook shows the repr of its last line to whoever reads it."""
    assert {one.name for one in dataclasses.fields(of) if not one.repr} == kept_back
