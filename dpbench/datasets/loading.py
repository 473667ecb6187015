"""From a name to arrays: the data sets known; load, available, verify, fetch; the same arrays on every machine.

Known are those of the benchmark, those of installed packages, those registered by hand. A worker uses exactly the
arrays of its driver, named by their sha256.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpbench import files
from dpbench.datasets import cache, download
from dpbench.datasets.cache import Dataset
from dpbench.datasets.download import Network, Progress
from dpbench.datasets.own import OWN, stored_spec
from dpbench.datasets.recipes import row_norms
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw
from dpbench.errors import DataError, NotAtHand, UserError, nearest, reason, several

ENTRY_POINTS = "dpbench.datasets"
MODULES = ("bounded_tables", "drawn", "real")  # those of the benchmark


@functools.cache
def _known() -> dict[str, DatasetSpec]:
    modules = (importlib.import_module(f"dpbench.datasets.{name}") for name in MODULES)
    known = {spec.name: spec for module in modules for spec in module.SPECS}
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            _add(known, point.load())
        except Exception as error:  # one broken package must not take the others along
            warnings.warn(f"data set {point.name} ({point.value}) is left out: {error}", stacklevel=2)
    return known


def _add(known: dict[str, DatasetSpec], spec: DatasetSpec) -> None:
    if not isinstance(spec, DatasetSpec):
        raise UserError(f"data set: {spec!r} is not a DatasetSpec")
    if known.get(spec.name, spec) is not spec:
        raise UserError(f"data set: the name {spec.name} is taken; choose another")
    known[spec.name] = spec


def register(spec: DatasetSpec) -> DatasetSpec:
    """Make a data set known to this process; packages use the entry points ``dpbench.datasets``."""
    _add(_known(), spec)
    return spec


def names() -> list[str]:
    """The names of all data sets, sorted."""
    return sorted(_known())


def is_own(name: str) -> bool:
    """Is it a data set of the user's, kept by `own.keep`?"""
    return name.startswith(OWN)


def describe(name: str) -> DatasetSpec:
    """The data set called `name`. Raises UserError with the nearest name if there is none."""
    if is_own(name) and name not in _known():
        return stored_spec(name)
    try:
        return _known()[name]
    except KeyError:
        raise UserError(f"data set: there is no {name}; {nearest(name, _known())}") from None


@dataclass(frozen=True)
class FetchResult:
    """What became of one data set: ``detail`` is one line for the user, empty if there is nothing to say."""

    name: str
    status: Literal["ready", "already there", "missing", "failed"]
    detail: str = ""


def check_content(spec: DatasetSpec, X: Any, y: np.ndarray, whose: np.ndarray | None = None) -> None:
    """Raise DataError, with what was expected and what was found, unless (X, y) is what `spec` says."""
    rows, columns = X.shape
    persons = None if whose is None else len(np.unique(whose))
    for what, count, expected in (("rows", rows, spec.rows), ("columns", columns, spec.columns),
                                  ("persons", persons, spec.persons)):  # fmt: skip
        if expected is not None and count != expected:
            raise DataError(f"{spec.name}: {count} {what} found, {expected} expected")
    if y.shape != (rows,) or X.dtype != np.float64 or y.dtype != np.float64:
        raise DataError(f"{spec.name}: the recipe gave y of shape {y.shape} and types {X.dtype}, {y.dtype}")
    # A sum is finite only if every entry is: one pass without a mask of the size of X.
    values = X if isinstance(X, np.ndarray) else X.data
    if not (np.isfinite(values.sum()) and np.isfinite(y).all()):
        raise DataError(f"{spec.name}: NaN or infinite values found")
    if spec.task == "binary":
        classes = {int(v): int(np.sum(y == v)) for v in (-1, 1)}
        if sum(classes.values()) != rows:
            raise DataError(f"{spec.name}: labels other than -1 and +1 found")
        if spec.classes is not None and classes != dict(spec.classes):
            raise DataError(f"{spec.name}: class counts {classes} found, {dict(spec.classes)} expected")


def _prepare(
    spec: DatasetSpec,
    folder: Path,
    mirror: Path | str | None,
    network: Network | None = None,
    progress: Progress | None = None,
) -> Path:
    """Raw files -> prepared folder. Raises NotAtHand, DataError."""
    files = {file.name: download.obtain(file, folder / "raw", mirror, network, progress) for file in spec.files}
    try:
        X, y, *whose = _arrays(spec, {name: path for name, (path, _) in files.items()})
        parts = cache.parts_of(X, y, None, *whose)
        cache.check(spec.versioned, folder / "raw", cache.digest(parts), parts)
    except DataError:
        # Only the content can judge a file without a pinned hash; keep it, and the next fetch fails on it again.
        for path, entry in files.values():
            if entry["hash"] == download.NOT_PINNED and entry["source"] != download.BY_HAND:
                download.forget(path)
        raise
    return cache.write(folder, spec, X, y, [entry for _, entry in files.values()], None, *whose)


def _arrays(spec: DatasetSpec, paths: Raw) -> Arrays:
    try:
        X, y, *whose = spec.prepare(paths)
    # A recipe fails in the words of its parser; the user is told which file it was.
    except (ValueError, LookupError, EOFError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{spec.name}: {', '.join(paths)} cannot be read: {reason}") from error
    if not isinstance(X, np.ndarray):
        from scipy.sparse import csr_array

        X = csr_array(X)
    check_content(spec, X, y, *whose)
    return X, y, *whose


@functools.cache
def load_spec(spec: DatasetSpec, folder: Path) -> Dataset:
    """`load` of `spec` with the cache in `folder`, whatever was adopted."""
    prepared = cache.prepared_folder(folder, spec)
    if not cache.is_sound(prepared, spec):
        try:
            prepared = _prepare(spec, folder, download.mirror_of(None))
        except NotAtHand as error:
            raise NotAtHand(f"data set {spec.name} is not fetched ({error}); run: dpbench fetch {spec.name}") from error
    return _pinned(spec, cache.open_dataset(prepared))


def _pinned(spec: DatasetSpec, data: Dataset) -> Dataset:
    """`data`, or DataError where its manifest names arrays that are not those pinned for the recipe."""
    cache.check(spec.versioned, data.folder, data.sha256, cache.map_parts(data.folder))
    return data


adopted: dict[str, Dataset] = {}  # see `loading.adopt`: in a worker, the driver's data come before its own


def load(name: str) -> Dataset:
    """The data set called `name`, mapped read-only; the same object within a process.

    Prepares it first if only its raw files are fetched, in the cache or in the folder that DPBENCH_MIRROR
    names; a synthetic one is drawn. Never uses the network. Raises NotAtHand (a line that says what to run),
    DataError.
    """
    return adopted.get(name) or load_spec(describe(name), cache.root())


def available(name: str) -> bool:
    """Would `load` find what it needs? Looks at file names only: prepares nothing, reads nothing."""
    spec, folder = describe(name), cache.root()
    if spec.synthetic or cache.is_sound(cache.prepared_folder(folder, spec), spec):
        return True
    try:
        mirror = download.mirror_of(None)
    except UserError:
        mirror = None
    return all(download.is_at_hand(file, folder / "raw", mirror) for file in spec.files)


def verify(name: str) -> bool:
    """Read the prepared arrays of `name` and compare their sha256 with the manifest, and that with what is pinned.

    Returns True if they are sound; raises DataError if they are sound and those of something else. If not sound,
    they are prepared anew (so that `load` is right again) and the answer is False; if that cannot be done, raises
    NotAtHand or DataError. Raises NotAtHand if nothing was prepared.
    """
    spec, folder = describe(name), cache.root()
    prepared = cache.prepared_folder(folder, spec)
    if not prepared.exists():
        raise NotAtHand(f"data set {name} is not prepared; run: dpbench fetch {name}")
    # Sizes first, as they are cheap: bytes are read only where those are right.
    if cache.is_sound(prepared, spec) and cache.has_right_bytes(prepared):
        _pinned(spec, cache.open_dataset(prepared))
        return True
    cache.discard(prepared)
    # Arrays that were mapped in this process are of the file that is gone.
    load_spec.cache_clear()
    load(name)
    return False


def heal(name: str) -> bool:
    """`verify`, if something is prepared; True if it was damaged and is right again."""
    return cache.prepared_folder(cache.root(), describe(name)).exists() and not verify(name)


def fetch(
    names: str | Iterable[str], *, mirror: str | os.PathLike[str] | None = None, progress: Progress | None = None
) -> list[FetchResult]:
    """Download and prepare data sets, and go on with the next whatever happens to one; what became of each.

    Args:
        names: one or several, or "all".
        mirror: a folder or URL that holds the upstream files under their names, else DPBENCH_MIRROR; it comes before
            the publishers. Once a host's name cannot be resolved no further one is tried, and only the first result
            says so at length.
        progress: called with (file name, bytes so far, bytes in all or 0).

    Raises:
        UserError: an unknown name, or a mirror that is not there, before anything is done.
    """
    known = sorted(_known())
    wanted = list(dict.fromkeys(several(names)))
    if "all" in wanted:
        wanted = known
    for name in wanted:
        if name not in known:
            raise UserError(f"unknown data set {name!r}: {nearest(name, known)}")
    place, network, folder = download.mirror_of(mirror), Network(), cache.root()
    return [_fetch_one(describe(name), folder, place, network, progress) for name in wanted]


def _fetch_one(
    spec: DatasetSpec, folder: Path, mirror: Path | str | None, network: Network, progress: Progress | None
) -> FetchResult:
    if cache.is_sound(cache.prepared_folder(folder, spec), spec):
        return FetchResult(spec.name, "already there")
    try:
        prepared = _prepare(spec, folder, mirror, network, progress)
    except NotAtHand as error:
        return FetchResult(spec.name, "missing", str(error))
    except UserError as error:
        return FetchResult(spec.name, "failed", str(error))
    # Said in one line: files whose own digest nobody knows are judged by the arrays they give.
    loose = [entry["file"] for entry in cache.manifest_of(prepared)["raw"] if entry["hash"] == download.NOT_PINNED]
    judged = "judged by the arrays it gives" if spec.versioned in cache.pinned() else "hash not pinned"
    return FetchResult(spec.name, "ready", f"{judged}: {', '.join(loose)}" if loose else "")


def pack(name: str) -> dict[str, bytes]:
    """The files of the prepared data set `name`: arrays, manifest, and the optima that were found for it."""
    folder = load(name).folder
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith(".")}


def adopt(name: str, sha256: str, shipment: dict[str, bytes] | None = None) -> bool:
    """Make `load(name)` give the arrays with this `sha256` in this process; False if they must be sent first.

    Looked for, in order: what was adopted before, the data set as this machine prepares it (from its cache or a
    mirror folder, never the network), what an earlier driver sent, and `shipment` (see `pack`), which is kept in the
    cache under the digest. Every copy is hashed before its first use. Raises DataError if the shipment is not what
    the digest says, UserError if it cannot be written.
    """
    held = adopted.get(name)
    # Looked at for every job, so before any file.
    if held is not None and held.sha256 == sha256:
        return True
    target = cache.root() / "received" / f"{name}-{sha256[:16]}"
    places: list[Callable[[], Dataset]] = [
        lambda: load_spec(describe(name), cache.root()),
        lambda: cache.open_dataset(target),
        *([] if shipment is None else [lambda: cache.open_dataset(_unpacked(target, shipment))]),
    ]
    for place in places:
        try:
            data = place()
        except (UserError, OSError, ValueError, KeyError):  # there is none
            continue
        if data.sha256 == sha256 and cache.has_right_bytes(data.folder):
            adopted[name] = data
            return True
    if shipment is not None:
        raise DataError(f"{name}: the arrays sent do not have the sha256 {sha256}")
    return False


def _unpacked(target: Path, shipment: dict[str, bytes]) -> Path:
    """The folder `target`, with the files that were sent; UserError where it cannot be written."""
    try:
        with files.staging(target) as staged:
            for name, content in shipment.items():
                (staged / Path(name).name).write_bytes(content)
            cache.discard(target)  # it was there and not sound, or it would have been taken
            os.rename(staged, target)
    except OSError as error:
        if not target.exists():  # else another worker of this machine was faster
            raise UserError(f"{target}: {reason(error)}; set DPBENCH_DATA to a writable folder with room") from error
    return target


@dataclass(frozen=True)
class RowNorms:
    """The largest ‖x_i‖₂ and how many of the `rows` are longer than 1."""

    largest: float
    beyond_1: int
    rows: int


def unclipped_row_norms(name: str) -> RowNorms:
    """Of the data set `name`, "covertype12-unclipped" or "ijcnn-unclipped".

    Raises NotAtHand if the data set is not prepared; never uses the network.
    """
    norms = row_norms(load(name).X)
    return RowNorms(float(norms.max()), int((norms > 1).sum()), len(norms))
