"""How much a transcript speaks for one data set against its neighbour.

`likelihood_ratio` is the log-likelihood ratio of all releases: no test is better if the noise is what it should be,
and whatever the noise is, what a test achieves is a fact. `of_label` looks at the releases of one label alone: each is
projected on the line between the two values it may hide, x = <o - (v + v')/2, v - v'>/(‖v - v'‖ std), a location
family with a shift of at most 1/z, z the noise multiplier of its ledger entry; the score is the log-likelihood ratio at
that largest shift. It is monotone in x, so its tests are no better than those on independent releases of multiplier z
(by coupling), which is what the ledger claims for the label.

Of vectors of which nothing is known scores are learnt, on every fourth run, and judged on others (see `decide`):
however bad the fit, the bound holds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy

from dpbench.auditing.transcript import RecordedRelease, Recorder, column, rate
from dpbench.privacy import tukey
from dpbench.privacy.ledger import Allocated, DrawAfterTest, Laplace, Poisson, Sampled

NORMAL = ("normal", "symmetric", "isometric")
LACKED = 1e300  # a loss beyond it is of a point that the neighbour never draws
POINTS = 161  # of the quadratures: a score need not be exact


def likelihood_ratio(run: Recorder, first: Recorder, second: Recorder, neither: Recorder) -> np.ndarray:
    """(k,) ln p(transcript | first) - ln p(transcript | second); the arguments are replays of `run`."""
    total = np.zeros(run.k)
    for members, one, values in releases(run, first, second, neither):
        if one.kind == "threshold":
            continue
        score = SCORES.get(one.kind.partition(" ")[0], _location)(one, values)
        np.add.at(total, members, score)
    for _, members, (fired, queries, others) in sparse_vectors(run, first, second):
        np.add.at(total, members, log_answers(queries, fired) - log_answers(others, fired))
    return total


def of_label(label: str, run: Recorder, first: Recorder, second: Recorder, neither: Recorder) -> np.ndarray:
    """(k,) scores of the releases of one label: Gaussian ones, or Laplace ones of one number each."""
    total = np.zeros(run.k)
    for members, one, values in releases(run, first, second, neither):
        if one.label == label and (one.kind in NORMAL or (one.kind == "laplace" and one.value.ndim == 1)):
            np.add.at(total, members, _location(*_on_the_line(one, values)))
    return total


def releases(
    run: Recorder, *replays: Recorder, noise: bool = False
) -> Iterator[tuple[np.ndarray, RecordedRelease, list[np.ndarray]]]:
    """(members, release, values on each data set): equal releases of replicates that advance alone put together.

    noise: those that differ in what the ledger has of them as well, as their noise is one over its scale.
    """
    groups = defaultdict(list)
    for key, tape in run.tape.items():
        seen: Counter[Any] = Counter()
        for i, one in enumerate(tape):
            place = key is None, one.kind, one.label, None if noise else one.event, np.shape(one.value)[1:]
            seen[place] += 1
            groups[place, seen[place]].append((key, one, [replay.tape[key][i].value for replay in replays]))
    for ((together, kind, label, event, _), _), releases_of in groups.items():
        keys, ones, values = zip(*releases_of, strict=True)
        value, output = (np.concatenate([getattr(one, name) for one in ones]) for name in ("value", "output"))
        scale = np.concatenate([np.ravel(one.scale) for one in ones])
        members = np.arange(run.k) if together else np.array(keys)
        one = RecordedRelease(kind, label, event, value, output, scale)
        yield members, one, [np.concatenate(each) for each in zip(*values, strict=True)]


def flat(one: RecordedRelease, array: np.ndarray) -> np.ndarray:
    """(k, m): what was drawn independently of it."""
    if one.kind in ("symmetric", "isometric"):
        rows, columns = np.triu_indices(array.shape[-1])
        return array[:, rows, columns] * np.where((rows != columns) & (one.kind == "isometric"), np.sqrt(2), 1.0)
    return array.reshape(len(array), -1)


def _location(one: RecordedRelease, values: list[np.ndarray]) -> np.ndarray:
    """Noise around one of two values, or around `neither` with the probability that the row is not in the sample."""
    output, scale = flat(one, one.output), column(one.scale)
    first, second, neither = (log_density(one, output, flat(one, value), scale) for value in values)
    chance = rate(one.event)
    if chance == 1:
        return first - second
    out, in_ = np.log1p(-chance) + neither, np.log(chance)
    return np.logaddexp(out, in_ + first) - np.logaddexp(out, in_ + second)


def log_density(one: RecordedRelease, output: np.ndarray, value: np.ndarray, scale: Any) -> np.ndarray:
    """(k,) but for a constant."""
    x = (output - value) / scale
    if one.kind == "radial":
        return -np.linalg.norm(x, axis=1)
    return -np.abs(x).sum(axis=1) if one.kind == "laplace" else -0.5 * (x * x).sum(axis=1)


def _on_the_line(one: RecordedRelease, values: list[np.ndarray]) -> tuple[RecordedRelease, list[np.ndarray]]:
    """The release as one number between two values as far apart as the ledger has them."""
    output, scale = flat(one, one.output), column(one.scale)
    first, second, neither = (flat(one, value) for value in values)
    line = first - second
    length = np.linalg.norm(line, axis=1, keepdims=True)
    unit = np.where(length > 0, line / np.where(length > 0, length, 1), np.eye(1, line.shape[1]))
    event, missing = base(one.event), rate(one.event) < 1 and isinstance(one.event, Poisson | Allocated)
    centre = neither if missing else (first + second) / 2
    x = ((output - centre) * unit).sum(axis=1, keepdims=True) / scale
    half, nothing = np.full_like(x, 0.5 / event.noise_multiplier), np.zeros_like(x)
    kind = "laplace" if isinstance(event, Laplace) else "normal"
    one = RecordedRelease(kind, one.label, one.event, nothing, x, 1.0)
    return one, [2 * half, nothing, nothing] if missing else [half, -half, nothing]


def base(event: Any) -> Any:
    """The release itself, of one on a sample."""
    return event.release if isinstance(event, Sampled) else event


def _argmax(one: RecordedRelease, values: list[np.ndarray]) -> np.ndarray:
    first, second, _ = (log_chance(one, value / column(one.scale)) for value in values)
    return first - second


def log_chance(one: RecordedRelease, scores: np.ndarray) -> np.ndarray:
    """ln of the probability that unit noise, Laplace's or Gumbel's, makes the index that was released the largest."""
    if one.kind.endswith("Gumbel noise"):
        chances = scipy.special.log_softmax(scores, axis=1)
        return np.take_along_axis(chances, one.output[:, None].astype(int), axis=1)[:, 0]
    cases, place = np.unique(np.column_stack([scores, one.output]), axis=0, return_inverse=True)
    scores, chosen = cases[:, :-1], cases[:, -1].astype(int)
    low, high = scores.min() - 15, scores.max() + 15
    folded = one.kind == "argmax of magnitudes"
    x = np.linspace(0 if folded else low, max(high, -low) if folded else high, POINTS)[:, None, None]
    below, density = _laplace_cdf(x - scores), 0.5 * np.exp(-np.abs(x - scores))
    if folded:
        below, density = below - _laplace_cdf(-x - scores), density + 0.5 * np.exp(-np.abs(x + scores))
    at = np.arange(len(scores)), chosen
    mine = density[:, at[0], at[1]]
    others = below.copy()
    others[:, at[0], at[1]] = 1
    return np.log(scipy.integrate.trapezoid(mine * others.prod(axis=2), x[:, 0, 0], axis=0))[place.ravel()]


def depth_loss(one: RecordedRelease, values: list[np.ndarray]) -> np.ndarray:
    """Log-likelihood ratio of points drawn by depth among two sets; 0 where none was drawn."""
    drawn, event = (one.output != 0).any(axis=1), one.event
    assert isinstance(event, DrawAfterTest)
    with np.errstate(invalid="ignore"):
        first, second = (tukey.log_density(value, one.output, event.exponent) for value in values[:2])
        return np.where(drawn, np.nan_to_num(first - second, nan=0.0), 0.0)


SCORES = {"argmax": _argmax, "depth": depth_loss}


def _laplace_cdf(x: np.ndarray) -> np.ndarray:
    tail = 0.5 * np.exp(-np.abs(x))
    return np.where(x < 0, tail, 1 - tail)


def sparse_vectors(run: Recorder, *replays: Recorder) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """(label, members (m,), (1 + data sets, m, length)): of sparse vectors of one length whether each answer fired, and
    the queries on each data set over their scale."""
    vectors, of_length = defaultdict(list), defaultdict(list)
    for key, tape in run.tape.items():
        for i, one in enumerate(tape):
            if one.kind == "threshold":
                queries = [replay.tape[key][i].value[0] / float(one.scale) for replay in replays]
                vectors[one.label, key, one.group].append([float(one.output[0]), *queries])
    for (label, key, _), answers in vectors.items():
        of_length[label, len(answers)].append((key, answers))
    for (label, _), members in of_length.items():
        keys, table = zip(*members, strict=True)
        yield label, np.array(keys), np.moveaxis(np.array(table), 2, 0)


def log_answers(queries: np.ndarray, fired: np.ndarray) -> np.ndarray:
    """ln ∫ f(r) Π P(answer | r) dr over the noise r of the threshold; queries (m, l) in units of Δ/ε.

    Noise of scale 2 on the threshold and 4 on a query: see `mechanisms.AboveThreshold`.
    """
    r = 2 * np.linspace(-15, 15, POINTS)[:, None, None]
    above = _laplace_cdf((queries - r) / 4)
    chances = np.where(fired > 0, above, 1 - above).prod(axis=2)
    with np.errstate(divide="ignore"):  # answers that hardly ever happen
        return np.log(scipy.integrate.trapezoid(chances * np.exp(-np.abs(r[:, :, 0]) / 2), r[:, 0, 0], axis=0))


BITS = 8  # of the last of a number, of which each is looked at
TELLING = 6.0  # standard errors between the worlds
TREES = 200  # runs to learn from, below which trees are not grown


def aligned(first: list[np.ndarray], second: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(k, m + 1): the vectors, what is missing as NaN, and how long each is."""
    width = max(len(one) for one in (*first, *second))
    return tuple(  # type: ignore[return-value]
        np.array([np.append(np.pad(one, (0, width - len(one)), constant_values=np.nan), len(one)) for one in each])
        for each in (first, second)
    )


def with_telling_bits(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The vectors, and beside them those of their numbers' last bits that are more often set in one world.

    A bit of rounding is as good as any to write a label in, and no line through the numbers sees it.
    """
    one, other = (
        (np.ascontiguousarray(each).view(np.uint64)[:, :, None] >> np.arange(BITS, dtype=np.uint64) & np.uint64(1))
        .reshape(len(each), -1)
        .astype(float)
        for each in (first, second)
    )
    p, q = one[::4].mean(axis=0), other[::4].mean(axis=0)
    spread = np.sqrt((p * (1 - p) + q * (1 - q)) / len(one[::4]) + 1e-9)
    telling = np.abs(p - q) > TELLING * spread
    return np.hstack([first, one[:, telling]]), np.hstack([second, other[:, telling]])


def squashed(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every coordinate in units of the quartiles of every fourth run, what is not finite far off, the rest within ±50.

    A coordinate that has one value there keeps its differences from it: it distinguishes the worlds by itself.
    """
    fourth = np.concatenate([first[::4], second[::4]])
    fourth = np.where(np.isfinite(fourth), fourth, np.where(np.isfinite(fourth).any(axis=0), np.nan, 0.0))
    low, middle, high = np.nanquantile(fourth, [0.25, 0.5, 0.75], axis=0)
    width = np.where(high > low, high - low, 1.0)

    def inside(each: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.clip(np.nan_to_num((each - middle) / width, nan=60.0), -50.0, 60.0)

    return inside(first), inside(second)


def candidates(first: np.ndarray, second: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Scores (k,) of the vectors (k, d) of both worlds by several rules, those that are learnt on every fourth run.

    None is learnt from runs 1, 2 or 3 modulo 4.
    """
    one, other = squashed(first, second)
    # First Fisher's linear discriminant.
    line = one[::4].mean(axis=0) - other[::4].mean(axis=0)
    spread = np.cov(one[::4].T) + np.cov(other[::4].T) + 1e-9 * np.eye(len(line)) if len(line) > 1 else np.eye(1)
    direction = np.linalg.lstsq(np.atleast_2d(spread), line, rcond=None)[0]
    pairs = [(one @ direction, other @ direction)]
    for j in range(one.shape[1]):
        a, b = one[:, j], other[:, j]
        pairs += [(a, b), (-a, -b), (np.abs(a), np.abs(b)), (-np.abs(a), -np.abs(b))]
    train = len(one[::4]) + len(other[::4])
    if train >= TREES:
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=16, early_stopping=False, random_state=0)
        model.fit(np.vstack([one[::4], other[::4]]), np.repeat([1, 0], [len(one[::4]), len(other[::4])]))
        pairs.append((model.decision_function(one), model.decision_function(other)))
    return pairs
