"""26 of the paper's UCI sets, as the released code prepares them (data/NAME/generatedata_NAME.m, code/exp_uci.m).

Columns are standardised by their deviation with n - 1, the target is centred and divided by its largest magnitude, and
every row is divided by its own length: all of that looks at the data, and no guarantee covers it, there or here.
"""

import functools
import re
from pathlib import Path

import numpy as np
from dpbench.datasets.spec import DatasetSpec, RawFile
from dpbench.files import read_toml

REPOSITORY = "https://raw.githubusercontent.com/yuxiangw/optimal_dp_linear_regression"
COMMIT = "a14dbe53d18281b52a1f4d75ef90d5105f304af9"


def table_of(path: Path) -> np.ndarray:
    """(n, columns) of a text or MATLAB file; a line that is short has zeros at its end, as csvread gives it."""
    if path.suffix == ".mat":
        from scipy.io import loadmat

        return loadmat(path)["data"]
    lines = re.split(r"[\r\n]+", path.read_text(encoding="latin-1").strip())
    rows = [[float(word) for word in re.split(r"[,\s]+", line.strip()) if word] for line in lines]
    longest = max(map(len, rows))
    return np.array([row + [0.0] * (longest - len(row)) for row in rows])


def prepare(one: dict, raw):
    """(X, y) of an entry of sets.toml: rows of length 1, |y| at most 1."""
    table = np.vstack([table_of(raw[name]) for name in one["files"]])
    width, target = table.shape[1], one.get("target", -1)
    no_features = {column % width for column in (target, *one.get("drop", ()))}
    X = table[:, [column for column in range(width) if column not in no_features]]
    y = np.log(table[:, target] + one["log"]) if "log" in one else table[:, target]
    X = X - X.mean(axis=0)
    scale = X.std(axis=0, ddof=1)
    X /= np.where(scale > 0, scale, 1.0)  # a constant column is zero already
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)
    y = y - y.mean()
    return X, y / abs(y).max()


SPECS = {
    name: DatasetSpec(
        name=f"wang-{name}",
        title=f"{name} as Wang (2018) prepares it",
        prepare=functools.partial(prepare, one),
        rows=one["rows"],
        columns=one["columns"],
        task="regression",
        files=tuple(
            RawFile(file, f"wang2018/{name}", (f"{REPOSITORY}/{COMMIT}/data/{name}/{file}",), (digest,))
            for file, digest in one["files"].items()
        ),
        recipe="columns standardised, every row divided by its length, target centred and divided by its largest value",
        licence="the repository states none",
        citation="Wang (2018), Revisiting differentially private linear regression; files of its repository",
    )
    for name, one in read_toml(Path(__file__).with_name("sets.toml")).items()
}
globals().update({f"WANG_{name.upper()}": spec for name, spec in SPECS.items()})  # what the entry points name
