"""Whether the noise of the recorded runs is drawn from the law recorded, and afresh for every release and replicate.

An index or an answer of a selection hides its noise; there what comes out ought to come out as often as the law has it.
The residuals (output - value)/scale of all releases, and noise drawn apart from any value, ought to be independent unit
normal or Laplace numbers; a row ought to be in a sample as often as is accounted, and in one independently of another.
Each test is at LEVEL: of 1,000 of them on sound noise one fails with probability 1e-3.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import scipy  # which loads its parts where they are used: `clean` starts processes that use none

from dpbench.auditing.scores import flat, log_answers, log_chance, releases, sparse_vectors
from dpbench.auditing.transcript import Recorder, column, rate
from dpbench.privacy import tukey
from dpbench.privacy.ledger import Allocated, DrawAfterTest

LEVEL = 1e-6
LEAST = 100  # numbers, below which correlations are not looked at
MOST = 50_000  # numbers of one release for a test of their law
ENTRIES = 4  # of a value, of which each is looked at alone
SLACK = 1e-3  # of a chance, for quadratures
RELEASES = 24  # of which every pair is compared
LAWS = {"normal": "norm", "symmetric": "norm", "isometric": "norm", "laplace": "laplace"}


def fault(run: Recorder) -> str:
    """What is wrong with the noise of `run`, in words; "" where nothing is seen."""
    looks = (_laws, _repeats, _samples, _choices, _answers, _depths)
    return next(itertools.chain.from_iterable(look(run) for look in looks), "")


def _residuals(run: Recorder) -> Iterator[tuple[str, str, np.ndarray]]:
    """(label, kind, (k, m) residuals) of every release, equal ones of replicates that advance alone together."""
    for _, one, _ in releases(run, noise=True):
        if one.kind in (*LAWS, "radial"):
            yield one.label, one.kind, flat(one, one.output - one.value) / column(one.scale)
    for what, kind, noise in run.releases.hidden:
        yield what, kind, noise.reshape(len(noise), -1)


def _laws(run: Recorder) -> Iterator[str]:
    pooled = defaultdict(list)
    for label, kind, residuals in _residuals(run):
        if kind == "radial":  # its length alone has a law that depends on nothing else
            # Gamma(d) lengths mapped to a normal law, so that one test serves all kinds.
            lengths = scipy.special.gammainc(residuals.shape[1], np.linalg.norm(residuals, axis=1))
            pooled[label, "normal", "length"].append(scipy.special.ndtri(np.clip(lengths, 1e-16, 1 - 1e-16)))
            continue
        for entry in (slice(None), *range(min(residuals.shape[1], ENTRIES))):
            pooled[label, kind, str(entry)].append(residuals[:, entry].ravel())
    for (label, kind, _), parts in pooled.items():
        numbers = np.concatenate(parts)[:MOST]
        numbers = numbers[np.isfinite(numbers)]
        # One exact zero may be chance in float64; two are not.
        if np.count_nonzero(numbers == 0) > 1:
            yield f"{label}: {np.mean(numbers == 0):.2g} of its numbers are released without noise"
        if len(numbers) and scipy.stats.kstest(numbers, LAWS[kind]).pvalue < LEVEL:
            yield f"{label}: the noise is not of the law and the scale recorded (its deviation is {numbers.std():.3g})"


def _repeats(run: Recorder) -> Iterator[str]:
    residuals = [
        (label, np.clip(np.nan_to_num(r), -4, 4)) for label, _, r in itertools.islice(_residuals(run), RELEASES)
    ]
    for label, r in residuals:
        for name, one, other in (("replicates", r[1:], r[:-1]), ("entries", r[:, 1:], r[:, :-1])):
            if _dependent(one * other):
                yield f"{label}: the noise of one of its {name} tells that of another"
    for (label, one), (other, two) in itertools.combinations(residuals, 2):
        if one.shape == two.shape and _dependent(one * two):
            yield f"{other}: its noise is not fresh: that of an earlier release ({label}) tells it"


def alike(one: Recorder, other: Recorder) -> str:
    """What is wrong with noise or samples that two runs of other seeds share, in words; "" where nothing is seen."""
    for (label, _, mine), (_, _, its) in itertools.islice(
        zip(_residuals(one), _residuals(other), strict=False), RELEASES
    ):
        if mine.shape == its.shape and _dependent(np.clip(np.nan_to_num(mine * its), -4, 4)):
            return f"{label}: runs of other seeds have the same noise"
    for (label, event, mine, _), (*_, its, _) in itertools.islice(
        zip(one.releases.present, other.releases.present, strict=False), RELEASES
    ):
        if rate(event) < 1 and mine.shape == its.shape and _dependent((mine - rate(event)) * (its - rate(event))):
            return f"{label}: runs of other seeds have the same samples"
    return ""


def _dependent(products: np.ndarray) -> bool:
    """Whether products of bounded numbers of mean 0 have another mean than 0."""
    if products.size < LEAST:
        return False
    mean, spread = abs(products.mean()), products.std()
    return bool(mean * np.sqrt(products.size) > scipy.stats.norm.isf(LEVEL / 2) * spread + 1e-12)


def _samples(run: Recorder) -> Iterator[str]:
    by_label = defaultdict(list)
    for label, event, present, counts in run.releases.present:
        if rate(event) < 1:
            by_label[label, event].append((present, counts))
    for (label, event), sizes in by_label.items():
        chance, epoch = rate(event), event.steps if isinstance(event, Allocated) else 1
        drawn, each = zip(*sizes, strict=True)
        of = sum(map(len, drawn))
        for count in sum(np.array(each)):
            if scipy.stats.binomtest(int(count), of, chance).pvalue < LEVEL:
                yield f"{label}: a row is in {count / of:.3g} of the samples, the ledger says {chance:.3g}"
        # Samples of two releases are compared replicate by replicate.
        if len({len(each) for each in drawn}) == 1 and len(drawn[0]) > 1:
            centred = [each - chance for each in drawn[:RELEASES]]
            for (i, one), (j, other) in itertools.combinations(enumerate(centred), 2):
                if i // epoch == j // epoch:
                    if (drawn[i] & drawn[j]).any():
                        yield f"{label}: a row is in two batches of one epoch"
                        return
                elif _dependent(one * other):
                    yield f"{label}: the samples of two releases are not drawn apart"
                    return


def _choices(run: Recorder) -> Iterator[str]:
    """Whether the largest score is chosen as often as unit Laplace noise lets it."""
    events = defaultdict(list)
    for _, one, _ in releases(run):
        if one.kind.startswith("argmax"):
            top = (np.abs(one.value) if one.kind == "argmax of magnitudes" else one.value).argmax(axis=1)
            value = one.value / column(one.scale)
            fine = np.isfinite(value).all(axis=1)
            chance = np.exp(log_chance(replace(one, output=top[fine]), value[fine]))
            events[one.label].append(((one.output == top)[fine], chance))
    for label in _off(events):
        yield f"{label}: the largest score is chosen more or less often than its noise has it"


def _answers(run: Recorder) -> Iterator[str]:
    """Whether a sparse vector fires as often as its noise lets it, given its answers before, and then never again."""
    events = defaultdict(list)
    for label, _, (fired, queries) in sparse_vectors(run, run):
        if fired[:, :-1].any():
            yield f"{label}: it goes on answering after it has fired"
            return
        for t in range(fired.shape[1]):
            below = np.zeros_like(queries[:, : t + 1])
            now = np.arange(t + 1) == t  # it fires at the last of them
            is_below, is_above = (log_answers(queries[:, : t + 1], last) for last in (below, below + now))
            events[label].append((fired[:, t], np.exp(is_above - np.logaddexp(is_below, is_above))))
    for label in _off(events):
        yield f"{label}: it fires more or less often than its noise has it"


def _depths(run: Recorder) -> Iterator[str]:
    """Whether points are as deep as the law of their draw has them: its distribution function at them is uniform."""
    places = defaultdict(list)
    for _, one, _ in releases(run):
        if isinstance(one.event, DrawAfterTest) and (drawn := (one.output != 0).any(axis=1)).any():
            law = tukey.chances(one.value[drawn], one.event.exponent)
            first = max(1, tukey.least_depth(one.value.shape[1]))
            at = tukey.depths(one.value[drawn], one.output[drawn]) - first
            upto = np.cumsum(law, axis=1)[np.arange(len(at)), at]
            within = law[np.arange(len(at)), at]
            # Randomised within the step of a discrete law: then the place is uniform exactly.
            places[one.label].append(upto - within * np.random.default_rng(0).random(len(at)))
    for label, parts in places.items():
        if len(numbers := np.concatenate(parts)) >= LEAST and scipy.stats.kstest(numbers, "uniform").pvalue < LEVEL:
            yield f"{label}: the points drawn are deeper or less deep than their law has them"


def _off(events: Mapping[str, list[tuple[np.ndarray, np.ndarray]]]) -> Iterator[str]:
    """The labels whose events happen more or less often than their chances, each given those before, add up to."""
    for label, parts in events.items():
        seen, chances = map(np.concatenate, zip(*parts, strict=True))
        # A martingale: each event is centred by its chance given those before, so their variances add up.
        spread = np.sqrt((chances * (1 - chances)).sum())
        most = scipy.stats.norm.isf(LEVEL / 2) * spread + SLACK * len(seen)
        if len(seen) >= LEAST and abs(seen.sum() - chances.sum()) > most:
            yield label
