"""The reproduced values of the papers, counted once more: published numbers and rows, by pandas and SciPy alone.

No line of `study`, `reporting` or `experiments` is used, so a mistake of the judge is not made here again. The rule is
that of docs/guides/verdicts.md: runs agree with what is printed, and runs with half and with twice the noise do not.
"""

import json
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpbench.files import read_toml

ROOT = Path(__file__).resolve().parent.parent
LEVEL, ENOUGH, WRONG = 0.05, 20, (0.5, 2.0)


def rows_of(paper):
    """The untimed rows, their settings as columns `set.NAME`; planted: the factor on the noise, 1 where it is right."""
    columns = ["key", "problem", "algorithm", "epsilon", "seed", "settings", "planted", "timed", "T", "objective"]
    columns += ["excess", "ending", "hessian_evaluations", "accounting", "sweep", "support_correct", "support_wrong"]
    rows = pd.read_parquet(ROOT / "results" / "full" / paper / "runs", columns=[*columns, "notes"])
    rows = rows[rows["timed"].eq(0)].drop_duplicates("key")
    texts = rows["settings"].drop_duplicates()
    settings = pd.DataFrame([json.loads(text) for text in texts], index=texts).add_prefix("set.")
    rows = rows.join(settings, on="settings").sort_values("seed")
    return rows.assign(planted=rows["planted"].astype(float).fillna(1.0))


def printed_of(paper):
    return read_toml(ROOT / "dpbench" / "experiments" / paper / "published.toml")


def half_unit(text):
    return float(Decimal(1).scaleb(Decimal(text).as_tuple().exponent)) / 2


def mean_chance(ours, text, k):
    """Two-sided, of two samples of one law, N of ours and k printed; the nearest end of the rounding.

    By Student's t, and from 100 of ours on by a bootstrap that is apart by as much more as two samples are.
    """
    value, half = float(text), half_unit(text)
    finite = ours[np.isfinite(ours)]
    kept = finite[finite <= k * (value + half)] if k > 1 and finite.min() >= 0 else finite  # none is above k means
    kept = kept if len(kept) > 1 else finite
    gap = abs(value - kept.mean()) - half
    if len(ours) >= 100 and gap > 0:
        law = np.random.default_rng(7).choice(kept, (20_000, k)).mean(axis=1) - kept.mean()
        law *= math.sqrt((1 + k / len(kept)) * len(kept) / (len(kept) - 1))
        return (len(kept) / len(ours)) ** k * min(1.0, 2 * (law * np.sign(value - kept.mean()) >= gap).mean())
    error = kept.std(ddof=1) * math.sqrt(1 / k + 1 / len(kept))
    chance = 1.0 if gap <= 0 else 0.0 if error == 0 else 2 * stats.t.sf(gap / error, len(kept) - 1)
    return (len(kept) / len(ours)) ** k * chance


def deviation_chance(ours, text, k):
    """Two-sided, by Fisher's F; the nearest end of the rounding."""
    sd, value, half = ours.std(ddof=1), float(text), half_unit(text)
    if abs(sd - value) <= half:
        return 1.0
    ratio = ((value - math.copysign(half, value - sd)) / sd) ** 2 if sd else math.inf
    return min(1.0, 2 * min(stats.f.sf(ratio, k - 1, len(ours) - 1), stats.f.cdf(ratio, k - 1, len(ours) - 1)))


def deviation_chance_of_counts(ours, text, k):
    """The same by drawing k of ours, apart by as much more as N of them vary less than runs."""
    rng, N = np.random.default_rng(7), len(ours)
    law = rng.choice(ours, (40_000, k)).std(axis=1, ddof=1)
    law = law.mean() + math.sqrt((1 + k / N) * N / (N - 1)) * (law - law.mean())
    near = float(text) - np.clip(float(text) - ours.std(ddof=1), -half_unit(text), half_unit(text))
    return min(1.0, 2 * min((law >= near - 1e-12).mean(), (law <= near + 1e-12).mean()))


def chance_of_others(ours, mean, deviation, k):
    """Of a mean and deviation of k counts where all of ours are equal: the others are all among those k."""
    gap = max(abs(float(mean) - ours[0]) - half_unit(mean), 0.0)
    if not gap and float(deviation) <= half_unit(deviation):
        return 1.0
    spread = float(deviation) + half_unit(deviation)
    others = next(
        m for m in range(1 if gap else 2, k + 1) if k * gap**2 * (k / m - 1) <= (k - 1) * spread**2 * (1 + 1e-9)
    )
    return math.comb(k, others) / math.comb(len(ours) + k, others)


def stands(chances, i, chance):
    """Whether this chance in the i-th place is among those that Benjamini and Hochberg reject."""
    p = np.array([*chances[:i], chance, *chances[i + 1 :]])
    ranked = np.sort(p)
    below = np.nonzero(ranked <= LEVEL * np.arange(1, len(p) + 1) / len(p))[0]
    return len(below) > 0 and chance <= ranked[below[-1]]


def classes(cells):
    """Class → how many, of cells {right, 0.5, 2.0: True (exact), a chance or None (no runs)}; left out: {word}."""
    judged = [one for one in cells if "word" not in one]
    tested = [one for one in judged if not isinstance(one["right"], bool)]
    chances = [one["right"] for one in tested]
    words = [one["word"] for one in cells if "word" in one]
    for one in judged:
        if one["right"] is True:
            fits = [None if one[wrong] is None else one[wrong] is True for wrong in WRONG]
        else:
            i = next(at for at, other in enumerate(tested) if other is one)
            if stands(chances, i, one["right"]):
                words.append("differs")
                continue
            fits = [None if one[wrong] is None else not stands(chances, i, one[wrong]) for wrong in WRONG]
        good = "exact" if one["right"] is True else "match"
        words.append("blind to noise" if True in fits else "noise not planted" if None in fits else good)
    return pd.Series(words).value_counts().to_dict()


def accelerated():
    rows, printed = rows_of("accelerated"), printed_of("accelerated")
    rows = rows[rows["problem"].eq("accelerated-2020")]
    published = rows[
        rows["set.noise_scale"].eq("as-published-code") & rows["set.weights"].isin([np.nan, "as-published-code"])
    ]
    by = {at: part["excess"].to_numpy(float) for at, part in
          published.groupby(["algorithm", "set.m", "set.c", "set.T", "planted"])}  # fmt: skip
    for curve in printed["curves"]:
        for T, end in zip((100, 200, 500, 1000), curve["ends"], strict=True):
            at = curve["algorithm"], curve["m"], curve["c"], T
            yield {
                name: mean_chance(by[(*at, factor)], end, printed["seeds"])
                for name, factor in {"right": 1.0, 0.5: 0.5, 2.0: 2.0}.items()
            }
    for _ in range(2 * len(printed["chosen_T"]["c"])):  # T' follows from the bound, whatever the noise
        yield {"right": True, 0.5: True, 2.0: True}


def second_order():
    rows, printed = rows_of("second_order"), printed_of("second_order")
    of = ["problem", "algorithm", "epsilon", "settings"]
    rows = rows.merge(rows.loc[rows["planted"].ne(1), of].drop_duplicates())
    for name, end in printed["fig1"]["ends"].items():
        own = rows[rows["algorithm"].eq(name)].groupby("planted")["excess"]
        by = {
            factor: mean_chance(part.to_numpy(float), end, printed["table2"]["runs"]) for factor, part in own if factor
        }
        yield {"right": by[1.0], 0.5: by[0.5], 2.0: by[2.0]}


PLAIN = {"rows": "clipped", "overflow": "stable", "stream": "keyed", "loss_read": "after", "stop": "released",
         "batch_noise": "m", "batch_draw": "without replacement", "search": "none", "hessian_root": "once"}  # fmt: skip


def scripts(loss_a, method):
    """What the authors' scripts do otherwise than PLAIN."""
    batches = method.endswith("-b")
    own = {"rows": "as scaled"} | ({"overflow": "lost", "stream": "published"} if loss_a else {})
    own |= {"batch_noise": "n", "batch_draw": "with replacement"} if batches else {"loss_read": "before"}
    own |= {"search": "rho <= 1"} if method in ("opt-b", "2opt-b") else {}
    own |= {"hessian_root": "twice"} if method.startswith("dp-tr") and not loss_a else {}
    own |= (
        {"stop": "true loss"} if method in (("opt", "opt-ls"), ("opt", "opt-ls", "2opt", "2opt-ls"))[not loss_a] else {}
    )
    return own


def fits_digits(text, value):
    """Whether a computed value rounds to the printed one, by either rule of rounding."""
    exact, step = Decimal(f"{value:.12g}"), Decimal(1).scaleb(Decimal(text).as_tuple().exponent)
    return {exact.quantize(step, rounding=rule) for rule in ("ROUND_HALF_EVEN", "ROUND_HALF_UP")} == {Decimal(text)}


def nonconvex_cell(runs, value, counts, k, loss_a):
    """True where every digit comes out of the k runs of the published stream; else the chance of all numbers."""
    runs = runs[runs["ending"].ne("crashed")]
    loss, ended = runs["objective"].to_numpy(float), runs["ending"].eq("terminated").to_numpy()
    whole = len(value) == 4
    if loss_a:
        if len(runs) != k:
            return False
        mean, sd = (f"{one:.3f}" for one in value[:2]) if value else ("", "")
        return not value or bool(
            fits_digits(mean, loss.mean()) and fits_digits(sd, loss.std(ddof=1)) and ended.all() == whole
        )
    if len(runs) < ENOUGH:
        return None
    chances = [
        mean_chance(loss, f"{value[0]:.3f}", k), deviation_chance(loss, f"{value[1]:.3f}", k),
        ended.mean() ** k if whole else 1 - ended.mean() ** k,
    ]  # fmt: skip
    hessians = runs["hessian_evaluations"].to_numpy(float)
    mean, sd = f"{counts[0]:.1f}", f"{counts[1]:.3f}"
    if np.ptp(hessians):
        chances += [mean_chance(hessians, mean, k), deviation_chance_of_counts(hessians, sd, k)]
    else:
        chances += [chance_of_others(hessians, mean, sd, k)] * 2
    return min(1.0, min(chances) * len(chances))


def nonconvex():
    rows, printed = rows_of("nonconvex"), printed_of("nonconvex")
    rows = rows[rows["set.m"].isin([np.nan, 499, 4951])].assign(  # n // 100
        factor=rows["planted"] * rows["set.noise"].fillna(1.0)
    )
    starts = {"covertype12-sigmoid": [0.539, 0.022], "ijcnn-sigmoid": [0.501, 0.008]}
    seen = set()
    for number in (1, 2, 3, 4, 5, 7, 9, 11):
        table = printed[f"table{number}"]
        loss_a = "logistic" in table["problem"]
        here = rows[rows["problem"].eq(f"{table['problem']}-unclipped") & rows["set.alpha"].eq(table["alpha"])]
        for method in [name for name, value in table.items() if isinstance(value, list)]:
            own = here[here["algorithm"].eq(method)]
            for name, value in (PLAIN | scripts(loss_a, method)).items():
                own = own[own[f"set.{name}"].eq(value) | (own[f"set.{name}"].isna() & (value == PLAIN[name]))]
            for i, (epsilon, value) in enumerate(zip(printed["epsilon"], table[method], strict=True)):
                k = table.get("left", {}).get(method, [printed["runs"]] * 3)[i]
                counts = () if loss_a else printed[f"table{number + 1}"][method][i]
                runs = dict([*own[own["epsilon"].eq(epsilon)].groupby("factor")])
                same = tuple(runs[1.0]["objective"])
                if (method in ("opt-b", "2opt-b") and epsilon != 0.2) or (same in seen and not np.isnan(same).all()):
                    yield {"word": "copy"}
                elif not loss_a and value[:2] == starts[table["problem"]]:
                    yield {"word": "trivial"}
                else:
                    yield {
                        name: nonconvex_cell(runs[factor], value, counts, k, loss_a) if factor in runs else None
                        for name, factor in {"right": 1.0, 0.5: 0.5, 2.0: 2.0}.items()
                    }
                seen.add(same)


def of_table4(rows):
    """The runs of greedy_coordinate at the hyperparameters that its Table 4 prints."""
    chosen = printed_of("greedy_coordinate")["chosen"]
    table = {(problem, name, *(f"{one:.3g}" for one in of[name])) for problem, of in chosen.items() for name in of}
    numbers = (rows[f"set.{name}"].map("{:.3g}".format) for name in ("passes", "clip", "step"))
    at = zip(rows["problem"], rows["algorithm"].str.removesuffix("-published"), *numbers, strict=True)
    return rows[[one in table for one in at]]


def rounded_chance(ours, printed, k):
    """Of a mean of k that is rounded to a whole number: all numbers no likelier, by the kinder rule of rounding."""
    means = np.random.default_rng(7).choice(ours, (40_000, k)).mean(axis=1)
    chances = []
    for rounded in (np.rint(means), np.floor(means + 0.5)):
        law = pd.Series(rounded).value_counts(normalize=True)
        chances.append(law[law <= law.get(float(printed), 0.0)].sum())
    return max(chances)


def greedy_coordinate():
    rows, printed = rows_of("greedy_coordinate"), printed_of("greedy_coordinate")
    optima = rows[rows["algorithm"].eq("probe-optimum")].set_index("problem")["objective"]
    rows = of_table4(rows[rows["epsilon"].eq(1) & rows["sweep"].isna() & rows["accounting"].ne("tight")])
    k, ours = printed["seeds"], {"dp-gcd": "dp-gcd-published", "dp-cd": "dp-cd", "dp-sgd-1": "dp-sgd-1"}
    for problem in ("madelon", "california", "madelon-l1"):  # those that are certain and have printed numbers
        for method, name in ours.items():
            if method in printed["at_the_start"].get(problem, ()):
                continue
            own = rows[rows["problem"].eq(problem) & rows["algorithm"].eq(name)]
            own = own[own["accounting"].ne("rdp") | own["algorithm"].eq("dp-cd")]
            counts = printed["support"].get(problem, {}).get(method)
            gap = f"{counts[2]:#.2g}" if counts else f"{printed['ends'][problem][method]:#.3g}"
            cell = {}
            for factor, part in own[own["planted"].ne(0)].groupby("planted"):
                relative = part["excess"].to_numpy(float) / optima[problem]
                # The printed one is the least of a grid: where it is better than ours it rejects nothing.
                better = float(gap) + half_unit(gap) < relative.mean()
                chances = [1.0 if better else mean_chance(relative, gap, k)]
                for column, count in zip(("support_correct", "support_wrong"), (counts or ())[:2], strict=False):
                    chances.append(rounded_chance(part[column].to_numpy(float), count, k))
                cell["right" if factor == 1 else factor] = min(1.0, min(chances) * len(chances))
            yield cell


@pytest.mark.thorough_for("nonconvex")
@pytest.mark.parametrize(
    "paper", [accelerated, second_order, nonconvex, greedy_coordinate], ids=lambda paper: paper.__name__
)
def test_the_values_of_a_paper_are_counted_alike_by_a_second_rule(paper):
    cells = pd.read_csv(ROOT / "figures" / "full" / "reproduction.csv", keep_default_na=False)
    cells = cells[cells["experiment"].eq(paper.__name__) & cells["counts"]]
    counted = {name: n for name, n in classes([*paper()]).items() if name not in ("copy", "trivial")}
    assert counted == cells["verdict"].value_counts().to_dict()
