"""The reproduction matrix: which verdicts it counts, and each count in its column."""

from dpbench.reporting import reproduction
from dpbench.reporting.manifest import VALUES

RECORD = {"kind": "cell", "table": "Table 1", "value": "1", "verdict": "match", "reason": "", "trivial": "",
          "survives": "no", "by": "", "copy_of": "", "run_time": False, "counts": True, "chance": 0.5}  # fmt: skip
COUNTS = {"exact": 3, "match": 2, "differs": 1, "no data": 4, "not comparable": 5}


def frame(*more):
    records = [
        RECORD | {"verdict": word, "counts": word in ("exact", "match", "differs"), "reason": "problem not public",
                  "survives": "yes" if word == "exact" else "no"}
        for word, count in COUNTS.items() for _ in range(count)
    ]  # fmt: skip
    records += [RECORD | {"trivial": "the value of the start", "counts": False}] * 6
    records += [RECORD | {"copy_of": "Table 1, 1", "counts": False}] * 2
    found = {"one": {"short": "One", "artefacts": [{"name": VALUES, "records": [*records, *more]}]}}
    return reproduction.frame_of(found)


def test_the_table_has_each_count_in_its_column():
    for line in reproduction.table(frame()).to_dict("records"):
        assert line | {"paper": "", "placebo": ""} == {
            "paper": "", "values": 23, "trivial": 6, "of the same runs": 2, "not comparable": 5, "no data": 4,
            "exact": "3 of 6", "match": "2 of 6", "also from runs that keep their ε": "3 of 6", "explained": "0 of 6",
            "differs": "1 of 6", "placebo": "",
        }  # fmt: skip


def test_run_times_and_placebos_are_no_cells():
    more = frame(RECORD | {"run_time": True}, RECORD | {"kind": "placebo"})
    assert len(more) == len(frame()) + 2
    assert len(reproduction.cells_of(more)) == reproduction.in_all(more).cells == 23
