"""What the holder of a model states beside it, and the model as an entry of the Deployments Registry.

A model's file says what its release cost. Who published it, for which use, and who can read the rows, only the holder
knows: in a TOML file, whose tables are those of `registry.toml`. Nothing of it is checked, and it is shown as stated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from dpbench.errors import UserError, nearest
from dpbench.files import read_toml
from dpbench.own.statement import Statement
from dpbench.privacy.ledger import Gaussian
from dpbench.schema import Schema


class EntryField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One field of an entry, or with asks, a question to the holder.

    tier: from which tier of an entry guidance asks for it, 0 for none. model: whether the model's file says it.
    """

    tier: int = 0
    required: bool = False
    model: bool = False
    list: bool = False
    number: bool = False
    date: bool = False
    values: tuple[str, ...] = ()
    asks: str = ""

    def fault(self, value: Any) -> str:
        """Why the value is none of this field, "" where it is one."""
        texts = value if self.list and isinstance(value, list) and value else [None if self.list else value]
        if not all(isinstance(one, str) and one.strip() and one.isprintable() for one in texts):
            return "must be a list of texts, one at least" if self.list else "must be text on one line"
        if self.date and str(pd.to_datetime(value, format="%Y-%m-%d", errors="coerce"))[:10] != value:
            return "must be a date as 2026-12-31"
        return "" if not self.values or value in self.values else f"must be one of {', '.join(self.values)}"


@cache
def fields() -> dict[str, EntryField]:
    """The fields of an entry, below `deployment` but for the first, and the questions of NIST, by their place."""
    given = read_toml(Path(__file__).with_name("registry.toml"))["fields"]
    return {place: msgspec.convert(one, EntryField) for place, one in given.items()}


def read_holder(path: str | os.PathLike[str] | None) -> dict[str, Any]:
    """A holder's file, by place; UserError for what is no field or not the holder's to say, and for a wrong value."""
    given = {} if path is None else _places(read_toml(path))
    asked = {place: field for place, field in fields().items() if not field.model}
    for place, value in given.items():
        if place not in asked:
            why = "is said by the model's own file" if place in fields() else f"is no field; {nearest(place, asked)}"
            raise UserError(f"{path}: {place} {why}")
        if fault := asked[place].fault(value):
            raise UserError(f"{path}: {place} {fault}")
    return given


def _places(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in table.items():
        flat |= _places(value, f"{above}{name}.") if isinstance(value, dict) else {above + name: value}
    return flat


def entry(statement: Statement, holds: Sequence[str], schema: Schema, holder: dict[str, Any]) -> str:
    """The model as an entry of the registry: YAML, of which JSON is a part; a draft, for a person to hand in.

    Args:
        statement, holds: of the model's file, and what of it was checked.
        schema: what is public of its table.
        holder: what the holder states, by place.

    Raises:
        UserError: a required field is missing; all of them are named.
    """
    stated = said(statement, holds, schema) | holder
    if missing := [place for place, field in fields().items() if field.required and place not in stated]:
        raise UserError(f"registry: state {', '.join(missing)} in the holder's file (--holder FILE.toml)")
    tier = next(t for t in (3, 2, 1) if t == 1 or all(p in stated for p, f in fields().items() if 1 < f.tier <= t))
    whole: dict[str, Any] = {"url_slug": stated["url_slug"], "status": "Draft", "tier": tier, "deployment": {}}
    for place, field in fields().items():
        if place in stated and place != "url_slug" and not field.asks:
            *above, name = place.split(".")
            reduce(lambda table, one: table.setdefault(one, {}), above, whole["deployment"])[name] = stated[place]
    return json.dumps(whole, ensure_ascii=False, indent=2) + "\n"


def said(statement: Statement, holds: Sequence[str], schema: Schema) -> dict[str, Any]:
    """The fields that the model's file says, by their place; ρ where all its releases are Gaussian."""
    releases = [f"{one.count} × {one.label}: {one.release}" for one in statement.composition]
    gaussian = [one for one in statement.composition if isinstance(one.release, Gaussian)]
    libraries = ", ".join(f"{name} {version}" for name, version in statement.versions.items())
    columns = [name for name, one in schema.columns.items() if not one.drop]
    records = "persons, of one row or more," if statement.unit else "rows"
    found = {
        "basic.data_product_type": "Machine learning model",
        "dp_variant.variant_name": "Approximate DP" if statement.delta else "Pure DP",
        "dp_variant.data_domain": f"Tables of {statement.rows} {records} "
        f"with the columns {', '.join(columns)}, each within public bounds or categories",
        "dp_variant.unprotected_quantities": ", ".join(statement.public),
        "privacy_loss.privacy_unit": "One person, all rows" if statement.unit else "One row",
        "privacy_loss.privacy_unit_details": f"Neighbouring tables: {statement.neighbours}",
        "privacy_loss.privacy_parameters.epsilon": statement.epsilon,
        "privacy_loss.privacy_parameters.delta": statement.delta,
        "privacy_loss.privacy_parameters_details": f"{statement.guarantee}. Checked: {'; '.join(holds)}",
        "accounting.composition": "; ".join(releases),
        "implementation.mechanisms": f"{statement.mechanism}, {libraries}; made {statement.made}",
    }
    if len(gaussian) == len(releases):
        rho = sum(one.count / one.release.noise_multiplier**2 for one in gaussian) / 2  # type: ignore[attr-defined]
        found["privacy_loss.privacy_parameters.rho"] = rho
    return found
