"""A saved model for where there is no dpbench: a SQL query, an ONNX graph, a scikit-learn pipeline."""

from __future__ import annotations

import os

from dpbench import files
from dpbench.errors import UserError, nearest
from dpbench.estimators import onnx_graph, pipeline, sql

FORMATS = ("sql", "onnx", "sklearn")


def export(
    model: str | os.PathLike[str],
    *,
    to: str = "sql",
    table: str = "rows",
    out: str | os.PathLike[str] | None = None,
) -> str | bytes:
    """A saved model in another form, which predicts as it does on missing, unknown and out-of-bounds cells too.

    Args:
        model: the file that an estimator saved.
        to: "sql": a query that adds the scores and a column `prediction`, by CASE, arithmetic and SQRT alone. "onnx":
            a graph in double precision (extra `onnx`), with an input per column. "sklearn": Python source that defines
            `pipeline`, a fitted scikit-learn Pipeline made of scikit-learn, pandas and NumPy alone.
        table: what the table with the model's columns is called, for "sql".
        out: a file to write to; None writes none.

    Returns:
        The query or the source, or the bytes of the graph.

    Raises:
        UserError: the file is none that dpbench wrote, or its schema has dates, which SQL and ONNX cannot say.
        DoesNotHold: something that its statement says can be computed and is not so.
    """
    if to not in FORMATS:
        raise UserError(f"to: unknown form {to!r}; {nearest(str(to), FORMATS)}")
    if to == "onnx":
        return files.written(onnx_graph.graph(model), out)
    return files.written(sql.query(model, table) if to == "sql" else pipeline.source(model), out)
