"""Everything a run released, and what it would have released had the data been others.

An adversary who knows both neighbours and sees what was released can repeat the computation on either: each release
is the same known noise around one of two known values. `Recorder` writes down what a run releases; `Replay` runs the
algorithm again on other data, answers every release with what was recorded, and writes down the value that the noise
would have hidden. The code that draws and adds noise is the audited one; only its generators can be weakened, to show
that an audit notices.

Random choices from "coins" and the order of a single pass count as known to the adversary, since the guarantee holds
for each; who is in a sample does not.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpbench.errors import PrivacyError
from dpbench.privacy.ledger import Ledger, Release
from dpbench.privacy.mechanisms import AboveThreshold, Mechanisms, _laplace, _symmetric_normal
from dpbench.privacy.tree import Tree


class Leak(PrivacyError):
    """What a run did next, or returned, depends on more of the data than it released."""


@dataclass
class Published:
    """One release of one or all replicates: `value` before and `output` after the noise of `scale`, (k, …).

    kind: "normal", "laplace", "argmax", "argmax of magnitudes" or "threshold" (query and answer of a sparse vector).
    group: which sparse vector an answer belongs to.
    """

    kind: str
    label: str
    event: Release | None
    value: np.ndarray
    output: np.ndarray
    scale: Any
    group: int = 0


class Weakened:
    """A generator whose noise is `factor` times what it should be: below every mechanism, for mutants only."""

    def __init__(self, generator: np.random.Generator, factor: float):
        self._generator, self._factor = generator, factor

    def standard_normal(self, *args, **kwargs):
        noise = self._generator.standard_normal(*args, **kwargs)
        noise *= self._factor
        return noise

    def laplace(self, *args, **kwargs):
        return self._factor * self._generator.laplace(*args, **kwargs)


class Recorder(Mechanisms):
    """Mechanisms for k replicates on common streams, with the `tape` of what was released.

    tape: per replicate that advances alone, and under None what all release together.
    """

    def __init__(self, k: int, budget, seed, *, factor: float = 1.0) -> None:
        super().__init__(["audit"], budget)
        self.k, self.ledger = k, Ledger(k)
        self.streams = [slice(i, i + 1) for i in range(k)]
        noise, sampling, coins = (
            np.random.Generator(np.random.PCG64DXSM(child)) for child in np.random.SeedSequence(seed).spawn(3)
        )
        self._noise, self._sampling, self.coins = [Weakened(noise, factor)] * k, [sampling] * k, [coins] * k
        self.tape: dict[int | None, list[Published]] = {}
        self._groups = Counter()
        self._within = False  # a mechanism whose noise is not itself released

    def noisy_argmax(self, scores, *, sensitivity, epsilon, label, **options):
        kind = "argmax of magnitudes" if options.get("magnitude") else "argmax"
        scale = sensitivity * (2.0 if options.get("two_sided", True) else 1.0) / np.asarray(epsilon)

        def release():
            with self._hidden():
                return super(Recorder, self).noisy_argmax(
                    scores, sensitivity=sensitivity, epsilon=epsilon, label=label, **options
                )

        return self._publish(kind, label, None, scores, scale, release)

    def above_threshold(self, *, sensitivity, epsilon, threshold=0.0, label):
        with self._hidden():
            answers = super().above_threshold(
                sensitivity=sensitivity, epsilon=epsilon, threshold=threshold, label=label
            )
        self._groups[self._key] += 1
        return RecordedThreshold(self, answers, float(threshold), sensitivity / epsilon, label)

    def linear_term(self, d, **how):
        with self._hidden():
            return super().linear_term(d, **how)

    def _tree(self, rounds, std, label, admit=lambda: None):
        return RecordedTree(self, rounds, std, label, admit)

    @property
    def _key(self) -> int | None:
        return None if self._members is None else self._members[0]

    @contextmanager
    def _hidden(self):
        self._within = True
        try:
            yield
        finally:
            self._within = False

    def _record(self, kind, parameter, label, wrap=lambda release: release, *rest, **options):
        super()._record(kind, parameter, label, wrap, *rest, **options)
        self._last = label, wrap(kind(float(np.ravel(parameter)[0])))

    def _noisy(self, value, sensitivity, multiplier, draw, *rest):
        if self._within:
            return super()._noisy(value, sensitivity, multiplier, draw, *rest)
        label, event = self._last
        kind = "laplace" if draw is _laplace else "symmetric" if draw is _symmetric_normal else "normal"
        scale = np.asarray(sensitivity * multiplier, dtype=float)

        def release():
            return super(Recorder, self)._noisy(value, sensitivity, multiplier, draw, *rest)

        return self._publish(kind, label, event, value, scale, release)

    def _publish(self, kind, label, event, value, scale, release):
        value = np.array(value, dtype=float)
        output = release()
        one = Published(kind, label, event, value, np.array(output), scale, self._groups[self._key])
        self.tape.setdefault(self._key, []).append(one)
        return output


class Replay(Recorder):
    """The same run on other data: every release is answered from the `recorded` run, and its value written down.

    A sample always holds the row that differs, row 0.
    """

    def __init__(self, recorded: Recorder, seed) -> None:
        super().__init__(recorded.k, recorded.budget, seed)
        self._recorded = recorded

    def noisy_argmax(self, scores, *, label, **how):
        return self._publish("", label, None, scores, None, None)

    def poisson(self, n, rate, label):
        sampler = super().poisson(n, rate, label)
        sampler._sample = lambda generator: np.array([0])
        return sampler

    def without_replacement(self, n, m, label):
        sampler = super().without_replacement(n, m, label)
        sampler._sample = lambda generator: np.arange(m)
        return sampler

    def _publish(self, kind, label, event, value, scale, release):
        mine = self.tape.setdefault(self._key, [])
        theirs = self._recorded.tape.get(self._key, [])
        if len(mine) == len(theirs) or theirs[len(mine)].label != label:
            raise Leak(f"on a neighbour it releases something else after the same releases: {label}")
        one = theirs[len(mine)]
        value = np.array(value, dtype=float)
        mine.append(Published(one.kind, label, one.event, value, one.output, one.scale, one.group))
        return one.output.copy()


class RecordedThreshold:
    """A sparse vector whose queries and answers are written down."""

    def __init__(self, mechanisms: Recorder, answers: AboveThreshold, threshold: float, scale: float, label: str):
        self._mechanisms, self._answers = mechanisms, answers
        self._threshold, self._scale, self._label = threshold, scale, label

    def __call__(self, query: float) -> bool:
        def release():
            with self._mechanisms._hidden():
                return np.array([self._answers(query)])

        value = [query - self._threshold]
        return bool(self._mechanisms._publish("threshold", self._label, None, value, self._scale, release)[0])


class RecordedTree(Tree):
    """A tree whose nodes are written down: a released sum less that up to the node before is a node and its noise."""

    def __init__(self, mechanisms, *how):
        super().__init__(mechanisms, *how)
        self._event = mechanisms._last[1]

    def release(self, running_sum):
        t = self.t + 1
        before = t & (t - 1)
        if before == 0:
            self._sums = {0: (0.0, 0.0)}
        true, released = self._sums[before]

        def release():
            with self._mechanisms._hidden():
                return super(RecordedTree, self).release(running_sum) - released

        replayed = isinstance(self._mechanisms, Replay)
        node = self._mechanisms._publish("normal", self._label, self._event, running_sum - true, self.std, release)
        if replayed:
            self._admit()
            self.t = t
        self._sums[t] = running_sum, released + node
        return released + node
