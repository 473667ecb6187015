"""A model as an ONNX graph in double precision: the steps of its encoding, one product of matrices, the labels.

An input per column, (rows, 1): numbers as doubles, without their units, missing ones NaN; categories as text, missing
ones empty. A model of arrays has one input X, (rows, columns).
"""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from dpbench import files
from dpbench.errors import UserError, how_to_install
from dpbench.own.model import Model, load
from dpbench.own.statement import Statement
from dpbench.schema.cells import spellings
from dpbench.schema.encoding import Categories, Missing, Numbers
from dpbench.schema.schema import BLANKS, word

OPSET, FORMAT_VERSION = 20, 9  # texts are compared with patterns from 20 on; the oldest file that it may stand in
KINDS = {"U": "STRING", "b": "BOOL", "i": "INT64", "f": "DOUBLE"}  # of labels, by NumPy's letters


def export(model: str | os.PathLike[str], *, out: str | os.PathLike[str] | None = None) -> bytes:
    """A saved model as an ONNX graph, which predicts as it does on missing, unknown and out-of-bounds cells too.

    Its outputs are label, probabilities and scores; of a number, prediction. Its guarantee is its doc_string.

    Args:
        model: the file that an estimator saved.
        out: a file to write to; None writes none.

    Returns:
        The bytes of the graph.

    Raises:
        UserError: the file is none that dpbench wrote, its schema has what ONNX cannot say, as dates, or the
            extra `onnx` is not installed.
        DoesNotHold: something that its statement says can be computed and is not so.
    """
    return files.written(graph(*load(model)[:2]), out)


def graph(model: Model, statement: Statement) -> bytes:
    """The bytes of a model's graph."""
    try:
        import onnx
    except ImportError:
        raise UserError(f"export: it needs the package onnx; {how_to_install('onnx')}") from None
    made = _Graph(onnx, {"X"} if model.positional else set(model.encoding.columns))
    scores = _scores(made, model)
    _outputs(made, model, scores)
    whole = onnx.helper.make_graph(made.nodes, "dpbench", made.inputs, made.outputs, initializer=made.constants)
    opsets = [onnx.helper.make_opsetid("", OPSET)]
    model_proto = onnx.helper.make_model(
        whole, opset_imports=opsets, ir_version=FORMAT_VERSION, doc_string=statement.guarantee
    )
    onnx.checker.check_model(model_proto, full_check=True)
    return bytes(model_proto.SerializeToString())


class _Graph:
    def __init__(self, onnx: Any, taken: set[str]) -> None:
        self.onnx, self.taken = onnx, taken
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def name(self, wanted: str) -> str:
        while wanted in self.taken:
            wanted += "_"
        self.taken.add(wanted)
        return wanted

    def __call__(self, kind: str, *given: Any, out: str = "", **how: Any) -> str:
        """The name of what an operator makes; numbers and arrays among what it is given are constants."""
        output = self.name(out or f"{kind}_{len(self.nodes)}")
        names = [one if isinstance(one, str) else self.constant(one) for one in given]
        self.nodes.append(self.onnx.helper.make_node(kind, names, [output], **how))
        return output

    def constant(self, value: Any) -> str:
        name, array = self.name(f"constant_{len(self.constants)}"), np.asarray(value)
        array = array.astype(object) if array.dtype.kind == "U" else array
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def value(self, place: list[Any], name: str, kind: str, *shape: int) -> str:
        place.append(
            self.onnx.helper.make_tensor_value_info(name, getattr(self.onnx.TensorProto, kind), ["rows", *shape])
        )
        if not name:
            raise UserError('columns: ONNX has no input without a name; rename the column ""')
        return name

    def double(self, name: str) -> str:
        return self("Cast", name, to=self.onnx.TensorProto.DOUBLE)


def _encoded(made: _Graph, model: Model) -> list[str]:
    """The steps' blocks (rows, ·), not yet divided by the unit."""
    parts, known = [], ""
    # The graph walks the encoding's own steps: a second reader of cells would differ somewhere.
    for step in model.encoding.steps:
        if isinstance(step, Numbers):
            names = ["X"] if model.positional else list(step.columns)
            wide = len(step.columns) if model.positional else 1
            cells = [made.value(made.inputs, one, "DOUBLE", wide) for one in names]
            cell = cells[0] if len(cells) == 1 else made("Concat", *cells, axis=1)
            middle, half = step.low / 2 + step.high / 2, step.high / 2 - step.low / 2
            inside = made("Max", made("Min", cell, step.high), step.low)
            # Both with the other sign: a runtime drops "- middle" and "/ half" where float32 makes 0 and 1 of them.
            inside = made("Max", made("Min", made("Div", made("Sub", middle, inside), -half), 1.0), -1.0)
            known = made("Equal", cell, cell)  # NaN alone is not itself
            parts.append(made("Where", known, inside, 0.0))
        elif isinstance(step, Categories):
            made.value(made.inputs, step.column, "STRING", 1)
            if "" in map(word, step.labels):
                raise UserError(f'columns.{step.column}: to ONNX an empty text is a missing cell; name the category ""')
            hits = [made("RegexFullMatch", step.column, pattern=_pattern(one, step.labels)) for one in step.labels]
            each = made.double(made("Concat", *hits, axis=1))
            known = made("Greater", made("ReduceSum", each, np.array([1])), 0.5)
            parts.append(each)
        elif isinstance(step, Missing):
            parts.append(made.double(made("Not", known)))
        else:
            raise UserError(f"columns.{step.column}: ONNX knows no dates; make a column of each part, with bounds")
    return parts


def _pattern(label: Any, labels: Any) -> str:
    blank = f"[{re.escape(BLANKS)}]*"
    return f"{blank}(?:{'|'.join(re.escape(one) for one in spellings(label, labels))}){blank}"


def _scores(made: _Graph, model: Model) -> str:
    """(rows, models)."""
    parts = _encoded(made, model)
    rows = parts[0] if len(parts) == 1 else made("Concat", *parts, axis=1)
    W, first, unit = model.weights, int(model.intercept), model.encoding.unit
    if model.window is not None:
        return _in_window(made, model, rows)
    scores = made("MatMul", rows, np.ascontiguousarray(W[:, first:].T))
    scores = made("Div", made("Add", scores, W[:, 0]) if first else scores, unit)
    if model.encoding.bound is None:
        return scores
    squares = made("Add", made("ReduceSumSquare", rows, np.array([1])), float(first))
    return made("Div", scores, made("Max", made("Div", made("Sqrt", squares), unit), 1.0))


def _in_window(made: _Graph, model: Model, rows: str) -> str:
    """(rows, 1): as `Window.rows` and `Window.predictions` make them."""
    window: Any = model.window
    zero = made("And", made("Equal", rows, 0.0), model.spec.lengths.numbers[1:])
    a = made("Where", zero, 0.0, made("Sub", rows, np.array(window.middles[1:])))
    squares = made("Add", made("ReduceSumSquare", a, np.array([1])), float(window.intercept))
    long = made("Max", made("Sqrt", squares), window.bound)
    score = made("MatMul", a, np.ascontiguousarray(model.weights[:, 1:].T))
    score = made("Add", score, window.intercept * model.weights[:, 0])
    score = made("Add", made("Div", score, long), window.mean)
    inside = made("Max", made("Min", score, 1.0), -1.0)
    return made("Add", made("Mul", inside, window.half), window.middle)


def _outputs(made: _Graph, model: Model, scores: str) -> None:
    if model.labels is None:
        low, high = model.schema.target.bounds  # type: ignore[misc]  # of a number it has them
        inside = made("Max", made("Min", scores, 1.0), -1.0)
        whole = made("Sub", low / 2 + high / 2, made("Mul", inside, low / 2 - high / 2))  # signs as in `_encoded`
        made.value(made.outputs, made("Squeeze", whole, np.array([1]), out="prediction"), "DOUBLE")
        return
    labels = np.array(model.labels)
    if labels.tolist() != list(model.labels) or labels.dtype.kind not in KINDS:
        raise UserError(f"classes: ONNX has no type that keeps {', '.join(map(repr, model.labels))}; fit others")
    together = model.loss not in ("logistic", "squared")
    if len(labels) == 2:
        p = made("Sigmoid", scores)
        p = made("Concat", made("Sub", 1.0, p), p, axis=1, out="probabilities")
        place = made(
            "Squeeze", made("Cast", made("Greater", scores, 0.0), to=made.onnx.TensorProto.INT64), np.array([1])
        )
    elif together:
        p, place = made("Softmax", scores, axis=1, out="probabilities"), made("ArgMax", scores, axis=1, keepdims=0)
    else:
        each = made("Sigmoid", scores)
        total = made("Max", made("ReduceSum", each, np.array([1])), float(np.finfo(float).tiny))
        p, place = made("Div", each, total, out="probabilities"), made("ArgMax", scores, axis=1, keepdims=0)
    made.value(made.outputs, made("Gather", labels, place, out="label"), KINDS[labels.dtype.kind])
    made.value(made.outputs, p, "DOUBLE", len(labels))
    made.value(made.outputs, made("Identity", scores, out="scores"), "DOUBLE", len(model.W))
