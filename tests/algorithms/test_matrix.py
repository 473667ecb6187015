"""dp-mf: batches in a fixed order, far enough apart for its noise."""

import numpy as np
import pytest

from dpbench.errors import UserError
from tests.algorithms.conftest import run, small_problem


def test_without_noise_it_is_gradient_descent_over_the_batches_in_order():
    problem = small_problem(n=41, l2=0.1)
    found = run("dp-mf", problem, noiseless=True, epochs=2, batches=4, step=0.5).W[0]
    w = np.zeros((1, 5))
    for t in range(8):
        w = w - 0.5 * problem.gradient(w, np.arange(t % 4, 41, 4))
    np.testing.assert_allclose(found, w[0], rtol=1e-9)


def test_one_batch_and_one_band_are_gradient_descent_with_its_noise():
    problem = small_problem()
    one = run("dp-mf", problem, epochs=5, batches=1, step=1.0)
    assert one.mechanisms.ledger.of(0)[0].count == 1
    assert np.isfinite(one.W).all()


@pytest.mark.parametrize("settings", [{"batches": 4, "bands": 5}, {"batches": 401}])
def test_settings_its_proof_does_not_cover_are_refused(settings):
    with pytest.raises(UserError, match="batches"):
        run("dp-mf", small_problem(), **settings)
