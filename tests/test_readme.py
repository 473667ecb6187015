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
from dpbench.algorithms import rules
from dpbench.cli import UNREAD, group
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
        f"Of {len(cells)} published values, {len(good)} are reproduced, and would not be with half or twice the noise"
    )
    yield (
        f": {n['exact']} to the last digit, {n['match']} within statistical error. {n['differs']} differ. "
        f"{n['blind to noise']} agree, but would also with half or twice the noise. {n['noise not planted']} agree, "
        f"but are not yet tested with wrong noise. {len(cells) - len(judged)} are left out. At a proven ε, "
        f"{lives['yes']} of the {len(good)} still come out ({lives['cannot tell']} cannot be tested, "
        f"{lives['not run']} not run)."
    )
    tables = judged[judged["experiment"].eq("nonconvex") & judged["table"].isin([f"Table {i}" for i in range(1, 5)])]
    assert tables["exact"].astype(str).eq("True").all()
    yield "Tables 1–4 to the last digit"


def claims():
    verdicts = pd.concat(pd.read_csv(path)["verdict"] for path in sorted(FULL.glob("*/scorecard.csv")))
    n = verdicts.value_counts()
    assert n.sum() == n[["held", "not held", "open"]].sum()
    yield (
        f'Of {len(verdicts)} verdicts on claims, {n["held"]} are "held", {n["not held"]} "not held" and {n["open"]} '
        '"open".'
    )


def scores_by_family(level):
    """The default's mean score per family by excess loss, from those of every problem, by no code of the board's."""
    heat = pd.read_csv(FULL / "leaderboard" / f"heat_{level}.csv")
    mine = heat[heat["algorithm"].eq("auto")].set_index("problem")["score"]
    families = pd.read_csv(FULL / "leaderboard" / "problems.csv").set_index("problem")
    return mine.groupby(families["family"].reindex(mine.index)).mean(), families


def kept_on_held_out_rows():
    """Problem, ε → the share of the gain that the default keeps: from the rows, by no code of the board's."""
    runs = pd.concat(pd.read_parquet(path) for path in (ROOT / "results" / "full" / "leaderboard" / "runs").iterdir())
    losses = files.read_toml(ROOT / "dpbench" / "leaderboard" / "nulls.toml")
    runs = runs[runs["problem"].isin(losses["best"]) & runs["timed"].eq(0)]
    assert runs["status"].eq("done").all()
    default = {name: tracks.choice(name) for name in losses["best"]}
    loss = runs[runs["algorithm"].eq(runs["problem"].map(default))].groupby(["problem", "epsilon"])["held_loss"].mean()
    null, best = (pd.Series(losses[key]).reindex(loss.index, level="problem") for key in ("held", "best"))
    return ((null - loss) / (null - best)).clip(-1, 1)


def the_default_on_the_board():
    kept = kept_on_held_out_rows()
    n = pd.Series({name: tracks.size(name)[0] for name in kept.index.unique("problem")})
    one, low = kept.xs(1.0, level="epsilon"), kept.xs(0.1, level="epsilon")
    size = n[one.index]
    every, small, large = (100 * part.median() for part in (one, one[size < 1500], one[size > 6000]))
    yield (
        f"At ε = 1 the default keeps {every:.0f} % of the gain in loss on held-out rows, from the untrained model "
        f"(w = 0) to the optimum without privacy: the median of {len(one)} real tables."
    )
    yield (
        f"It keeps {small:.0f} % where n < 1,500, {large:.1f} % where n > 6,000. At ε = 0.1 it keeps "
        f"{100 * low.median():.0f} %, and is better than w = 0 on {(low > 0).sum()} of {len(low)}."
    )
    scores, problems = scores_by_family("mid")
    assert not set(one.index) & set(problems.index[problems.index != problems["family"]])  # each a family of its own
    yield (
        f"By the training objective it keeps {100 * (1 - 10**scores).median():.0f} % at ε = 1, the median of "
        f"{len(scores)} families."
    )
    by_excess, against = (pd.read_csv(FULL / "leaderboard" / f"against{name}.csv") for name in ("_excess", ""))
    assert (by_excess["low"] <= 0).all()
    (better,) = against[against["low"] > 0].itertuples()
    assert (better.algorithm, better.epsilon) == ("dp-gd-average", 0.1)
    yield (
        f"At ε = 0.1 tail-averaged DP-GD keeps {100 * better.difference:.0f} points more ({100 * better.low:.1g} to "
        f"{100 * better.high:.0f}); no other is distinguishably better at any ε."
    )
    rows = problems[~problems["kind"].str.startswith("persons")]  # no private copies are drawn of persons
    yield f"ranks it on {len(rows)} problems"


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
        f"on {len(theirs.index.unique('data'))} data sets, the AUC is ahead in {n['ahead']} of {len(theirs)} "
        f"comparisons and behind in {n.get('behind', 'none')}. At our ridge, on its "
        f"{len(ridge.index.unique('data'))} sets of two classes, diffprivlib is level in "
        f"{(ridge == 'level').sum()} of {len(ridge)}. DP-EBM is ahead in "
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
    assert chosen["squared + ridge"] == {"dp-gd-average", "boosted-ssp"}
    assert (rules.ROWS, rules.ENTRIES) == (20_000, 1e6)
    assert chosen["logistic + L1"] | chosen["squared + L1"] == {"dp-gcd", "dp-gd-average"}
    yield (
        "It is objective perturbation for two classes, tail-averaged DP-GD for numbers (boosted SSP if n > 20,000), "
        "it or DP-GCD with L1."
    )
    papers = [experiments.get(name) for name in experiments.names() if name != "leaderboard"]
    assert len(papers) == 5
    yield "claims of five papers"
    for one in papers:
        venue = one.citation.rpartition(", ")[2]
        yield {"nonconvex": "Gao and Wright, "}.get(one.name, "") + venue
    yield "Python " + files.read_toml(ROOT / "pyproject.toml")["project"]["requires-python"].replace(">=", "≥ ")
    codes = {
        number: re.search(rf"\b{number} (.*?)[,.]", " ".join(group.help.split()))[1]
        for number in (0, 1, 2, 3, 130, UNREAD)
    }
    assert [text.split()[0] for text in codes.values()] == ["all", "some", "a", "something", "interrupted", "the"]
    yield (
        "Exit codes: 0 all well, 1 some runs failed, 2 a mistake in the call (one line says which), 3 not checked, 130 "
        "interrupted, 141 the reader has gone."
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


@pytest.mark.parametrize("paper", ["second_order", "accelerated", "zeroth_order", "greedy_coordinate", "nonconvex"])
def test_what_the_page_of_a_paper_counts(paper):
    n = pd.read_csv(FULL / paper / "scorecard.csv")["verdict"].value_counts()
    (said,) = re.findall(r"Of (\d+) verdicts(?: on its claims)?, ([^.;]+)", words_of(f"docs/papers/{paper}.md"))
    counted = {word: int(count) for count, word in re.findall(r'(\d+) (?:are )?"([a-z ]+)"', said[1])}
    assert (int(said[0]), counted) == (n.sum(), n.to_dict())


def test_what_the_page_of_nonconvex_says_of_loss_a():
    cells = pd.read_csv(FULL / "reproduction.csv", keep_default_na=False).query("experiment == 'nonconvex'")
    cells = cells[cells["table"].isin([f"Table {i}" for i in range(1, 5)]) & ~cells["run_time"]]
    n, own = cells["verdict"].value_counts(), cells["verdict"].eq("exact") & cells["counts"]
    assert n["exact"] - own.sum() == 4  # "four are copies"
    assert n["exact"] + n["blind to noise"] == len(cells)
    assert (
        f"All {len(cells)} values of Tables 1 to 4 (loss A) come out to the last printed digit: mean, deviation, × "
        "(some seed did not reach its target), `<NA>` (no seed left a number) and the number of runs. "
        f"{n['exact']} of them would have failed with half and with twice the noise, and {own.sum()} of these count as "
        f"reproduced, as four are copies of others; {n['blind to noise']} would come out with half or twice the noise "
        "too."
    ) in words_of("docs/papers/nonconvex.md")


def test_what_the_page_of_the_board_says_of_its_tables():
    page = words_of("docs/papers/leaderboard.md")
    assert [one for one in (*the_default_on_the_board(),)[:2] if one not in page] == []
    held = pd.read_csv(FULL / "leaderboard" / "held_out.csv").query("epsilon == 1 and group == 'two classes'")
    before = held[held["place"].between(1, held.set_index("algorithm").loc["objpert", "place"] - 1)]["algorithm"]
    against = pd.read_csv(FULL / "leaderboard" / "against.csv").query("epsilon == 1").set_index("algorithm")
    assert {"dp-gd", "dp-sgd", "dp-chebyshev"} < {*before}
    assert (against.loc[before, "low"] <= 0).all()
    assert "At ε = 1, gradient methods and Chebyshev SSP come before objective perturbation on the median table" in page
    losses = files.read_toml(ROOT / "dpbench" / "leaderboard" / "nulls.toml")
    without = sorted(losses["held"].keys() - losses["best"])
    assert f"the {len(losses['held'])} real tables alone. On two of them, `{without[0]}` and `{without[1]}`" in page
