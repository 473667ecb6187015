"""Private problems: copies of public ones that nobody has seen, made from a secret seed.

A copy has a secret subset of the rows, in another order, some labels flipped, and another basis: a rotation, or where
the penalty is of single coordinates (l1) a permutation with signs. All of these keep ‖x‖₂ ≤ 1 and what the problem is
like; an optimum that was looked up for the public one is none of the copy's.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

import numpy as np
import pandas as pd

from dpbench import datasets
from dpbench.errors import UserError
from dpbench.leaderboard import tracks
from dpbench.problems import Problem, build, catalogue
from dpbench.problems.optimum import NoOptimum

ROWS = (0.6, 0.9)  # the share of the rows that a copy has
FLIPPED = (0.0, 0.03)  # of a binary target's labels
WIDEST = 600  # columns: a rotation of more takes minutes
SIZE = 32  # bytes of a seed


def seed_of(file: str | os.PathLike[str] | None) -> bytes:
    """The secret in `file`, which is made, readable by its owner alone, where there is none; None: a new one."""
    if file is None:
        return secrets.token_bytes(SIZE)
    path = Path(file)
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as made:
            made.write(secrets.token_hex(SIZE) + "\n")
    try:
        found = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        raise UserError(f"seed: {file} is no hexadecimal file; give a path where there is none yet") from None
    if len(found) < SIZE:
        raise UserError(f"seed: {file} holds {len(found)} bytes; a secret has {SIZE} at least")
    return found


def copy(name: str, seed: bytes) -> Problem | None:
    """A private copy of the public problem `name`, by `seed`; None where it is sparse or has no optimum."""
    public = build(name)
    if public.is_sparse:
        return None
    digest = hashlib.blake2b(name.encode(), key=seed[:64], digest_size=32).digest()
    rng = np.random.Generator(np.random.PCG64DXSM(int.from_bytes(digest, "big")))
    n, d = public.n, public.d
    rows = rng.permutation(n)[: max(2, round(n * rng.uniform(*ROWS)))]
    X, y = np.asarray(public.X[rows], dtype=np.float64), np.array(public.y[rows], dtype=np.float64)
    if public.loss.binary:
        y = np.where(rng.random(len(y)) < rng.uniform(*FLIPPED), -y, y)
    if public.l1 or d > WIDEST:
        X = X[:, rng.permutation(d)] * rng.choice([-1.0, 1.0], size=d)
    else:
        q, r = np.linalg.qr(rng.standard_normal((d, d)))
        X = X @ (q * np.sign(np.diag(r)))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]  # rounding alone
    made = Problem(X, y, loss=public.loss.name, l1=public.l1, l2=public.l2, row_bound=1.0)
    try:
        made.optimum()
    except NoOptimum:
        return None
    return made


def listing(seed: bytes, profile: str) -> list[dict[str, object]]:
    """What the seed makes of the board's problems that are fetched, a row per copy."""
    found: list[dict[str, object]] = []
    for name in dict.fromkeys(cell.problems[0] for cell in tracks.cells(profile, tracks.grid())):
        if datasets.available(catalogue.recipe_of(name).dataset) and (made := copy(name, seed)):
            null = float(made.value(np.zeros((1, made.d)))[0]) - made.optimum().value
            found.append({"copy of": name, "n": made.n, "d": made.d, "excess of w = 0": null})
    return found


def board_secret(seed: str | os.PathLike[str], *, profile: str = "full") -> pd.DataFrame:
    """The private copies of the board's problems that the secret in the file `seed` makes; the file is made if missing.

    A row per copy of a problem whose data are fetched: problem, n and d of the copy, the excess loss of w = 0 there.
    """
    return pd.DataFrame(listing(seed_of(seed), profile))
