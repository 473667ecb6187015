"""Blocks that wait for other blocks' rows: timed runs of cells whose untimed runs all ended well."""

from types import SimpleNamespace

import pytest

from dpbench.errors import UserError
from dpbench.run.job import make_job
from dpbench.run.store import Store
from dpbench.study.grid import GridEntry, load_grid
from dpbench.study.plan import JobPlan, RunCount, _notes, plan
from tests.batches import write

SHARED = {"artefacts": ["t"], "problems": ["synthetic"], "algorithms": ["dp-gd"], "epsilon": [0.5, 1], "seeds": 2}
TIMED = GridEntry(**SHARED, settings={"T": [3, 5]}, timed=2, timed_if="done")


def store_with(tmp_path, status):
    """A store with the untimed rows of TIMED's cells; status(epsilon, T, seed) says how each ended, None: no row."""
    store = Store(tmp_path, "quick", "second_order")
    for epsilon, T, seed in ((e, T, s) for e in (0.5, 1) for T in (3, 5) for s in (0, 1)):
        job = make_job(problem="synthetic", algorithm="dp-gd", epsilon=epsilon, seed=seed, settings={"T": T})
        if status(epsilon, T, seed):
            write(store, [{"key": job.key, "status": status(epsilon, T, seed)}], [])
    return store


def test_a_cell_is_timed_only_if_all_its_seeds_ended_so(tmp_path):
    store = store_with(tmp_path, lambda epsilon, T, seed: "diverged" if (epsilon, T, seed) == (1, 5, 1) else "done")
    planned = plan([TIMED], store)
    assert sorted({(j.epsilon, j.parsed().T) for j in planned.jobs}) == [(0.5, 3), (0.5, 5), (1.0, 3)]
    assert len(planned.jobs) == 3 * 2 * 2  # cells × seeds × repetitions
    assert all(job.timed for job in planned.jobs)
    assert planned.waiting == []


def test_a_cell_with_a_missing_seed_waits(tmp_path):
    store = store_with(tmp_path, lambda epsilon, T, seed: None if (epsilon, T, seed) == (0.5, 3, 0) else "done")
    planned = plan([TIMED], store)
    assert sorted({(j.epsilon, j.parsed().T) for j in planned.jobs}) == [(0.5, 5), (1.0, 3), (1.0, 5)]
    assert planned.waiting == ["dp-gd on synthetic at ε = 0.5 (its untimed runs)"]


def test_without_rows_everything_waits():
    planned = plan([TIMED], None)
    assert not planned.jobs
    assert len(planned.waiting) == 4


def test_timed_if_without_timed_is_refused(tmp_path):
    grid = tmp_path / "g.toml"
    grid.write_text(
        '[[full]]\nartefacts = []\nproblems = []\nalgorithms = []\nepsilon = [1]\nseeds = 1\ntimed_if = "done"\n'
    )
    with pytest.raises(UserError, match=r"timed_if needs timed >= 1 - at `\$\.full\[0\]`"):
        load_grid(grid)


@pytest.mark.parametrize(
    ("waiting", "unfinished", "beyond", "hours", "said"),
    [
        (0, "", 0, 0.99, ""),
        (0, "", 0, 1.0, "missing: roughly 1 core-hours"),
        (0, "ab", 0, 0.0, "data not fetched: of-a, of-b"),
        (0, "c", 0, 0.0, ""),  # its data are fetched
        (0, "", 3, 0.0, "3 not applicable: ε is out of reach of their accounting"),
        (1, "", 0, 0.0, "1 combination waits for other runs"),
        (2, "", 0, 0.0, "2 combinations wait for other runs"),
        (
            2, "bac", 1, 123.4,
            "missing: roughly 1.2e+02 core-hours; data not fetched: of-a, of-b; "
            "1 not applicable: ε is out of reach of their accounting; 2 combinations wait for other runs",
        ),
    ],
)  # fmt: skip
def test_a_line_of_status_says_why_its_runs_are_missing(waiting, unfinished, beyond, hours, said):
    planned = JobPlan(lambda problem: "" if problem == "c" else f"of-{problem}", waiting=["one"] * waiting)
    assert _notes(planned, set(unfinished), beyond, hours) == said


def test_hours_are_of_the_missing_runs_alone_on_one_core():
    """Of ten runs of a T three are missing, one failed and two are beyond reach; of another two are missing."""
    jobs = [
        make_job(problem="synthetic", algorithm="dp-gd", epsilon=1.0, seed=0, settings={"T": T}) for T in (10**6, 7)
    ]
    series = [SimpleNamespace(like=SimpleNamespace(whole=str(i)), job=job, keys={f"{i}{j}" for j in range(10 - i)})
              for i, job in enumerate(jobs)]  # fmt: skip
    missing = {10: (3, 1, 2), 9: (2, 0, 0)}
    ended = SimpleNamespace(counts=lambda keys, traced: missing[len(keys)])
    seconds = [job.cost / 5e9 + job.parsed().T * 1e-5 for job in jobs]
    sums, unfinished, hours = RunCount(ended).of(series)
    assert (sums, unfinished) == ((19, 5, 1, 2), {"synthetic"})
    assert hours == pytest.approx((3 * seconds[0] + 2 * seconds[1]) / 3600)
    missing = {10: (0, 10, 0), 9: (0, 0, 9)}
    assert RunCount(ended).of(series) == ((19, 0, 10, 9), set(), 0.0)
