"""The explorer: every setting of every experiment as one point, in a page that filters, plots and sorts.

explore.html is small and static. What it runs and shows stands beside it in explore/: BokehJS, copied from the
installed package bokeh (extra `explore`) once per site, and data.js, the means of the rows as columns. Everything is
loaded by relative path, so the page works from the file system with no network.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable
from importlib import resources, util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from dpbench import algorithms, files
from dpbench.algorithms.base import make_settings
from dpbench.errors import UserError, how_to_install
from dpbench.reporting.html import page
from dpbench.run.row import setting, settings_of
from dpbench.study.context import Context
from dpbench.study.statistics import excess
from dpbench.study.style import look

PAGE, FOLDER, DATA = "explore.html", "explore", "data.js"
LIBRARY = ("bokeh.min.js", "bokeh-api.min.js")
OWN = "explore.js"
# One point: the seeds that share all of these.
BY = ("problem", "algorithm", "epsilon", "settings", "accounting", "relation", "delta", "private", "status")
MEASURED = ("excess", "objective", "accuracy", "seconds", "passes")  # mean and standard error over seeds
PLAIN = ("epsilon_planned", "epsilon_realised")  # the largest over seeds
DIGITS = 5
MARKERS = {
    "o": "circle", "s": "square", "D": "diamond", "^": "triangle", "v": "inverted_triangle", "P": "square_cross",
    "X": "circle_x", "<": "star", ">": "star_dot", "d": "diamond_dot", "h": "hex", "p": "hex_dot", "*": "star",
    "H": "hex", "8": "circle_dot", "1": "y", "+": "cross", "x": "x",
}  # fmt: skip


def write_page(folder: Path, nav: Iterable[tuple[str, str]]) -> Path:
    """Write explore.html, which loads what `write_data` puts beside it."""
    scripts = "".join(f'<script src="{FOLDER}/{name}" defer></script>\n' for name in (*LIBRARY, DATA, OWN))
    template = (resources.files(__package__) / "explore.html").read_text("utf-8")
    target = folder / PAGE
    files.write(target, page("Explore – dpbench", nav, Markup(template), here=PAGE, head=scripts))
    return target


def write_data(folder: Path, contexts: Iterable[Context]) -> str:
    """Write explore/: the scripts and the rows' means; a line that says so, or what is missing."""
    scripts = library()
    if scripts is None:
        return f"{folder / PAGE} stays empty: it plots with the package bokeh; {how_to_install('explore')}"
    target = folder / FOLDER
    target.mkdir(parents=True, exist_ok=True)
    for script in scripts:
        files.write(target / script.name, script.read_text("utf-8"))
    files.write(target / OWN, (resources.files(__package__) / OWN).read_text("utf-8"))
    data = packed(list(contexts))
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    files.write(target / DATA, f"window.DPBENCH={text};\n")
    size = sum(file.stat().st_size for file in target.iterdir()) / 1e6
    return f"{folder / PAGE}  {len(data['rows']['problem']):,} points to explore ({size:.1f} MB)"


def library() -> list[Path] | None:
    """BokehJS in the installed package, without importing it; None where it is not installed."""
    spec = util.find_spec("bokeh")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "server" / "static" / "js"
    scripts = [folder / name for name in LIBRARY]
    return scripts if all(script.is_file() for script in scripts) else None


def packed(contexts: list[Context]) -> dict[str, Any]:
    """The means as columns: texts as an index into a list of the distinct ones, numbers as they are, null for none."""
    tables = [points(context) for context in contexts]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=["algorithm", "problem"])
    texts: dict[str, list[str]] = {}
    rows: dict[str, list[Any]] = {}
    for name in table.columns:
        if pd.api.types.is_numeric_dtype(table[name]) and not pd.api.types.is_bool_dtype(table[name]):
            rows[name] = [_number(value) for value in table[name]]
        else:
            codes, distinct = pd.factorize(table[name].astype(str))
            rows[name], texts[name] = codes.tolist(), list(distinct)
    names = sorted(set(table["algorithm"]))
    looks = {name: [look(name).label, look(name).colour, MARKERS.get(look(name).marker, "circle")] for name in names}
    titles = {context.experiment.name: context.experiment.short for context in contexts}
    return {"rows": rows, "texts": texts, "looks": looks, "titles": titles}


def points(context: Context) -> pd.DataFrame:
    """One row per setting: means and standard errors over its seeds, and the flags that repeat its runs."""
    runs = context.runs
    runs = runs.assign(
        excess=excess(runs).replace(np.inf, np.nan),
        passes=_passes(context),
    )
    clock = runs.groupby(list(BY), sort=False, dropna=False)["seconds"].agg(["mean", "sem"])  # of timed runs alone
    apart = runs[runs["timed"].eq(0)]  # a timed run repeats the numbers of an untimed one
    runs = pd.concat([apart, runs[~_among(runs, apart)]])
    grouped = runs.groupby(list(BY), sort=False, dropna=False)
    parts = [grouped.agg(n=("seed", "size"), checked_by=("checked_by", "first"))]
    for name in MEASURED:
        both = clock if name == "seconds" else grouped[name].agg(["mean", "sem"])
        parts.append(both.rename(columns={"mean": name, "sem": f"{name}_se"}))
    parts.append(grouped[list(PLAIN)].max())
    table = pd.concat(parts, axis=1, join="inner").reset_index().assign(experiment=context.experiment.name)
    table["private"] = np.where(table["private"].astype(bool), "private", "not private")
    table["flags"] = [flags(*row) for row in table[["algorithm", "settings", "accounting", "relation"]].to_numpy()]
    table["settings"] = [in_words(text) for text in table["settings"]]
    return table


def _among(runs: pd.DataFrame, others: pd.DataFrame) -> pd.Series:
    """Which runs share their setting with some of the others."""
    at = [pd.MultiIndex.from_frame(frame[list(BY)].astype(str)) for frame in (runs, others)]
    return pd.Series(at[0].isin(at[1]), index=runs.index)


def _passes(context: Context) -> pd.Series:
    """Passes over the data at the end of each run: as its trace has it, else as its settings do, else none."""
    runs = context.runs
    given = setting(runs, "passes").astype(float)
    traces = context.store.traces(runs["key"])
    if len(traces):
        given = given.fillna(runs["key"].map(traces.groupby("key")["passes"].max()))
    return pd.Series(given, index=runs.index)


def in_words(settings: str) -> str:
    """ "T=100, clip=0.5" of a row's settings, what is not set left out."""
    given = settings_of(settings)
    return ", ".join(f"{name}={_written(value)}" for name, value in given.items() if value is not None)


@functools.lru_cache(maxsize=65536)
def flags(algorithm: str, settings: str, accounting: str, relation: str) -> str:
    """What `dpbench run --algo ALGORITHM` takes beside data set, ε and seeds to repeat the run.

    Settings that are the method's own defaults, and an accounting and a relation that are, too, are left out.
    """
    given = {name: value for name, value in settings_of(settings).items() if value is not None}
    own = {"accounting": "", "relation": ""}
    try:
        method, fixed = algorithms.resolve(algorithm)
        default = make_settings(method, fixed)
        given = {name: value for name, value in given.items() if getattr(default, name, None) != value}
        own = {"accounting": method.accounting("paper"), "relation": method.relation.value}
    except UserError:  # rows of a user's file, or of a package that is not installed here
        pass
    told = [f"--{name} {value}" for name, value in (("accounting", accounting), ("relation", relation))
            if value != own[name]]  # fmt: skip
    return " ".join([*told, *(f"--set {name}={_written(value)}" for name, value in given.items())])


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _number(value: Any) -> float | int | None:
    """Rounded to what a plot can show; None for what JSON has no number for."""
    number = float(value)
    if not math.isfinite(number):
        return None
    short = float(f"{number:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
