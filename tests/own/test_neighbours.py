"""Neighbouring tables, drawn with odd cells, through all that a fit releases: nothing moves by more than is accounted.

The second fit of a pair gets the releases of the first, whatever its rows are, as adaptive composition has it, and the
same coins and samples. So what differs is what one row, or all rows of one person, move: it is held against the
distance that the noise was set for.
"""

import itertools

import numpy as np
import pandas as pd
import pytest

import dpbench
from dpbench.privacy import exact_release
from dpbench.schema import Column, Schema, Target

ODD = [np.nan, np.inf, -np.inf, 1e308, -5.0, "x", None, "3", True, "", pd.NA, "1e400", b"2"]
MISSING = ("middle", "indicator", "drop")
WORDS = np.array(["a", "b", "c", "other", None], dtype=object)


class Worlds:
    """What the fits of a pair release. moved: label → the most of its distance that a release moved by."""

    def __init__(self, monkeypatch):
        self.moved, self._first, self._again, self._here = {}, [], None, ()
        kind, worlds = exact_release.ExactReleases, self
        on_steps, compared = kind.on_steps, kind._compared

        class Bits:
            """Of a generator for each source, the same in both fits."""

            def __init__(self):
                self._generator = np.random.default_rng(next(worlds.sources))

            def words(self, count):
                return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)

        def stepped(releases, value, noise, *of, **how):
            found = on_steps(releases, value, noise, *of, **how)
            worlds._here = type(value).__name__, noise.name, *found[1:]
            return found

        def chosen(*of, **how):
            found = compared(*of, **how)
            worlds._here = "Scores", "choice", *found[:2]
            return found

        def publish(releases, kind, label, event, value, scale, release, group=None, mix=()):
            return worlds._published((kind, label), np.array(value), release)

        for owner, name, made in ((exact_release, "SystemBits", Bits), (kind, "on_steps", stepped),
                                  (kind, "_compared", chosen), (kind, "publish", publish)):  # fmt: skip
            monkeypatch.setattr(owner, name, made)

    def fit(self, model, *tables):
        """Two fits; AssertionError unless they release the same things, at the same noise."""
        for table in tables:
            self.sources = itertools.count()
            self._again = None if table is tables[0] else iter(self._first)
            self._first = [] if table is tables[0] else self._first
            model.fit(table)
        assert next(self._again, None) is None

    def _published(self, what, value, release):
        if self._again is None:
            self._first.append((what, value, self._here, release()))
            return self._first[-1][-1]
        before, first, here, released = next(self._again)
        assert (before, here) == (what, self._here)
        of, noise, distance, grid = here
        steps = ((value - first) / grid).ravel()
        # A minimiser's distance is that of the solver: what the linear term hides is another theorem's.
        if of != "CertifiedMinimiser":
            order = {"choice": np.inf, "laplace": 1}.get(noise, 2)
            self.moved[what[1]] = max(self.moved.get(what[1], 0.0), np.linalg.norm(steps, order) / distance)
        return released.copy()


def cells(n, rng):
    found = (rng.uniform(-3, 3, n) * rng.choice([0, 1, 100])).astype(object)
    found[rng.random(n) < 0.15] = ODD[rng.integers(len(ODD))]
    return found


def drawn(n, k, rng):
    labels = np.array([*range(max(k, 1)), 9, None], dtype=object)
    y = rng.choice(labels, n) if k else cells(n, rng) if rng.random() < 0.2 else rng.choice([-1.0, 1.0, 0.3], n)
    days = rng.choice(np.array(["2020-01-05", "1999-12-31", "bad", None], dtype=object), n)
    words = {name: rng.choice(WORDS, n) for name in ("kind", "size")}
    return pd.DataFrame({"u": cells(n, rng), "v": cells(n, rng), **words, "day": days, "y": y})


def schema(k, unit, rng):
    each = [{"missing": str(rng.choice(MISSING))} for _ in range(5)]
    columns = {"u": Column(bounds=(-1, 1), **each[0]), "v": Column(bounds=(-2, 2), **each[1]),
               "kind": Column(categories=("a", "b", "c"), **each[2]),
               "size": Column(categories=("a", "b", "c"), **each[3]),
               "day": Column(date=("year", "month"), years=(1990, 2020), **each[4])}  # fmt: skip
    kept = rng.choice(list(columns), rng.integers(2, 6), replace=False)
    target = Target(name="y", classes=tuple(range(k))) if k else Target(name="y", bounds=(-1, 1))
    return Schema(target=target, columns={str(name): columns[name] for name in kept}, unit=unit)


METHODS = {
    0: ("dp-cd", "dp-frank-wolfe", "adassp"),
    2: ("dp-gd", "dp-gcd", "dp-chebyshev"),
    3: ("dp-gd", "dp-adam"),
}


@pytest.mark.parametrize("pairs", [range(24), pytest.param(range(24, 72), marks=pytest.mark.thorough)], ids=str)
def test_no_release_of_a_fit_moves_by_more_than_its_noise_was_set_for(monkeypatch, pairs):
    """Each 24 are of every task, with rows and with persons, by default, by a method and with intervals."""
    worlds = Worlds(monkeypatch)
    for i in pairs:
        rng, persons, way = np.random.default_rng((22, i)), i % 2 == 1, i // 6 % 4
        k, count = (0, 2, 3)[i // 2 % 3], int(rng.integers(9, 110))
        whose = np.repeat(np.arange(count), rng.integers(1, 6, count) if persons else 1)
        table, gone = drawn(len(whose), k, rng), int(rng.integers(count))
        new = drawn(int(rng.integers(1, 9)) if persons else 1, k, rng)
        if not k and way:  # as far apart as targets may be, where neither is unknown
            table.loc[whose == gone, "y"], new["y"] = -1.0, 1.0
        said = schema(k, "who" if persons else None, rng)
        if persons:
            table["who"], new["who"] = [f"p{one}" for one in whose], f"p{gone}"
        place = np.searchsorted(whose, gone)
        other = pd.concat([table[: place * (not persons)], new, table[whose != gone][place * (not persons) :]])
        kept = [*said.columns, "y", *["who"] * persons]
        given = {"epsilon": float(rng.choice([0.3, 1, 5, 50])), "schema": said}
        given |= {"algorithm": str(rng.choice(METHODS[k]))} if way == 3 else {}
        given |= {"algorithm": "boosted-ssp"} if way == 2 and not k else {}
        given |= {"intervals": True} if way == 1 and k < 3 and given["epsilon"] > 1 and count > 50 else {}
        model = (dpbench.PrivateClassifier if k else dpbench.PrivateRegressor)(**given)
        worlds.fit(model, table[kept].reset_index(drop=True), other[kept].reset_index(drop=True))
    assert max(worlds.moved.values()) <= 1 + 1e-9, worlds.moved
    # Of pairs this far apart are among them, or it would hold for half of the noise.
    far = {label for label, moved in worlds.moved.items() if moved > 0.5}
    assert far >= {"median", "row bound", "window", "target mean", "column means", "gram", "gradient"}
