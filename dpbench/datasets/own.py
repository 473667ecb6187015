"""A user's own arrays: checked, never changed; kept under a name where several processes need them."""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpbench import files
from dpbench.datasets import cache
from dpbench.datasets.cache import digest, parts_of
from dpbench.datasets.recipes import BLOCK, LARGEST, LARGEST_SINGLE, one_entry_each
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, Task
from dpbench.errors import DataError, NotAtHand, UserError

OWN = "own-"  # what the names of a user's own data begin with


def labels_of(task: str) -> Literal["binary", "real"]:
    """What a task's labels are: "binary" or "real"."""
    return "binary" if task == "binary" else "real"


def check_arrays(
    X: Any, y: Any, *, labels: Literal["binary", "real"] = "binary", single: bool = False
) -> tuple[Any, np.ndarray]:
    """(X, y) as float64: X (n, d) a C-order array or a ``scipy.sparse.csr_array``, y (n,). single: float32 X stays so.

    Copies only where type or order ask for it. Raises DataError, naming the argument and the fix, for wrong
    shapes, NaN or infinite values, no rows, and with labels="binary" for labels other than -1 and +1 or a
    single class.
    """
    X, y = as_arrays(X, y, single=single)
    for name, array in (("X", X.data if hasattr(X, "tocsr") else X), ("y", y)):
        blocks = (array[i : i + BLOCK] for i in range(0, len(array), BLOCK))
        largest = LARGEST if array.dtype == np.float64 else LARGEST_SINGLE
        if bad := sum(_beyond(block, largest) for block in blocks):
            raise DataError(
                f"{name}: {bad} entries are NaN or infinite (beyond {largest:g}); drop or impute them first"
            )
    if labels == "binary":
        _check_binary(y)
    return X, y


def _beyond(block: np.ndarray, largest: float) -> int:
    """How many entries are not within ±largest, or no numbers."""
    flat = block.reshape(-1)
    with np.errstate(all="ignore"):
        if flat @ flat <= largest * largest:  # then none is, and one pass has seen to it
            return 0
    return int(np.count_nonzero(~(np.abs(block) <= largest)))


def as_arrays(X: Any, y: Any, *, single: bool = False, as_given: bool = False) -> tuple[Any, np.ndarray]:
    """As `check_arrays`, with no look at the values: DataError for shapes, and for what is no numbers.

    as_given: an array y of real numbers keeps its type, which at 10⁸ rows spares a copy of 0.8 GB.
    """
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_array

        X = csr_array(X)
        if X.dtype != np.float64:
            X = _float64(X, "X")
        X = one_entry_each(X)
    elif single and getattr(X, "dtype", None) == np.float32 and not np.ma.isMaskedArray(X):
        X = np.asarray(X, order="C")
    else:
        X = _float64(X, "X")
    real = isinstance(y, np.ndarray) and not np.ma.isMaskedArray(y) and y.dtype.kind in "fiub"
    y = np.asarray(y) if as_given and real else _float64(y, "y")
    if len(X.shape) != 2 or 0 in X.shape:
        raise DataError(f"X: shape {tuple(X.shape)} found; give rows × columns, at least one of each")
    if y.shape != (X.shape[0],):
        raise DataError(f"y: shape {y.shape} found; give one entry per row of X, shape ({X.shape[0]},)")
    return X, y


def _float64(array: Any, name: str) -> Any:
    if np.iscomplexobj(array):
        raise DataError(f"{name}: complex numbers found; give real ones")
    try:
        if np.ma.isMaskedArray(array):  # what is masked is missing, and not what lies below the mask
            array = np.ma.filled(np.ma.asarray(array, np.float64), np.nan)
        if isinstance(array, np.ndarray) and array.dtype.kind in "STU":
            raise TypeError("text")  # by its type: that one cell cannot be read would tell of it
        return array.astype(np.float64) if hasattr(array, "tocsr") else np.asarray(array, np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        hint = "; give numbers, two labels as -1 and +1" if name == "y" else "; one-hot encode categories first"
        raise DataError(f"{name}: not numbers{hint}") from None  # NumPy's words hold a cell


def _check_binary(y: np.ndarray) -> None:
    # The usual case, without the sort that np.unique makes.
    if y.min() == -1 and y.max() == 1 and np.count_nonzero(y == 1) + np.count_nonzero(y == -1) == len(y):
        return
    labels = np.unique(y)
    if np.array_equal(labels, [-1.0, 1.0]):
        return
    if len(labels) == 2:
        low, high = labels
        raise DataError(f"y: labels {low:g} and {high:g} found; map them: y = np.where(y == {high:g}, 1.0, -1.0)")
    if len(labels) == 1:
        raise DataError(f"y: the only label is {labels[0]:g}; give both -1 and +1")
    shown = ", ".join(f"{v:g}" for v in labels[:4])
    raise DataError(f"y: {len(labels)} labels ({shown}, …) found; give -1 and +1, or use a regression loss")


def keep(
    X: Any,
    y: np.ndarray,
    name: str,
    recipe: str,
    *,
    labels: Literal["binary", "real"] = "binary",
    held_out: tuple[Any, np.ndarray] | None = None,
    whose: np.ndarray | None = None,
    source: str | os.PathLike[str] | None = None,
) -> str:
    """Store own arrays in the data cache and return the data set's name: `own-NAME-` and the start of their hash.

    Worker processes and later calls find them by that name, and results by another name never mix with theirs. Nobody
    but the user may read them, whatever the umask. `recipe` says in words how the arrays were made; `held_out` are
    rows kept apart, and `whose` the rows are, as `Dataset` has them; `source` is the file that they came from, by which
    `copies` finds them.
    Raises DataError as `check_arrays`.
    """
    X, y = check_arrays(X, y, labels=labels, single=True)
    if held_out is not None:
        # Labels of the rows kept apart may be of one class by chance.
        held_out = check_arrays(*held_out, labels="real", single=True)
    spec = _spec(
        f"{OWN}{name}-{digest(parts_of(X, y, held_out, whose))[:8]}",
        *X.shape,
        recipe,
        "binary" if labels == "binary" else "regression",
    )
    folder = cache.prepared_folder(cache.root(), spec)
    sources = [] if source is None else [_place(source)]
    if not cache.is_sound(folder, spec):
        cache.write(cache.root(), spec, X, y, raw=[], held_out=held_out, whose=whose, sources=sources)
        return spec.name
    manifest = cache.manifest_of(folder)
    if more := [one for one in sources if one not in manifest.get("sources", [])]:
        manifest["sources"] = [*manifest.get("sources", []), *more]
        with files.replacing(folder / cache.MANIFEST) as staged:
            staged.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return spec.name


def _place(source: str | os.PathLike[str]) -> str:
    return os.fspath(Path(source).resolve())


def stem_of(source: str | os.PathLike[str]) -> str:
    """What the data sets made of a file are called by: its name in lower case, letters, digits and hyphens."""
    return re.sub(r"[^A-Za-z0-9]+", "-", Path(source).name.partition(".")[0]).strip("-").lower() or "data"


def folder_of(name: str) -> Path:
    """Where the arrays of a data set that `keep` stored lie."""
    return cache.root() / "prepared" / f"{name}-v1"


def copies(source: str | os.PathLike[str]) -> list[Path]:
    """The folders that `keep` made of a file, which may be gone; of a call that was to keep none, its own folder."""
    place, folders = _place(source), list[Path]()
    for root in (cache.root(), *sorted(cache.root().glob(f"{cache.OWN_PLACE}*"))):
        for folder in sorted((root / "prepared").glob(f"{OWN}*-v1")):
            try:
                sources = cache.manifest_of(folder).get("sources")
            except (OSError, ValueError):
                sources = None
            # Damaged, and still somebody's rows: the name says whose.
            if folder.name.startswith(f"{OWN}{stem_of(source)}-") if sources is None else place in sources:
                folders.append(folder if root == cache.root() else root)
    return list(dict.fromkeys(folders))


def forget(folder: Path) -> Path:
    """Remove a folder of somebody's rows or of their scores, and return it. Raises UserError where it cannot be."""
    try:
        cache.discard(folder)
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}") from error
    if folder.exists():
        raise UserError(f"{folder}: it could not be removed")
    return folder


def stored_spec(name: str) -> DatasetSpec:
    """What `keep` stored under `name`. Raises NotAtHand."""
    try:
        manifest = cache.manifest_of(folder_of(name))
    except (OSError, ValueError):
        raise NotAtHand(f"own data {name} are not in {cache.root()}; run dpbench compare on their file again") from None
    return _spec(*(manifest[key] for key in ("name", "rows", "columns", "recipe", "task")), manifest.get("persons"))


@functools.cache
def _spec(name: str, rows: int, columns: int, recipe: str, task: Task, persons: int | None = None) -> DatasetSpec:
    def gone(raw: Raw) -> Arrays:
        raise DataError(f"{name}: its arrays are damaged; run dpbench compare on their file again")

    return DatasetSpec(name, "own data", gone, rows, columns, recipe, task=task, persons=persons)
