"""The numbers in the README's first lines, against the figures and tables that the repository holds."""

from pathlib import Path

import pandas as pd
import pytest

from tests.auditing import cheats, mutants

ROOT = Path(__file__).resolve().parent.parent
FULL = ROOT / "figures" / "full"
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


def test_published_values():
    cells = pd.read_csv(FULL / "reproduction.csv", keep_default_na=False)
    judged = cells[cells["kind"].eq("cell") & cells["verdict"].isin(["exact", "match", "differs"])]
    judged = judged[judged["trivial"].eq("") & judged["copy_of"].eq("")]
    counts = judged["verdict"].value_counts()
    many = counts.get("differs", 0)
    differ = "1 differs" if many == 1 else f"{many} differ"
    assert (
        f"Of {len(judged)} published values compared, {counts['exact']} come out to the last digit, "
        f"{counts['match']} match and {differ}."
    ) in README
    assert f"only {judged['survives'].eq('yes').sum()} also come out of runs that keep their ε" in README


def test_what_the_page_of_nonconvex_counts():
    """Its numbers of values, of switches and of values that are wrong on purpose."""
    page = " ".join((ROOT / "docs" / "papers" / "nonconvex.md").read_text(encoding="utf-8").split())
    cells = pd.read_csv(FULL / "reproduction.csv", keep_default_na=False)
    cells = cells[cells["experiment"].eq("nonconvex")]
    judged = cells[cells["kind"].eq("cell") & cells["counts"] & cells["verdict"].isin(["exact", "match", "differs"])]
    kept = judged["survives"].eq("yes").sum()
    assert f"Of the {len(judged)} values that can be judged, {kept} also come out of runs that keep their ε" in page
    matching = (judged["verdict"].eq("match")).sum()
    assert f"Of the 82, {matching} could have come out otherwise" in page
    by = judged.loc[judged["survives"].eq("explained"), "by"].str.count(r"\+") + 1
    one, two, three, more = (by.eq(1).sum(), by.eq(2).sum(), by.eq(3).sum(), by.gt(3).sum())
    assert f"Switches explain {len(by)} values: one switch {one} of them, two switches {two} " in page
    assert f"three {three}, and more than three {more}." in page
    wrong = cells[cells["kind"].eq("placebo") & cells["counts"]]
    passed = wrong["verdict"].isin(["exact", "match"])
    honest = wrong["survives"].eq("yes") & ~passed
    assert f"come out exact or match in {passed.sum()} of {len(wrong)} cases. In {honest.sum()} more" in page


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
