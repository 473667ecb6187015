"""California housing (StatLib): median house values of 20,640 block groups in the 1990 census."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpbench.datasets.recipes import read_table, standardise
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, RawFile

FILE = RawFile(
    "cal_housing.data",
    "california_housing",
    sources=(
        "https://ndownloader.figshare.com/files/5976036",
        "https://www.dcc.fc.up.pt/~ltorgo/Regression/cal_housing.tgz",
    ),
    sha256=("a2b44dcc7e1c9091b43c4f458b25cbd1f7e8068d08edd26bc4703108d3fa6214",),
    pinned=False,  # the publisher ships a .tgz; the digest of the member is not known to us
    rows=20640,
)


def prepare(raw: Raw) -> Arrays:
    """The features of scikit-learn's form of the data; the target in 100,000 $."""
    table = read_table(raw[FILE.name], columns=9)
    longitude, latitude, age, rooms, bedrooms, population, households, income, value = table.T
    per_household = (rooms / households, bedrooms / households, population, population / households)
    X = np.column_stack([income, age, *per_household, latitude, longitude])
    return standardise(X), value / 100_000.0


def prepare_centred(raw: Raw) -> Arrays:
    """For models without an intercept."""
    X, value = prepare(raw)
    return X, standardise(value[:, None])[:, 0]


SOURCE: dict[str, Any] = {
    "files": (FILE,),
    "licence": "not stated (StatLib)",
    "citation": "Pace and Barry (1997), Sparse spatial autoregressions, Stat. Probab. Lett. 33(3)",
}
FEATURES = "8 features (rooms, bedrooms, occupants per household), standardised; "
SPECS = [
    DatasetSpec(
        name="california",
        title="StatLib California housing",
        prepare=prepare,
        rows=20640,
        columns=8,
        task="regression",
        recipe=FEATURES + "target in 100,000 $",
        **SOURCE,
    ),
    DatasetSpec(
        name="california-centred",
        title="StatLib California housing, target standardised",
        prepare=prepare_centred,
        rows=20640,
        columns=8,
        task="regression",
        recipe=FEATURES + "target standardised",
        **SOURCE,
    ),
]
