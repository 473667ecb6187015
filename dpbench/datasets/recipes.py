"""The steps that turn tables into (X, y): on float64 arrays, in place where that spares memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpbench.datasets.spec import opened
from dpbench.errors import DataError

LARGEST, LARGEST_SINGLE = 1e150, 1e15  # an entry whose square, and a row's sum of them, is finite; in float32
PRECISIONS = ("float64", "float32")
WITHIN = 1 - 2.0**-22  # times a row of ‖x‖ ≤ 1: so much is lost that rounding to float32 cannot take it beyond 1
BLOCK = 8192  # rows at a time: temporaries stay small beside X


def standardise(X: np.ndarray) -> np.ndarray:
    """Columns to zero mean and unit population variance, in place; constant columns become zero.

    Mean and variance come from all the rows given and count as public knowledge, in every paper of the
    benchmark.
    """
    for column in X.T:  # by column: no temporary of the size of X
        if column.min() == column.max():
            column[:] = 0.0  # exactly: the rounding of a mean must not be blown up to unit variance
            continue
        scale = column.std()
        column -= column.mean()
        column /= scale
    return X


def in_float32(X: np.ndarray, divisor: float) -> np.ndarray:
    """X / divisor as float32 arithmetic has it, in float64: for rows that a published float32 run saw."""
    return (X.astype(np.float32) / np.float32(divisor)).astype(np.float64)


def with_ones(X: np.ndarray) -> np.ndarray:
    """(n, d) -> (n, d+1): a column of ones in front, the intercept."""
    return np.hstack([np.ones((X.shape[0], 1)), X])


def one_entry_each(X: Any) -> Any:
    """CSR X, in which a column may stand twice in a row, with the sum of the two in one; X itself where none does."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def row_norms(X: Any, order: int = 2) -> np.ndarray:
    """(n,) ‖x_i‖₁ or ‖x_i‖₂ of a dense or CSR matrix, summed in float64."""
    parts = (X[i : i + BLOCK].astype(np.float64, copy=False) for i in range(0, X.shape[0], BLOCK))
    blocks = (abs(B) if order == 1 else B for B in parts)
    powers = (B if order == 1 else B.power(2) if hasattr(B, "tocsr") else B * B for B in blocks)
    # np.sum adds pairwise: prepared data hold these digits, so the order of the sum stays.
    sums = np.concatenate([np.asarray(B.sum(axis=1)).ravel() for B in powers])
    return sums if order == 1 else np.sqrt(sums)


def rows_beyond(X: Any, order: int, limit: float) -> Iterator[tuple[slice, np.ndarray]]:
    """Pairs (rows, which of them have not ‖x‖ ≤ limit), block by block; order: 1 or 2.

    Beyond is a row too of which an entry is no number, or infinite, or has an infinite square. Norms are float64, as a
    look at all rows that keeps nothing: a third of the time of `row_norms`, whose last digit prepared data hold.
    """
    n, d = X.shape
    most = limit * limit if order == 2 else limit
    # Where float32's own error is small beside the limit, it may decide on its own.
    single = not hasattr(X, "tocsr") and X.dtype == np.float32 and d < 2**16 and 1e-20 < most < 1e20
    workspace, ones = np.empty((0 if hasattr(X, "tocsr") else min(n, BLOCK), d)), np.ones(d)
    with np.errstate(all="ignore"):
        for start in range(0, n, BLOCK):
            here = slice(start, min(start + BLOCK, n))
            if single and _surely_within(X[here], order, most):
                yield here, np.empty(0, int)
                continue
            if hasattr(X, "tocsr"):
                norms = row_norms(X[here], order)
                yield here, np.flatnonzero(~(norms <= limit))
                continue
            A = workspace[: here.stop - start]
            np.copyto(A, X[here])
            np.abs(A, out=A) if order == 1 else np.multiply(A, A, out=A)
            yield here, np.flatnonzero(~(A @ ones <= most))


def _surely_within(A: np.ndarray, order: int, most: float) -> bool:
    """Whether float32 rows A (b, d) have sums of squares, or of sizes, that float32 itself sees to be below `most`.

    With u = 2⁻²⁴: each square is off by u of itself, and by 2⁻¹⁵⁰ where it is tiny; a sum of d numbers in any order by
    (d - 1)u/(1 - du) of itself (Higham 2002, Section 4.2). That makes less than 2(d + 2)u.
    """
    sizes = np.einsum("ij,ij->i", A, A) if order == 2 else np.einsum("ij->i", np.abs(A))
    return bool((sizes <= most * (1 - (A.shape[1] + 2) * 2.0**-23)).all())


def all_within(X: Any, order: int, limit: float) -> bool:
    """Whether all rows have ‖x‖ ≤ limit in float64, of order 1 or 2, and numbers alone."""
    return all(not len(beyond) for _, beyond in rows_beyond(X, order, limit))


def clip_rows(X: np.ndarray) -> np.ndarray:
    """Each row divided by max(1, ‖row‖₂), in place: the privacy proofs ask for ‖x‖₂ ≤ 1."""
    X /= np.maximum(1.0, row_norms(X))[:, None]
    return X


def one_hot(values: np.ndarray) -> np.ndarray:
    """(n,) of categories -> (n, number of categories) of 0/1, categories in sorted order."""
    return (values[:, None] == np.unique(values)).astype(np.float64)


def signs(labels: np.ndarray, positive: object, negative: object) -> np.ndarray:
    """Labels as float64 ±1.

    >>> signs(np.array([">50K", "<=50K"]), ">50K", "<=50K")
    array([ 1., -1.])
    """
    labels = np.asarray(labels)
    known = (labels == positive) | (labels == negative)
    if not known.all():
        other = labels[~known][0]
        raise DataError(f"label {other!s} found where {positive} or {negative} is expected")
    return np.where(labels == positive, 1.0, -1.0)


def read_table(path: Path, *, separator: str = ",", dtype: type = np.float64, columns: int | None = None) -> np.ndarray:
    """A headless table of numbers, compressed or not, as a 2-d array; `columns` is checked."""
    import pandas as pd

    with opened(path) as stream:
        table = pd.read_csv(stream, sep=separator, header=None, dtype=dtype, skip_blank_lines=True).to_numpy()
    if columns is not None and table.shape[1] != columns:
        raise DataError(f"{path.name}: {table.shape[1]} columns found, {columns} expected")
    return table


def read_svmlight(path: Path, columns: int | None) -> tuple[np.ndarray, np.ndarray]:
    """An svmlight file as dense X of shape (n, columns) and its labels; None: up to the highest feature found."""
    from sklearn.datasets import load_svmlight_file

    with opened(path) as stream:
        X, y = load_svmlight_file(stream, dtype=np.float64)
    if columns is not None and X.shape[1] != columns:
        raise DataError(f"{path.name}: highest feature {X.shape[1]} found, {columns} expected")
    return X.toarray(), y
