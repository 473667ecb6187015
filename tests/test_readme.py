"""The numbers in the README's first lines, against the figures and tables that the repository holds."""

from pathlib import Path

import pandas as pd
import pytest

from dpbench.reporting import reproduction
from dpbench.study.verdicts import POOLED
from tests.auditing import cheats, mutants

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
    assert f"on {len(cheats.FAILS)} algorithms that cheat and on {len(mutants.MUTANTS)} defects" in page


def test_claims():
    verdicts = pd.concat(pd.read_csv(path)["verdict"] for path in sorted(FULL.glob("*/scorecard.csv")))
    counts = verdicts.value_counts()
    assert (
        f'Of {len(verdicts)} verdicts on claims, {counts["held"]} are "held" and {counts["not held"]} "not held".'
    ) in README


@pytest.mark.parametrize(("level", "words"), [("mid", "At ε = 1 the default"), ("low", "at ε = 0.1 it")])
def test_what_the_default_leaves_on_the_median_problem(level, words):
    """From the scores of every problem, by a route that shares nothing with the board's first table."""
    heat = pd.read_csv(FULL / "leaderboard" / f"heat_{level}.csv")
    shares = 10 ** heat.loc[heat["algorithm"].eq("auto"), "score"]
    assert f"{words} leaves {100 * shares.median():.0f} %" in README
    if level == "mid":
        assert f"on the median of {len(shares)} problems" in README
    else:
        assert f"is better than w = 0 on {(shares < 1).sum()} of {len(shares)}." in README


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_default_is_first_and_the_tail_average_is_not_distinguishable(epsilon):
    answers = pd.read_csv(FULL / "leaderboard" / "answers.csv")  # as docs/papers/leaderboard.md has it
    whole = answers[answers["kind"].eq("all") & answers["epsilon"].eq(epsilon)].set_index("algorithm")
    assert whole.loc["auto", "place"] == 1
    assert not whole.loc["dp-gd-average", "apart"]
