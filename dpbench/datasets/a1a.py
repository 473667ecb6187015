"""a1a, the LIBSVM form of the 1994 census: 123 binary features of income above 50,000 $."""

from __future__ import annotations

from .recipes import clip_rows, read_svmlight, standardise, with_ones
from .spec import DatasetSpec, RawFile

FILE = RawFile(
    "a1a.t",
    "a1a",
    sources=("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/a1a.t",),
    sha256=("0212d0c4a3996fe6fb6a0ab54033d9f4fa4b60369b6e3bb141821d9ffc40c04d",),
    rows=30956,
)


def prepare(raw):
    X, y = read_svmlight(raw["a1a.t"], columns=123)
    return clip_rows(with_ones(standardise(X))), y


SPECS = [
    DatasetSpec(
        name="a1a",
        title="LIBSVM a1a, test split",
        prepare=prepare,
        rows=30956,
        columns=124,
        classes={-1: 23510, 1: 7446},
        files=(FILE,),
        recipe="123 binary features standardised; ones column in front; rows divided by max(1, ‖x‖₂)",
        licence="CC BY 4.0 (UCI Adult, from which it derives)",
        citation="Becker and Kohavi (1996), Adult, UCI; binary form by Platt (1998), LIBSVM data page",
        home=("second_order",),
    )
]
