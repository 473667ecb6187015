"""The README and the start pages: every number, recomputed from rows and code by means of pandas alone.

A check yields the sentences that have to be on a page. What no check yields, and is no setting of a sentence, fails.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpbench import experiments, files
from dpbench.cli import group
from dpbench.leaderboard import tracks
from tests.auditing import cheats, cheats_elsewhere, mutants

ROOT = Path(__file__).resolve().parent.parent
FULL = ROOT / "figures" / "full"
START = ("README.md", "docs/index.md", "docs/start/practitioner.md", "docs/start/reader.md", "docs/start/researcher.md")
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)  # tests/test_docs.py runs them
COUNT = re.compile(r"\b(\d[\d,.]*\d|\d|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b")
SETTINGS = (  # what a sentence is about, and what follows from nothing
    "ε = 0.1, 1 and 10", "is below 1 because", "`--seeds 10` after `--seeds 5` adds five", "Apache-2.0",
    "You say three things first", "(an age lies in 0 to 100)", "Two fits at ε = 1 on the same rows cost up to ε = 2",
    "Ten minutes, no network", "the last two, [gradient",
)  # fmt: skip


def words_of(page):
    """Its text in one line, without blocks, targets of links and the numbers of sections."""
    text = BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))
    return " ".join(re.sub(r"^#+ \d\. |(?<=\])\([^)]*\)", "", text, flags=re.MULTILINE).split())


def published_values():
    cells = pd.read_csv(FULL / "reproduction.csv", keep_default_na=False)
    cells = cells[~cells["run_time"]]
    judged = cells[cells["counts"]]
    n = judged["verdict"].value_counts()
    good = judged[judged["verdict"].isin(["exact", "match"])]
    lives = good["survives"].value_counts()
    yield (
        f"Of {len(cells)} published values, {len(good)} are reproduced by runs that half or twice the noise would have "
        f"failed: {n['exact']} to the last digit, {n['match']} within statistical error. {n['differs']} differ. "
        f"{n['blind to noise']} agree, but would also with half or twice the noise. {n['noise not planted']} agree, "
        f"but are not yet tested with wrong noise. {len(cells) - len(judged)} are left out. With noise that keeps ε, "
        f"{lives['yes']} of the {len(good)} still come out ({lives['cannot tell']} cannot be tested, "
        f"{lives['not run']} not run)."
    )
    tables = judged[judged["experiment"].eq("nonconvex") & judged["table"].isin([f"Table {i}" for i in range(1, 5)])]
    assert tables["exact"].astype(str).eq("True").all()
    yield "Tables 1–4 to the last digit"


def claims():
    verdicts = pd.concat(pd.read_csv(path)["verdict"] for path in sorted(FULL.glob("*/scorecard.csv")))
    n = verdicts.value_counts()
    yield f'Of {len(verdicts)} verdicts on claims, {n["held"]} are "held" and {n["not held"]} "not held".'


def scores_by_family(level):
    """The default's mean score per family, from the scores of every problem: shares nothing with the board's tables."""
    heat = pd.read_csv(FULL / "leaderboard" / f"heat_{level}.csv")
    mine = heat[heat["algorithm"].eq("auto")].set_index("problem")["score"]
    families = pd.read_csv(FULL / "leaderboard" / "problems.csv").set_index("problem")
    return mine.groupby(families["family"].reindex(mine.index)).mean(), families


def the_default_on_the_board():
    scores, problems = scores_by_family("mid")
    most = problems["n"].astype(str).str.replace(",", "").astype(int).groupby(problems["family"]).max()[scores.index]
    real = scores[~scores.index.str.match("gen-|conditioned|rare|synthetic|log1|square")]
    every, on_real, small, large = (
        f"{100 * (10**some).median():.2g} %" for some in (scores, real, scores[most < 1500], scores[most > 6000])
    )
    yield (
        f"At ε = 1 the default leaves {every} of the excess loss of w = 0 on the median of {len(scores)} families of "
        f"problems: {on_real} on the {len(real)} of real data, {small} where n < 1,500, {large} where n > 6,000."
    )
    low, _ = scores_by_family("low")
    better = f"{(low < 0).sum()} of {len(low)}"
    yield f"At ε = 0.1 it leaves {100 * (10**low).median():.0f} %, and is better than w = 0 on {better}."
    against = pd.read_csv(FULL / "leaderboard" / "against.csv")
    assert (against["low"] <= 0).all()
    yield "no other method is distinguishably better at any ε"
    yield f"ranks it on {len(problems)} problems"


def other_libraries():
    """Cells are compared by a paired t test over ten splits at 5 %."""
    rows = pd.read_csv(ROOT / "benchmarks" / "results" / "other_libraries.csv")
    wide = rows.pivot_table(index=["data", "epsilon", "seed"], columns="library", values="auc")

    def against(rival):
        gaps = (wide["dpbench"] - wide[rival]).dropna().groupby(["data", "epsilon"])
        differ = gaps.apply(lambda gap: stats.ttest_1samp(gap, 0).pvalue) <= 0.05
        word = np.where(differ, np.where(gaps.mean() > 0, "ahead", "behind"), "level")
        return pd.Series(word, gaps.mean().index)

    theirs, ridge, trees = (against(name) for name in ("diffprivlib", "diffprivlib, our ridge", "DP-EBM"))
    n = theirs.value_counts()
    yield (
        f"on {len(theirs.index.unique('data'))} data sets, the AUC is ahead in {n['ahead']} of {len(theirs)} cells and "
        f"behind in {n.get('behind', 'none')}. At our ridge, on its {len(ridge.index.unique('data'))} sets of two "
        f"classes, diffprivlib is level in {(ridge == 'level').sum()} of {len(ridge)}. DP-EBM is ahead in "
        f"{(trees == 'behind').sum()} and behind in {(trees == 'ahead').sum()}."
    )
    adult = rows[rows["data"].eq("adult")]
    n = round(adult["rows"].mean(), -3)
    a = adult.groupby(["library", "epsilon"])["accuracy"].mean()
    yield (
        f"On adult (about {n:,.0f} rows), accuracy is {a['dpbench', 0.3]:.3f} at ε = 0.3 and {a['dpbench', 3.0]:.3f} "
        f"at ε = 3; without privacy, {a['not private', np.inf]:.3f}."
    )


def the_code_says():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [two for two in re.findall(r"\[(\w+\d{4})\]\(docs/papers/(\w+)\.md\)", text) if two[0] != two[1]] == []
    yield from re.findall(r"\[\w+\d{4}\]", text)
    board = pd.read_csv(FULL / "leaderboard" / "problems.csv").set_index("problem")["kind"]
    chosen = {kind: {tracks.choice(name) for name in part} for kind, part in board.groupby(board).groups.items()}
    assert chosen["logistic"] == chosen["logistic + ridge"] == {"objpert"}
    assert chosen["squared + ridge"] == {"boosted-ssp"}
    assert chosen["logistic + L1"] | chosen["squared + L1"] == {"dp-gcd", "dp-gd-average"}
    yield (
        "It is objective perturbation for two classes, boosted SSP for numbers, and DP-GCD or tail-averaged DP-GD "
        "with L1;"
    )
    papers = [experiments.get(name) for name in experiments.names() if name != "leaderboard"]
    assert len(papers) == 5
    yield "claims of five papers"
    for one in papers:
        venue = one.citation.rpartition(", ")[2]
        yield {"nonconvex": "Gao and Wright, "}.get(one.name, "") + venue
    yield "Python " + files.read_toml(ROOT / "pyproject.toml")["project"]["requires-python"].replace(">=", "≥ ")
    codes = {
        number: re.search(rf"\b{number} (.*?)[,.]", " ".join(group.help.split()))[1] for number in (0, 1, 2, 3, 130)
    }
    assert [text.split()[0] for text in codes.values()] == ["all", "some", "a", "something", "interrupted"]
    yield (
        "Exit codes: 0 all well, 1 some runs failed, 2 a mistake in the call (one line says which), 3 not checked, 130 "
        "interrupted."
    )


CHECKS = (published_values, claims, the_default_on_the_board, other_libraries, the_code_says)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_what_the_readme_says_follows_from_rows_and_code(check):
    readme = words_of("README.md")
    assert [sentence for sentence in check() if sentence not in readme] == []


@pytest.mark.parametrize("page", START)
def test_no_number_of_a_start_page_is_left_unchecked(page):
    text = words_of(page)
    for sentence in sorted((one for check in CHECKS for one in check()), key=len, reverse=True):
        text = text.replace(sentence, "")
    for setting in SETTINGS:
        text = text.replace(setting, "")
    assert [text[max(0, found.start() - 40) : found.end() + 20] for found in COUNT.finditer(text)] == []


def test_what_the_guide_to_audits_counts():
    page = words_of("docs/guides/audit.md")
    wrong = len(cheats.FAILS) + len(cheats_elsewhere.FAILS) + len(cheats_elsewhere.APART)
    assert f"on {wrong} algorithms that cheat and on {len(mutants.MUTANTS)} defects" in page


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_default_is_first_or_not_told_from_it_and_the_tail_average_comes_nearest(epsilon):
    answers = pd.read_csv(FULL / "leaderboard" / "answers.csv")  # as docs/papers/leaderboard.md has it
    whole = answers[answers["kind"].eq("all") & answers["epsilon"].eq(epsilon)].set_index("algorithm")
    assert whole.loc["auto", "place"] == 1 or not whole.loc["auto", "apart"]
    against = pd.read_csv(FULL / "leaderboard" / "against.csv")
    here = against[against["epsilon"].eq(epsilon)]
    on_all = here[here["families"].eq(here["families"].max())]
    assert here.loc[on_all["difference"].idxmax(), "algorithm"] == "dp-gd-average"
