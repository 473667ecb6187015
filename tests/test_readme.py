"""The numbers in the README's first lines, against the figures and tables that the repository holds."""

from pathlib import Path

import pandas as pd
import pytest

from dpbench.reporting import reproduction
from dpbench.study.value_verdict import POOLED
from tests.auditing import cheats, cheats_elsewhere, mutants

ROOT = Path(__file__).resolve().parent.parent
FULL = ROOT / "figures" / "full"
NUMBERS = ["chance", "resolution", *(f"ratio, {name}" for name in POOLED)]
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


def test_published_values():
    """One sentence for README, page and picture, counted in one place."""
    cells = pd.read_csv(FULL / "reproduction.csv", keep_default_na=False, na_values=dict.fromkeys(NUMBERS, ""))
    assert reproduction.in_all(cells).paragraph() in README


def test_what_the_guide_to_audits_counts():
    page = " ".join((ROOT / "docs" / "guides" / "audit.md").read_text(encoding="utf-8").split())
    wrong = len(cheats.FAILS) + len(cheats_elsewhere.FAILS) + len(cheats_elsewhere.APART)
    assert f"on {wrong} algorithms that cheat and on {len(mutants.MUTANTS)} defects" in page


def test_claims():
    verdicts = pd.concat(pd.read_csv(path)["verdict"] for path in sorted(FULL.glob("*/scorecard.csv")))
    counts = verdicts.value_counts()
    assert (
        f'Of {len(verdicts)} verdicts on claims, {counts["held"]} are "held" and {counts["not held"]} "not held".'
    ) in README


def scores_by_family(level):
    """The default's mean score per family, from the scores of every problem: shares nothing with the board's tables."""
    heat = pd.read_csv(FULL / "leaderboard" / f"heat_{level}.csv")
    mine = heat[heat["algorithm"].eq("auto")].set_index("problem")["score"]
    families = pd.read_csv(FULL / "leaderboard" / "problems.csv").set_index("problem")
    return mine.groupby(families["family"].reindex(mine.index)).mean(), families


def test_what_the_default_leaves_on_the_median_family():
    scores, problems = scores_by_family("mid")
    most = problems["n"].astype(str).str.replace(",", "").astype(int).groupby(problems["family"]).max()[scores.index]
    real = scores[~scores.index.str.match("gen-|conditioned|rare|synthetic|log1|square")]
    left = {
        f"on the median of {len(scores)} families": scores,
        f"on the {len(real)} of real data": real,
        "where n < 1,500": scores[most < 1500],
        "where n > 6,000": scores[most > 6000],
    }
    for words, some in left.items():
        value = f"{100 * (10**some).median():.2g} %"
        assert value in README.partition(words)[0][-60:] + README.partition(words)[2][:20], (words, value)
    low, _ = scores_by_family("low")
    better = f"{(low < 0).sum()} of {len(low)}"
    assert f"At ε = 0.1 it leaves {100 * (10**low).median():.0f} %, and is better than w = 0 on {better}." in README


def test_no_method_is_distinguishably_better_than_the_default():
    against = pd.read_csv(FULL / "leaderboard" / "against.csv")
    assert (against["low"] <= 0).all()
    assert "no other method is distinguishably better at any ε" in README


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_default_is_first_or_not_told_from_it_and_the_tail_average_comes_nearest(epsilon):
    answers = pd.read_csv(FULL / "leaderboard" / "answers.csv")  # as docs/papers/leaderboard.md has it
    whole = answers[answers["kind"].eq("all") & answers["epsilon"].eq(epsilon)].set_index("algorithm")
    assert whole.loc["auto", "place"] == 1 or not whole.loc["auto", "apart"]
    against = pd.read_csv(FULL / "leaderboard" / "against.csv")
    here = against[against["epsilon"].eq(epsilon)]
    on_all = here[here["families"].eq(here["families"].max())]
    assert here.loc[on_all["difference"].idxmax(), "algorithm"] == "dp-gd-average"
