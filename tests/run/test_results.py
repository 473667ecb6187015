import os
from pathlib import Path

import pyarrow as pa
import pytest

from dpbench.errors import UserError
from dpbench.run.outcomes import OUTCOMES
from dpbench.run.results import Store, _as_list
from dpbench.run.row import RUNS, TRACES
from tests.batches import write


def row(key, status="done", excess=1.0, **more):
    return {"key": key, "status": status, "excess": excess, "seed": 0, "problem": "p", "algorithm": "a"} | more


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path, "quick", "second_order")


def test_rows_come_back_with_every_column_of_the_schema(store):
    write(store, [row("a")], [{"key": "a", "iteration": 0, "passes": 0.0, "seconds": None, "excess": 2.0}])
    runs, traces = store.runs(), store.traces(["a"])
    assert list(runs.columns) == list(RUNS)
    assert list(traces.columns) == list(TRACES)
    assert runs["experiment"].tolist() == ["second_order"]
    assert runs["objective"].isna().all()
    assert traces["excess"].tolist() == [2.0]


def test_traces_of_no_runs_are_an_empty_table(store):
    write(store, [row("a")], [{"key": "a", "iteration": 0, "excess": 2.0}])
    assert store.traces([]).empty


def test_files_lie_where_others_read_them(store, tmp_path):
    import pyarrow.dataset

    write(store, [row("a")], [])
    write(store, [row("b")], [])
    table = pyarrow.dataset.dataset(tmp_path / "quick" / "second_order" / "runs").to_table()
    assert sorted(table["key"].to_pylist()) == ["a", "b"]


def test_an_empty_store_reads_as_empty_tables(store):
    assert store.runs().empty
    assert store.traces().empty
    assert store.finished() == set()


def test_a_finished_row_beats_a_failed_one_in_either_order(store):
    write(store, [row("a", "done", 1.0)], [])
    write(store, [row("a", "defect", None)], [])
    write(store, [row("b", "defect", None)], [])
    write(store, [row("b", "diverged", 5.0)], [])
    assert dict(zip(store.runs()["key"], store.runs()["status"], strict=True)) == {"a": "done", "b": "diverged"}
    assert store.finished() == {"a", "b"}


def test_failures_are_not_finished(store):
    write(store, [row("a", "defect", None)], [])
    assert store.finished() == set()
    assert store.statuses() == {"a": "defect"}


def test_compaction_keeps_every_row_in_one_file(store):
    for i in range(5):
        write(store, [row(f"k{i}", excess=float(i))], [{"key": f"k{i}", "iteration": 0, "excess": float(i)}])
    before = store.runs().sort_values("key")["excess"].tolist()
    store.compact()
    assert len(list((store.folder / "runs").iterdir())) == 1
    assert len(list((store.folder / "traces").iterdir())) == 1
    assert store.runs().sort_values("key")["excess"].tolist() == before
    assert len(store.traces()) == 5


def test_a_crash_between_merge_and_removal_leaves_no_duplicates(store):
    write(store, [row("a")], [])
    copy = next((store.folder / "runs").iterdir())
    (store.folder / "runs" / "0-copy.parquet").write_bytes(copy.read_bytes())
    assert len(store.runs()) == 1


def test_one_key_made_on_two_data_sets_is_an_error_that_names_the_part(store):
    for digest in ("a" * 64, "a" * 64, "b" * 64):
        write(store, [row("k", data_sha256=digest)], [])
    foreign = sorted((store.folder / "runs").iterdir())[-1].name
    with pytest.raises(UserError, match=f"rows of key k were made on different data .*1 on bbbb.* in {foreign}"):
        store.runs()
    (store.folder / "runs" / foreign).unlink()
    assert len(store.runs()) == 1


def test_a_run_that_failed_on_other_data_is_no_contradiction(store):
    write(store, [row("k", "died", None, data_sha256="a" * 64)], [])
    write(store, [row("k", data_sha256="b" * 64)], [])
    assert store.runs()["status"].tolist() == ["done"]


def test_a_temporary_file_left_by_a_killed_writer_is_not_read(store):
    write(store, [row("a")], [])
    (store.folder / "runs" / "x.tmp").write_bytes(b"half a file")
    assert len(store.runs()) == 1


def test_a_truncated_part_is_set_aside_and_named(store, capsys):
    write(store, [row("a")], [])
    write(store, [row("b")], [])
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
    with pytest.raises(TypeError, match="exces_s"):
        write(store, [row("a", exces_s=1.0)], [])


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_folder_is_one_clear_line(store, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="cannot write results"):
        write(store, [row("a")], [])


def test_a_results_path_that_is_a_file_is_one_clear_line(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="cannot write results"):
        write(Store(tmp_path / "taken", "quick", "e"), [row("a")], [])


def test_the_rows_of_the_repository_end_in_words_of_the_vocabulary():
    root = Path(__file__).parent.parent.parent / "results"
    stores = [Store(root, "full", folder.parent.name) for folder in sorted(root.glob("full/*/runs"))]
    assert stores
    assert {status for store in stores for status in store.statuses().values()} <= set(OUTCOMES)


def test_rows_from_before_a_setting_are_of_its_default(store):
    """dp-gcd got `scales` when rows were there; an alias keeps what it fixes, an unknown method its text."""
    old = '{"clip":1.0,"passes":2.0,"rule":"gs-r","selection":"proven","step":1.0}'
    new = '{"clip":1.0,"passes":2.0,"rule":"gs-r","scales":"data","selection":"proven","step":1.0}'
    bound = new.replace("data", "bound")
    rows = [("a", "dp-gcd", old), ("b", "dp-gcd", new), ("c", "dp-gcd", bound), ("d", "gone", old)]
    write(store, [{"key": key, "algorithm": name, "settings": text, "status": "done"} for key, name, text in rows], [])
    wanted = [new, new, bound, old]
    assert store.runs()["settings"].tolist() == wanted
    assert [text for (text, _) in store.columns("settings", "algorithm")] == wanted


def test_compaction_drops_what_it_is_told_and_nothing_that_came_meanwhile(store):
    write(store, [row("stale"), row("kept")], [])
    write(store, [row("meanwhile")], [])
    store.compact({"stale"})
    assert set(store.runs()["key"]) == {"kept", "meanwhile"}


def test_lists_of_numbers_are_read_whatever_is_missing_and_wherever_a_chunk_begins():
    kind = pa.list_(pa.float32())
    chunks = [pa.array([[1, 2], None, [], [3]], kind), pa.array([[4], None, [], [5, 6], None] * 7, kind).slice(3, 20)]
    column = pa.chunked_array([*chunks, pa.array([[7], [8]], kind)])
    assert [None if one is None else one.tolist() for one in _as_list(column)] == column.to_pylist()
