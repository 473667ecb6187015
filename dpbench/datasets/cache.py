"""Prepared arrays on disk: a folder of ``.npy`` files and a manifest, written whole or not at all, and their pins.

The cache folder is ``$DPBENCH_DATA``, else ``./datasets`` if it exists, else the user's cache folder. Below
it lie ``raw/<publisher>/<file>`` and ``prepared/<name>-v<recipe version>/``.

What the prepared arrays of every data set are known to be stands in `pinned.toml`: nothing that lies beside them
vouches for them. It has, per data set and recipe version, the sha256 of the arrays and a fingerprint: a weighted sum of
each array, the weights a fixed function of position. Equal digests are equal bytes. Where a processor rounds a mean in
its last digit the digest differs and the fingerprint does not, to a relative 1e-12; rows that were swapped, changed or
taken from elsewhere move it by far more. `python -m benchmarks.pin_data` writes the file anew, from what is there.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from dpbench import files
from dpbench.datasets.recipes import row_norms
from dpbench.datasets.spec import DatasetSpec
from dpbench.errors import DataError, UserError, reason
from dpbench.files import read_toml

MANIFEST = "manifest.json"
HELD_OUT = "held_out."  # what the file names of rows kept apart begin with
WHOSE = "whose.npy"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A prepared data set.

    ``X`` (n, d) float64 is a read-only memory map in C order, or a ``scipy.sparse.csr_array`` over memory
    maps; ``y`` (n,) float64. ``sha256`` is that of the arrays. ``folder`` is where they lie; what is derived from
    them (an optimum) may be cached there. ``row_norm`` is max ‖x_i‖₂,
    exact up to rounding: compare it with a tolerance. ``facts``: rows, columns, task, classes or the target's
    range, row_norm_l1. ``held_out``: (X, y) of rows kept apart to judge models by, or None: own data may have some.
    ``whose``: (n,) whole numbers, equal for rows of one person, or None: each row is its own.
    """

    name: str
    X: Any
    y: np.ndarray
    sha256: str
    folder: Path
    row_norm: float
    facts: Mapping[str, Any] = field(repr=False)
    held_out: tuple[Any, np.ndarray] | None = field(default=None, repr=False)
    whose: np.ndarray | None = field(default=None, repr=False)

    def __reduce__(self) -> Any:
        # A worker maps the same files: the arrays are never copied into the message.
        return open_dataset, (self.folder,)


OWN_PLACE = "apart-"  # what the folders of single calls begin with
_place: ContextVar[Path | None] = ContextVar("place", default=None)


@contextmanager
def own_place() -> Iterator[Path]:
    """Yields a new folder in the cache, which is the cache itself until the end, in this context, and then gone."""
    with ExitStack() as ends:
        try:
            root().mkdir(parents=True, exist_ok=True)
            folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix=OWN_PLACE, dir=root())))
        except OSError as error:
            raise UserError(f"{root()}: {reason(error)}; set DPBENCH_DATA to a writable folder with room") from error
        ends.callback(_place.reset, _place.set(folder))
        yield folder


def root() -> Path:
    """The cache folder; it need not exist yet."""
    if (place := _place.get()) is not None:
        return place
    if os.environ.get("DPBENCH_DATA"):
        return Path(os.environ["DPBENCH_DATA"]).expanduser().resolve()
    if Path("datasets").is_dir():
        return Path("datasets").resolve()
    import platformdirs

    return Path(platformdirs.user_cache_dir("dpbench"))


def prepared_folder(cache: Path, spec: DatasetSpec) -> Path:
    """Where the arrays of this version of a data set lie."""
    return cache / "prepared" / spec.versioned


def parts_of(
    X: Any, y: np.ndarray, held_out: tuple[Any, np.ndarray] | None = None, whose: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """The arrays that make up a data set, by file name."""
    if whose is not None:
        return parts_of(X, y, held_out) | {WHOSE: whose}
    if held_out is not None:
        return parts_of(X, y) | {HELD_OUT + name: array for name, array in parts_of(*held_out).items()}
    if isinstance(X, np.ndarray):
        return {"X.npy": np.ascontiguousarray(X), "y.npy": y}
    return {"X.data.npy": X.data, "X.indices.npy": X.indices, "X.indptr.npy": X.indptr, "y.npy": y}


def digest(parts: Mapping[str, np.ndarray]) -> str:
    """sha256 of names, types, shapes and bytes."""
    sha = hashlib.sha256()
    for name, array in sorted(parts.items()):
        sha.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sha.update(np.ascontiguousarray(array).data.cast("B"))
    return sha.hexdigest()


def facts_of(X: Any, y: np.ndarray, task: str) -> dict[str, Any]:
    """What a manifest and ``Dataset.facts`` say of the arrays."""
    if task == "binary":
        labels, counts = np.unique(y, return_counts=True)
        target: dict[str, Any] = {"classes": {f"{v:g}": int(c) for v, c in zip(labels, counts, strict=True)}}
    else:
        target = {"target_min": float(y.min()), "target_max": float(y.max())}
    dense = isinstance(X, np.ndarray)
    return {
        "rows": int(X.shape[0]),
        "columns": int(X.shape[1]),
        "task": task,
        **target,
        "sparse": not dense,
        "nonzeros": int(np.count_nonzero(X) if dense else X.nnz),
        "row_norm": float(row_norms(X).max()),
        "row_norm_l1": float(row_norms(X, 1).max()),
    }


def write(
    cache: Path,
    spec: DatasetSpec,
    X: Any,
    y: np.ndarray,
    raw: list[dict[str, Any]],
    held_out: tuple[Any, np.ndarray] | None = None,
    whose: np.ndarray | None = None,
    *,
    sources: list[str] | None = None,
) -> Path:
    """Store the arrays of `spec`; two processes may do so at once, and the first to finish wins.

    sources: the files of a user that these rows came from; nobody else may read the copy then, whatever the umask.
    """
    target = prepared_folder(cache, spec)
    parts = parts_of(X, y, held_out, whose)
    manifest = {
        "name": spec.name,
        "recipe": spec.recipe,
        "recipe_version": spec.version,
        **facts_of(X, y, spec.task),
        "sha256": digest(parts),
        "raw": raw,
        "numpy": np.__version__,
    }
    private = sources is not None
    if private:
        manifest["sources"] = sources
    if whose is not None:
        manifest["persons"] = len(np.unique(whose))
    try:
        with files.staging(target, private=private) as staged:
            for name, array in parts.items():
                np.save(staged / name, array)
            manifest["bytes"] = {name: (staged / name).stat().st_size for name in parts}
            (staged / MANIFEST).write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            for file in staged.iterdir() if private else ():
                os.chmod(file, 0o600)
            _move_into_place(staged, target, spec)
    except OSError as error:
        raise UserError(f"{target}: {reason(error)}; set DPBENCH_DATA to a writable folder with room") from error
    return target


def _move_into_place(staged: Path, target: Path, spec: DatasetSpec) -> None:
    try:
        os.rename(staged, target)
    except OSError:
        if not target.exists():
            raise
        if is_sound(target, spec):  # another process was faster
            return
        discard(target)
        os.rename(staged, target)


def discard(folder: Path) -> None:
    """Remove a prepared folder at once for others; a process that has mapped the old file keeps reading it."""
    if folder.exists():
        with files.staging(folder) as trash:
            os.rename(folder, trash / folder.name)


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest beside prepared arrays."""
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return manifest


def is_sound(folder: Path, spec: DatasetSpec) -> bool:
    """Is there a manifest of this recipe, and has every array the size it says? (Reads no array.)"""
    try:
        manifest = manifest_of(folder)
        return manifest["recipe_version"] == spec.version and all(
            (folder / name).stat().st_size == size for name, size in manifest["bytes"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def map_parts(folder: Path) -> dict[str, np.ndarray]:
    """The arrays of a prepared folder by file name, mapped read-only."""
    return {name: np.load(folder / name, mmap_mode="r") for name in manifest_of(folder)["bytes"]}


def has_right_bytes(folder: Path) -> bool:
    """Do the arrays have the sha256 that the manifest says?"""
    manifest = manifest_of(folder)
    try:
        return digest(map_parts(folder)) == str(manifest["sha256"])
    except Exception:  # NumPy parses a header as Python: damage shows as almost any error
        return False


def open_dataset(folder: Path) -> Dataset:
    """Map a prepared folder."""
    manifest = manifest_of(folder)
    parts = map_parts(folder)
    held_out_parts = {name.removeprefix(HELD_OUT): parts.pop(name) for name in list(parts) if name.startswith(HELD_OUT)}
    X, y = _arrays(parts, manifest["columns"])
    whose = parts.get(WHOSE)
    held_out = _arrays(held_out_parts, manifest["columns"]) if held_out_parts else None
    outside = {"recipe", "recipe_version", "sha256", "raw", "numpy", "bytes", "name", "row_norm", "sources"}
    facts = {key: value for key, value in manifest.items() if key not in outside}
    return Dataset(manifest["name"], X, y, manifest["sha256"], folder, manifest["row_norm"], facts, held_out, whose)


def _arrays(parts: Mapping[str, np.ndarray], columns: int) -> tuple[Any, np.ndarray]:
    """(X, y) of the files' arrays."""
    y = parts["y.npy"]
    if "X.npy" in parts:
        return parts["X.npy"], y
    from scipy.sparse import csr_array

    return csr_array((parts["X.data.npy"], parts["X.indices.npy"], parts["X.indptr.npy"]), shape=(len(y), columns)), y


FILE = Path(__file__).with_name("pinned.toml")
TOLERANCE = 1e-12  # of the sum of all terms' sizes: 1e4 times what the order of a sum over 1e8 rows can move
GOLDEN = (5**0.5 - 1) / 2  # its multiples modulo 1 are spread evenly, and no two positions weigh the same
BLOCK = 1 << 20


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arrays of one recipe version."""

    sha256: str
    fingerprint: dict[str, tuple[float, float]]  # by array: the weighted sum, and that of the terms' sizes


@functools.cache
def pinned() -> dict[str, Pin]:
    """Every pin, by "name-vVERSION"."""
    return msgspec.convert(read_toml(FILE), dict[str, Pin]) if FILE.exists() else {}


def fingerprint(parts: Mapping[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """Of each array (by file name): Σ_k u_k a_k and Σ_k u_k |a_k|, u_k = k·0.618… mod 1, in C order.

    >>> fingerprint({"y.npy": np.array([1.0, -2.0])})
    {'y.npy': (0.1458980337503153, 1.0901699437494745)}
    """
    sums_of = {}
    for name, array in sorted(parts.items()):
        flat = array.reshape(-1)
        sums = np.zeros(2)
        for first in range(0, flat.size, BLOCK):
            values = flat[first : first + BLOCK].astype(np.float64)
            # Position decides the weight, so that swapped blocks change the sum.
            weights = (np.arange(first + 1, first + 1 + values.size) * GOLDEN) % 1
            sums += weights @ values, weights @ np.abs(values)
        sums_of[name] = (float(sums[0]), float(sums[1]))
    return sums_of


def check(name: str, where: Path, sha256: str, parts: Mapping[str, np.ndarray]) -> None:
    """Raise DataError unless the arrays are those pinned for `name` ("adult-v1"); without a pin anything passes.

    sha256: what the arrays were found to have, or what is said of them; they are read only where it is not the
    pinned one.
    """
    pin = pinned().get(name)
    if pin is None or pin.sha256 == sha256:
        return
    sums = fingerprint(parts)
    # Both sums: of signed terms alone, two changes might cancel.
    same = sums.keys() == pin.fingerprint.keys() and all(
        abs(value - pin.fingerprint[part][0]) <= TOLERANCE * pin.fingerprint[part][1]
        and abs(size - pin.fingerprint[part][1]) <= TOLERANCE * pin.fingerprint[part][1]
        for part, (value, size) in sums.items()
    )
    if not same:
        raise DataError(
            f"{name}: the arrays are not those of its recipe (sha256 {sha256[:16]}…, pinned {pin.sha256[:16]}…); "
            f"remove {where} and prepare it again from the publisher's files"
        )
