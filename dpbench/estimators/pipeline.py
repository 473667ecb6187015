"""A linear model as Python source: a fitted scikit-learn Pipeline, made without dpbench and without a pickle.

The source is a template, `PIPELINE`, the functions that read cells here, and the model's numbers and texts as literals:
nothing of the file becomes code.
"""

from __future__ import annotations

import os
import pprint
import re
from typing import Any

import msgspec

from dpbench.estimators.saved import REGRESSOR, Saved, read
from dpbench.privacy.statement import Statement
from dpbench.schema.encode import places, reading

PIPELINE = '''\
@COMMENT@
from __future__ import annotations

import datetime
import math
import re
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

MODEL = @MODEL@


@READING@


def scaled(values, low, high):
    """From the bounds to [-1, 1], 0 where there is no number."""
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    inside = np.clip((np.clip(values, low, high) - middle) / half, -1, 1)
    return np.where(np.isnan(values), 0.0, inside)


def encode(table):
    """Rows as the model was fitted to: each cell by itself, as its schema says."""
    parts = [np.ones((len(table), 1))] if MODEL["intercept"] else []
    for i, column in enumerate(MODEL["columns"]):
        cells = table[column["name"]] if MODEL["named"] else np.asarray(table)[:, i]
        if "bounds" in column:
            found = numbers(cells)
            unknown = np.isnan(found)
            parts.append(scaled(found, *column["bounds"])[:, None])
        elif "date" in column:
            for part, low, high in column["date"]:
                found = date_part(cells, part)
                unknown = np.isnan(found)
                parts.append(scaled(found, low, high)[:, None])
        else:
            index, k = column["categories"], max(column["categories"].values()) + 1
            codes = np.array([index.get(text, -1) for text in words(cells)], dtype=int)
            unknown = codes < 0
            if column["ordered"]:
                parts.append(np.where(unknown, 0.0, 2 * codes / (k - 1) - 1)[:, None])
            else:
                parts.append((codes[:, None] == np.arange(k)).astype(float))
        if column["indicator"]:
            parts.append(unknown.astype(float)[:, None])
    X = np.hstack(parts) / MODEL["unit"]
    if MODEL["shorten"]:
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return X


class OneVersusRest(LogisticRegression):
    """A model for each class against the rest."""

    def predict_proba(self, X):
        p = 0.5 * (1 + np.tanh(self.decision_function(X) / 2))
        return p / np.maximum(p.sum(axis=1, keepdims=True), np.finfo(float).tiny)


class WithinBounds(LinearRegression):
    """Numbers within the bounds of the target."""

    def predict(self, X):
        middle, half = MODEL["target"]
        return middle + half * np.clip(super().predict(X), -1, 1)


W = np.array(MODEL["weights"])
if MODEL["kind"] == "number":
    model = WithinBounds(fit_intercept=False)
    model.coef_, model.intercept_ = W[0], 0.0
else:
    model = OneVersusRest() if MODEL["kind"] == "one versus rest" else LogisticRegression()
    model.coef_, model.intercept_ = W, np.zeros(len(W))
    model.classes_ = np.array(MODEL["classes"])
model.n_features_in_ = W.shape[1]
pipeline = Pipeline([("encode", FunctionTransformer(encode)), ("model", model)])
'''


def source(path: str | os.PathLike[str]) -> str:
    """Python source that defines `pipeline`, and needs scikit-learn, pandas and NumPy alone."""
    model, statement, _ = read(path)
    made = {
        "@COMMENT@": _comment(os.path.basename(path), statement),
        "@MODEL@": pprint.pformat(_plain(model), width=110, sort_dicts=False),
        "@READING@": reading(),
    }
    return re.sub(
        "@COMMENT@|@MODEL@|@READING@", lambda found: made[found[0]], PIPELINE
    )  # at once: a text may hold the other


def _comment(name: str, statement: Statement) -> str:
    """What was released, on lines of their own whatever the texts hold."""
    lines = [f"{name}, as a scikit-learn pipeline: from this module import pipeline", *statement.lines()]
    return "\n".join("# " + " ".join(line.split()) for line in lines)


def _plain(model: Saved) -> dict[str, Any]:
    """The model as literals."""
    schema = model.described
    columns: list[dict[str, Any]] = []
    for name, column in schema.columns.items():
        if column.drop:
            continue
        one: dict[str, Any] = {"name": name, "indicator": column.missing == "indicator"}
        if column.bounds is not None:
            one["bounds"] = column.bounds
        elif column.date is not None:
            one["date"] = [(part, low, high) for part, (low, high) in column.parts]
        else:
            one |= {"categories": places(column.categories or ()), "ordered": column.ordered}
        columns.append(one)
    kind = "one versus rest" if model.loss == "logistic" and len(model.W) > 1 else "classes"
    return {
        "kind": "number" if model.kind == REGRESSOR else kind,
        "named": model.schema is not None,
        "columns": columns,
        "intercept": model.parameters.fit_intercept,
        "unit": model.unit,
        "shorten": schema.row_bound is not None,
        "weights": model.W,
    } | ({"target": model.target} if model.kind == REGRESSOR else {"classes": msgspec.to_builtins(model.classes)})
