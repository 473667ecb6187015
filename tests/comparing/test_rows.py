"""A file of rows as a comparison takes it: on disk or in memory, the rows that a fit reads by the same schema."""

import pickle

import numpy as np
import pandas as pd
import pytest

from dpbench import datasets
from dpbench.comparing import pilot, ranking, rows
from dpbench.errors import DataError, UserError
from dpbench.leaderboard import entrants
from dpbench.problems import catalogue
from dpbench.run.bind import bind_jobs
from dpbench.run.job import make_job
from dpbench.schema import Column, Schema, Target, read_table, tables
from dpbench.schema.encoding import encoding_of, target_values

COLUMNS = {
    "Unnamed: 0": Column(drop=True),
    "age": Column(bounds=(0, 80), missing="indicator"),
    "town": Column(categories=("Bonn", "Ulm")),
    "rooms": Column(categories=("1", "2", "3")),
    "born": Column(date=("year", "month"), years=(1950, 2010)),
}
TARGETS = {"binary": Target(name="rich", classes=("no", "yes")), "regression": Target(name="wage", bounds=(0, 50))}


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path / "cache"))
    rng, n = np.random.default_rng(0), 1500
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(-5, 100, n).round(1)),
            "town": rng.choice(["Bonn", "Ulm", "Kiel"], n),
            "rooms": rng.integers(1, 5, n),
            "born": pd.to_datetime("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, n), "D"),
            "rich": rng.choice(["no", "yes", "who knows"], n),
            "wage": rng.uniform(-5, 60, n),
        }
    )
    frame.loc[rng.random(n) < 0.05, "rich"] = None
    return frame


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("task", TARGETS)
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_rows_on_disk_are_those_in_memory_and_of_a_fit(table, tmp_path, monkeypatch, kind, task, precision):
    target = TARGETS[task]
    path = tmp_path / f"t.{kind}"
    frame = table[[*(name for name in COLUMNS if name in table), target.name]]
    if kind == "parquet":
        frame.reset_index(names="Unnamed: 0").to_parquet(path)
    else:
        frame.to_csv(path)  # with its row numbers
    schema = Schema(target=target, columns=COLUMNS)
    how = {"holdout": 0.2, "precision": precision}
    once = rows.read(path, None, schema, **how)
    monkeypatch.setattr(rows, "LARGE", 1)
    monkeypatch.setattr(tables, "ROWS", 128)
    told = []
    found = rows.read(path, None, schema, **how, progress=lambda what, share: told.append(what))
    assert {"first pass", "second pass"} == set(told)
    assert len(told) > 6
    assert isinstance(found.X, np.memmap)
    assert found.X.dtype == once.X.dtype == precision
    for one, other in ((found.X, once.X), (found.y, once.y), *zip(found.held_out, once.held_out, strict=True)):
        np.testing.assert_array_equal(one, other)
    assert (found.task, found.columns, found.unit, found.classes) == (task, once.columns, once.unit, once.classes)
    assert "lie on disk" in found.notes[-1]
    assert np.linalg.norm(found.X.astype(float), axis=1).max() <= 1
    fitted = encoding_of(schema, intercept=True).rows(read_table(path, schema), fitting=True)
    values, known = target_values(target, read_table(path, schema)[target.name])
    kept = known & fitted.any(axis=1)
    used = np.random.default_rng(rows.SPLIT).random(len(frame)) >= 0.2
    tolerance = 1e-6 if precision == "float32" else 0
    for (X, y), which in (((once.X, once.y), used & kept), (once.held_out, ~used & kept)):
        np.testing.assert_allclose(X, fitted[which], rtol=0, atol=tolerance)
        np.testing.assert_array_equal(y, 2 * values[which] - 1 if task == "binary" else values[which])
    lost = int((~kept).sum())
    assert (lost > 0) == (task == "binary") == any(f"{lost:,} rows without a usable label" in n for n in once.notes)
    assert 0.17 < len(once.held_out[1]) / kept.sum() < 0.23


def test_no_schema_is_one_that_is_drafted_with_a_warning(table, tmp_path):
    path = tmp_path / "t.csv"
    table.drop(columns="rich").dropna().to_csv(path, index=False)
    drafted = rows.read(path, "wage", None, holdout=0.2, precision="float64")
    assert drafted.warnings == [rows.DRAFTED]
    assert drafted.task == "regression"
    (tmp_path / "y.csv").write_text("a,y\n" + "".join(f"{i % 7},{i % 3}\n" for i in range(300)))
    counted = rows.read(tmp_path / "y.csv", "y", None, task="regression", holdout=0.2, precision="float64")
    assert set(counted.y) == {-1, 0, 1}
    with pytest.raises(UserError, match="compare takes two"):
        rows.read(tmp_path / "y.csv", "y", None, holdout=0.2, precision="float64")


def test_mistakes_are_one_line(table, tmp_path):
    path = tmp_path / "t.csv"
    table.drop(columns=["rich", "wage"]).to_csv(path)
    schema = Schema(target=TARGETS["binary"], columns=COLUMNS)
    how = {"holdout": 0.2, "precision": "float64"}
    with pytest.raises(DataError, match="there is no column 'rich'"):
        rows.read(path, None, schema, **how)
    three = Schema(target=Target(name="rich", classes=("a", "b", "c")), columns=COLUMNS)
    for given, task, line in [
        (three, None, "compare takes two"),
        (schema, "regression", "loss: it is for numbers, and rich has 2 classes"),
        (Schema(target=TARGETS["regression"], columns=COLUMNS), "binary", "loss: it is for two classes"),
        (None, None, "target: name the column to predict"),
    ]:
        with pytest.raises(UserError, match=line):
            rows.read(path, None, given, task=task, **how)
    with pytest.raises(UserError, match="precision must be float64 or float32"):
        rows.read(path, None, schema, holdout=0.2, precision="float16")
    table.drop(columns="wage").assign(extra=1).to_csv(path)
    with pytest.raises(UserError, match="the schema does not have the column 'extra'"):
        rows.read(path, None, schema, **how)


def test_a_disk_without_room_is_one_line(table, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(rows, "LARGE", 1)
    monkeypatch.setattr(rows.os, "posix_fallocate", full, raising=False)
    table[["age", "wage"]].to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(UserError, match=r"No space left on device .* GB are needed"):
        rows.read(tmp_path / "t.csv", "wage", None, holdout=0.2, precision="float64")


def test_all_rows_of_a_person_are_in_use_or_one_is_held_out(tmp_path, monkeypatch):
    rng, n = np.random.default_rng(0), 900
    names = [*(f"p{i}" for i in range(150)), "NA", ""]
    frame = pd.DataFrame({"id": rng.choice(names, n), "age": rng.uniform(1, 49, n)})
    frame["wage"] = frame["age"]  # so that a label says which row it is
    path, schema = tmp_path / "t.csv", Schema(target=TARGETS["regression"], columns={"age": COLUMNS["age"]}, unit="id")
    frame.to_csv(path, index=False)
    monkeypatch.setattr(tables, "ROWS", 128)
    done = rows.read(path, None, schema, holdout=0.3, precision="float64")
    assert "weigh 1/m" in done.notes[-1]
    scaled = frame["wage"].to_numpy() / 25 - 1
    of = lambda side: frame["id"].to_numpy()[[int(np.argmin(np.abs(scaled - y))) for y in side]]  # noqa: E731
    used, apart = of(done.y), of(done.held_out[1])
    assert not {*used} & {*apart}
    assert {*used} | {*apart} == set(frame["id"]) - {""}
    assert len(used) == frame["id"].isin(used).sum()
    assert 25 < len(apart) == len({*apart}) < 65
    assert len({*zip(used, done.whose, strict=True)}) == len({*used}) == done.whose.max() + 1


def test_a_problem_of_kept_rows_counts_each_person_once(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path))
    rng, sizes = np.random.default_rng(0), [7, *[1] * 40, *[3] * 30]
    whose = np.repeat(np.arange(len(sizes)), sizes)
    place = rng.permutation(len(whose))
    whose, X, y = whose[place], 0.4 * rng.uniform(-1, 1, (len(whose), 3)), rng.choice([-1.0, 1.0], len(whose))
    name = datasets.keep(X, y, "t", "drawn", held_out=(X[:5], y[:5]), whose=whose)
    plain = datasets.keep(X, y, "t", "drawn", held_out=(X[:5], y[:5]))
    assert name != plain
    assert (catalogue.declare(name).n, catalogue.declare(plain).n) == (len(sizes), len(y))
    problem, w = catalogue.build(name), np.array([[0.5, -1.0, 2.0]])
    m = np.bincount(whose)[whose]
    p = 1 / (1 + np.exp(y * (X @ w[0])))
    mean = lambda rows: (rows.T / m).T.sum(axis=0) / len(sizes)  # noqa: E731
    np.testing.assert_allclose(problem.data_gradient(w)[0], mean(-(y * p)[:, None] * X))
    np.testing.assert_allclose(problem.value_and_gradient(w)[0], mean(-np.log(1 - p)))
    curvature = (p * (1 - p))[:, None, None] * X[:, :, None] * X[:, None]
    np.testing.assert_allclose(problem.data_hessian(w)[0], mean(curvature))
    assert problem.mean_label == pytest.approx(mean(y))
    clipped = np.clip(-(y * p)[:, None] * X, -0.1 / 3**0.5, 0.1 / 3**0.5)
    np.testing.assert_allclose(problem.clipped_gradient(w, np.array([0.1]), even=True)[0], mean(clipped))
    assert pickle.loads(pickle.dumps(problem)).value(w) == problem.value(w)
    state = problem.coordinate_state(0 * w)
    for j in range(3):
        state.move(j, w[:, j])
    found = [state.derivative(j, np.array([0.1 / 3**0.5]))[0] for j in range(3)]
    np.testing.assert_allclose(found, mean(clipped))
    with pytest.raises(UserError, match="rows that have weights"):
        problem.gradient_sum(w, np.array([0]))
    assert np.abs(problem.gradient(problem.optimum().w[None])).max() < 1e-8
    # By its name it can be run on as well: there no rule has left the others out.
    for method in ("objpert", "phased-erm", "dp-sgd-1"):
        with pytest.raises(UserError, match=f"{method}: not derived for several rows of one person"):
            bind_jobs([make_job(problem=f"{name}:logistic,l2=0.1", algorithm=method, epsilon=1.0, seed=0)])
    given = name, "logistic", "t", tmp_path / "t.csv"
    for part in (*pilot.folds(*given), *pilot.made(*given)):
        inner = datasets.load(part.partition(":")[0])
        place = lambda side: [int(np.flatnonzero((x == X).all(axis=1))[0]) for x in side]  # noqa: E731
        used, apart = (whose[place(side)] for side in (inner.X, inner.held_out[0]))
        assert not {*used} & {*apart}
        assert len(apart) == len({*apart}) > 0
        assert catalogue.declare(part).n == len({*used})


FOREIGN = """
from dpbench.algorithms.gradient_descent import DPGradientDescent
class Mine(DPGradientDescent):
    name = "mine"
    persons = True
"""


def test_of_persons_only_methods_that_are_derived_for_them_are_compared(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBENCH_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    X, y = 0.4 * rng.uniform(-1, 1, (500, 3)), rng.choice([-1.0, 1.0], 500)
    mine = tmp_path / "mine.py"
    mine.write_text(FOREIGN)
    names = ["dp-gd", "dp-gcd", "objpert", "dp-sgd", f"{mine}:Mine", "dp-nag"]
    # The last takes an eigenvalue of the rows, and of foreign code no fit takes persons on its author's word.
    for whose, entered in ((None, names), (np.arange(500) // 2, names[:2])):
        problem = datasets.keep(X, y, "t", "drawn", held_out=(X[:5], y[:5]), whose=whose) + ":logistic,l2=0.1"
        field = ranking.field_of(problem, 1.0, names, 1)
        assert list(field.jobs) == entered
        assert set(field.left_out.values()) == {entrants.OF_ROWS} - {None if whose is not None else entrants.OF_ROWS}
