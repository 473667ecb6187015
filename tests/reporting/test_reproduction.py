"""The reproduction picture: which verdicts it counts, and each count in its column."""

import re

import pytest

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
    assert [(text.get_text(), *text.get_position()) for text in seen.texts] == [
        (f"{name}: {a} of {b}", 0.01, y) for y, (name, (a, b)) in enumerate(shares.items())
    ]
    rows = (1, len(shares), len(whole.pooled))
    assert [axis.get_ylim() for axis in (bars, seen, pooled)] == [(count - 0.4, -0.6) for count in rows]
    lines = [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in pooled.lines]
    ratios = [ratio for ratio, *_ in whole.pooled.values()]
    assert [(text.get_text(), *text.get_position()) for text in pooled.texts] == [
        (f"{name}: {one.value:.2f}", one.value, y - 0.25)
        for y, (name, one) in enumerate(zip(whole.pooled, ratios, strict=True))
    ]
    assert lines == [one for y, r in enumerate(ratios) for one in (([r.low, r.high], [y, y]), ([r.value], [y]))]


VALUE = {"table": "Table 1", "row": "a1a", "column": "ε = 1", "verdict": "match", "reason": "", "survives": "",
         "by": "", "how": "", "fits": "", "copy_of": "", "run_time": False, "counts": True, "private": True,
         "notices": "half", "misses": "twice", "artefact": "table1", "numbers": "loss: ours 1"}  # fmt: skip
SEEN = "; notices half; does not notice twice"


@pytest.mark.parametrize(
    ("more", "sentence", "mark"),
    [
        ({}, f"match{SEEN}", ""),
        ({"notices": "", "misses": ""}, "match", ""),
        ({"verdict": "differs", "reason": "few", "copy_of": "Table 2"}, f"differs (few; copy of Table 2){SEEN}", "×"),
        ({"verdict": "differs", "copy_of": "Table 2", "counts": False}, f"differs (copy of Table 2){SEEN}", "×"),
        ({"survives": "yes"}, f"match{SEEN}; at a proven ε: yes", "●"),
        ({"survives": "yes", "counts": False}, f"match{SEEN}; at a proven ε: yes", "–"),
        (
            {"survives": "no", "by": "noise", "how": "reduced"},
            f"match{SEEN}; at a proven ε: no, comes back with noise (reduced)", "",
        ),
        ({"private": False}, f"match, in a setting that does not keep its ε{SEEN}", ""),
        ({"verdict": "no data", "counts": False, "reason": "not fetched"}, "no data (not fetched)", "–"),
    ],
)  # fmt: skip
def test_a_value_has_one_sentence_and_one_mark(more, sentence, mark):
    assert reproduction._verdict_sentence(VALUE | more) == sentence
    assert reproduction._mark(VALUE | more) == mark


def test_a_square_leads_to_its_value_and_run_times_have_none():
    """Counted by the eye: one square a value; below, what was compared, in the order of the table."""
    records = [
        VALUE, VALUE | {"column": "", "run_time": True, "fits": "half the noise"},
        VALUE | {"table": "Table 2", "artefact": "t2", "verdict": "noise not planted"},
    ]  # fmt: skip
    html = str(reproduction.values(records, {"table1": "dpbench run --experiment x/table1"}))
    squares = re.findall(r'<a href="(.+?)" aria-label="(.+?)"><span class="(.+?)" title="(.+?)">', html)
    assert squares == [
        ("#value-1", f"Table 1, a1a, ε = 1: match{SEEN}", "square match", f"Table 1, a1a, ε = 1: match{SEEN}"),
        ("#value-3", *(f"Table 2, a1a, ε = 1: noise not planted{SEEN}" if title else "square noise-not-planted"
                       for title in (True, False, True))),
    ]  # fmt: skip
    assert re.findall(r'<li id="(.+?)">', html) == ["value-1", "value-2", "value-3"]
    lines = [line for line in re.sub(r"<[^>]*>", "\n", html).splitlines() if line.strip()]
    assert lines == [
        "Table 1", "Table 1: what was compared, cell by cell",
        "match", f" a1a, ε = 1{SEEN}", "loss: ours 1",
        "match", f" a1a{SEEN}", "loss: ours 1 Fits, which explain nothing: half the noise.",
        "ours: ", "table1", "dpbench run --experiment x/table1",
        "Table 2", "Table 2: what was compared, cell by cell",
        "noise not planted", f" a1a, ε = 1{SEEN}", "loss: ours 1",
        "ours: ", "t2", "dpbench report",
    ]  # fmt: skip


def test_a_claim_is_said_once_with_a_verdict_for_each_setting_and_where_it_is_shown():
    one = {"claim": "1", "text": "x < y", "place": "Fig. 1", "shows": "fig1", "case": "", "why": "",
           "setting": reproduction.BOTH, "demonstrated_by": "", "verdict": "held", "numbers": "1 < 2"}  # fmt: skip
    records = [
        one, one | {"setting": "at a proven ε", "verdict": "open", "why": "of noise", "demonstrated_by": "t3"},
        one | {"claim": "2", "text": "z", "shows": "", "case": "own"},
    ]  # fmt: skip
    html = str(reproduction.claims_list(records))
    assert re.findall(r'href="(.+?)"', html) == ["#fig1", "#t3"]
    lines = [line for line in re.sub(r"<[^>]*>", "\n", html).splitlines() if line.strip()]
    assert lines == [
        "x &lt; y", "Fig. 1 · shown by ", "fig1", "held", "numbers", "1 &lt; 2",
        "open", " (at a proven ε) Why: of noise (", "t3", ")", "numbers", "1 &lt; 2",
        "z", "Fig. 1", "held", " (own)", "numbers", "1 &lt; 2",
    ]  # fmt: skip
