"""Arrays that are not those of the recipe are refused by name, whatever the files beside them say."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.sparse import csr_array

from dpbench import datasets
from dpbench.datasets import cache, loading
from dpbench.errors import DataError, UserError
from tests.datasets.conftest import TABLE, tiny_file, tiny_spec


def leftovers(folder):
    return list(folder.rglob(".*.tmp"))


@pytest.fixture
def tiny(home, registered):
    """A data set whose raw file lies in the cache."""
    spec = registered(tiny_spec(tiny_file()))
    (home / "raw/tiny").mkdir(parents=True)
    (home / "raw/tiny/tiny.csv").write_bytes(TABLE)
    return spec


def test_load_gives_read_only_maps_and_facts(tiny, home):
    data = datasets.load("tiny")
    assert isinstance(data.X, np.memmap)
    assert data.X.flags.c_contiguous
    assert not data.X.flags.writeable
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4], [5, 6], [7, 8]])
    np.testing.assert_array_equal(data.y, [1, -1, 1, -1])
    assert data.row_norm == pytest.approx(np.hypot(7, 8))
    assert data.facts == {
        **{"rows": 4, "columns": 2, "task": "binary", "classes": {"-1": 2, "1": 2}},
        **{"sparse": False, "nonzeros": 8, "row_norm_l1": 15.0},
    }
    assert data.folder == home / "prepared/tiny-v1"
    assert datasets.load("tiny") is data


def test_manifest_names_raw_files_versions_and_digests(tiny):
    manifest = json.loads((datasets.load("tiny").folder / "manifest.json").read_text())
    assert manifest["raw"] == [
        {
            **{"file": "tiny.csv", "sha256": tiny.files[0].sha256[0]},
            **{"source": "put there by hand", "hash": "as listed"},
        }
    ]
    assert (manifest["recipe_version"], manifest["numpy"]) == (1, np.__version__)
    assert manifest["sha256"] == datasets.load("tiny").sha256


def test_digest_sees_values_types_shapes_and_names():
    base = {"X.npy": np.arange(6.0).reshape(2, 3)}
    others = [
        {"X.npy": np.arange(6.0).reshape(3, 2)},
        {"X.npy": np.arange(6).reshape(2, 3)},
        {"y.npy": np.arange(6.0).reshape(2, 3)},
        {"X.npy": np.nextafter(np.arange(6.0), 9).reshape(2, 3)},
    ]
    digests = {cache.digest(parts) for parts in [base, *others]}
    assert len(digests) == 5
    assert cache.digest({"X.npy": np.asfortranarray(base["X.npy"])}) == cache.digest(base)


def test_sparse_data_are_mapped_without_copies(home, registered):
    X = csr_array(np.array([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0], [1.0, 1.0]]))
    spec = registered(tiny_spec(tiny_file(), files=(), prepare=lambda raw: (X, np.array([1.0, -1, 1, -1]))))
    data = datasets.load(spec.name)
    assert isinstance(data.X, csr_array)
    np.testing.assert_array_equal(data.X.toarray(), X.toarray())
    for part in (data.X.data, data.X.indices, data.X.indptr):
        while not isinstance(part, np.memmap):
            assert part.base is not None
            part = part.base


def test_pickling_sends_a_folder_not_the_arrays(home):
    data = datasets.load("synthetic")
    message = pickle.dumps(data)
    copy = pickle.loads(message)
    assert len(message) < 2000
    assert isinstance(copy.X, np.memmap)
    assert (copy.name, copy.sha256, copy.facts, copy.folder) == (data.name, data.sha256, data.facts, data.folder)
    np.testing.assert_array_equal(copy.X, data.X)


def test_a_new_recipe_version_has_its_own_folder(tiny, registered):
    first = datasets.load("tiny").folder
    second = cache.prepared_folder(cache.root(), tiny_spec(tiny_file(), version=2))
    assert (first.name, second.name) == ("tiny-v1", "tiny-v2")


def test_an_array_of_the_wrong_size_is_prepared_again(tiny):
    folder = datasets.load("tiny").folder
    whole = (folder / "X.npy").read_bytes()
    (folder / "X.npy").write_bytes(whole[:-8])
    loading.load_spec.cache_clear()
    np.testing.assert_array_equal(datasets.load("tiny").X[-1], [7, 8])
    assert (folder / "X.npy").read_bytes() == whole
    assert not leftovers(folder.parent)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"recipe_version": 1, "bytes": 3}'])
def test_a_broken_manifest_is_written_again(tiny, content):
    folder = datasets.load("tiny").folder
    (folder / "manifest.json").write_bytes(content)
    loading.load_spec.cache_clear()
    assert datasets.load("tiny").facts["rows"] == 4


def test_verify_finds_a_flipped_bit(tiny):
    folder = datasets.load("tiny").folder
    assert datasets.verify("tiny") is True
    content = bytearray((folder / "X.npy").read_bytes())
    content[-1] ^= 1
    (folder / "X.npy").write_bytes(content)
    assert cache.is_sound(folder, tiny)  # the size is right
    assert datasets.verify("tiny") is False
    assert datasets.verify("tiny") is True
    np.testing.assert_array_equal(datasets.load("tiny").X[-1], [7, 8])


def test_a_failed_write_leaves_nothing(tiny, home, monkeypatch):
    real = np.save

    def full_disk(path, array):
        if path.name == "y.npy":
            raise OSError(28, "No space left on device")
        real(path, array)

    monkeypatch.setattr(np, "save", full_disk)
    with pytest.raises(UserError, match="No space left on device; set DPBENCH_DATA to a writable folder with room"):
        datasets.load("tiny")
    assert list((home / "prepared").iterdir()) == []


def test_who_comes_second_keeps_the_first_ones_arrays(tiny):
    folder = datasets.load("tiny").folder
    (folder / "optimum.npz").write_bytes(b"cached by others")
    data = datasets.load("tiny")
    assert cache.write(cache.root(), tiny, data.X, data.y, []) == folder
    assert (folder / "optimum.npz").exists()
    assert not leftovers(folder.parent)


def test_two_processes_may_prepare_the_same_set_at_once(home):
    code = "from dpbench import datasets; print(datasets.load('synthetic').sha256)"
    runs = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    digests = {run.communicate(timeout=60)[0].strip() for run in runs}
    assert [run.returncode for run in runs] == [0, 0]
    assert digests == {datasets.load("synthetic").sha256}
    assert [path.name for path in (home / "prepared").iterdir()] == ["synthetic-v1"]


def test_only_old_temporary_folders_are_swept(tiny, home):
    old, new = home / "prepared/.x-v1-a.tmp", home / "prepared/.x-v1-b.tmp"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "X.npy").touch()
    long_ago = time.time() - 7200
    os.utime(old, (long_ago, long_ago))
    datasets.load("tiny")
    assert (old.exists(), new.exists()) == (False, True)


def test_where_the_cache_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPBENCH_DATA", "here")
    assert cache.root() == tmp_path / "here"
    monkeypatch.delenv("DPBENCH_DATA")
    assert cache.root().name == "dpbench"
    (tmp_path / "datasets").mkdir()
    assert cache.root() == tmp_path / "datasets"


@pytest.fixture
def pins_tiny(home, registered, monkeypatch):
    """A pinned data set whose raw file has no pinned digest; it lies in a mirror, `tiny(content)`."""
    registered(tiny_spec(tiny_file(pinned=False, sha256=())))
    X, y = np.array([[1.0, 2], [3, 4], [5, 6], [7, 8]]), np.array([1.0, -1, 1, -1])
    parts = cache.parts_of(X, y)
    pin = cache.Pin(cache.digest(parts), cache.fingerprint(parts))
    monkeypatch.setattr(cache, "pinned", lambda: {"tiny-v1": pin})

    def put(content):
        (home.parent / "mirror").mkdir(exist_ok=True)
        (home.parent / "mirror" / "tiny.csv").write_bytes(content)
        monkeypatch.setenv("DPBENCH_MIRROR", str(home.parent / "mirror"))

    return put


def replace(folder, change):
    """Edit X.npy, and the manifest so that it agrees."""
    X = np.load(folder / "X.npy")
    np.save(folder / "X.npy", change(X))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"] = cache.digest(cache.map_parts(folder))
    (folder / "manifest.json").write_text(json.dumps(manifest))
    loading.load_spec.cache_clear()


@pytest.mark.parametrize("change", [lambda X: X[::-1], lambda X: X + [[0, 1e-9]] * 4, lambda X: X * [1, -1]])
def test_arrays_and_manifest_edited_together_are_refused_by_name(pins_tiny, change):
    pins_tiny(TABLE)
    replace(datasets.load("tiny").folder, change)
    with pytest.raises(DataError, match=r"tiny-v1: the arrays are not those of its recipe .* remove .*tiny-v1 and"):
        datasets.load("tiny")


def test_swapped_rows_in_a_mirror_are_refused_and_forgotten(pins_tiny, home):
    pins_tiny(b"3,4,-1\n1,2,1\n5,6,1\n7,8,-1\n")
    with pytest.raises(DataError, match="tiny-v1: the arrays are not those of its recipe"):
        datasets.load("tiny")
    assert not list((home / "prepared").glob("tiny*"))
    pins_tiny(TABLE)
    assert datasets.load("tiny").facts["rows"] == 4


def test_bytes_changed_under_the_pinned_digest_are_found_by_verify(pins_tiny):
    pins_tiny(TABLE)
    folder = datasets.load("tiny").folder
    np.save(folder / "X.npy", np.load(folder / "X.npy")[::-1])
    loading.load_spec.cache_clear()
    assert datasets.verify("tiny") is False
    np.testing.assert_array_equal(datasets.load("tiny").X[0], [1, 2])


def test_last_digits_that_another_processor_rounds_are_accepted(pins_tiny):
    pins_tiny(TABLE)
    replace(datasets.load("tiny").folder, lambda X: np.nextafter(X, np.inf))
    assert datasets.load("tiny").facts["rows"] == 4
    assert datasets.verify("tiny") is True


def test_a_fingerprint_tells_positions_apart():
    rng = np.random.default_rng(0)
    a = rng.normal(size=3000)
    (here, size), (there, _) = cache.fingerprint({"y": a})["y"], cache.fingerprint({"y": np.roll(a, 1)})["y"]
    assert abs(here - there) > 1e6 * cache.TOLERANCE * size
    blocks = cache.fingerprint({"y": np.ones(cache.BLOCK + 5)})["y"][0]  # weights go on from block to block
    assert blocks == pytest.approx(np.sum(np.arange(1, cache.BLOCK + 6) * cache.GOLDEN % 1), rel=1e-12)


@pytest.mark.parametrize("moved", [(1 + 1e-9, 1.0), (1.0, 1 + 1e-9)])
def test_either_sum_that_moved_is_refused(monkeypatch, tmp_path, moved):
    parts = {"y.npy": np.arange(5.0)}
    found = cache.fingerprint(parts)["y.npy"]
    pin = cache.Pin("0" * 64, {"y.npy": tuple(value * by for value, by in zip(found, moved, strict=True))})
    monkeypatch.setattr(cache, "pinned", lambda: {"whole-v1": cache.Pin("0" * 64, {"y.npy": found}), "moved-v1": pin})
    cache.check("whole-v1", tmp_path, "1" * 64, parts)
    with pytest.raises(DataError, match="are not those of its recipe"):
        cache.check("moved-v1", tmp_path, "1" * 64, parts)


def test_whose_the_rows_are_is_kept_counted_and_pinned(home, registered, monkeypatch):
    X, y = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([1.0, -1.0, 1.0])

    def spec(name, whose):
        facts = {"files": (), "rows": 3, "persons": 2, "classes": None}
        return registered(tiny_spec(tiny_file(), name=name, prepare=lambda raw: (X, y, np.array(whose)), **facts))

    spec("two", [0, 1, 0])
    np.testing.assert_array_equal(datasets.load("two").whose, [0, 1, 0])
    assert (datasets.describe("two").rows, datasets.describe("two").count) == (3, 2)
    spec("three", [0, 1, 2])
    with pytest.raises(DataError, match="3 persons found, 2 expected"):
        datasets.load("three")
    parts = cache.map_parts(datasets.load("two").folder)
    pin = cache.Pin(cache.digest(parts), cache.fingerprint(parts))
    monkeypatch.setattr(cache, "pinned", lambda: {"same-v1": pin, "moved-v1": pin})
    spec("same", [0, 1, 0])
    assert datasets.load("same").sha256 == pin.sha256
    spec("moved", [0, 1, 1])
    with pytest.raises(DataError, match="not those of its recipe"):
        datasets.load("moved")
    assert not cache.prepared_folder(home, datasets.describe("moved")).exists()


@pytest.mark.thorough
def test_every_data_set_of_the_benchmark_that_is_at_hand_is_pinned_as_it_is(real_data):
    for name in [one for one in datasets.names() if datasets.describe(one).synthetic]:
        data, spec = datasets.load(name), datasets.describe(name)  # which refuses what is not near its pin
        if name in ("synthetic", "digits", "square"):
            assert cache.pinned()[spec.versioned].sha256 == data.sha256 == cache.digest(cache.map_parts(data.folder))
    missing = {n for n in datasets.names() if datasets.describe(n).versioned not in cache.pinned()}
    assert missing <= {"mtp", "protein"}, "pin them: python -m benchmarks.pin_data"
    assert all(len(bytes.fromhex(pin.sha256)) == hashlib.sha256().digest_size for pin in cache.pinned().values())
