"""What every paper says of the committed rows, as digests: `python -m tests.outputs [--write] [PAPER …]`.

Every artefact (text, data, LaTeX, drawing), claim, published value and erratum is made from the rows as they are, and
from rows of which some were taken away. What differs from `tests/outputs/PAPER.json` is listed, and the exit status is
1. --write writes down what was found; --keep DIR writes the texts themselves, to compare two versions with `diff -r`;
--case CASE makes one case alone.

Placebos are not kept: they are computed from the values. A drawing is compared under the Matplotlib that made it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import sys
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib
import pandas as pd

from dpbench import datasets, experiments
from dpbench.run.store import Store
from dpbench.study.context import Context
from dpbench.study.experiment import Experiment
from dpbench.study.output import Figure, Table, latex, markdown
from dpbench.study.style import figure_style, tick_alike
from tests.packages import install, installed

ROOT = Path(__file__).resolve().parent.parent
KEPT = Path(__file__).with_suffix("")
PACKAGES = tuple(sorted(path.parent.name for path in (ROOT / "papers").glob("*/pyproject.toml")))
PAPERS = (*(name for name in experiments.BUILTIN if name != "leaderboard"), *PACKAGES)


def odd(text: object) -> bool:
    return zlib.crc32(str(text).encode()) % 2 == 1


CASES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "all": lambda runs: runs,
    "half of the methods": lambda runs: runs[~runs["algorithm"].map(odd)],
    "half of the settings": lambda runs: runs[~(runs["settings"] + runs["problem"]).map(odd)],
    "one method": lambda runs: runs[runs["algorithm"] == runs["algorithm"].min()],
    "none": lambda runs: runs.iloc[:0],
}


def drawn(figure: Any) -> str:
    """The figure as svg, not laid out, which would take most of the time."""
    tick_alike(figure)
    figure.set_layout_engine(None)
    with io.StringIO() as file:
        figure.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()


def csv(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False, float_format="%.8g")


def said(output: Figure | Table, title: str) -> dict[str, str]:
    """Suffix → text of what an artefact saves, without what the report adds."""
    gaps = "".join(f"- gap: {gap}\n" for gap in output.gaps)
    text = f"{title}\n\n{output.finding}\n\n{output.caption}\n\n{output.method}\n\n{gaps}"
    if isinstance(output, Figure):
        return {"md": text, "csv": csv(output.data), "svg": drawn(output.figure)}
    data = output.frame if output.data is None else output.data
    return {"md": text + markdown(output.frame), "csv": csv(data), "tex": latex(output.frame, "")}


def plain(value: Any) -> Any:
    """Floats to eight digits, sets in order, mappings as pairs: the same text for equal values."""
    if isinstance(value, float):
        return f"{value:.8g}"
    if isinstance(value, dict):
        return sorted(([plain(key), plain(one)] for key, one in value.items()), key=str)
    if isinstance(value, frozenset | set):
        return sorted(value)
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def texts(context: Context) -> Iterator[tuple[str, str]]:
    """(name, text) of everything that is made from the context's rows."""
    import matplotlib.pyplot as plt

    for one in context.experiment.artefacts:
        with figure_style():
            try:
                made = said(one.render(context), one.title)
            except Exception as error:
                if len(context.runs) == len(context.store.runs()):
                    raise
                made = {"fails": f"{type(error).__name__}: {error}"}  # a fault, too, is written down
            plt.close("all")
        for suffix, text in made.items():
            yield f"{one.name}.{suffix}", text
    for claim in context.experiment.claims:
        told = "".join(f"{one.word} | {one.case} | {one.numbers}\n" for one in claim.judge(context))
        whys = "".join(f"{tuple(why)}\n" for why in claim.why)
        yield f"claim {claim.name}", "\n".join([claim.text, claim.place, claim.shows, whys, told])
    values = list(context.experiment.published_values(context)) if context.experiment.published_values else []
    lines = [str([name, *(plain(value) for key, value in vars(one).items() if key != "place")])
             for name, one in ((one.name, one) for one in values)]  # fmt: skip
    yield "cells", "\n".join(lines)


def errata(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """The same of the errata, which need no rows; one whose data are not here is left out."""
    for one in experiment.errata:
        cases = one.computed()
        if not isinstance(cases, str):
            told = "".join(f"{plain(tuple(vars(case).values()))}\n" for case in cases)
            yield f"erratum {one.name}", "\n".join([one.title, one.ran, one.misses, one.bounds, told])


@contextlib.contextmanager
def paper(name: str) -> Iterator[tuple[Experiment, Path]]:
    """An experiment, built in or of a package in `papers/`, and the folder of its results."""
    if name in experiments.BUILTIN:
        yield experiments.get(name), ROOT / "results"
        return
    with tempfile.TemporaryDirectory() as site:
        for one in PACKAGES:  # one may build on another
            install(ROOT / "papers" / one, Path(site))
        with installed(Path(site), *PACKAGES):
            yield experiments.get(name), ROOT / "papers" / name / "results"


def found(name: str, cases: Iterable[str] = CASES) -> Iterator[tuple[str, str]]:
    """("CASE/NAME", text) of everything that a paper says in these cases, and of its errata."""
    with paper(name) as (experiment, results), mock.patch.object(datasets, "available", return_value=True):
        whole = Context(experiment, "full", Store(results, "full", experiment.name))
        for case in cases:
            context = Context(experiment, "full", whole.store)
            vars(context).update(
                runs=CASES[case](whole.runs), _planner=whole._planner
            )  # the plan is of the store's rows
            for one, text in texts(context):
                yield f"{case}/{one}", text
    with paper(name) as (experiment, _):
        yield from errata(experiment)


def digests(name: str, cases: Iterable[str] = CASES, keep: Path | None = None) -> dict[str, str]:
    """Name → digest of what a paper says; keep: where the texts are written."""
    all_of = {}
    for one, text in found(name, cases):
        all_of[one] = hashlib.sha256(text.encode()).hexdigest()[:12]
        if keep is not None:
            file = keep / name / one
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    return all_of


def differences(name: str, cases: Collection[str] = CASES, keep: Path | None = None) -> list[str]:
    """What a paper says otherwise than it did; a drawing counts under the Matplotlib version of the digests."""
    kept = json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))
    now = digests(name, cases, keep)
    then = {one: digest for one, digest in kept["digests"].items() if one.partition("/")[0] in cases or "/" not in one}
    if matplotlib.__version__ != kept["matplotlib"]:
        now, then = ({k: v for k, v in each.items() if not k.endswith(".svg")} for each in (now, then))
    away = [one for one in then if one not in now and not one.startswith("erratum ")]  # its data may not be here
    return [*(f"{one}: new" for one in now if one not in then), *(f"{one}: gone" for one in away),
            *(f"{one}: differs" for one in now if then.get(one, now[one]) != now[one])]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.outputs", description=__doc__.splitlines()[0])
    parser.add_argument("papers", nargs="*", metavar="PAPER", help="by default all")
    parser.add_argument("--write", action="store_true", help="keep the digests of what is found")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="also write the texts under this folder")
    parser.add_argument("--case", action="append", choices=[*CASES], help="by default all")
    given = parser.parse_args(arguments)
    cases, wrong = given.case or [*CASES], 0
    for name in given.papers or PAPERS:
        if given.write:
            KEPT.mkdir(exist_ok=True)
            record = {"matplotlib": matplotlib.__version__, "digests": digests(name, keep=given.keep)}
            text = json.dumps(record, indent=0, ensure_ascii=False)
            (KEPT / f"{name}.json").write_text(text + "\n", encoding="utf-8")
            print(f"{name}: {len(record['digests'])} digests")
            continue
        told = differences(name, cases, given.keep)
        wrong += len(told)
        print(f"{name}: {len(told)} differ", *told, sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
