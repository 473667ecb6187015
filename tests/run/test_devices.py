"""Fits and runs whose sums are taken on a device of JAX give what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest

import dpbench
from dpbench.errors import UserError
from dpbench.run import devices
from dpbench.run.jobs import make_job
from dpbench.run.results import Store
from dpbench.run.runner import run


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (300, 4))
    return X, np.where(X[:, 0] + 0.1 * rng.standard_normal(300) > 0, 1.0, -1.0)


def test_without_jax_or_for_sparse_rows_it_is_refused_in_one_line(monkeypatch):
    from scipy.sparse import csr_array

    X, y = data()
    with pytest.raises(UserError, match="device: for rows in an array"):
        dpbench.fit(csr_array(X), y, algorithm="dp-gd", epsilon=1.0, device="cpu")
    monkeypatch.setitem(__import__("sys").modules, "jax", None)
    monkeypatch.delitem(__import__("sys").modules, "dpbench.problems.device", raising=False)
    with pytest.raises(UserError, match=r"device: rows on a device need JAX; run: pip install 'jax>=0.4.34'"):
        dpbench.fit(X, y, algorithm="dp-gd", epsilon=1.0, device="cpu")


@pytest.mark.parametrize("algorithm", ["dp-gd", "dp-newton", "objpert", "dp-cd"])
def test_a_fit_is_that_of_numpy(algorithm):
    pytest.importorskip("jax")
    X, y = data()
    here, there = (dpbench.fit(X, y, algorithm=algorithm, epsilon=1.0, seed=1, device=one) for one in (None, "cpu"))
    np.testing.assert_allclose(there.w, here.w, rtol=1e-9)
    assert dpbench.fit(X, y, algorithm="dp-gd", epsilon=1.0, device="cpu").released.arithmetic == "bytes"


def test_runs_take_the_device_while_they_last(tmp_path):
    pytest.importorskip("jax")
    jobs = [make_job(problem="synthetic", algorithm="dp-gd", epsilon=1.0, seed=s, settings={"T": 5}) for s in range(2)]
    found = []
    for name, device in (("numpy", None), ("device", "cpu")):
        store = Store(tmp_path, "quick", name)
        run(jobs, store, workers=1, device=device)
        found.append(store.runs().sort_values("seed")["objective"].to_numpy())
    np.testing.assert_allclose(*found, rtol=1e-12)
    assert devices.chosen() is None
