"""Prepared data sets across machines: a worker uses exactly the arrays of its driver, named by their sha256."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from dpbench import files
from dpbench.datasets import cache, loading
from dpbench.datasets.cache import Dataset
from dpbench.datasets.registry import describe
from dpbench.errors import DataError, UserError, reason


def pack(name: str) -> dict[str, bytes]:
    """The files of the prepared data set `name`: arrays, manifest, and the optima that were found for it."""
    folder = loading.load(name).folder
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith(".")}


def adopt(name: str, sha256: str, shipment: dict[str, bytes] | None = None) -> bool:
    """Make `load(name)` give the arrays with this `sha256` in this process; False if they must be sent first.

    Looked for, in order: what was adopted before, the data set as this machine prepares it (from its cache or a
    mirror folder, never the network), what an earlier driver sent, and `shipment` (see `pack`), which is kept in the
    cache under the digest. Every copy is hashed before its first use. Raises DataError if the shipment is not what
    the digest says, UserError if it cannot be written.
    """
    held = loading.adopted.get(name)
    if held is not None and held.sha256 == sha256:
        return True
    target = cache.root() / "received" / f"{name}-{sha256[:16]}"
    for data in _places(name, target, shipment):
        if data is not None and data.sha256 == sha256 and cache.has_right_bytes(data.folder):
            loading.adopted[name] = data
            return True
    if shipment is not None:
        raise DataError(f"{name}: the arrays sent do not have the sha256 {sha256}")
    return False


def _places(name: str, target: Path, shipment: dict[str, bytes] | None) -> Iterator[Dataset | None]:
    yield _own(name)
    yield _opened(target)
    yield _unpacked(target, shipment)


def _own(name: str) -> Dataset | None:
    try:
        return loading.load_spec(describe(name), cache.root())
    except UserError:
        return None


def _opened(folder: Path) -> Dataset | None:
    try:
        return cache.open_dataset(folder)
    except (OSError, ValueError, KeyError):
        return None


def _unpacked(target: Path, shipment: dict[str, bytes] | None) -> Dataset | None:
    if shipment is None:
        return None
    try:
        with files.staging(target) as staged:
            for name, content in shipment.items():
                (staged / Path(name).name).write_bytes(content)
            cache.discard(target)  # it was there and not sound, or it would have been taken
            os.rename(staged, target)
    except OSError as error:
        if not target.exists():  # else another worker of this machine was faster
            raise UserError(f"{target}: {reason(error)}; set DPBENCH_DATA to a writable folder with room") from error
    return _opened(target)
