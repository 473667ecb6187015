"""Arrays that are not those of the recipe are refused by name, whatever the files beside them say."""

import hashlib
import json

import numpy as np
import pytest

from dpbench import datasets
from dpbench.datasets import cache, loading, pins
from dpbench.errors import DataError
from tests.datasets.conftest import TABLE, tiny_file, tiny_spec


@pytest.fixture
def tiny(home, registered, monkeypatch):
    """A pinned data set whose raw file has no pinned digest; it lies in a mirror, `tiny(content)`."""
    registered(tiny_spec(tiny_file(pinned=False, sha256=())))
    X, y = np.array([[1.0, 2], [3, 4], [5, 6], [7, 8]]), np.array([1.0, -1, 1, -1])
    parts = cache.parts_of(X, y)
    pin = pins.Pin(cache.digest(parts), pins.fingerprint(parts))
    monkeypatch.setattr(pins, "pinned", lambda: {"tiny-v1": pin})

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
def test_arrays_and_manifest_edited_together_are_refused_by_name(tiny, change):
    tiny(TABLE)
    replace(datasets.load("tiny").folder, change)
    with pytest.raises(DataError, match=r"tiny-v1: the arrays are not those of its recipe .* remove .*tiny-v1 and"):
        datasets.load("tiny")


def test_swapped_rows_in_a_mirror_are_refused_and_forgotten(tiny, home):
    tiny(b"3,4,-1\n1,2,1\n5,6,1\n7,8,-1\n")
    with pytest.raises(DataError, match="tiny-v1: the arrays are not those of its recipe"):
        datasets.load("tiny")
    assert not list((home / "prepared").glob("tiny*"))
    tiny(TABLE)
    assert datasets.load("tiny").facts["rows"] == 4


def test_bytes_changed_under_the_pinned_digest_are_found_by_verify(tiny):
    tiny(TABLE)
    folder = datasets.load("tiny").folder
    np.save(folder / "X.npy", np.load(folder / "X.npy")[::-1])
    loading.load_spec.cache_clear()
    assert datasets.verify("tiny") is False
    np.testing.assert_array_equal(datasets.load("tiny").X[0], [1, 2])


def test_last_digits_that_another_processor_rounds_are_accepted(tiny):
    tiny(TABLE)
    replace(datasets.load("tiny").folder, lambda X: np.nextafter(X, np.inf))
    assert datasets.load("tiny").facts["rows"] == 4
    assert datasets.verify("tiny") is True


def test_a_fingerprint_tells_positions_apart():
    rng = np.random.default_rng(0)
    a = rng.normal(size=3000)
    (here, size), (there, _) = pins.fingerprint({"y": a})["y"], pins.fingerprint({"y": np.roll(a, 1)})["y"]
    assert abs(here - there) > 1e6 * pins.TOLERANCE * size
    blocks = pins.fingerprint({"y": np.ones(pins.BLOCK + 5)})["y"][0]  # weights go on from block to block
    assert blocks == pytest.approx(np.sum(np.arange(1, pins.BLOCK + 6) * pins.GOLDEN % 1), rel=1e-12)


@pytest.mark.parametrize("moved", [(1 + 1e-9, 1.0), (1.0, 1 + 1e-9)])
def test_either_sum_that_moved_is_refused(monkeypatch, tmp_path, moved):
    parts = {"y.npy": np.arange(5.0)}
    found = pins.fingerprint(parts)["y.npy"]
    pin = pins.Pin("0" * 64, {"y.npy": tuple(value * by for value, by in zip(found, moved, strict=True))})
    monkeypatch.setattr(pins, "pinned", lambda: {"whole-v1": pins.Pin("0" * 64, {"y.npy": found}), "moved-v1": pin})
    pins.check("whole-v1", tmp_path, "1" * 64, parts)
    with pytest.raises(DataError, match="are not those of its recipe"):
        pins.check("moved-v1", tmp_path, "1" * 64, parts)


def test_every_data_set_of_the_benchmark_that_is_at_hand_is_pinned_as_it_is(real_data):
    for name in ("synthetic", "digits", "square"):
        data, spec = datasets.load(name), datasets.describe(name)
        assert pins.pinned()[spec.versioned].sha256 == data.sha256 == cache.digest(cache.map_parts(data.folder))
    missing = {n for n in datasets.names() if datasets.describe(n).versioned not in pins.pinned()}
    assert missing <= {"mtp", "protein"}, "pin them: see dpbench/datasets/pinning.py"
    assert all(len(bytes.fromhex(pin.sha256)) == hashlib.sha256().digest_size for pin in pins.pinned().values())
