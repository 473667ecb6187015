"""What figures draw and tables say, from made-up rows of the quick grid, against the files in tests/golden.

    DPBENCH_GOLDEN=write python -m pytest -m "" tests/experiments/test_golden.py

writes them anew (look at `git diff tests/golden` before you commit); an experiment without files is skipped, and this
command makes them. On data, never on pixels: a file holds the number of rows and at most 25 of them, evenly spaced.
"""

import csv
import io
import os
import re
from pathlib import Path

import pytest

from dpbench import datasets, experiments
from dpbench.reporting.scorecard import judged
from dpbench.run.store import Store
from dpbench.study.context import Context
from dpbench.study.output import WORDS
from dpbench.study.style import figure_style
from dpbench.study.value_verdict import WORDS as VERDICTS
from tests.experiments.made_up import made_up

FOLDER = Path(__file__).parents[1] / "golden"
WRITE = os.environ.get("DPBENCH_GOLDEN") == "write"
ROWS = 25
SENTENCE = 40  # words of a method up to the next stop, colon or semicolon, at most


@pytest.fixture(scope="module", params=experiments.BUILTIN)
def context(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "available", lambda name: True)  # what is fetched here is no part of it
        experiment = experiments.get(request.param)
        store = made_up(experiment, tmp_path_factory.mktemp(request.param))
        yield Context(experiment, "quick", store)


def thinned(output) -> str:
    data = output.data if getattr(output, "data", None) is not None else output.frame
    step = max(1, -(-len(data) // ROWS))
    kept = data.iloc[::step]
    return f"# every {step}. of {len(data)} rows\n" + kept.to_csv(index=False, float_format="%.8g")


@pytest.mark.thorough_for("greedy*", "leaderboard", "nonconvex", "second_order", "zeroth_order")
def test_the_data_of_every_figure_and_table(context):
    folder = FOLDER / context.experiment.name
    if not WRITE and not folder.is_dir():
        pytest.skip(f"no golden files for {folder.name} yet: see the head of {Path(__file__).name}")
    wrong = []
    for one in context.experiment.artefacts:
        with figure_style():
            output = one.render(context)
        found = thinned(output)
        wrong += [f"{one.name}: {line}" for line in overlong(output)]
        path = folder / f"{one.name}.csv"
        if WRITE:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(found, encoding="utf-8")
        elif not path.exists():
            wrong.append(f"{one.name}: no golden file")
        else:
            wrong += [f"{one.name}: {line}" for line in differences(found, path.read_text(encoding="utf-8"))]
    assert wrong == []
    if not WRITE:
        assert {path.stem for path in folder.glob("*.csv")} == {one.name for one in context.experiment.artefacts}


def overlong(output) -> list[str]:
    """Captions and titles that a reader would not take in at a glance, and ε where a reader looks for results."""
    words, title = len(output.caption.split()), len(output.finding.split())
    told = [f"a caption of {words} words: at most {WORDS}, the rest is the method"] * (words > WORDS)
    long = [line for line in re.split(r"(?<=[.?!:;]) ", output.method) if len(line.split()) > SENTENCE]
    told += [f"a method with {line!r}: at most {SENTENCE} words at a stretch" for line in long]
    axes = output.figure.axes if hasattr(output, "figure") else []
    told += ["ε is on the axis of results" for axis in axes if axis.get_ylabel() == "ε"]
    return told + [f"a finding of {title} words"] * (title > 30)


@pytest.mark.thorough_for("greedy*", "nonconvex", "second_order")
def test_published_values_are_named_once_and_wait_for_rows(context, tmp_path):
    experiment = context.experiment
    filled = judged(context)
    empty = judged(Context(experiment, "quick", Store(tmp_path, "quick", experiment.name)))
    assert len({one.value.name for one in filled}) == len(filled)
    assert bool(filled) == bool(experiment.published_values)
    assert {one.outcome.word for one in filled} <= set(VERDICTS)
    assert {one.outcome.word for one in empty} <= {"no data", "not comparable"}
    artefacts = {one.name for one in experiment.artefacts}
    assert {one.value.artefact for one in filled} <= artefacts


def differences(found: str, golden: str) -> list[str]:
    """The first cells that differ by more than rounding."""
    ours, theirs = ([*csv.reader(io.StringIO(text))] for text in (found, golden))
    if len(ours) != len(theirs) or ours[0] != theirs[0]:
        return [f"{ours[:1]} and {len(ours) - 1} lines, not {theirs[:1]} and {len(theirs) - 1}"]
    pairs = [(a, b, i) for i, (x, y) in enumerate(zip(ours, theirs, strict=True)) for a, b in zip(x, y, strict=False)]
    told = [f"line {i}: {a!r}, not {b!r}" for a, b, i in pairs if not same(a, b)]
    told += [f"line {i}: other columns" for i, (x, y) in enumerate(zip(ours, theirs, strict=True)) if len(x) != len(y)]
    return told[:3]


def same(a: str, b: str) -> bool:
    try:  # noise by a privacy-loss distribution is solved for to 1e-4, which library versions fill differently
        return float(a) == pytest.approx(float(b), rel=1e-4, abs=1e-12, nan_ok=True)
    except ValueError:
        return a == b


def test_a_changed_cell_is_seen():
    text = "# every 1. of 2 rows\nx,name\n1.5,a\n2.5,b\n"
    assert differences(text, text.replace("2.5", "2.5000001")) == []
    assert differences(text, text.replace("2.5", "2.501")) == ["line 3: '2.5', not '2.501'"]
    assert differences(text, text.replace(",b", ",c"))
    assert differences(text, text.replace("of 2", "of 3"))
    assert differences(text, text + "3,c\n")
