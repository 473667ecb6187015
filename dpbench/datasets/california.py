"""California housing (StatLib): median house values of 20,640 block groups in the 1990 census."""

from __future__ import annotations

import numpy as np

from .recipes import read_table, standardise
from .spec import DatasetSpec, RawFile

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


def prepare(raw):
    """The features of scikit-learn's form of the data; the target in 100,000 $."""
    table = read_table(raw[FILE.name], columns=9)
    longitude, latitude, age, rooms, bedrooms, population, households, income, value = table.T
    X = np.stack(
        [
            income,
            age,
            rooms / households,
            bedrooms / households,
            population,
            population / households,
            latitude,
            longitude,
        ],
        axis=1,
    )
    return standardise(X), value / 100_000.0


SPECS = [
    DatasetSpec(
        name="california",
        title="StatLib California housing",
        prepare=prepare,
        rows=20640,
        columns=8,
        task="regression",
        files=(FILE,),
        recipe="8 features (rooms, bedrooms, occupants per household), standardised; target in 100,000 $",
        licence="not stated (StatLib)",
        citation="Pace and Barry (1997), Sparse spatial autoregressions, Stat. Probab. Lett. 33(3)",
        home=("greedy_coordinate",),
    )
]
