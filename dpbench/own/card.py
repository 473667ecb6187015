"""The card of a saved model: what it is for, what it cost, what it takes, and what to expect of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import msgspec

from dpbench import files
from dpbench.errors import silent
from dpbench.own import worlds as worlds_of
from dpbench.own.forecast import Forecasts
from dpbench.own.model import Model, load
from dpbench.own.planning import plan
from dpbench.own.registry import entry, fields, read_holder
from dpbench.own.statement import Statement
from dpbench.schema import Schema, word


def _cell(text: str) -> str:
    """On one line, without a bar that ends the cell."""
    return " ".join(text.split()).replace("|", "\\|")


TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("dpbench", "own"), trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    undefined=jinja2.StrictUndefined,
)  # fmt: skip
TEMPLATES.filters |= {"cell": _cell, "word": word}
TEMPLATES.globals["number"] = lambda bounds: f"{bounds[0]:g} to {bounds[1]:g}"


def card_of(
    name: str, model: Model, statement: Statement, holds: Sequence[str], plan: Forecasts | str, holder: dict[str, Any]
) -> str:
    """The card, in Markdown; name: of the model's file; holds: what was checked of its statement.

    plan: what is predicted, or why there is no score.
    """
    refused, forecasts = (plan, []) if isinstance(plan, str) else ("", plan.forecasts)
    return TEMPLATES.get_template("card.md").render(
        name=name, schema=described(model), classes=[str(label) for label in model.labels or ()],
        bound=model.bound or model.encoding.bound, positional=model.positional,
        centred=model.window is not None and not model.window.intercept,
        statement=statement, holds=holds, notes=model.interval_notes, intervals=model.interval_table(),
        plan=plan, refused=refused, holder=holder, questions=fields(),
        foreseen=next((one for one in forecasts if one.method == statement.mechanism), None),
    )  # fmt: skip


def described(model: Model) -> Schema:
    """What is public of a model's table; of arrays, their columns by number or by name."""
    schema, unit = model.schema, model.spec.unit or None
    if unit not in schema.columns:  # of arrays: so that what is foreseen is of persons too
        schema = msgspec.structs.replace(schema, unit=unit)
    if not model.positional:
        return schema
    names = model.features or list(schema.columns)
    columns = dict(zip(names, schema.columns.values(), strict=True))
    target = msgspec.structs.replace(schema.target, name="the target")
    return msgspec.structs.replace(schema, target=target, columns=columns)


def card(
    model: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    holder: str | os.PathLike[str] | None = None,
    registry: str | os.PathLike[str] | None = None,
    like: str | os.PathLike[str] | None = None,
    share: Mapping[str, float] | None = None,
    signal: float | None = None,
    worlds: int = 40,
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[str, float], None] = silent,
) -> str:
    """A Markdown card of a saved model: its guarantee, its inputs, and the accuracy to expect of it.

    No score of the private rows is in it: what is to be expected is simulated, as by `plan`. So the card can go
    wherever the model goes. Where the schema is unlike all that simulated tables were held against, as with dates or
    with more than 107 columns, it has a score from public rows (`like`) alone.

    Args:
        model: the file that an estimator saved.
        out: a Markdown file to write; None writes none.
        holder: a TOML file of what only the holder of the model can say, see `dpbench.own.registry`; the card shows
            its answers to NIST SP 800-226 as stated, not as checked.
        registry: a YAML file to write: the model as a draft entry of the Deployments Registry.
        like, share, signal, worlds, seed, jobs, progress: as of `plan`.

    Raises:
        UserError: the file is none that dpbench wrote, or an argument does not fit.
        DoesNotHold: something that it states can be computed and is not so.
    """
    saved, statement, holds = load(model)
    stated = read_holder(holder)
    for argument, path in (("out", out), ("registry", registry)):  # before minutes of simulation
        files.writable(argument, path)
    if registry is not None:
        files.written(entry(statement, holds, described(saved), stated), registry)
    why = worlds_of.outside(described(saved)) if like is None else ""
    foreseen = why or plan(
        described(saved),
        statement.rows,
        epsilon=statement.epsilon,
        delta=statement.delta,
        algorithm=statement.mechanism,
        like=like,
        share=share,
        signal=signal,
        worlds=worlds,
        seed=seed,
        row_bound=saved.spec.row_bound,  # type: ignore[arg-type]  # the plan of the model had it
        asked=saved.spec,
        jobs=jobs,
        progress=progress,
    )
    return files.written(card_of(Path(model).name, saved, statement, holds, foreseen, stated), out)
