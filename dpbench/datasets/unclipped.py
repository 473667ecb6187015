"""How long the rows of nonconvex's data sets are before `clip_rows`: what its authors' scaling leaves."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass

from dpbench import files
from dpbench.datasets import cache, covertype, download, ijcnn
from dpbench.datasets.recipes import row_norms
from dpbench.datasets.registry import describe
from dpbench.errors import NotAtHand

SCALED = {"covertype12": covertype.scaled_1_2, "ijcnn-weighted": ijcnn.scaled_weighted}
FILE = "unclipped.json"


@dataclass(frozen=True)
class RowNorms:
    """The largest ‖x_i‖₂ and how many of the `rows` are longer than 1."""

    largest: float
    beyond_1: int
    rows: int


def unclipped_row_norms(name: str) -> RowNorms:
    """Of the data set `name`, one of `SCALED`; read from its raw files once, then kept beside the arrays.

    Raises NotAtHand if the data set is not prepared or its raw files are gone; never uses the network.
    """
    spec = describe(name)
    folder = cache.prepared_folder(cache.root(), spec)
    if not cache.is_sound(folder, spec):
        raise NotAtHand(f"data set {name} is not at hand; run: dpbench fetch {name}")
    kept = folder / FILE
    with contextlib.suppress(OSError, ValueError, TypeError):
        return RowNorms(**json.loads(kept.read_text()))
    raw = cache.root() / "raw"
    paths = {one.name: download.obtain(one, raw, download.mirror_of(None))[0] for one in spec.files}
    norms = row_norms(SCALED[name](paths)[0])
    found = RowNorms(float(norms.max()), int((norms > 1).sum()), len(norms))
    with contextlib.suppress(OSError), files.replacing(kept) as staged:
        staged.write_text(json.dumps(asdict(found)) + "\n")
    return found
