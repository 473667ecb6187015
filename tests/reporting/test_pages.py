import json
import re
from pathlib import Path

import pandas as pd
import pytest
from markupsafe import Markup

from dpbench import experiments
from dpbench.cli import main
from dpbench.errors import UserError
from dpbench.reporting import build as report
from dpbench.reporting import manifest, pages, reproduction
from dpbench.reporting.html import badge, breakable, image, join, link, page, table, tag
from dpbench.run.store import Store
from dpbench.study.context import Context
from dpbench.study.output import WORDS
from dpbench.study.plan import plan
from tests.batches import write
from tests.reporting.conftest import row
from tests.reporting.made_up_site import problems

COMMITTED = Path(__file__).parents[2] / "figures" / "full"


def text(path):
    return path.read_text(encoding="utf-8")


def test_every_link_resolves_and_every_image_says_what_it_shows(site):
    assert problems(site) == []
    assert {str(path.relative_to(site)) for path in site.rglob("*.html")} == {
        "index.html", "errata.html", "glossary.html", "small/index.html"}  # fmt: skip


def test_the_committed_captions_are_short():
    found = [one for path in COMMITTED.glob("*/artefacts.json") for one in json.loads(text(path))["artefacts"]]
    assert len(found) > 80
    assert [one["name"] for one in found if "method" in one and len(one["caption"].split()) > WORDS] == []
    assert WORDS == 40  # as the guide to captions has it


@pytest.mark.parametrize("name", [path.parent.name for path in sorted(COMMITTED.glob("*/artefacts.json"))])
def test_every_command_on_a_committed_page_names_what_there_is(name):
    one = json.loads(text(COMMITTED / name / "artefacts.json"))
    page = pages.body(one, COMMITTED / name, "rows")
    reports = {*re.findall(r"dpbench report --experiment ([\w/]+)", page)}
    runs = {*re.findall(r"dpbench run --experiment ([\w/]+)", page)}
    assert reports
    assert runs
    for reference in reports:
        report._selection(reference, "full")  # UserError for one that is not known
    for reference in runs:
        experiment, _, artefact = reference.partition("/")
        assert experiments.get(experiment).blocks("full", artefact or None), f"dpbench run --experiment {reference}"


def test_the_checker_sees_what_is_wrong(site):
    page = site / "small" / "index.html"
    whole = text(page)
    for old, new, told in [
        ('href="drawn.pdf"', 'href="gone.pdf"', "link gone.pdf"),
        ('href="#tabled"', 'href="#nowhere"', "link #nowhere"),
        ('href="../style.css"', 'href="https://example.org/a.css"', "link https"),
        ('alt="Fig. 1', 'title="Fig. 1', "no telling alt text"),
        ('src="drawn.png"', 'src="none.png"', "not there"),
        ("</article>", "", "closes something else"),
        ("<h1>", "<H1b><h1>", "<h1b> is no tag"),
        ("<h1>", "<h1><script></script>", "a script"),
    ]:
        assert old in whole
        page.write_text(whole.replace(old, new, 1), encoding="utf-8")
        assert any(told in line for line in problems(site)), told


def test_the_overview_counts_what_there_is(site):
    page = text(site / "index.html")
    said = "Of 1 published value, 1 is reproduced, and would not be with half or twice the noise"
    assert said in page
    assert "1 experiment, 2 runs" in page
    assert "Of 3 verdicts on their claims: 1 held, 1 not held, 1 with not enough data." in page
    assert "half the noise 0 of 1" in page
    assert 'href="https://doi.org/10.1/small"' in page
    assert "reproduction.svg" in page
    assert "no results yet: <code>dpbench run --experiment absent --profile quick</code>" in page


def test_an_experiments_page_has_the_words_cells_gaps_and_sources(site):
    page = re.sub(r'<a class="term"[^>]*>(.*?)</a>', r"\1", text(site / "small" / "index.html"))
    for part in (
        "A small &amp; made-up experiment",
        'alt="Fig. 1: x &lt; y. Mean of 3 seeds."',
        "&lt;b&gt;",
        "Gap: a1a",
        'href="drawn.pdf"',
        'href="tabled.tex"',
        'href="tabled.csv"',
        "results/quick/small/runs",
        "dpbench run --experiment small/drawn --profile quick",
        "Python 3 &amp; more",
        "ab" * 8,
        "x = 1 # &lt; 2",
        'href="#published"',
        "published 1.0 (k = 3), chance ",
        'href="https://doi.org/10.1/small"',
        'href="#value-1"',  # a square that leads to what was compared, to the table it stands in, and the command
        "Table 1 (p. 7), y, mean: match; notices half the noise; twice the noise; at a proven ε: yes",
        "Of 1 published value, 1 is reproduced, and",
        'href="#tabled"',
        "Section 2, Fig. 1 (p. 3)",
        "In the paper: Fig. 1 (p. 3).",
        "Why: y is smaller there",
    ):
        assert part in page, part


def test_of_many_figures_the_first_that_show_a_claim_are_unfolded():
    """second_order has 26, and is to be read in ten screens."""
    drawn = [{"name": f"fig{i}", "title": f"Fig. {i}", "kind": "table", "columns": ["x"], "rows": [["1"]], "files": [],
              "caption": "x", "gaps": [], "command": "dpbench run"} for i in range(26)]  # fmt: skip
    one = {"experiment": "second_order", "title": "Many", "citation": "Nobody", "links": [], "profile": "full",
           "planned": [], "runs": 1, "published": "", "statuses": {}, "code_versions": [], "environments": [],
           "relations": [], "checked_by": [], "data": [], "artefacts": drawn}  # fmt: skip

    def unfolded(one):
        return re.findall(r'<article id="(\w+)"', pages.body(one, COMMITTED, "rows"))

    assert unfolded(one) == ["fig0", "fig1", "fig2", "fig3"]
    folded = []
    for count in range(1, 6):
        gaps = [drawn[0] | {"gaps": [f"no rows of set {i}" for i in range(count)]}]
        folded.append(f"{count} gaps</summary>" in pages.body(one | {"artefacts": gaps}, COMMITTED, "rows"))
    assert folded == [False, False, False, True, True]
    claim = {"claim": "1", "text": "x", "place": "", "why": "", "numbers": "", "verdict": "held", "setting": "both"}
    judged = {"name": "scorecard", "title": "Claims", "caption": "6 held.", "files": [],
              "records": [claim | {"shows": f"fig{i}"} for i in (3, 5, 7, 9, 11, 3)]}  # fmt: skip
    page = pages.body(one | {"artefacts": [judged, *drawn]}, COMMITTED, "rows")
    assert unfolded(one | {"artefacts": [judged, *drawn]}) == ["scorecard", "fig3", "fig5", "fig7", "fig9"]
    assert page.index("6 held.") < page.index("<article")
    assert all(f'id="fig{i}"' in page for i in range(26))


def test_a_cell_of_lines_opens_in_bold_and_numbers_stay_whole():
    made = table(
        ["a", "b", "c"], [["DP-GD\nscore -2.00", "-1.20 [-1.50, -0.90] ± 0.0001", "of words, and a number 12"]]
    )
    assert '<td data-label="a"><b>DP-GD</b>\n<small>score -2.00</small>' in made
    assert '<td class="short number" data-label="b">-1.20' in made
    assert '<td data-label="c">of words' in made
    assert "95\u00a0%" in breakable("at 95 %")
    power = '<span class="whole-number">8.1e-05</span>'
    assert f"1.0 / 0.0 ({power})" in table(["a"], [["1.0 / 0.0 (8.1e-05)"]])
    assert breakable("at 8.1e-05") == f"at {power}"
    assert "<span" not in breakable("sha256 1e5-6")


def test_the_overview_says_what_the_default_keeps():
    columns, row = (
        ["loss", "families", "at ε = 0.1", "at ε = 1"],
        ["held-out loss", "real (27)", "39 % (11 % to 75 %); 22 of 27", "87 %"],
    )
    kept = {"name": "kept", "columns": columns, "rows": [row, ["held-out loss", "n < 1,500 (17)", "1 %", "2 %"]]}
    said = re.sub(
        "<[^>]*>", "", pages._which_method({"paper": {"artefacts": []}, "board": {"artefacts": [kept]}})
    ).strip()
    assert said == (
        "Which method to use? By held-out loss, the default keeps 39 % at ε = 0.1, 87 % at ε = 1 of the gain "
        "from w = 0 to the optimum without privacy: the median of up to 27 real tables (every method)."
    )
    assert pages._which_method({"paper": {"artefacts": []}}) == ""


def test_every_verdict_of_a_claim_is_shown_with_what_it_is_of():
    one = {"claim": "1", "text": "x < y", "place": "Fig. 1", "shows": "", "why": "", "numbers": "1 < 2"}
    several = [
        one | {"setting": "both", "case": "no noise", "verdict": "held"},
        one | {"setting": "both", "case": "tree, ρ = 10", "verdict": "open"},
    ]
    assert f'<p class="caption">{reproduction.MARKS}' in reproduction.legend()
    listed = reproduction.claims_list(several)
    assert [listed.count(f">{word}<") for word in ("held", "open")] == [1, 1]
    assert all(f"({case})" in listed for case in ("no noise", "tree, ρ = 10"))
    apart = [one | {"setting": "at a proven ε", "case": "", "verdict": "not held"}]
    assert "(at a proven ε)" in reproduction.claims_list(apart)


@pytest.mark.thorough
def test_the_same_rows_give_the_same_bytes_and_no_trace_of_the_place(site, small, tmp_path):
    def files():
        return {path: path.read_bytes() for path in site.rglob("*") if path.suffix in (".html", ".json", ".css", ".md")}

    before = files()
    list(report.build(results=tmp_path / "results", figures=tmp_path / "figures"))
    assert files() == before
    assert not any(str(tmp_path).encode() in content for content in before.values())


@pytest.mark.thorough
def test_one_artefact_built_again_leaves_the_others_on_the_page(site, small, tmp_path):
    list(report.build("small/drawn", results=tmp_path / "results", figures=tmp_path / "figures"))
    page = text(site / "small" / "index.html")
    assert "Twelve columns." in page
    assert "x &lt; y at ε = 1" in page
    names = [one["name"] for one in json.loads(text(site / "small" / "artefacts.json"))["artefacts"]]
    assert names == ["drawn", "tabled", "scorecard", "published_values"]


def test_experiments_are_drawn_beside_one_another_and_told_in_their_order(small, tmp_path, monkeypatch):
    write(Store(tmp_path / "results", "quick", "absent"), [row(0)])
    asked, folder = [], tmp_path / "figures" / "quick"

    def pooled(function, parts, workers, *, ordered):
        asked.append((len(parts), workers))
        made = [function(*part) for part in parts]
        return made if ordered else made[::-1]

    monkeypatch.setattr(report, "pooled", pooled)
    monkeypatch.setattr(report, "_drawn", lambda name, artefact, *_: ([f"{name} {artefact}".strip()], folder))
    monkeypatch.setattr(pages, "write", lambda figures, results: f"{figures.name} of {results.name}")
    monkeypatch.setattr("dpbench.reporting.errata_pages.save", lambda figures: figures / "errata")
    where = {"results": tmp_path / "results", "figures": tmp_path / "figures"}
    last = [f"{folder / 'errata'}.*  Privacy errata", "to read all of it, open quick of quick"]
    assert list(report.build(**where)) == [
        "2 experiments, each drawn in a process of its own; lines come when one is done", "small", "absent", *last
    ]  # fmt: skip
    assert list(report.build("small/drawn", **where)) == ["small drawn", *last]
    assert asked == [(2, None), (1, 1)]
    with pytest.raises(UserError, match=r"no results for small in \S+/none; run: dpbench run --experiment NAME"):
        list(report.build("small", **where | {"results": tmp_path / "none"}))


def test_what_was_never_built_is_a_visible_gap(small, tmp_path):
    list(report.build("small/drawn", results=tmp_path / "results", figures=tmp_path / "figures"))
    folder = tmp_path / "figures" / "quick"
    assert "Not built yet: tabled; run: <code>dpbench report --experiment small</code>" in text(
        folder / "small" / "index.html"
    )
    assert problems(folder) == []


def test_a_figure_that_is_gone_is_a_line_and_stops_no_report_of_another_experiment(site, small, tmp_path):
    for suffix in ("pdf", "png", "svg"):
        (site / "small" / f"drawn.{suffix}").unlink()
    pages.write(site, tmp_path / "results" / "quick")
    page = text(site / "small" / "index.html")
    assert "Its files are gone; run: <code>dpbench report --experiment small --profile quick</code>" in page
    assert problems(site) == []


def test_check_names_what_is_missing_and_exits_2(small, tmp_path, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["report", "--check", "--results", str(tmp_path / "results")])
    told = capsys.readouterr()
    assert exit_.value.code == 2
    assert "no results to judge of absent; run: dpbench run --experiment absent --profile quick" in told.err
    assert "  held             1: x < y at ε = 1\n" in told.out
    assert "  match            Table 1, y, mean: at a proven ε: yes\n" in told.out
    assert "chance " in told.out
    with pytest.raises(SystemExit) as exit_:
        main(["report", "--check", "--experiment", "small", "--results", str(tmp_path / "results")])
    assert exit_.value.code in (0, None)


def test_text_is_escaped_once():
    assert tag("p", "<a> & b") == "<p>&lt;a&gt; &amp; b</p>\n"
    assert Markup("<b>") + "<" == "<b>&lt;"
    assert join([Markup("<b>") + Markup("</b>"), "<"]) == "<b></b>&lt;"
    assert breakable("a < b: dpbench run --experiment x/y --profile full, then") == (
        "a &lt; b: <code>dpbench run --experiment x/y --profile full</code>, then"
    )


def test_the_pieces_of_a_page():
    """Sizes are halved, verdicts have their colour and a count, short cells stay on one line."""
    assert image("a.png", "of <a>", (301, 150)) == '<img src="a.png" alt="of &lt;a&gt;" width="150" height="75">\n'
    words = dict.fromkeys(("held", "exact", "match", "holds, with noise to spare", "harmless"), "good")
    words |= dict.fromkeys(("not held", "differs", "false", "false statement"), "bad") | {"unproved": "open"}
    assert [badge(word) for word in words] == [
        f'<span class="badge {how}">{word}</span>' for word, how in words.items()
    ]
    assert badge("held", 3) == '<span class="badge good">3 held</span>'
    assert link("#a", "b", aria_label="c") == '<a href="#a" aria-label="c">b</a>'
    cells = ["x" * 18, "x" * 19, "1.5e-05 ± 2", ""]
    made = table(["a", "b", "c", "d", "e"], [[*cells, "held"]], last=badge)
    kinds = re.findall(r'<td(?: class="([^"]*)")?(?: data-label="(\w)")?>', made)
    assert f'data-label="e">{badge("held")}</td>' in made
    assert kinds == [("short", "a"), ("", "b"), ("short number", "c"), ("short", ""), ("", "e")]
    assert ("whole" in table(["a"], [["b"]]), "whole" in table(["a"], [["b"]], whole=True)) == (False, True)
    whole = page("T", [("index.html", "Home"), ("a/b.html", "B")], Markup("<p>x</p>"), root="../", here="a/b.html")
    assert '<a href="../index.html">Home</a>' in whole
    assert len(re.findall(r"aria-current|class=.here", whole)) == 1


def test_the_environment_has_the_states_of_the_runs_and_short_hashes():
    one = {"statuses": {"done": 12345, "diverged": 2}, "code_versions": ["0.1", "0.2"], "environments": [],
           "relations": ["add-remove"], "checked_by": ["dp_accounting"],
           "data": [{"problem": "a1a:l", "dataset": "a1a", "sha256": ["ab" * 32, "cd" * 32]}]}  # fmt: skip
    made = pages._environment(one, "../rows")
    facts = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", made, flags=re.DOTALL)
    assert [(name, re.sub(r"<[^>]*>|\n", "", told)) for name, told in facts] == [
        ("runs", "12,345 done, 2 diverged"), ("rows", "../rows/runs"), ("code", "0.10.2"), ("environment", "–"),
        ("neighbours", "add-remove"), ("ε checked by", "dp_accounting"),
    ]  # fmt: skip
    assert re.findall(r'<code title="(\w+)">(\w+)…</code>', made) == [("ab" * 32, "ab" * 8), ("cd" * 32, "cd" * 8)]
    assert re.findall(r'data-label="[\w ]+">(a1a\S*?)</td>', made) == ["a1a:l", "a1a"]


def test_what_is_not_recorded_of_an_environment_is_said_and_of_nothing_else():
    runs = pd.DataFrame({"environment": ["b", None, "a"], "relation": ["y", None, "x"]})
    assert manifest._distinct(runs, "environment") == ["a", "b", "not recorded in these rows"]
    assert manifest._distinct(runs[::2], "environment") == ["a", "b"]
    assert manifest._distinct(runs, "relation") == ["x", "y"]


def test_a_caption_ends_with_what_is_behind_it(tmp_path):
    store = Store(tmp_path, "quick", "accelerated")
    one = experiments.get("accelerated")
    jobs = [job for job in plan(one.blocks("quick", "fig3"), store).jobs if job.algorithm == "dp-hb"][:2]
    write(store, [{"key": job.key, "problem": job.problem, "algorithm": job.algorithm, "seed": i, "settings": "{}",
                  "epsilon": 1.0, "timed": 0, "status": "done", "accounting": "pure", "relation": "replace-one"}
                 for i, job in enumerate(jobs)], [])  # fmt: skip
    context = Context(one, "quick", store)
    assert context.behind("fig3") == "Rows: n = 100,000; 2 seeds; accounting pure; replace-one neighbours."
    assert context.behind("fig1") == ""
