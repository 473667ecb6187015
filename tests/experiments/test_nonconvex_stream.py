"""The rows of the published stream that ship with the project, seed by seed: what a mean would hide."""

import re
from pathlib import Path

import pytest

from dpbench import experiments
from dpbench.experiments.nonconvex import published
from dpbench.experiments.nonconvex import rows as paper_rows
from dpbench.run.store import Store
from dpbench.study.context import Context, select

RESULTS = Path(__file__).parents[2] / "results"

# Iterations of the published runs, by torch's seeds 2023, 999, 67, 33, 128: found with torch itself on the authors'
# script, or with a rebuild that shares no code with this one. Where a method has one line, ε does not enter.
ITERATIONS = """
1 opt .2: 71 161 241 111 31
1 opt .6: 2 34 34 24 1
1 opt 1: 2 35 34 24 1
1 opt-b: 5 34 33 23 1
1 opt-ls .2: 51 21 81 61 51
1 opt-ls .6: 2 5 4 4 1
1 opt-ls 1: 2 4 4 3 1
1 2opt .2: 2 441 441 441 1
1 2opt .6: 2 35 34 24 1
1 2opt 1: 2 34 34 24 1
1 2opt-b: 4 34 33 23 1
1 2opt-ls: 2 4 4 3 1
1 dp-tr .2: 1 30 28 22 1
1 dp-tr .6: 1 30 28 20 1
1 dp-tr-b .2: 2 30 28 22 1
1 dp-tr-b .6: 1 30 28 21 1
1 dp-tr-b 1: 1 27 30 21 1
2 2opt: 1722 1722 1722 1722 1722
2 dp-tr .2: 578 578 578 578 578
2 opt-b: 76 118 116 87 82
2 2opt-b: 76 118 116 87 82
2 2opt-ls .2: 17 16 13 15 16
2 2opt-ls 1: 8 11 11 8 8
2 dp-tr-b .2: 578 578 578 578 578
2 dp-tr-b .6: 97 171 177 130 94
2 dp-tr-b 1: 92 171 169 120 90
2 dp-tr .6: 90 171 172 129 81
2 dp-tr 1: 90 168 172 123 84
2 opt .2: 1121 941 1081 941 951
2 opt .6: 151 211 311 281 291
2 opt 1: 85 125 124 94 85
2 opt-ls .2: 91 71 161 121 91
2 opt-ls .6: 101 71 61 81 131
2 opt-ls 1: 81 71 51 41 41
3 dp-tr .2: 205 205 205 205 205
3 dp-tr .6: 7 2 9 35 24
3 dp-tr 1: 1 1 1 35 22
3 dp-tr-b .6: 11 2 1 25 34
3 dp-tr-b 1: 10 1 1 25 28
3 opt .2: 271 201 231 201 221
3 opt .6: 81 91 91 91 71
3 opt 1: 7 4 4 31 26
3 opt-b: 11 1 1 25 17
3 opt-ls .2: 41 21 21 31 61
3 opt-ls .6: 61 101 121 71 61
3 opt-ls 1: 21 31 21 21 31
3 2opt .2: 441 15 5 441 441
3 2opt .6: 7 1 4 441 20
3 2opt 1: 7 1 4 441 20
3 2opt-b: 11 1 1 25 17
3 2opt-ls .6: 2 1 2 4 3
3 2opt-ls 1: 2 1 2 4 3
4 dp-tr: 578 578 578 578 578
4 dp-tr-b: 578 578 578 578 578
4 opt .2: 91 61 61 131 71
4 opt .6: 521 481 291 291 341
4 opt 1: 1661 1591 981 1431 511
4 opt-b: 22 19 40 55 28
4 opt-ls .2: 11 11 21 11 11
4 opt-ls .6: 41 91 21 31 61
4 opt-ls 1: 101 91 21 81 61
4 2opt .2: 1722 1722 1722 1722 1722
4 2opt .6: 1722 30 1722 1722 1722
4 2opt 1: 1722 30 36 1722 1722
4 2opt-b: 22 29 40 55 28
4 2opt-ls 1: 7 4 5 9 5
"""
LOSSES = {
    (3, "opt-b", 0.2): (0.6905, 0.6960, 0.7097, 0.7465, 0.7076),
    (4, "2opt", 0.2): (0.5367, 0.5419, 0.5740, 0.4985, 0.5356),
    (4, "2opt-ls", 1.0): (0.6440, 0.6514, 0.6493, 0.6464, 0.6539),
}
CASES = [
    (int(table), method, [float(epsilon)] if epsilon else [0.2, 0.6, 1.0], [int(n) for n in counts.split()])
    for table, method, epsilon, counts in re.findall(r"(\d) ([\w-]+) ?([\d.]*): ([\d ]+)", ITERATIONS)
]


@pytest.fixture(scope="module")
def context():
    return Context(experiments.get("nonconvex"), "full", Store(RESULTS, "full", "nonconvex"))


@pytest.fixture(scope="module")
def rows(context):
    """By (table, method, ε), the five published runs in the order of the seeds."""
    found = {}
    for target in paper_rows.TARGETS[:4]:
        published = select(paper_rows.finished(context, target.artefact, timed=0), variant="published")
        for (method, epsilon), part in published.groupby(["algorithm", "epsilon"]):
            found[target.table, method, epsilon] = part.sort_values("seed")
    return found


def test_every_run_takes_the_published_runs_iterations(rows):
    for table, method, epsilons, counts in CASES:
        for epsilon in epsilons:
            assert rows[table, method, epsilon]["iterations"].tolist() == counts, (table, method, epsilon)


@pytest.mark.parametrize("cell", LOSSES)
def test_single_losses(rows, cell):
    assert rows[cell]["objective"].round(4).tolist() == list(LOSSES[cell])


def test_which_runs_are_lost(rows):
    """All at ε = .2; at the tight target and ε = .6 those of seeds 2023, 999 and 33: the mean is of the other two."""
    for table in (3, 4):
        assert rows[table, "2opt-ls", 0.2]["ending"].eq("crashed").all()
    mixed = rows[4, "2opt-ls", 0.6]
    assert mixed["ending"].eq("crashed").tolist() == [True, True, False, True, False]
    # Seed 128 takes 2,000 steps whose branches turn on the last bit of a float32: torch has .6657, and so has this row,
    # but another order of summation may not.
    assert mixed["objective"].round(4).tolist()[2::2] == [0.5808, 0.6657]
    others = [part for key, part in rows.items() if key[1] != "2opt-ls"]
    assert not any(part["ending"].eq("crashed").any() for part in others)


def test_a_published_run_is_never_called_private(rows):
    for part in rows.values():
        assert not part["private"].any()
        assert part["error"].str.contains("published seed").all()


@pytest.mark.thorough
def test_every_cell_of_tables_1_to_4_is_exact(context):
    words = {key: one.outcome.word for key, one in published.judged(context).items() if key[0] <= 4}
    assert len(words) == 4 * 24
    assert set(words.values()) == {"exact"}


@pytest.mark.thorough
def test_wrong_runs_by_the_published_stream_are_noticed_or_make_a_value_blind(context):
    found = [one for key, one in published.judged(context).items() if key[0] in (3, 4) and not one.copy_of]
    noticed = [one.notices for one in found]
    assert {name for each in noticed for name in each} >= {
        "half the noise",
        "α of the title",
        "m = n // 50",
        "rows half as long",
    }
    assert all(one.word == "blind to noise" for one in found if one.notices.get("half the noise") is False)
