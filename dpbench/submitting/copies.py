"""Private copies: problems like the board's public ones, of rows that nobody has seen, drawn from a secret.

A copy has as many rows as its public problem, of its norms. Each is a mix of two public rows of one label, drawn with
replacement: mean + cos t (a - mean) + sin t (b - mean), t at random, which keeps the rows' mean and covariance. (Turned
public rows would keep their inner products, by which they are recognised.) So loss, weights, size and about the
difficulty are those of the public problem, and an optimum that was looked up for that one is none of the copy's.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from dpbench.problems import Problem, build
from dpbench.problems.optimum import NoOptimum

MIXED = (math.pi / 8, 3 * math.pi / 8)  # the angle of a mix: never nearly one public row
PLANTED = 0.15  # the share of labels that follow a secret model
FLIPPED = (0.0, 0.03)  # of ±1 labels, the share that is turned
WIDEST = 600  # columns: a rotation of more takes minutes


def draw(name: str, secret: bytes) -> Problem:
    """A private copy of the public problem `name` by `secret`, at least 32 bytes.

    Raises:
        NoOptimum: where its optimum is not found, so that no excess loss can be computed on it.
    """
    public = build(name)
    # Keyed by the secret: nobody who lacks it can make the copy, and each problem has its own stream.
    digest = hashlib.blake2b(name.encode(), key=secret[:64], digest_size=32).digest()
    rng = np.random.Generator(np.random.PCG64DXSM(int.from_bytes(digest, "big")))
    X, y = _mixed(public, rng)
    copy = Problem(X, y, loss=public.loss.name, l1=public.l1, l2=public.l2, row_bound=1.0)
    try:
        copy.optimum()
    except NoOptimum as error:
        raise NoOptimum(f"a private copy of {name}: {error}") from None
    return copy


def _basis(public: Problem, rng: np.random.Generator) -> Any:
    """(d, d): a rotation; where the penalty is of single coordinates, a permutation with signs."""
    d = public.d
    if public.l1 or d > WIDEST:
        signs = rng.choice([-1.0, 1.0], size=d)
        return scipy.sparse.csr_matrix((signs, (np.arange(d), rng.permutation(d))), shape=(d, d))
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    # QR alone is not uniform over rotations; the signs of R's diagonal make it so.
    return q * np.sign(np.diag(r))


def _mixed(public: Problem, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """(X, y) of new rows, in a secret basis; X is sparse where the public one is."""
    n, X, y = public.n, public.X, np.asarray(public.y, dtype=np.float64)
    kinds = y if public.loss.binary else np.zeros(n)
    first, second = rng.integers(n, size=n), np.empty(n, dtype=int)
    for kind in np.unique(kinds):
        of = kinds[first] == kind
        second[of] = rng.choice(np.flatnonzero(kinds == kind), size=of.sum())
    angle = rng.uniform(*MIXED, size=n)
    a, b, diagonal = np.cos(angle), np.sin(angle), scipy.sparse.diags
    mixed = diagonal(a) @ X[first] + diagonal(b) @ X[second]
    for kind in [] if public.is_sparse else np.unique(kinds):  # the mean would fill every entry of a sparse row
        mixed[kinds[first] == kind] += np.outer((1 - a - b)[kinds[first] == kind], X[kinds == kind].mean(axis=0))
    mixed = mixed @ _basis(public, rng)
    norm = scipy.sparse.linalg.norm if public.is_sparse else np.linalg.norm
    scale = np.minimum(norm(X[first], axis=1), 1.0) / np.maximum(norm(mixed, axis=1), 1e-300)
    mixed = diagonal(scale) @ mixed
    # Some labels follow a secret model: noisy moments may tell the basis, and with it the public optimum.
    z = mixed @ rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=public.d)
    if public.loss.binary:
        planted = np.where(z > np.quantile(z, np.mean(y < 0)), 1.0, -1.0)  # as many of either label as there are
        labels = np.where(rng.random(n) < PLANTED, planted, y[first])
        return mixed, np.where(rng.random(n) < rng.uniform(*FLIPPED), -labels, labels)
    # A label has the scale of its row, so that a linear relation stays one.
    labels = (a * y[first] + b * y[second] + (1 - a - b) * y.mean()) * scale
    labels += 2 * PLANTED * y.std() * (z - z.mean()) / max(float(z.std()), 1e-300)
    return mixed, np.clip(labels, y.min(), y.max())
