"""A served run is the run in process, bit for bit: the server has no arithmetic of its own."""

import numpy as np
import pytest

from dpbench import algorithms
from dpbench.algorithms.base import AuditCase
from dpbench.algorithms.rules import RELATION
from dpbench.auditing.neighbours import probes
from tests.serving.sessions import problem, run

# method: (settings, loss, weights): small, and with every constant a public one
L1 = {"l2": 0.1, "norm": "l1"}
GREEDY = {"settings": {"scales": "bound"}, "l1": 0.01}
METHODS = {
    "dp-gd": {}, "dp-gd-average": {}, "dp-adam": {}, "dp-accelerated-nesterov": {},
    "dp-sgd": {"settings": {"T": 20, "rate": 0.2}},
    "dp-gd-laplace": L1, "dp-hb": L1, "dp-nag": L1, "dp-masg": L1,
    "dp-nag-opt": L1 | {"settings": {"L": 1.0, "T": 8}}, "dp-masg-opt": L1 | {"settings": {"L": 1.0, "T": 8}},
    "dp-cd": {"settings": {"scales": "bound"}}, "dp-gcd": {"settings": {"scales": "bound"}},
    "dp-gcd-published": {"settings": {"scales": "bound"}},
    "dp-gcd-gs-s": GREEDY, "dp-gcd-gs-q": GREEDY, "dp-frank-wolfe": {"l1": 0.01},
    "dp-mf": {"settings": {"batches": 4, "epochs": 2}},
    "objpert": {}, "objpert-pure": {}, "aop": {}, "output-perturbation": {}, "phased-erm": {},
    "adassp": {"loss": "squared"}, "boosted-ssp": {"loss": "squared"}, "dp-chebyshev": {},
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_a_served_run_has_the_bits_of_the_run_in_process(name):
    how = dict(METHODS[name])
    settings, on = how.pop("settings", None), problem(**how)
    here, served = run(name, on, settings=settings)
    assert served.ended is None, served.ended
    assert np.array_equal(here, served.W)


@pytest.mark.parametrize("name", ["dp-gd", "dp-frank-wolfe"])
def test_rows_that_are_made_up_are_within_the_bound_that_a_method_is_planned_for(name):
    problem = probes(algorithms.resolve(name)[0], AuditCase(n=200, d=5), RELATION)[0].first
    longest = np.linalg.norm(problem.X, ord=1 if problem.row_bound_norm == "l1" else 2, axis=1)
    assert 0.999 * problem.row_bound < longest.max() < problem.row_bound
