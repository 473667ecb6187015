import os

import pytest

from dpbench.errors import UserError
from dpbench.run.results import RUNS, TRACES, Store


def row(key, status="done", excess=1.0, **more):
    return {"key": key, "status": status, "excess": excess, "seed": 0, "problem": "p", "algorithm": "a"} | more


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path, "quick", "second_order")


def test_rows_come_back_with_every_column_of_the_schema(store):
    store.write([row("a")], [{"key": "a", "iteration": 0, "passes": 0.0, "seconds": None, "excess": 2.0}])
    runs, traces = store.runs(), store.traces(["a"])
    assert list(runs.columns) == list(RUNS)
    assert list(traces.columns) == list(TRACES)
    assert runs["experiment"].tolist() == ["second_order"]
    assert runs["objective"].isna().all()
    assert traces["excess"].tolist() == [2.0]


def test_traces_of_no_runs_are_an_empty_table(store):
    store.write([row("a")], [{"key": "a", "iteration": 0, "excess": 2.0}])
    assert store.traces([]).empty


def test_files_lie_where_others_read_them(store, tmp_path):
    import pyarrow.dataset

    store.write([row("a")], [])
    store.write([row("b")], [])
    table = pyarrow.dataset.dataset(tmp_path / "quick" / "second_order" / "runs").to_table()
    assert sorted(table["key"].to_pylist()) == ["a", "b"]


def test_an_empty_store_reads_as_empty_tables(store):
    assert store.runs().empty
    assert store.traces().empty
    assert store.finished() == set()


def test_a_finished_row_beats_a_failed_one_in_either_order(store):
    store.write([row("a", "done", 1.0)], [])
    store.write([row("a", "failed", None)], [])
    store.write([row("b", "failed", None)], [])
    store.write([row("b", "diverged", 5.0)], [])
    assert dict(zip(store.runs()["key"], store.runs()["status"], strict=True)) == {"a": "done", "b": "diverged"}
    assert store.finished() == {"a", "b"}


def test_failures_are_not_finished(store):
    store.write([row("a", "failed", None)], [])
    assert store.finished() == set()
    assert store.statuses() == {"a": "failed"}


def test_compaction_keeps_every_row_in_one_file(store):
    for i in range(5):
        store.write([row(f"k{i}", excess=float(i))], [{"key": f"k{i}", "iteration": 0, "excess": float(i)}])
    before = store.runs().sort_values("key")["excess"].tolist()
    store.compact()
    assert len(list((store.folder / "runs").iterdir())) == 1
    assert len(list((store.folder / "traces").iterdir())) == 1
    assert store.runs().sort_values("key")["excess"].tolist() == before
    assert len(store.traces()) == 5


def test_a_crash_between_merge_and_removal_leaves_no_duplicates(store):
    store.write([row("a")], [])
    copy = next((store.folder / "runs").iterdir())
    (store.folder / "runs" / "0-copy.parquet").write_bytes(copy.read_bytes())
    assert len(store.runs()) == 1


def test_a_temporary_file_left_by_a_killed_writer_is_not_read(store):
    store.write([row("a")], [])
    (store.folder / "runs" / "x.tmp").write_bytes(b"half a file")
    assert len(store.runs()) == 1


def test_a_truncated_part_is_set_aside_and_named(store, capsys):
    store.write([row("a")], [])
    store.write([row("b")], [])
    part = sorted((store.folder / "runs").glob("*.parquet"))[0]
    part.write_bytes(part.read_bytes()[:100])
    assert len(store.runs()) == 1
    assert "set aside" in capsys.readouterr().err
    assert part.with_suffix(".broken").exists()


def test_an_older_part_without_a_new_column_reads_as_null(store):
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = store.folder / "runs"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"key": ["old"], "status": ["done"]}), folder / "0.parquet")
    assert store.runs()["accuracy"].isna().tolist() == [True]


def test_an_unknown_column_is_a_defect_of_ours_not_silently_dropped(store):
    with pytest.raises(ValueError, match="exces_s"):
        store.write([row("a", exces_s=1.0)], [])


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_folder_is_one_clear_line(store, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="cannot write results"):
        store.write([row("a")], [])


def test_a_results_path_that_is_a_file_is_one_clear_line(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="cannot write results"):
        Store(tmp_path / "taken", "quick", "e").write([row("a")], [])


def older_part(store, rows):
    """A part as it was written before `epsilon_planned`, `epsilon_realised` and `counts_public`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = store.folder / "runs"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "0-older.parquet")


def test_older_rows_are_read_under_todays_names_and_filled_where_they_tell(store):
    early = {"T": 20, "gradient_evaluations": 3, "hessian_evaluations": 1, "epsilon_spent": 0.1}
    given = {"settings": '{"L":null}', "epsilon_accounted": 0.2, "epsilon": 1.0}
    older_part(
        store,
        [
            given | row("early", algorithm="opt", **early),
            given | row("gd", algorithm="dp-gd", T=5, epsilon_spent=0.9),
            given | row("whole", algorithm="opt", **early | {"gradient_evaluations": 20, "hessian_evaluations": 20}),
            given | row("nag", algorithm="dp-nag", T=5, epsilon_spent=1.0),
            given | row("mine", algorithm="somebody's", T=5, epsilon_spent=0.5),
        ],
    )
    store.write([row("new", algorithm="opt", epsilon_planned=0.8, epsilon_realised=0.3, counts_public="")], [])
    runs = store.runs().set_index("key")
    assert "epsilon_spent" not in runs
    assert runs["epsilon_realised"].to_dict() == {
        "gd": 0.9, "early": 0.1, "whole": 0.1, "nag": 1.0, "mine": 0.5, "new": 0.3,
    }  # fmt: skip
    planned = runs["epsilon_planned"]
    assert planned.dropna().to_dict() == {"gd": 0.9, "whole": 0.1, "nag": 1.0, "new": 0.8}
    assert runs["epsilon_accounted"].dropna().index.tolist() == ["gd", "whole", "nag"]
    assert runs["counts_public"]["nag"] == "the top eigenvalue of XᵀX/n (L)"
    assert (runs["counts_public"]["gd"], runs["counts_public"]["new"]) == ("", "")
    assert store.columns("epsilon_realised")[1] == (0.9,)
    store.compact()
    again = store.runs().set_index("key")
    assert again["epsilon_realised"].to_dict() == runs["epsilon_realised"].to_dict()
    assert again["epsilon_planned"].dropna().to_dict() == planned.dropna().to_dict()
