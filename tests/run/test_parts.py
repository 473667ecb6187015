"""Bits that rot, parts that are not ours, and power cuts: no number changes unseen, no finished batch is lost."""

import errno
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from dpbench import files
from dpbench.run import parts
from dpbench.run.results import Store
from tests.batches import write


def row(key, excess=1.0, **more):
    return {"key": key, "status": "done", "excess": excess, "seed": 0, "problem": "p", "algorithm": "a"} | more


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path, "quick", "e")


def flips(store, number, seed):
    """How many of `number` single flipped bits, anywhere in the part, are read as if nothing were wrong."""
    rng = np.random.default_rng(seed)
    write(store, [row(f"key{i}", float(x), settings="{}", notes="n") for i, x in enumerate(rng.normal(size=200))], [])
    (part,) = parts.listed(store.folder / "runs")
    content, columns = part.read_bytes(), list(store.runs().columns)
    unseen = 0
    for bit in rng.integers(8 * len(content), size=number):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << (bit % 8)
        part.write_bytes(damaged)
        try:
            parts.read(part, "runs", columns)
        except parts.Damaged:
            continue
        unseen += 1
    part.write_bytes(content)
    assert parts.read(part, "runs", columns).num_rows == 200
    return unseen


def test_a_flipped_bit_is_seen_wherever_it_is(store):
    assert flips(store, 100, seed=1) == 0


@pytest.mark.slow
def test_a_thousand_flipped_bits_are_seen(store):
    assert flips(store, 1000, seed=2) == 0


def test_a_damaged_part_is_set_aside_by_name_and_the_others_are_read(store, capsys):
    write(store, [row("a")], [])
    write(store, [row("b")], [])
    first = parts.listed(store.folder / "runs")[0]
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 4
    first.write_bytes(content)
    assert store.runs()["key"].tolist() == ["b"]
    assert f"set aside as {first.stem}.broken (its content does not have the digest" in capsys.readouterr().err
    assert first.with_suffix(".broken").exists()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda table: table.drop_columns("key"), "it has no column key"),
        (lambda table: table.set_column(table.column_names.index("key"), "key", [[None]]), "rows without key"),
    ],
)
def test_a_part_whose_rows_are_nobodys_is_set_aside(store, capsys, change, why):
    import pyarrow.parquet as pq

    write(store, [row("a")], [])
    write(store, [row("b")], [])
    last = parts.listed(store.folder / "runs")[-1]
    pq.write_table(change(pq.read_table(last)), last.with_name("9-foreign.parquet"))
    last.unlink()
    assert store.runs()["key"].tolist() == ["a"]
    assert f"9-foreign.broken ({why}" in capsys.readouterr().err


def test_a_pipe_among_the_parts_does_not_hang(store, capsys):
    write(store, [row("a")], [])
    os.mkfifo(store.folder / "runs" / "0-pipe.parquet")
    assert store.runs()["key"].tolist() == ["a"]
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
def test_a_power_cut_loses_no_finished_batch(store, tmp_path, monkeypatch):
    disk, acknowledged = Disk(monkeypatch), []
    for batch in range(12):
        keys = [f"{batch}-{i}" for i in range(3)]
        write(store, [row(key) for key in keys], [{"key": key, "iteration": 0, "excess": 1.0} for key in keys])
        acknowledged.append((len(disk.journal), keys))
        if batch % 4 == 3:
            store.compact()
    rng = random.Random(0)
    moments = [rng.randrange(len(disk.journal) + 1) for _ in range(100)]
    journal = disk.journal[:]  # what follows adds to it
    for number, moment in enumerate(moments):
        disk.journal = journal[:]
        left = Store(tmp_path / "after", "quick", f"{number}")
        for table in ("runs", "traces"):
            (left.folder / table).mkdir(parents=True)
            for name, content in disk.after_cut(moment, store.folder / table, rng).items():
                (left.folder / table / name).write_bytes(content)
        promised = {key for done, keys in acknowledged if done <= moment for key in keys}
        assert promised <= left.finished(), f"lost at operation {moment} of {len(journal)}"
        assert left.finished() <= left.traced(), "a row came before its traces"
        shutil.rmtree(left.folder)


def test_a_clock_that_is_set_back_lets_no_failure_win(store, monkeypatch):
    for moment, status in ((2 * 10**18, "died"), (10**18, "done"), (3 * 10**18, "died")):
        monkeypatch.setattr("time.time_ns", lambda moment=moment: moment)
        write(store, [row("a", 1.0 if status == "done" else None, status=status)], [])
    assert store.runs()["status"].tolist() == ["done"]
    store.compact()
    assert store.finished() == {"a"}


def test_a_clock_that_is_set_on_sweeps_no_part_away_that_is_being_written(store, monkeypatch):
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
    write(store, [row("a")], [])
    assert (store.finished(), len(swept)) == ({"a"}, 1)


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
def test_a_rename_that_nfs_sends_twice(store, monkeypatch, done):
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
    write(store, [row("a")], [])
    monkeypatch.undo()
    assert store.runs()["key"].tolist() == ["a"]
    assert len(list((store.folder / "runs").iterdir())) == 1


def test_a_part_that_another_machine_merged_away_is_looked_for_anew(store, monkeypatch):
    write(store, [row("a")], [])
    write(store, [row("b")], [])
    read, merged = Path.read_bytes, []

    def read_bytes(path):
        if path.suffix == ".parquet" and not merged:
            merged.append(path)
            store.compact()
            raise OSError(errno.ESTALE, "Stale file handle")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert store.runs()["key"].tolist() == ["a", "b"]
