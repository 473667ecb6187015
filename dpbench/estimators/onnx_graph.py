"""A linear model as an ONNX graph in double precision: clipping, text comparisons, one product of matrices.

An input per column of the schema, (rows, 1): numbers as doubles, missing ones NaN; categories as text, missing ones
empty or any text that is no category. A model of arrays has one input X, (rows, columns). A cell counts as the schema
says, as in `schema.encode`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpbench.errors import UserError, how_to_install
from dpbench.estimators.saved import REGRESSOR, Saved, middle_of, read
from dpbench.privacy.statement import Statement
from dpbench.schema import Column, spellings
from dpbench.version import __version__

OPSET = 20  # from which texts are compared with patterns
FORMAT_VERSION = 9  # of the file; the oldest that this operator set may stand in


def graph(path: str | os.PathLike[str]) -> bytes:
    """The model, as the bytes of an ONNX file.

    Outputs of a classifier: `label` (rows,), `probabilities` (rows, classes) and `scores` (rows, 1 or classes); of a
    regressor `prediction` (rows,). Where a column has such a name, an underscore follows it. The guarantee is the
    file's description. UserError for a schema with dates, and where the package onnx is missing.
    """
    try:
        import onnx
    except ImportError:
        raise UserError(f"to: onnx needs the package onnx; {how_to_install('onnx')}") from None
    model, statement, _ = read(path)
    names = [] if model.schema is None else [name for name, one in model.schema.columns.items() if not one.drop]
    made = _Graph(names or ["X"])
    rows = made.numbers("X", *_bounds(model)) if model.schema is None else _encoded(made, model)
    _outputs(made, model, _scores(made, model, rows))
    return _file(onnx, made, os.path.basename(path), statement)


class _Graph:
    """Nodes, constants, inputs and outputs while a graph is made; names are those of the columns, or numbered."""

    def __init__(self, names: Sequence[str]) -> None:
        from onnx import helper, numpy_helper

        self._helper, self._array = helper, numpy_helper.from_array
        self._taken = set(names)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def _name(self, wanted: str) -> str:
        while wanted in self._taken:
            wanted += "_"
        self._taken.add(wanted)
        return wanted

    def apply(self, kind: str, *given: Any, out: str = "", **how: Any) -> str:
        """The name of what an operator makes of named tensors; numbers and arrays among them are constants."""
        found = self._name(out or f"{kind}_{len(self.nodes)}")
        names = [one if isinstance(one, str) else self.constant(one) for one in given]
        self.nodes.append(self._helper.make_node(kind, names, [found], **how))
        return found

    def constant(self, value: Any) -> str:
        """The name of an array, of a number as double."""
        name = self._name(f"constant_{len(self.constants)}")
        array = np.asarray(value)
        if array.dtype.kind == "U":
            array = array.astype(object)
        self.constants.append(self._array(array, name))
        return name

    def input(self, name: str, kind: Any, columns: int) -> str:
        self.inputs.append(self._helper.make_tensor_value_info(name, kind, ["rows", columns]))
        return name

    def output(self, name: str, kind: Any, *columns: int) -> None:
        self.outputs.append(self._helper.make_tensor_value_info(name, kind, ["rows", *columns]))

    def cast(self, name: str, kind: Any) -> str:
        return self.apply("Cast", name, to=kind)

    def numbers(self, name: str, lows: np.ndarray, highs: np.ndarray) -> str:
        """Numbers of one or more columns from their bounds to [-1, 1], NaN as 0."""
        from onnx import TensorProto

        cells = self.input(name, TensorProto.DOUBLE, len(lows))
        middle, half = middle_of((lows, highs))
        inside = self.apply("Max", self.apply("Min", cells, highs), lows)
        scaled = self.apply("Div", self.apply("Sub", inside, middle), half)
        scaled = self.apply("Max", self.apply("Min", scaled, 1.0), -1.0)
        return self.apply("Where", self.known(cells), scaled, 0.0)

    def known(self, cells: str) -> str:
        """Whether a number is one: NaN alone is not itself."""
        return self.apply("Equal", cells, cells)


def _bounds(model: Saved) -> tuple[np.ndarray, np.ndarray]:
    assert model.bounds is not None
    return np.array(model.bounds[0]), np.array(model.bounds[1])


def _encoded(made: _Graph, model: Saved) -> str:
    """(rows, columns) of the schema, encoded, without the intercept."""
    assert model.schema is not None
    parts = []
    for name, column in model.schema.columns.items():
        if column.date is not None:
            raise UserError(
                f"columns.{name}: ONNX knows no dates; make a column of each part, and fit with their bounds"
            )
        if not column.drop:
            parts += _column(made, name, column)
    return made.apply("Concat", *parts, axis=1)


def _column(made: _Graph, name: str, column: Column) -> list[str]:
    from onnx import TensorProto

    if column.bounds is not None:
        found = [made.numbers(name, *(np.array([end]) for end in column.bounds))]
        unknown = made.apply("Not", made.known(name))
    else:
        assert column.categories is not None
        made.input(name, TensorProto.STRING, 1)
        hits = [
            made.apply("RegexFullMatch", name, pattern=_pattern(spellings(label, column.categories)))
            for label in column.categories
        ]
        each = made.cast(made.apply("Concat", *hits, axis=1), TensorProto.DOUBLE)
        unknown = made.apply("Less", made.apply("ReduceSum", each, np.array([1])), 0.5)
        k = len(column.categories)
        places = np.array([[2 * i / (k - 1) - 1] for i in range(k)]) if column.ordered else None
        found = [each if places is None else made.apply("MatMul", each, places)]
    if column.missing == "indicator":
        found.append(made.cast(unknown, TensorProto.DOUBLE))
    return found


def _pattern(spelled: Sequence[str]) -> str:
    return rf"\s*(?:{'|'.join(re.escape(one) for one in spelled)})\s*"


def _scores(made: _Graph, model: Saved, rows: str) -> str:
    """(rows, models): the linear scores, rows being scaled as in a fit."""
    intercept = model.parameters.fit_intercept
    W = np.array(model.W)
    scores = made.apply("MatMul", rows, np.ascontiguousarray(W[:, int(intercept) :].T))
    if intercept:
        scores = made.apply("Add", scores, W[:, 0])
    scores = made.apply("Div", scores, model.unit)
    bound = model.parameters.row_bound if model.schema is None else model.schema.row_bound
    if bound is None:
        return scores
    squares = made.apply("Add", made.apply("ReduceSumSquare", rows, np.array([1])), float(intercept))
    length = made.apply("Div", made.apply("Sqrt", squares), model.unit)
    return made.apply("Div", scores, made.apply("Max", length, 1.0))


def _outputs(made: _Graph, model: Saved, scores: str) -> None:
    from onnx import TensorProto

    if model.kind == REGRESSOR:
        assert model.target is not None
        middle, half = model.target
        inside = made.apply("Max", made.apply("Min", scores, 1.0), -1.0)
        whole = made.apply("Add", made.apply("Mul", inside, half), middle)
        made.output(made.apply("Squeeze", whole, np.array([1]), out="prediction"), TensorProto.DOUBLE)
        return
    labels = np.array(model.classes)
    if len(labels) == 2:
        p = made.apply("Sigmoid", scores)
        p = made.apply("Concat", made.apply("Sub", 1.0, p), p, axis=1, out="probabilities")
        above = made.cast(made.apply("Greater", scores, 0.0), TensorProto.INT64)
        place = made.apply("Squeeze", above, np.array([1]))
    else:
        if model.loss == "logistic":
            each = made.apply("Sigmoid", scores)
            total = made.apply("Max", made.apply("ReduceSum", each, np.array([1])), float(np.finfo(float).tiny))
            p = made.apply("Div", each, total, out="probabilities")
        else:
            p = made.apply("Softmax", scores, axis=1, out="probabilities")
        place = made.apply("ArgMax", scores, axis=1, keepdims=0)
    label = made.apply("Gather", labels, place, out="label")
    kinds = {"U": TensorProto.STRING, "b": TensorProto.BOOL, "i": TensorProto.INT64, "f": TensorProto.DOUBLE}
    made.output(label, kinds[labels.dtype.kind])
    made.output(p, TensorProto.DOUBLE, len(labels))
    made.output(made.apply("Identity", scores, out="scores"), TensorProto.DOUBLE, len(model.W))


def _file(onnx: Any, made: _Graph, name: str, statement: Statement) -> bytes:
    helper = onnx.helper
    whole = helper.make_graph(made.nodes, "dpbench", made.inputs, made.outputs, initializer=made.constants)
    found = helper.make_model(
        whole,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=FORMAT_VERSION,
        producer_name="dpbench",
        producer_version=__version__,
        doc_string=statement.guarantee,
    )
    told = {"source": name, "mechanism": statement.mechanism, "guarantee": statement.guarantee, "made": statement.made}
    helper.set_model_props(found, told)
    onnx.checker.check_model(found, full_check=True)
    return bytes(found.SerializeToString())
