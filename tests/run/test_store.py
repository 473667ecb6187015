"""Bits that rot, parts that are not ours, and power cuts: no number changes unseen, no finished batch is lost."""

import errno
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpbench import files
from dpbench.errors import UserError
from dpbench.run.outcomes import OUTCOMES
from dpbench.run.row import RUNS, TRACES, completed
from dpbench.run.store import Damaged, Store, _as_list, list_parts, read_part
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
    assert store.ended().results == set()


def test_a_finished_row_beats_a_failed_one_in_either_order(store):
    write(store, [row("a", "done", 1.0)], [])
    write(store, [row("a", "defect", None)], [])
    write(store, [row("b", "defect", None)], [])
    write(store, [row("b", "diverged", 5.0)], [])
    assert dict(zip(store.runs()["key"], store.runs()["status"], strict=True)) == {"a": "done", "b": "diverged"}
    assert store.ended().results == {"a", "b"}


def test_failures_are_not_finished(store):
    write(store, [row("a", "defect", None)], [])
    assert store.ended().results == set()
    assert store.ended().statuses == {"a": "defect"}


def test_compaction_keeps_every_row_in_one_file(store):
    for i in range(5):
        write(store, [row(f"k{i}", excess=float(i))], [{"key": f"k{i}", "iteration": 0, "excess": float(i)}])
    before = store.runs().sort_values("key")["excess"].tolist()
    store.compact()
    assert len(list((store.folder / "runs").iterdir())) == 1
    assert len(list((store.folder / "traces").iterdir())) == 1
    assert store.runs().sort_values("key")["excess"].tolist() == before
    assert len(store.traces()) == 5


@pytest.mark.parametrize(
    ("parts", "drop", "kept", "written"),
    [(0, {"k0"}, [], False), (1, (), ["k0"], False), (1, {"k0"}, [], True), (2, (), ["k0", "k1"], True),
     (2, {"k0"}, ["k1"], True)],
)  # fmt: skip
def test_compaction_writes_where_there_is_something_to_merge_or_to_drop_and_nowhere_else(
    store, parts, drop, kept, written
):
    for i in range(parts):
        write(store, [row(f"k{i}")], [])
    before = list_parts(store.folder / "runs")
    store.compact(drop)
    after = list_parts(store.folder / "runs")
    assert sorted(store.runs()["key"]) == kept
    assert (after != before, len(after)) == (written, min(parts, 1))


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


@pytest.mark.parametrize(("folder", "file"), [(0o755, 0o640), (0o750, 0o640), (0o701, 0o640), (0o700, 0o600)])
def test_a_file_is_for_whom_the_umask_lets_in_and_in_a_private_folder_for_its_owner_alone(tmp_path, folder, file):
    tmp_path.chmod(folder)
    umask = os.umask(0o027)
    try:
        files.write(tmp_path / "page.html", "")
    finally:
        os.umask(umask)
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == file


def test_a_results_path_that_is_a_file_is_one_clear_line(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="cannot write results"):
        write(Store(tmp_path / "taken", "quick", "e"), [row("a")], [])


def test_the_rows_of_the_repository_end_in_words_of_the_vocabulary():
    root = Path(__file__).parent.parent.parent / "results"
    stores = [Store(root, "full", folder.parent.name) for folder in sorted(root.glob("full/*/runs"))]
    assert stores
    assert {status for store in stores for status in store.ended().statuses.values()} <= set(OUTCOMES)


def test_rows_from_before_a_setting_are_of_its_default(store):
    """dp-gcd got `scales` when rows were there; an alias keeps what it fixes, an unknown method its text."""
    old = '{"clip":1.0,"passes":2.0,"rule":"gs-r","selection":"proven","step":1.0}'
    new = '{"clip":1.0,"passes":2.0,"rule":"gs-r","scales":"data","selection":"proven","step":1.0}'
    bound = new.replace("data", "bound")
    rows = [("a", "dp-gcd", old), ("b", "dp-gcd", new), ("c", "dp-gcd", bound), ("d", "gone", old)]
    write(store, [{"key": key, "algorithm": name, "settings": text, "status": "done"} for key, name, text in rows], [])
    wanted = [new, new, bound, old]
    assert store.runs()["settings"].tolist() == wanted
    assert store.lists("settings", "algorithm")[0] == wanted


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


def parts_row(key, excess=1.0, **more):
    return {"key": key, "status": "done", "excess": excess, "seed": 0, "problem": "p", "algorithm": "a"} | more


@pytest.fixture
def parts_store(tmp_path):
    return Store(tmp_path, "quick", "e")


def flips(parts_store, number, seed):
    """How many of `number` single flipped bits, anywhere in the part, are read as if nothing were wrong."""
    rng = np.random.default_rng(seed)
    write(
        parts_store,
        [parts_row(f"key{i}", float(x), settings="{}", notes="n") for i, x in enumerate(rng.normal(size=200))],
        [],
    )
    (part,) = list_parts(parts_store.folder / "runs")
    content, columns = part.read_bytes(), list(parts_store.runs().columns)
    unseen = 0
    for bit in rng.integers(8 * len(content), size=number):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << (bit % 8)
        part.write_bytes(damaged)
        try:
            read_part(part, "runs", columns)
        except Damaged:
            continue
        unseen += 1
    part.write_bytes(content)
    assert read_part(part, "runs", columns).num_rows == 200
    return unseen


def test_a_flipped_bit_is_seen_wherever_it_is(parts_store):
    assert flips(parts_store, 100, seed=1) == 0


@pytest.mark.slow
def test_a_thousand_flipped_bits_are_seen(parts_store):
    assert flips(parts_store, 1000, seed=2) == 0


def test_a_damaged_part_is_set_aside_by_name_and_the_others_are_read(parts_store, capsys):
    write(parts_store, [parts_row("a")], [])
    write(parts_store, [parts_row("b")], [])
    first = list_parts(parts_store.folder / "runs")[0]
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 4
    first.write_bytes(content)
    assert parts_store.runs()["key"].tolist() == ["b"]
    assert f"set aside as {first.stem}.broken (its content does not have the digest" in capsys.readouterr().err
    assert first.with_suffix(".broken").exists()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda table: table.drop_columns("key"), "it has no column key"),
        (lambda table: table.set_column(table.column_names.index("key"), "key", [[None]]), "rows without key"),
    ],
)
def test_a_part_whose_rows_are_nobodys_is_set_aside(parts_store, capsys, change, why):
    import pyarrow.parquet as pq

    write(parts_store, [parts_row("a")], [])
    write(parts_store, [parts_row("b")], [])
    last = list_parts(parts_store.folder / "runs")[-1]
    pq.write_table(change(pq.read_table(last)), last.with_name("9-foreign.parquet"))
    last.unlink()
    assert parts_store.runs()["key"].tolist() == ["a"]
    assert f"9-foreign.broken ({why}" in capsys.readouterr().err


def test_a_pipe_among_the_parts_does_not_hang(parts_store, capsys):
    write(parts_store, [parts_row("a")], [])
    os.mkfifo(parts_store.folder / "runs" / "0-pipe.parquet")
    assert parts_store.runs()["key"].tolist() == ["a"]
    assert "0-pipe.broken (not a regular file)" in capsys.readouterr().err


class Disk:
    """What a power cut may leave: contents that were synchronised, names up to the last synchronised folder for sure.

    Of the renames and removals after that, any subset may have reached the disk; a file whose content was not
    synchronised is empty.
    """

    def __init__(self, monkeypatch):
        self.journal = []  # (what, path, more)
        replace, unlink, synchronise = os.replace, os.unlink, files.synchronise

        def replaced(source, target, **options):
            self.journal.append(("rename", Path(target), Path(source)))
            replace(source, target, **options)

        def unlinked(path, **options):
            self.journal.append(("unlink", Path(path), None))
            unlink(path, **options)

        def synchronised(path):
            path = Path(path)
            self.journal.append(("folder", path, None) if path.is_dir() else ("file", path, path.read_bytes()))
            synchronise(path)

        monkeypatch.setattr(os, "replace", replaced)
        monkeypatch.setattr(os, "unlink", unlinked)
        monkeypatch.setattr(files, "synchronise", synchronised)

    def after_cut(self, moment, folder, rng):
        """Name → content of what lies in `folder`."""
        contents, names, pending = {}, {}, []

        def apply(what, path, more):
            if what == "rename":
                names[path.name] = contents.get(more, b"")
            elif path.suffix == ".parquet":
                names.pop(path.name, None)

        for what, path, more in self.journal[:moment]:
            if what == "file":
                contents[path] = more
            elif what == "folder" and path == folder:
                for each in pending:
                    apply(*each)
                pending = []
            elif what in ("rename", "unlink") and path.parent == folder:
                pending.append((what, path, more))
        for each in pending:
            if rng.random() < 0.5:
                apply(*each)
        return names


@pytest.mark.thorough
def test_a_power_cut_loses_no_finished_batch(parts_store, tmp_path, monkeypatch):
    disk, acknowledged = Disk(monkeypatch), []
    for batch in range(12):
        keys = [f"{batch}-{i}" for i in range(3)]
        write(
            parts_store, [parts_row(key) for key in keys], [{"key": key, "iteration": 0, "excess": 1.0} for key in keys]
        )
        acknowledged.append((len(disk.journal), keys))
        if batch % 4 == 3:
            parts_store.compact()
    rng = random.Random(0)
    moments = [rng.randrange(len(disk.journal) + 1) for _ in range(100)]
    journal = disk.journal[:]  # what follows adds to it
    for number, moment in enumerate(moments):
        disk.journal = journal[:]
        left = Store(tmp_path / "after", "quick", f"{number}")
        for table in ("runs", "traces"):
            (left.folder / table).mkdir(parents=True)
            for name, content in disk.after_cut(moment, parts_store.folder / table, rng).items():
                (left.folder / table / name).write_bytes(content)
        promised = {key for done, keys in acknowledged if done <= moment for key in keys}
        assert promised <= left.ended().results, f"lost at operation {moment} of {len(journal)}"
        assert left.ended().results <= left.traced(), "a row came before its traces"
        shutil.rmtree(left.folder)


def test_a_clock_that_is_set_back_lets_no_failure_win(parts_store, monkeypatch):
    for moment, status in ((2 * 10**18, "died"), (10**18, "done"), (3 * 10**18, "died")):
        monkeypatch.setattr("time.time_ns", lambda moment=moment: moment)
        write(parts_store, [parts_row("a", 1.0 if status == "done" else None, status=status)], [])
    assert parts_store.runs()["status"].tolist() == ["done"]
    parts_store.compact()
    assert parts_store.ended().results == {"a"}


def test_a_clock_that_is_set_on_sweeps_no_part_away_that_is_being_written(parts_store, monkeypatch):
    """Another process, by whose clock the half-written part is two hours old, removes it once."""
    import pyarrow.parquet as pq

    written, swept = pq.write_table, []

    def write_table(table, path, **options):
        written(table, path, **options)
        if not swept:
            swept.append(path)
            os.utime(path, (0, 0))
            files.sweep(path.parent)
            assert not path.exists()

    monkeypatch.setattr(pq, "write_table", write_table)
    write(parts_store, [parts_row("a")], [])
    assert (parts_store.ended().results, len(swept)) == ({"a"}, 1)


def test_the_age_of_what_was_left_is_told_by_the_disks_clock(tmp_path, monkeypatch):
    left = tmp_path / ".x.tmp"
    left.touch()
    monkeypatch.setattr("time.time", lambda: 1e12)  # this machine's is wrong
    files.sweep(tmp_path)
    assert left.exists()
    os.utime(left, (0, 0))
    files.sweep(tmp_path)
    assert not left.exists()


@pytest.mark.parametrize("done", [True, False])
def test_a_rename_that_nfs_sends_twice(parts_store, monkeypatch, done):
    """The second is answered "no such file"; where the first did not arrive either, the part is written again."""
    replace, errors = Path.replace, []

    def replaced(source, target):
        if errors:
            return replace(source, target)
        if done:
            replace(source, target)
        errors.append(source)
        raise FileNotFoundError(source)

    monkeypatch.setattr(Path, "replace", replaced)
    write(parts_store, [parts_row("a")], [])
    monkeypatch.undo()
    assert parts_store.runs()["key"].tolist() == ["a"]
    assert len(list((parts_store.folder / "runs").iterdir())) == 1


def test_a_part_that_another_machine_merged_away_is_looked_for_anew(parts_store, monkeypatch):
    write(parts_store, [parts_row("a")], [])
    write(parts_store, [parts_row("b")], [])
    read, merged = Path.read_bytes, []

    def read_bytes(path):
        if path.suffix == ".parquet" and not merged:
            merged.append(path)
            parts_store.compact()
            raise OSError(errno.ESTALE, "Stale file handle")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert parts_store.runs()["key"].tolist() == ["a", "b"]


def test_a_setting_that_is_gone_counts_as_its_value_of_today_and_only_that():
    today = completed("dp-gd-average", '{"T":30}')
    assert completed("dp-gd-average", '{"T":30,"centred":false}') == today == completed("dp-gd-average", today)
    assert '"centred":true' in completed("dp-gd-average", '{"T":30,"centred":true}')
