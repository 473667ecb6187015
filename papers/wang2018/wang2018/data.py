"""26 of the paper's UCI sets, as the released code prepares them (data/NAME/generatedata_NAME.m, code/exp_uci.m).

Columns are standardised by their deviation with n - 1, the target is centred and divided by its largest magnitude, and
every row is divided by its own length: all of that looks at the data, and no guarantee covers it, there or here.
"""

import functools
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dpbench.datasets.spec import DatasetSpec, RawFile

REPOSITORY = "https://raw.githubusercontent.com/yuxiangw/optimal_dp_linear_regression"
COMMIT = "a14dbe53d18281b52a1f4d75ef90d5105f304af9"


class Set(NamedTuple):
    """One set: its files with their digests, its shape, the target's column and what is done to it.

    drop: columns that are no features; log: what is added to the target before its logarithm, None for none.
    """

    rows: int
    columns: int
    files: dict[str, str]
    target: int = -1
    drop: tuple[int, ...] = ()
    log: float | None = None


SETS = {
    "airfoil": Set(
        1503, 5, {"airfoil_self_noise.dat.txt": "74c75fd71783f1e6b71f8a622b993dc592897a97cd689c5090a07147a1b097b3"}
    ),
    "autompg": Set(
        392, 7, {"auto-mpg.txt": "7b1eb3187645618a9a90ac43c64a2279cb3657ef29b7e31d08016fc700305611"}, target=0
    ),
    "autos": Set(
        159, 25, {"imports-85.data.txt": "1683e17c7720ee49d5c4b6ac074d68ec31239f7af197a472b94497d6dfe79369"}, log=0.0
    ),
    "bike": Set(
        17379, 17, {"hour.csv": "d3268aa10e83fe008c3dc03dfd33748a2a33adbef232eb0a40e5be38edf083a7"}, drop=(0,), log=0.0
    ),
    "breastcancer": Set(
        194,
        33,
        {"wpbc.data.txt": "24d81bacfba23bdde583458e3eace7c79409ca1f89b56db0279c7fa92ee29ecd"},
        target=2,
        drop=(-1,),
    ),
    "concrete": Set(1030, 8, {"Concrete_Data.txt": "683a004532a8f7ce3eb4a3801e3a685876460599efa0bbf8ba993a3751f24489"}),
    "concreteslump": Set(
        103,
        7,
        {"slump_test.data.txt": "eb034392c8537c41c854efac39b5b838b3c7b3a0a8b413378a6cfc00c2fc021b"},
        target=7,
        drop=(8, 9, 10),
    ),
    "elevators": Set(
        16599,
        18,
        {
            "elevators.data": "ab28e7c2819810f30fbc9715e8fa0c4630aa41eeb161846f0934edef728bca66",
            "elevators.test": "ba7acbfa386267f718a6753cf2be92d1820efcefe1c9fa538918f493675de000",
        },
        log=0.0,
    ),
    "energy": Set(
        768,
        8,
        {"energy.txt": "dd44be06faa54893cdd9fe2e221732e605f0fca0d6621a9d320fe09898665f31"},
        target=-2,
        drop=(-1,),
    ),
    "fertility": Set(
        100,
        9,
        {"fertility_Diagnosis.txt": "9f2fc42c432bdf2762c773fda32bdc88d90d80baced8db6b1429f70d7c9f1fd1"},
        target=-2,
    ),
    "forest": Set(
        517, 12, {"forestfires.csv": "13371ff675747873cc908eb25559d6fc823b374bf7e2141d538b1e127dc75688"}, log=1.0
    ),
    "housing": Set(506, 13, {"housing.txt": "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a"}),
    "kin40k": Set(40000, 8, {"kin40k_all.mat": "0ce1bcd2279e7ec155e680ad6fbe10087eabdb37dd621bbd8d48884a2970ab44"}),
    "machine": Set(
        209,
        7,
        {"machine.data.txt": "50c35b8d3a758d59d4d809702995b9967e5aba6027af0dc5bb47b3fef79086cf"},
        target=-2,
        drop=(-1,),
        log=0.0,
    ),
    "parkinsons": Set(
        5875,
        20,
        {"parkinsons.txt": "60e132ddbb6d2baafc6cdaf48b672daadf29339a0b8be00710992b9fb323218b"},
        target=5,
        drop=(4,),
    ),
    "pendulum": Set(630, 9, {"pendulum_all.mat": "4d4b392f9091d7c44a155b760b3e5d3100020d35fc511d6119dbb5febf90c975"}),
    "pol": Set(15000, 26, {"pol_all.mat": "0795fd00f49d65fba1102f9729bc666670f5c9d117aca18f90ed1dc2aca1da81"}),
    "protein": Set(
        45730, 9, {"CASP.csv": "a22942462aae6e9dce856a1971c5d472e690de554dc1e3d438bac2a7922ffd55"}, target=0, log=1.0
    ),
    "pumadyn32nm": Set(
        8192, 32, {"pumadyn32nm_all.mat": "b2bd0f410de8dc707afe7595188bfa814c6250dbb1a01e9003bb8de8914b82cb"}
    ),
    "servo": Set(
        167, 4, {"servo.data.txt": "fd38644982680b05efee54348ec504a252baa32224bb82065c5f539ad734ba97"}, log=0.0
    ),
    "skillcraft": Set(
        3338,
        19,
        {"SkillCraft.txt": "924ceb6a39adbdb27eb2fda1c16f7d8b0d441a71c279533edd62897d438aa78d"},
        target=12,
        log=0.0,
    ),
    "sml": Set(4137, 26, {"sml.txt": "ba7769fa3b6b06c8fecf18cce74d77912768c12646d40b8defa2f8c62ff159ab"}, target=11),
    "solar": Set(1066, 10, {"flare.data2.txt": "cabd4a786c796fb6eee8137572754e9408d02d16e7294f7c4261b558362c9e53"}),
    "stock": Set(536, 11, {"stock.txt": "ef1613fd10a8ed166452677218c31dba11d3b0563ece0db65807473d4f110865"}, target=3),
    "wine": Set(
        1599, 11, {"winequality-red.csv": "34f5e1d2ef99bbe1b1ecb32405e6630665f6e0b434ae83c9386b6c2299cf85dd"}, target=-2
    ),
    "yacht": Set(
        308,
        6,
        {"yacht_hydrodynamics.data.txt": "00dfecc0fc01ddd4c90b558a3ac11b246df8ebcfea130724223475a9a67f0ea1"},
        log=0.0,
    ),
}
NAMES = tuple(SETS)


def table_of(path: Path) -> np.ndarray:
    """(n, columns) of a text or MATLAB file; a line that is short has zeros at its end, as csvread gives it."""
    if path.suffix == ".mat":
        from scipy.io import loadmat

        return loadmat(path)["data"]
    lines = re.split(r"[\r\n]+", path.read_text(encoding="latin-1").strip())
    rows = [[float(word) for word in re.split(r"[,\s]+", line.strip()) if word] for line in lines]
    longest = max(map(len, rows))
    return np.array([row + [0.0] * (longest - len(row)) for row in rows])


def prepare(one: Set, raw):
    """(X, y) of a set: rows of length 1, |y| at most 1."""
    table = np.vstack([table_of(raw[name]) for name in one.files])
    width = table.shape[1]
    left_out = {column % width for column in (one.target, *one.drop)}
    X = table[:, [column for column in range(width) if column not in left_out]]
    y = table[:, one.target] if one.log is None else np.log(table[:, one.target] + one.log)
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
        rows=one.rows,
        columns=one.columns,
        task="regression",
        files=tuple(
            RawFile(file, f"wang2018/{name}", (f"{REPOSITORY}/{COMMIT}/data/{name}/{file}",), (digest,))
            for file, digest in one.files.items()
        ),
        recipe="columns standardised, every row divided by its length, target centred and divided by its largest value",
        licence="the repository states none",
        citation="Wang (2018), Revisiting differentially private linear regression; files of its repository",
    )
    for name, one in SETS.items()
}
globals().update({f"WANG_{name.upper()}": spec for name, spec in SPECS.items()})  # what the entry points name
