"""The verdicts on nonconvex and zeroth_order, counted once more from rows by pandas, NumPy and SciPy alone.

What a claim asks stands in the words.md of its paper; no line of `study`, `reporting` or `experiments` is used.
"""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.test_claims_from_rows import ratio_interval
from tests.test_values_from_rows import PLAIN, ROOT, rows_of, scripts

WORDS = {True: "held", False: "not held", None: "open"}


def t_interval(values):
    return stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))


def share_interval(some, of):
    return tuple(stats.binomtest(int(some), int(of)).proportion_ci(method="exact"))


def side(interval, bar):
    """Whether an interval is above a bar; None where the bar is in it."""
    return True if interval[0] > bar else False if interval[1] < bar else None


def not_above(interval, bar):
    above = side(interval, bar)
    return None if above is None else not above


def every(parts):
    parts = [*parts]
    return False if False in parts else None if None in parts else True


# nonconvex: a cell is what the seeds of a method did at one ε and target

TABLES = {1: ("covertype12-logistic", 0.06), 2: ("covertype12-logistic", 0.03), 3: ("ijcnn-logistic", 0.06),
          4: ("ijcnn-logistic", 0.03), 5: ("covertype12-sigmoid", 0.04), 7: ("covertype12-sigmoid", 0.02),
          9: ("ijcnn-sigmoid", 0.04), 11: ("ijcnn-sigmoid", 0.02)}  # fmt: skip
SETTINGS = {"at a proven ε": False, "as published": True}


def nonconvex_cells(rows, published):
    """(table, method, ε) → its runs, private by proof or all as the authors' scripts ran them."""
    rows = rows[rows["planted"].eq(1) & rows["set.noise"].fillna(1).eq(1) & rows["set.m"].isin([np.nan, 499, 4951])]
    cells = {}
    for table, (problem, alpha) in TABLES.items():
        here = rows[rows["problem"].eq(problem + "-unclipped" * published) & rows["set.alpha"].eq(alpha)]
        for (method, epsilon), own in here.groupby(["algorithm", "epsilon"]):
            for name, value in (PLAIN | (scripts("logistic" in problem, method) if published else {})).items():
                own = own[own[f"set.{name}"].fillna(PLAIN[name]).eq(value)]
            if len(own):
                cells[table, method, epsilon] = own.assign(good=own["ending"].eq("terminated"))
    return cells


def rows_read_less(full, batch, rng):
    """Draws of 1 where minibatches alone terminate or read fewer rows, -1 where full ones do; the cell itself first."""
    draws = []
    for own, part in ((full, 1), (batch, 100)):
        at = np.vstack([np.arange(len(own)), rng.integers(len(own), size=(400, len(own)))])
        read = (own["gradient_evaluations"] + own["hessian_evaluations"]).to_numpy(float) / part
        draws.append((own["good"].to_numpy()[at].all(axis=1), read[at].mean(axis=1)))
    (good, read), (batch_good, batch_read) = draws
    wins = batch_good & (~good | (batch_read < read))
    return np.where(good | batch_good, np.where(wins, 1, -1), 0)


def times(cells, table, fast, slow, epsilon, columns):
    """Whether `slow` needs 3 times as many releases as `fast`, of each column; who does not terminate has lost."""
    one, other = cells[table, fast, epsilon], cells[table, slow, epsilon]
    if not (one["good"].all() and other["good"].all()):
        return [bool(one["good"].all())]
    return [side(ratio_interval(other[column].astype(float), one[column].astype(float)), 3) for column in columns]


def claims_of_nonconvex(rows):
    rng = np.random.default_rng(5)
    for setting, published in SETTINGS.items():
        cells = nonconvex_cells(rows, published)
        for data, tables in {"": (1, 2, 5, 7), "_ijcnn": (3, 4, 9, 11)}.items():
            pairs = [((table, name, epsilon), (table, f"{name}-b", epsilon))
                     for table in tables for name in ("opt", "2opt") for epsilon in (0.2, 0.6, 1.0)]  # fmt: skip
            there = [(cells[one], cells[two]) for one, two in pairs if one in cells and two in cells]
            gap = len(pairs) - len(there)
            lead = np.sum([rows_read_less(*pair, rng) for pair in there], axis=0)
            low, high = np.quantile(lead[1:], [0.025, 0.975])
            yield f"minibatch{data}", setting, True if low > gap else False if high < -gap else None

            tested = [cells[at] for at in cells if at[0] in tables and at[0] not in (5, 9)]
            tested = pd.concat(tested)
            opt, tr = (tested[tested["algorithm"].eq(name)] for name in ("opt", "dp-tr"))
            one_each = tr["hessian_evaluations"].eq(tr["gradient_evaluations"]).all()
            yield f"one_hessian{data}", setting, bool(opt[opt["good"]]["hessian_evaluations"].eq(1).all() and one_each)

            asked = (times(cells, table, "2opt-ls", "dp-tr", epsilon, ["gradient_evaluations"])
                     for table in tables[:2] for epsilon in (0.2, 0.6, 1.0))  # fmt: skip
            yield f"consistent{data}", setting, every(itertools.chain(*asked))

        # Seconds could only make a claim fail that fails already.
        asked = (times(cells, 1, "opt", "dp-tr", epsilon, ["gradient_evaluations", "hessian_evaluations"])
                 for epsilon in (0.6, 1.0))  # fmt: skip
        yield "opt_faster_than_tr", setting, every(itertools.chain(*asked))

        gaps = []
        for epsilon in (0.6, 1.0):
            opt, tr = (cells[1, name, epsilon].set_index("seed")["objective"] for name in ("opt", "dp-tr"))
            gaps.append(side(t_interval((tr - opt).dropna()), 0))
        yield "opt_lower_than_tr", setting, every(gaps)

        turned, ijcnn = [(1, 0.2), (2, 0.2), (5, 0.2)], [(9, 0.6), (9, 1.0), (11, 1.0)]
        both_fail = [(9, 0.2), (11, 0.2), (11, 0.6)]
        for name, asked in (("two_phases", turned), ("two_phases_ijcnn", ijcnn + both_fail)):
            yield (
                name,
                setting,
                not any(
                    cells[table, "opt-ls", epsilon]["good"].all()
                    or cells[table, "2opt-ls", epsilon]["good"].all() == ((table, epsilon) in both_fail)
                    for table, epsilon in asked
                ),
            )


# zeroth_order

LOG = 2 * math.log(1e6)  # the rows' δ


def slopes(rows, x, by):
    """The t interval of the exponents of x, one of each group."""
    fits = [stats.linregress(np.log(part[x]), np.log(part["measured"])).slope
            for _, part in rows.groupby(by) if part[x].nunique() > 1]  # fmt: skip
    return t_interval(fits)


def lead(one, other):
    """How far the first ends lower in F, in standard errors."""
    one, other = one["objective"].astype(float), other["objective"].astype(float)
    return (other.mean() - one.mean()) / math.hypot(one.sem(), other.sem())


def not_stationary(rows):
    return share_interval(rows["measured"].ge(1e-6).sum(), rows["measured"].notna().sum())


def estimators(rows):
    rows = rows[rows["algorithm"].eq("probe-estimator")]
    rows = rows.assign(d=rows["problem"].str.rpartition("-")[2].astype(int))
    right, variance = rows["set.directions"].isna(), rows["set.quantity"].eq("variance")
    for name, x, power in (("grad", "set.b", -1), ("diff", "set.distance", 2)):
        own = rows[right & variance & rows["set.estimator"].eq(name)]
        fit = slopes(own, x, ["problem", "seed"])
        near = every([side(fit, power - 0.1), not_above(fit, power + 0.1)])
        yield f"{name}_variance", "both", every([bool((own["measured"] <= own["bound"]).all()), near])
        own = own.assign(at=own["set.distance"].fillna(0))
        yield f"{name}_variance_in_d", "both", not_above(slopes(own, "d", ["set.b", "at"]), 0.25)
    bias = rows[rows["set.quantity"].eq("bias")]
    yield "unbiased", "both", bool((bias["measured"] / bias["measured_error"]).max() < 2.5)


def noise(rows):
    rows = rows[rows["algorithm"].eq("probe-noise")]
    tree = rows[rows["set.mechanism"].eq("tree")]
    t = tree["set.t"].astype(int)
    exact = tree["bound"] / t.map(int.bit_length) * t.map(int.bit_count)
    apart = ((tree["measured"] - exact) / tree["measured_error"]).abs()
    below = tree["measured"] <= tree["bound"] + 4 * tree["measured_error"]
    yield "tree_noise", "both", bool(apart.max() < 4 and below.all())
    mean, error = (rows.pivot_table(index=["set.T", "set.t"], columns="set.mechanism", values=name).loc[64:]
                   for name in ("measured", "measured_error"))  # fmt: skip
    moved = mean.to_numpy() + error.to_numpy() * np.random.default_rng(3).standard_normal((400, *mean.shape))
    ratios = moved[..., [*mean].index("naive")] / moved[..., [*mean].index("tree")]
    factors = pd.DataFrame(ratios.T, index=mean.index).groupby("set.T").min()
    fit = np.polyfit(np.log(factors.index), np.log(factors), 1)[0]
    least = (mean["naive"] / mean["tree"]).min()
    yield "tree_below_naive", "both", every([bool(least > 1), side(np.quantile(fit, [0.025, 0.975]), 1.5)])


def ends(rows):
    rows = rows[rows["algorithm"].str.startswith("o2nc")]
    name = rows["algorithm"].where(rows["set.oracle"].ne("gradient"), rows["algorithm"] + "-gradient")
    rows = rows.assign(algorithm=name)
    asked = rows["problem"].ne("phase-5") & name.ne("o2nc")
    yield "guarantee", "both", bool((rows["epsilon_planned"] <= rows["epsilon"])[asked].all())

    last = rows[rows["problem"].eq("phase-5-long") & rows["set.M"].eq(rows["set.M"].max()) & rows["rho"].eq(1)]
    tree, naive = (last[last["algorithm"].eq(name)] for name in ("o2nc-tree", "o2nc-naive"))
    (low, high), (other_low, other_high), gap = not_stationary(tree), not_stationary(naive), lead(tree, naive)
    behind, ahead = low > other_high or gap < -1.96, high < other_low and gap > 1.96
    yield "tree_reaches_further", "both", False if behind else True if ahead else None

    rows = rows[rows["problem"].eq("phase-5")]
    tree, naive, gradient = (
        dict([*rows[rows["algorithm"].eq(f"o2nc-{end}")].groupby("rho")]) for end in ("tree", "naive", "naive-gradient")
    )
    gaps = {rho: lead(tree[rho], naive[rho]) for rho in tree}
    tree_first, naive_first = ([rho for rho, gap in gaps.items() if sign * gap > 1.96] for sign in (1, -1))
    yield "crossover", "both", max(tree_first) < min(naive_first) if tree_first and naive_first else None
    gaps = [lead(gradient[rho], tree[rho]) for rho in tree if rho <= 10]
    yield "first_order", "both", True if min(gaps) > 1.96 else False if min(gaps) < -1.96 else None

    without = rows[rows["algorithm"].eq("o2nc") & rows["set.oracle"].isin([np.nan, "variance-reduced"])]
    costly = [rho for rho, own in tree.items() if not_stationary(own)[0] > not_stationary(without)[1]]
    free = [rho for rho in tree if rho > max(costly, default=math.inf)]
    cheap = bool(free) and bool(min(free) <= 10 * math.sqrt(5) * without["measured"].mean())
    yield "privacy_for_free", "both", cheap if costly else None


def kinks(rows):
    rows = rows[rows["algorithm"].eq("probe-kinks")]
    notes = pd.DataFrame([json.loads(text) for text in rows["notes"]], index=rows.index)
    rows = rows.assign(**{name: notes[name] for name in ("error", "noise", "off")})
    wrong = rows["set.wrong"].replace("", np.nan).fillna(rows["planted"].map({0.5: "half", 2.0: "twice"})).fillna("")
    named = rows.assign(wrong=wrong)
    named = named[named["set.T"].isna() & named["set.method"].eq("o2nc-tree") & named["planted"].isin([0.5, 1, 2])]
    asked = {rho: dict([*named[named["rho"].eq(rho)].groupby("wrong")]) for rho in (0.5, 5.0)}

    def holds(own):
        T, d, rho, M, radius, gap = own[["T", "set.d", "rho", "set.M", "set.radius", "set.gap"]].astype(float).iloc[0]
        levels = int(T).bit_length()
        node = levels * (4 * d / (T * rho)) ** 2 * d  # a row is in a node of each level
        variance, most = 80 * d / T, levels * node
        bound = 2 * (gap + 2 * radius) * T / (radius * M)
        bound += math.sqrt(3 * (variance + 1 + most) / T) + 2 * math.sqrt(variance + most)
        off, ratio = np.stack(own["off"]), own["noise"] / node / np.mean([t.bit_count() for t in range(1, int(T) + 1)])
        return {
            "kinks_bound": own["measured"].mean() <= bound, "kinks_variance": own["error"].mean() <= variance,
            "kinks_unbiased": abs(off.mean(axis=0) / stats.sem(off)).max() < 4,
            "kinks_noise": abs(ratio.mean() - 1) < 4 * ratio.sem(),
        }  # fmt: skip

    found = {name: holds(own) for name, own in asked[0.5].items()}
    for claim, held in found[""].items():
        assert any(one[claim] != held for one in found.values()), f"no wrong run could be told by {claim}"
        yield claim, "both", bool(held)
    for rho, runs in asked.items():
        moved = ("no DIFF", "DIFF negated", "radius tripled", "ascent", "half", "twice")
        apart = [abs(runs[name]["measured"].mean() - runs[""]["measured"].mean())
                 / math.hypot(runs[name]["measured"].sem(), runs[""]["measured"].sem()) for name in moved]  # fmt: skip
        yield "kinks_power", f"ρ = {rho:g}", bool(min(apart) >= 5)

    rates = rows[rows["planted"].eq(1) & rows["set.T"].isna() & rows["set.wrong"].isin([np.nan, ""])]
    plain = rates[rates["set.method"].eq("o2nc")]
    tree = rates[rates["set.method"].eq("o2nc-tree") & rates["rho"].isin([0.5, 1, 2])]
    for name, x, own, most in (
        ("M", "set.M", plain[plain["set.M"].ne(50_000)], -1 / 3),
        ("d", "set.d", plain[plain["set.M"].eq(50_000)], 1 / 3),
        ("ρ", "inverse", tree.assign(inverse=1 / tree["rho"]), 1.0),
    ):
        yield "kink_rates", name, not_above(slopes(own, x, ["seed"]), most + 0.1)


def claims_of_zeroth_order(rows):
    for part in (estimators, noise, ends, kinks):
        yield from part(rows)


def read(paper):
    more = ["key", "gradient_evaluations"]
    if paper == "zeroth_order":
        more += ["measured", "measured_error", "bound", "epsilon_planned"]
    rows = rows_of(paper).merge(pd.read_parquet(ROOT / "results" / "full" / paper / "runs", columns=more), on="key")
    return rows.assign(rho=(np.sqrt(LOG + 2 * rows["epsilon"]) - math.sqrt(LOG)).round(3))


@pytest.mark.thorough_for("claims_of_nonconvex")  # seconds, and of one kind
@pytest.mark.parametrize("judge", [claims_of_nonconvex, claims_of_zeroth_order])
def test_claims_come_out_alike_by_a_second_rule(judge):
    paper = judge.__name__.removeprefix("claims_of_")
    card = pd.read_csv(ROOT / "figures" / "full" / paper / "scorecard.csv", keep_default_na=False)
    at = card["setting"].where(card["case"].eq("") | card["setting"].ne("both"), card["case"])
    again = {(claim, setting): WORDS[held] for claim, setting, held in judge(read(paper))}
    assert again == dict(zip(zip(card["claim"], at, strict=True), card["verdict"], strict=True))
