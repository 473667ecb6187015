"""The reproduction picture: which verdicts it counts, and each count in its column."""

from dpbench.reporting import reproduction
from dpbench.reporting.manifest import VALUES

RECORD = {"table": "Table 1", "value": "1", "verdict": "match", "exact": False, "reason": "", "survives": "", "by": "",
          "copy_of": "", "run_time": False, "counts": True, "chance": 0.5, "resolution": 0.3, "curve": "1",
          "notices": "half the noise; twice the noise", "misses": "", "ratio, published noise": 1.0,
          "ratio, noise at a proven ε": None, "ratio, half the noise": 0.3, "ratio, twice the noise": 3.0}  # fmt: skip
COUNTS = {"exact": 3, "match": 2, "differs": 1, "blind to noise": 7, "noise not planted": 8, "no data": 4}


def frame(*more):
    records = [
        RECORD | {"verdict": word, "counts": word != "no data", "curve": f"{word} {i}",
                  "misses": "no noise" if word == "match" else "",
                  "survives": {"exact": "yes", "match": "not run"}.get(word, "")}
        for word, count in COUNTS.items() for i in range(count)
    ]  # fmt: skip
    records += [RECORD | {"copy_of": "Table 1, 1", "counts": False}] * 2
    found = {"one": {"short": "One", "artefacts": [{"name": VALUES, "records": [*records, *more]}]}}
    return reproduction.frame_of(found)


def test_the_table_has_each_count_in_its_column():
    for line in reproduction.counts_table(frame()).to_dict("records"):
        assert line | {"paper": ""} == {
            "paper": "", "values": 27, "left out": 6, "exact": 3, "match": 2, "differs": 1, "blind to noise": 7,
            "noise not planted": 8, "still come out at a proven ε": "3 of 5",
        }  # fmt: skip


def test_run_times_are_no_published_values():
    more = frame(RECORD | {"run_time": True})
    assert len(more) == len(frame()) + 1
    assert len(reproduction.of_values(more)) == reproduction.in_all(more).total == 27


def test_the_picture_has_three_panels(tmp_path):
    folder = tmp_path / "figures"
    records = frame().drop(columns=["experiment", "short"]).to_dict("records")
    reproduction.save(folder, {"one": {"short": "One", "artefacts": [{"name": VALUES, "records": records}]}})
    said = (folder / "reproduction.md").read_text()
    assert "Of 27 published values, 5 are reproduced, and would not be with half or twice the noise" in said
    assert "pooled ratio of ours to published, published noise: 1 [1, 1] (match; 6 values in 6 curves)" in said
    svg = (folder / "reproduction.svg").read_text()
    assert "Would we have noticed a wrong run?" in svg


def test_each_panel_draws_the_headline(tmp_path):
    drawn = reproduction._drawn(frame())
    bars, seen, pooled = drawn.axes
    whole = reproduction.in_all(frame())
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars.patches]
    assert [end for _, end in ends[:-1]] == [start for start, _ in ends[1:]]  # each count begins where one ends
    assert ends[-1][1] == 27
    middles = {text.get_text(): text.get_position()[0] for text in bars.texts}
    assert middles == {f"{b - a:g}": (a + b) / 2 for a, b in ends if b > a}
    shares = {"the right runs": (5, 5), **whole.placebo}
    assert [bar.get_width() for bar in seen.patches] == [some / of for some, of in shares.values()]
    assert [text.get_text() for text in seen.texts] == [f"{name}: {a} of {b}" for name, (a, b) in shares.items()]
    lines = [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in pooled.lines]
    ratios = [ratio for ratio, *_ in whole.pooled.values()]
    assert lines == [one for y, r in enumerate(ratios) for one in (([r.low, r.high], [y, y]), ([r.value], [y]))]
