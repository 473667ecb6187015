"""The card of a saved model: what it is for, what it cost, what it takes, and what to expect of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from dpbench import files
from dpbench.errors import silent
from dpbench.own.forecast import Forecasts
from dpbench.own.model import Model, load
from dpbench.own.planning import plan
from dpbench.own.statement import Statement
from dpbench.schema import Column, Schema, word


def card_of(name: str, model: Model, statement: Statement, holds: Sequence[str], foreseen: Forecasts) -> str:
    """The card, in Markdown; name: of the model's file; holds: what was checked of its statement."""
    classifier, schema, bound = model.labels is not None, described(model), model.bound or model.encoding.bound
    target = schema.target
    classes = tuple(map(str, model.labels or ()))
    low, high = target.bounds or (0.0, 0.0)
    task = f"the class of {target.name}: {', '.join(classes)}" if classifier else f"{target.name}, {low:g} to {high:g}"
    loss = "logistic" if classifier else "least-squares"
    text = [
        f"# {name}",
        "",
        f"A linear {loss} model that predicts {task}. It was fitted under differential privacy by "
        f"`{statement.mechanism}` on {statement.rows:,} rows, {statement.made[:10]}.",
        "",
        "## Privacy",
        "",
        *(f"  - {line.strip()}" if line.startswith(" ") else f"- {line}" for line in statement.lines()),
    ]
    text += ["- Checked when this card was made:", *(f"  - {line}" for line in holds)]
    text += [
        "",
        "The guarantee protects one row, all of its cells together. A person with several rows is protected less. What "
        "is listed as public is not protected. The guarantee covers this release alone: other releases from the same "
        "rows add to its cost.",
        "",
        "## What to expect",
        "",
        *_expected(statement.mechanism, foreseen),
    ]
    text += ["", "## Inputs", "", "| column | takes | a missing cell |", "|---|---|---|"]
    text += [
        f"| {_cell(column)} | {_takes(one)} | {_missing(one)} |"
        for column, one in schema.columns.items()
        if not one.drop
    ]
    text += [
        "",
        "Values beyond the bounds count as the nearest bound, unknown categories as none. "
        + (
            f"With each number scaled to [-1, 1], a row longer than {bound:.4g} is shortened to that length."
            if bound is not None
            else ""
        ),
        "",
        "## Limits",
        "",
        "- It is linear: it cannot use what shows only in combinations of columns.",
        "- Its weights contain noise. A single weight says little, and its sign may come from the noise.",
    ]
    if classifier:
        how = "not calibrated: noise and ridge move them to the middle. Use their order"
        if statement.mechanism == "dp-gd-average" and len(model.labels or ()) > 2:
            how = "calibrated by what was released, with few rows or a small ε by a guess: check them before use"
        text.append(f"- Its probabilities are {how}.")
        text.append("- Small groups are predicted worse, and privacy makes that worse still: measure it before use.")
    text += [
        "",
        "## Use",
        "",
        "```python",
        "import dpbench",
        "",
        f"model = dpbench.load_model({name!r})",
        "model.predict(table)  # a pandas DataFrame with the columns above"
        if not model.positional
        else f"model.predict(X)  # (rows, {len(schema.columns)}) numbers, columns as above",
        "```",
    ]
    return "\n".join(line.rstrip() for line in text) + "\n"


def described(model: Model) -> Schema:
    """What is public of a model's table; of arrays, their columns by number or by name."""
    schema = model.schema
    if model.written:
        return schema
    names = model.features or list(schema.columns)
    columns = dict(zip(names, schema.columns.values(), strict=True))
    target = msgspec.structs.replace(schema.target, name="the target")
    return msgspec.structs.replace(schema, target=target, columns=columns)


def _expected(mechanism: str, plan: Forecasts) -> list[str]:
    foreseen = next((one for one in plan.forecasts if one.method == mechanism), None)
    if foreseen is None:
        return [f"Not simulated: {plan.left_out.get(mechanism, 'no estimator runs the method')}."]
    lines = [
        "Simulated on tables of the same schema and size, or on public rows. No score of the private rows is in this "
        "card: it would be exact, and so not private.",
        "",
        "| score | median | nine tenths lie in |",
        "|---|---|---|",
    ]
    for score in plan.scores:
        middle, least, most = foreseen.interval(score)
        label = f"{score} (of what can be learned without privacy)" if score == "kept" else score
        lines.append(f"| {label} | {middle:.2f} | {least:.2f} to {most:.2f} |")
    return [*lines, *([""] if plan.notes else []), *(f"- {note[:1].upper()}{note[1:]}." for note in plan.notes)]


def _missing(column: Column) -> str:
    """What a missing cell of `column` counts as."""
    counts = "counts as no category" if column.categories and not column.ordered else "counts as the middle"
    return (
        counts
        + {"middle": "", "indicator": "; one more input marks it", "drop": "; no such row moved a weight"}[
            column.missing
        ]
    )


def _cell(text: str) -> str:
    """On one line, without a bar that ends the cell."""
    return " ".join(text.split()).replace("|", "\\|")


def _takes(column: Column) -> str:
    if column.bounds is not None:
        return f"numbers, {column.bounds[0]:g} to {column.bounds[1]:g}"
    if column.date is not None:
        return f"dates (ISO 8601); {', '.join(column.date)} are used"
    return ("ordered: " if column.ordered else "one of: ") + _cell(", ".join(map(word, column.categories or ())))


def card(
    model: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
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
    wherever the model goes.

    Args:
        model: the file that an estimator saved.
        out: a Markdown file to write; None writes none.
        like, share, signal, worlds, seed, jobs, progress: as of `plan`.

    Raises:
        UserError: the file is none that dpbench wrote, or an argument does not fit.
        DoesNotHold: something that it states can be computed and is not so.
    """
    saved, statement, holds = load(model)
    files.writable("out", out)  # before minutes of simulation
    foreseen = plan(
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
        jobs=jobs,
        progress=progress,
    )
    return files.written(card_of(Path(model).name, saved, statement, holds, foreseen), out)
