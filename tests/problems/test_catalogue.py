"""Problem names: what they stand for, and that they build."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from dpbench import datasets
from dpbench.errors import UserError
from dpbench.problems import build, catalogue, register
from dpbench.problems.catalogue import Recipe


def test_the_papers_problems():
    recipe = catalogue.recipe_of("accelerated")
    assert (recipe.weights, recipe.row_bound, recipe.row_bound_norm) == ({"l2": 0.02}, 20.0, "l1")
    assert catalogue.recipe_of("covertype12-sigmoid").dataset == "covertype12"
    assert catalogue.recipe_of("ijcnn-logistic").weights == {"w2": 1e-3}
    assert catalogue.recipe_of("ijcnn-sigmoid").start == "normal"
    for name in catalogue.names():
        recipe = catalogue.recipe_of(name)
        assert recipe.dataset in datasets.names()
        assert recipe.start in catalogue.RULES


def test_bare_data_set_names():
    assert catalogue.recipe_of("ijcnn") == Recipe("ijcnn", row_bound="unit")
    with pytest.raises(UserError, match="did you mean a1a"):
        catalogue.recipe_of("a1")


def test_the_natural_loss_of_a_regression_set_is_squared(monkeypatch):
    monkeypatch.delitem(catalogue.CATALOGUE, "california")
    assert catalogue.recipe_of("california").loss == "squared"


@pytest.mark.parametrize("name", ["synthetic", "accelerated", "log1", "square"])
def test_synthetic_problems_build(name):
    p = build(name)
    assert p is build(name)
    assert p.name == name
    assert p.data_hash == datasets.load(catalogue.recipe_of(name).dataset).sha256
    assert np.isfinite(p.value(np.zeros((1, p.d)))).all()
    assert p.row_bound == {"synthetic": 1.0, "accelerated": 20.0}.get(name, p.row_norm)


def test_register(monkeypatch):
    monkeypatch.setattr(catalogue, "CATALOGUE", dict(catalogue.CATALOGUE))
    register("synthetic-l2", Recipe("synthetic", weights={"l2": 0.1}))
    assert build("synthetic-l2").l2 == 0.1
    register("synthetic-l2", Recipe("synthetic", weights={"l2": 0.1}))  # twice the same is no mistake
    with pytest.raises(UserError, match="problem: the name a1a is taken; choose another"):
        register("a1a", Recipe("a1a", loss="squared"))
    with pytest.raises(UserError, match="unknown loss"):
        register("new", Recipe("a1a", loss="hinge"))
    with pytest.raises(UserError, match="no regulariser 'l3'; known: l1, l2, w2"):
        register("new", Recipe("a1a", weights={"l3": 0.1}))
    with pytest.raises(UserError, match="problem new: unknown start 'somewhere'; known: normal, tens, unit, zero"):
        register("new", Recipe("a1a", start="somewhere"))
    assert "new" not in catalogue.names()


def test_a_name_stands_for_the_problem_that_it_stood_for():
    """A key has a problem by its name and version, so another weight, bound or unit would change what kept rows are of.

    DPBENCH_GOLDEN=write writes the file anew, for new problems.
    """
    found = {name: asdict(recipe) for name, recipe in sorted(catalogue.CATALOGUE.items())}
    path = Path(__file__).parents[1] / "golden/recipes.json"
    if os.environ.get("DPBENCH_GOLDEN") == "write":
        lines = [f"{json.dumps(name)}: {json.dumps(one, sort_keys=True)}" for name, one in found.items()]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")) == found


@pytest.mark.parametrize(("name", "loss"), [("gen-tiny", "logistic,l2=0.001"), ("digits-l1", "logistic,l1=0.005")])
def test_rows_apart_are_a_quarter_by_position_and_in_the_same_units(name, loss):
    whole, most = build(name), build(f"{name}:{loss},apart=4")
    X, y = most.held_out
    assert len(y) == whole.n // 4
    assert most.n == whole.n - len(y) == catalogue.declare(f"{name}:{loss},apart=4").n
    assert most.row_bound == 1.0
    lines = {tuple(row) for row in np.column_stack([whole.X, whole.y])}
    kept = {tuple(row) for row in np.column_stack([most.X, most.y])}
    away = {tuple(row) for row in np.column_stack([X, y])}
    assert kept | away == lines
    assert not kept & away
    assert whole.held_out is None
    assert most.data_hash != whole.data_hash


def test_persons_are_kept_apart_whole_and_one_row_of_each_is_scored(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    whose = rng.permutation(np.repeat(np.arange(41), rng.integers(1, 6, 41)))
    X, y = 0.4 * rng.uniform(-1, 1, (len(whose), 3)), rng.choice([-1.0, 1.0], len(whose))
    name = datasets.keep(X, y, "t", "drawn", whose=whose)
    person = {row.tobytes(): who for row, who in zip(X, whose, strict=True)}
    first, seen, held = np.unique(whose, return_index=True)[1], [], []
    for fold in range(4):
        problem = build(f"{name}:logistic,apart=4,fold={fold}")
        used, apart = ([person[row.tobytes()] for row in rows] for rows in (problem.X, problem.held_out[0]))
        assert problem.n == catalogue.declare(f"{name}:logistic,apart=4,fold={fold}").n == len({*used}) == 31
        assert len(used) == np.isin(whose, used).sum()  # all rows of each
        assert len(apart) == len({*apart}) == 10
        assert {*used} | {*apart} == {*range(41)}
        w = rng.standard_normal((1, 3))
        m = np.bincount(used)[used]
        assert problem.value(w)[0] == pytest.approx((np.logaddexp(0, -problem.y * (problem.X @ w[0])) / m).sum() / 31)
        seen += apart
        held += [row.tobytes() for row in problem.held_out[0]]
    assert len({*seen}) == 40  # folds share nobody
    assert 5 < len({*held} - {X[place].tobytes() for place in first}) < 35  # drawn: neither all the first nor none


def test_a_name_may_keep_rows_apart_to_score_on():
    assert catalogue.recipe_of("synthetic:logistic,apart=5,l2=0.1").apart == 5
    problem = build("synthetic:logistic,apart=5")
    assert (problem.n, len(problem.held_out[1])) == (8000, 2000)
    assert catalogue.declare("synthetic:logistic,apart=5").n == 8000
    for wrong in ("1", "0.5", "-2", "many", "2000"):
        with pytest.raises(UserError, match="apart takes a whole number"):
            catalogue.recipe_of(f"synthetic:logistic,apart={wrong}")


def test_folds_are_disjoint_and_cover_the_rows():
    folds = [build(f"synthetic:logistic,apart=5,fold={fold}") for fold in range(5)]
    held = np.vstack([np.column_stack(problem.held_out) for problem in folds])
    assert len(np.unique(held, axis=0)) == len(held) == 10_000
    assert len({problem.data_hash for problem in folds}) == 5
    assert folds[0].data_hash == build("synthetic:logistic,apart=5").data_hash  # the same rows under the same name
    for wrong in ("apart=5,fold=5", "fold=1", "fold=1,apart=5", "apart=5,fold=-1"):
        with pytest.raises(UserError, match="fold takes a whole number below that of apart"):
            catalogue.recipe_of(f"synthetic:logistic,{wrong}")


def test_weights_go_with_the_units_of_rows_and_targets():
    """F in units u of rows and τ of targets is F/τ² of w·u/τ: l1/(uτ), l2/u²."""
    square, log1 = catalogue.recipe_of("square-unit"), catalogue.recipe_of("log1-unit")
    assert square.weights == {"l1": pytest.approx(41.23 / (1000**0.5 * 200.0))}
    assert log1.weights == {"l2": pytest.approx(2.5e-4 / 100.0)}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("nope", "loss: unknown loss 'nope'"),
        ("logistic,l3=1", "no regulariser 'l3'; known: l1, l2, w2"),
        ("logistic,l2", "problem synthetic:logistic,l2: 'l2' is not NAME=WEIGHT"),
        ("logistic,l2=x", "problem synthetic:logistic,l2=x: 'l2=x' is not NAME=WEIGHT"),
        ("logistic,l2=-1", "l2 must be a number >= 0, got -1.0"),
        ("logistic,l2=inf", "l2 must be a number >= 0, got inf"),
        ("logistic,apart=1", "apart takes a whole number from 2 to 1000, got '1'"),
        ("logistic,apart=1001", "apart takes a whole number from 2 to 1000, got '1001'"),
        ("logistic,apart=2.5", "apart takes a whole number from 2 to 1000, got '2.5'"),
        ("logistic,fold=0", "fold takes a whole number below that of apart before it, got '0'"),
        ("logistic,apart=4,fold=4", "fold takes a whole number below that of apart before it, got '4'"),
    ],
)
def test_a_slip_in_a_problem_that_is_written_out_is_named(words, line):
    with pytest.raises(UserError) as refusal:
        catalogue.recipe_of(f"synthetic:{words}")
    assert line in str(refusal.value)


def test_a_problem_that_is_written_out_is_what_its_words_say_up_to_their_limits():
    for words, apart, fold, weights in (
        ("ramp", 0, 0, {}), ("ramp,l1=0,l2=0.5", 0, 0, {"l1": 0.0, "l2": 0.5}), ("ramp,apart=2", 2, 0, {}),
        ("ramp,apart=1000,fold=999,w2=1", 1000, 999, {"w2": 1.0}),
    ):  # fmt: skip
        recipe = catalogue.recipe_of(f"synthetic:{words}")
        assert (recipe.loss, recipe.apart, recipe.fold, recipe.weights) == ("ramp", apart, fold, weights)
