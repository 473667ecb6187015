"""A paper's functions give numbers and its words.md the prose: what is missing on either side is named."""

import math
import sys
from types import SimpleNamespace

import pandas as pd
import pytest

from dpbench.run.row import Row
from dpbench.study import paper
from dpbench.study.claims import (
    HELD,
    NOT_ENOUGH,
    NOT_HELD,
    NOT_TESTABLE,
    OPEN,
    Artefact,
    Case,
    Claim,
    Erratum,
    NotEnough,
    Verdict,
    Why,
    declared,
)
from dpbench.study.output import Table
from dpbench.study.paper import End, Ends, Paper, Stroke, by_switches, drawn_lines, read_words
from dpbench.study.style import figure_style
from dpbench.study.value_verdict import Switch

WORDS = """Before the first section: for whoever writes here.

## phrases
privacy: pure ε-DP
at ε = 1

## losses: Table {number}: losses
Mean loss of table {number}.

Method: Under {privacy}, {seeds} seeds; E₀ is 2^{{s}}.

Finding: {who} is lowest

## claim best
The first is best.

Place: Section 5, Fig. 3

Shows: losses

Why: not held or open, losses, as published: the first has noise

Numbers: {first} against {other}

Case: {case}

## erratum scale: A scale too small
Ran: Noise at half the scale.

Misses: {privacy}.

Bounds: Closed form.

## table misprints
| where | what |
|---|---|
| Fig. 1 | {n} lines |
| Fig. 2 | a \\| b |
"""
SWITCHES = """
## table switches
| switch | setting | value | keeps ε | source |
|---|---|---|---|---|
| noise | scale | published | no | the code |
| weights | w | true | yes | the code |
"""
CONTEXT = SimpleNamespace(
    gap=lambda name, what: f"{what}: dpbench run {name}", why_missing=lambda name, problem: "no rows",
    command=lambda name: f"dpbench run {name}",
)  # fmt: skip


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A function: the text of a words.md → a paper made of it."""

    def make(text=WORDS):
        folder = tmp_path / f"made_up_{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "words.md").write_text(text, encoding="utf-8")
        return Paper(folder.name)

    monkeypatch.syspath_prepend(str(tmp_path))
    yield make
    for name in [name for name in sys.modules if name.startswith("made_up_")]:
        del sys.modules[name]


def the(function, kind):
    (one,) = declared([SimpleNamespace(__name__=function.__module__, function=function)], kind)
    return one


def test_words_of_an_artefact_are_filled_with_values_phrases_and_parameters(package):
    made = package()

    @made.artefact("losses2", section="losses", number=2)
    def losses(context, number):
        return Table(pd.DataFrame({"a": [number]})), {"seeds": "3", "who": "DP-GD", "found": context}

    one = the(losses, Artefact)
    assert (one.name, one.title) == ("losses2", "Table 2: losses")
    table = one.render(True)
    assert table.caption == "Mean loss of table 2."
    assert table.method == "Under pure ε-DP at ε = 1, 3 seeds; E₀ is 2^{s}."
    assert table.finding == "DP-GD is lowest"
    assert one.render(False).finding == ""
    assert made.unused == {"claim best", "erratum scale", "table misprints"}
    assert made.table("misprints", {"n": 3}) == [
        {"where": "Fig. 1", "what": "3 lines"}, {"where": "Fig. 2", "what": "a \\| b"}]  # fmt: skip


def test_a_claim_gives_one_pair_or_several_or_whole_verdicts(package):
    made = package()

    def verdicts(function):
        return the(made.claim("best")(function), Claim).judge(CONTEXT)

    one = {"first": End(1.0, 0.125, 4, {}), "other": 2, "case": ""}
    assert verdicts(lambda context: (True, one)) == [Verdict(HELD, "1 ± 0.1 against 2")]

    def several(context):
        yield None, one | {"case": "as published"}
        yield Verdict(HELD, "by hand", "at a proven ε")
        raise NotEnough("no rows of dp-gd")

    open_, hand, missing = verdicts(several)
    assert open_ == Verdict(OPEN, "1 ± 0.1 against 2", "as published")
    assert hand.numbers == "by hand"
    assert missing == Verdict(NOT_ENOUGH, "no rows of dp-gd; run: dpbench run losses")
    claim = the(made.claim("best")(lambda context: (True, one)), Claim)
    assert (claim.text, claim.place, claim.shows) == ("The first is best.", "Section 5, Fig. 3", "losses")
    assert claim.why == tuple(Why(word, "the first has noise", "losses", "as published") for word in (NOT_HELD, OPEN))


def test_an_erratum_has_the_cases_of_its_function(package):
    one = the(package().erratum("scale")(lambda: [Case("m = n", 1.0, 2.0, 2.0)]), Erratum)
    assert (one.name, one.title, one.misses) == ("scale", "A scale too small", "pure ε-DP at ε = 1.")
    assert one.category(one.computed()) == "false statement"


def test_what_is_missing_in_the_words_or_the_values_is_named(package):
    made = package()
    with pytest.raises(ValueError, match="no section 'fig9'; add a line: ## fig9: TITLE"):
        made.artefact("fig9")
    one = the(made.artefact("losses", number=1)(lambda context, number: (Table(pd.DataFrame()), {})), Artefact)
    with pytest.raises(ValueError, match=r"Method 'Under \{privacy\}, \{seeds\}.* names 'seeds', which its function"):
        one.render(CONTEXT)
    for text, told in (
        ("## a: A\nOne.\n\nTwo: of no part.\n", "'a' has a second paragraph: 'Two: of no part.'"),
        ("## a: A\n\nMethod: 1\n\nMethod: 2\n", "'a' has a second Method: '2'"),
        ("## a: A\n## a: B\n", "'a' is there twice"),
    ):
        with pytest.raises(ValueError, match=told):
            read_words(text)


def rows(**columns):
    given = pd.DataFrame(columns)
    missing = {name: None for name in Row.__struct_fields__ if name not in given}
    return given.assign(**missing)


def test_rows_have_settings_excess_and_the_switches_that_are_on(package):
    made = package(WORDS + SWITCHES)
    assert made.switches == (
        Switch("noise", ("scale", "published"), "the code"),
        Switch("weights", ("w", True), "the code", keeps_epsilon=True),
    )
    texts = ["{}", '{"scale": "published"}', '{"scale": "published", "w": true}', '{"scale": "ours", "w": true}', "{}"]
    given = rows(settings=texts, excess=[1.0, 2.0, 3.0, 4.0, 5.0], status=["done"] * 3 + ["diverged", "refused"])
    found = made.rows(SimpleNamespace(rows=lambda name: given), "losses", w="weight")
    assert found["on"].tolist() == ["", "noise", "noise + weights", "weights"]
    assert found["excess"].tolist() == [1.0, 2.0, 3.0, math.inf]
    assert found["weight"].tolist()[2:] == [True, True]
    assert by_switches(found, final_error="excess") == {
        frozenset(): {"final error": [1.0]}, frozenset({"noise"}): {"final error": [2.0]},
        frozenset({"noise", "weights"}): {"final error": [3.0]}, frozenset({"weights"}): {"final error": [math.inf]},
    }  # fmt: skip
    empty = made.rows(SimpleNamespace(rows=lambda name: given[:0]), "losses", w="weight")
    assert {"on", "weight"} <= set(empty)
    assert by_switches(empty, error="excess") == {}


def test_ends_are_looked_up_by_key_and_a_missing_one_is_named():
    table = pd.DataFrame({"algorithm": ["a", "a", "b"], "T": [1, 2, 1], "mean": [2.0, 1.0, 1.0],
                          "se": [0.3, 0.4, math.nan], "seeds": [3, 3, 1]})  # fmt: skip
    ends = Ends(table, "losses", "no rows of {algorithm}")
    best = ends(algorithm="a")
    assert (best.mean, best["T"], str(best), f"{best[T]:d}" if (T := "T") else "") == (1.0, 2, "1 ± 0.4", "2")
    assert [end["T"] for end in ends.all(algorithm="a")] == [1, 2]
    assert sorted([ends(algorithm="a", T=1), best]) == [best, ends(algorithm="a", T=1)]
    assert min(best, best).mean == 1.0  # equal means, errors and seeds: the keys are not compared
    with pytest.raises(NotEnough, match="no rows of c") as missing:
        ends(algorithm="c")
    assert missing.value.artefact == "losses"


def test_a_lead_is_in_standard_errors_of_the_difference():
    low, high = End(1.0, 3.0, 9, {}), End(11.0, 4.0, 9, {})
    assert (low.lead(high), high.lead(low), low.lead(low)) == (2.0, -2.0, 0.0)
    exact = End(1.0, 0.0, 9, {}), End(2.0, 0.0, 9, {})
    assert (exact[0].lead(exact[1]), exact[1].lead(exact[0])) == (math.inf, -math.inf)


def test_lines_without_rows_are_gaps_of_their_panel():
    table = pd.DataFrame({"c": [1, 1], "T": [5, 5], "x": [2, 1], "mean": [1.0, 2.0], "se": [0.1, 0.1]})
    strokes = [Stroke({"T": T}, f"T = {T}", "black", 1.0) for T in (5, 6)]
    seen = []
    with figure_style():
        page = drawn_lines(CONTEXT, "fig", table, "x", [{"c": 1}, {"c": 2}], strokes,
                           lambda key, lost: f"c = {key['c']}: {lost}", panel=lambda axis, key: seen.append(key),
                           columns=2, size=(2, 2))  # fmt: skip
        assert page.gaps == ["c = 1: T = 6: dpbench run fig", "c = 2: T = 5, T = 6: dpbench run fig"]
        first, second = page.axes.flat
        assert [line.get_xdata().tolist() for line in first.lines] == [[1, 2], [2], [], []]
        assert second.texts[0].get_text() == "no rows"
    assert seen == [{"c": 1}]


def test_a_crossed_table_has_a_dash_and_a_gap_where_no_row_is():
    table = pd.DataFrame({"m": ["a", "a", "b"], "c": [1, 2, 1], "value": [0.5, 1.5, 2.5]})
    keys, across = [{"m": name} for name in "abd"], {f"c = {c}": {"c": c} for c in (1, 2)}
    lead, trail = {"method": "{m}"}, {"twice": lambda key: key["m"] * 2}
    made = Table.crossed(table, keys, lead, across, "{value:.1f}", trail=trail, missing="{m} at {c}".format_map)
    assert made.frame.columns.tolist() == ["method", "c = 1", "c = 2", "twice"]
    assert made.frame.to_numpy().tolist() == [
        ["a", "0.5", "1.5", "aa"], ["b", "2.5", "–", "bb"], ["d", "–", "–", "dd"]]  # fmt: skip
    assert made.gaps == ["b at 2", "d at 1", "d at 2"]
    whole = Table.crossed(table, keys, lead, across, "{value}", missing="{m}".format_map, whole=True)
    assert whole.gaps == ["d"]


def test_the_parts_are_those_that_the_kit_reads():
    source = paper.__loader__.get_source(paper.__name__)
    assert all(source.count(f'"{part}"') >= 2 for part in paper.PARTS)


def test_claims_that_share_a_section_name_their_parameters_and_may_give_a_verdicts_word(tmp_path, monkeypatch):
    package = tmp_path / "shared_words"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "words.md").write_text(
        "## claim rate\nThe rate of {whose} falls.\n\nNumbers: it is {rate}\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    shared = Paper("shared_words")

    @shared.claim("one", section="rate", whose="trees")
    @shared.claim("other", section="rate", whose="noise")
    def rate(context, whose):
        return (NOT_TESTABLE if whose == "noise" else False), {"rate": len(whose)}

    one, other = rate._declared
    assert (one.text, other.text) == ("The rate of trees falls.", "The rate of noise falls.")
    assert [(v.word, v.numbers) for v in (*one.judge(None), *other.judge(None))] == [
        (NOT_HELD, "it is 5"), (NOT_TESTABLE, "it is 5")]  # fmt: skip
    assert shared.unused == set()


def test_a_section_takes_the_parts_of_another_and_keeps_its_title(tmp_path, monkeypatch):
    package = tmp_path / "words_as"
    package.mkdir()
    (package / "__init__.py").touch()
    text = "## a: Fig. 1\nWhat {x} shows.\n\nMethod: By hand.\n\n## b: Fig. 2\nAs: a\n\n## c: Fig. 3\nAs: nobody\n"
    (package / "words.md").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    shared = Paper("words_as")
    assert (shared.words("b").title, shared.words("b").parts) == ("Fig. 2", shared.words("a").parts)
    with pytest.raises(ValueError, match="no section 'nobody'"):
        shared.words("c")


def test_an_experiment_is_what_the_package_declares_under_its_own_name(package):
    words = "## phrases\ntitle: A title\n\ncitation: A and B, 2026\n"
    made = package(words + SWITCHES)
    one = made.experiment(published_values=tuple)
    assert (one.name, one.package, one.modules) == (made.package, made.package, (sys.modules[made.package],))
    assert (one.title, one.citation, one.short, one.about, one.published_values) == (
        "A title",
        "A and B, 2026",
        "",
        "",
        tuple,
    )
    assert one.switches == made.switches
    assert made.experiment(paper).modules == (paper,)
