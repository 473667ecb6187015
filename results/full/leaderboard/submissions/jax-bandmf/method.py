"""jax-privacy's DP-SGD and BandMF (Choquette-Choo et al. 2023; McKenna et al. 2024), by its execution plans."""

import functools
import math
from importlib.metadata import version
from typing import Any
from unittest import mock

import numpy as np

from dpbench.algorithms.base import BaseSettings, Count, Needs, Positive, at_default_step
from dpbench.algorithms.library import LibrarySolver, Solved, released
from dpbench.algorithms.rules import gradient_steps
from dpbench.errors import UserError
from dpbench.privacy.ledger import Gaussian, PoissonReplaced

ROWS = 64  # batches are padded to a multiple of it, so that few shapes are compiled


class _JaxPrivacy(LibrarySolver):
    """Gradient descent with a plan for replace-one neighbours, at the noise for which the library states ε.

    With b bands row i may be in the batch of every b-th round alone, with probability b/batches: a batch is n/batches
    rows on average. C has b bands and equal columns, so what row i adds in one cycle of rounds is a sampled Gaussian
    release of its own, T/b of them (Choquette-Choo et al. 2023, Theorem 4), of a standard deviation of
    z·2·clip·‖column‖. Under replace-one the library counts the second row in the sensitivity, 2·clip, and once more in
    its accountant (PLD, REPLACE_ONE): the ε planned is about half of the one stated.
    """

    library = "jax-privacy"
    paper_accounting = "tight"
    accountings = ("tight",)
    needs = Needs(losses=("logistic", "squared"), regularisers=("l2",))
    discloses = released(
        "Gaussian on a sample", "2·clip·c", "clipped gradients; c = ‖column of C‖; the noise is read", "⌈T/bands⌉"
    )

    class Settings(BaseSettings, frozen=True):
        T: Count = 100
        batches: Count = 10
        bands: Count = 1
        clip: Positive = 1.0
        step: Positive | None = None

    def complete(self, problem, settings):
        if settings.bands > min(settings.batches, settings.T):
            raise UserError(f"{self.name}: bands = {settings.bands} must be at most batches and T; lower it")
        return at_default_step(problem, settings)

    def solve(self, problem, budget, settings, rng) -> Solved:
        jax = _library()
        noise_seed, batch_seed = (int(seed) for seed in rng.integers(2**31, size=2))
        share = settings.bands / settings.batches
        rounds = math.ceil(settings.T / settings.bands)
        z = budget.noise_scale(((PoissonReplaced(share, Gaussian(1.0)), rounds),))
        made = _plan(
            settings.T, settings.bands, share, settings.clip, problem.n / settings.batches, 2 * z,
            problem.loss.name, settings.step, problem.l2,
        )  # fmt: skip
        w = made.train(*_rows(jax, problem), noise_seed, batch_seed)
        found = made.stddev / (2 * made.bound * made.column)
        stated = _stated(made.event, budget.delta)
        notes = (
            f"jax-privacy {version('jax-privacy')}: its accountant says ε = {stated:.3g} under replace-one; "
            "standard deviation and strategy read from its plan"
        )
        return Solved(w, [(PoissonReplaced(share, Gaussian(found)), rounds)], notes)


class JaxDPSGD(_JaxPrivacy):
    """jax-dp-sgd: one band, so independent noise on Poisson samples."""

    name = "jax-dp-sgd"
    title = "jax-privacy DP-SGD"

    def public_settings(self, n, d, epsilon):
        return {"T": gradient_steps(n, d, epsilon)}


class JaxBandMF(_JaxPrivacy):
    """jax-bandmf: noise of four bands, which cancels in part over the steps."""

    name = "jax-bandmf"
    title = "jax-privacy BandMF"

    class Settings(_JaxPrivacy.Settings, frozen=True):
        bands: Count = 4

    def public_settings(self, n, d, epsilon):
        return {"T": 4 * math.ceil(gradient_steps(n, d, epsilon) / 4)}


class _Plan:
    """A plan of the library's, compiled once, and trained with for every seed."""

    def __init__(self, T, bands, share, clip, divisor, multiplier, loss, step, l2) -> None:
        jax = _library()
        import dp_accounting
        from jax_privacy.experimental import execution_plan

        relation = dp_accounting.NeighboringRelation.REPLACE_ONE
        strategy = _strategy(T, bands)
        self._config = functools.partial(
            execution_plan.BandMFExecutionPlanConfig, iterations=T, strategy=strategy, epsilon=None, delta=None,
            noise_multiplier=multiplier, sampling_prob=share, l2_clip_norm=clip, rescale_to_unit_norm=False,
            normalize_by=divisor, accountant=dp_accounting.pld.PLDAccountant(relation),
        )  # fmt: skip
        inside = execution_plan.noise_addition
        with mock.patch.object(
            inside, "matrix_factorization_privatizer", wraps=inside.matrix_factorization_privatizer
        ) as privatizer:
            plan = self._config().plan
        self.stddev = privatizer.call_args.kwargs["stddev"]
        self.event, self.sampling = plan.dp_event, plan.batch_selection_strategy
        self.bound = clip / divisor
        self.column = float(np.linalg.norm(strategy))

        def of_row(w, x, y):
            z = x @ w
            return jax.nn.softplus(-y * z) if loss == "logistic" else (z - y) ** 2 / 2

        gradient = plan.clipped_grad(of_row, batch_argnums=(1, 2), keep_batch_dim=False)

        def update(carry, rows):
            w, state, X, y = carry
            total = gradient(w, X[rows], y[rows], is_padding_example=rows < 0)
            noisy, state = plan.noise_addition_transform.update(total, state)
            return (w - step * (noisy + l2 * w), state, X, y), None

        self._loop = jax.jit(lambda *carry, rows: jax.lax.scan(update, carry, rows)[0][0])

    def train(self, X, y, noise_seed: int, batch_seed: int) -> Any:
        """(d,) the last iterate."""
        jax = _library()
        batches = list(self.sampling.batch_iterator(X.shape[0], rng=batch_seed))
        width = math.ceil(max(1, *map(len, batches)) / ROWS) * ROWS
        rows = np.full((len(batches), width), -1)
        for row, batch in zip(rows, batches, strict=True):
            row[: len(batch)] = batch
        w = jax.numpy.zeros(X.shape[1], dtype=X.dtype)
        state = self._config(noise_seed=noise_seed).plan.noise_addition_transform.init(w)
        return np.asarray(self._loop(w, state, X, y, rows=rows))


_plan = functools.lru_cache(maxsize=8)(_Plan)


@functools.lru_cache(maxsize=64)
def _strategy(T: int, bands: int) -> Any:
    from jax_privacy.matrix_factorization import toeplitz

    return np.asarray(toeplitz.optimize_banded_toeplitz(n=T, bands=bands, max_optimizer_steps=500))


@functools.lru_cache(maxsize=64)
def _stated(event, delta: float) -> float:
    import dp_accounting

    accountant = dp_accounting.pld.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    return float(accountant.compose(event).get_epsilon(delta))


@functools.lru_cache(maxsize=2)
def _rows(jax, problem) -> Any:
    return tuple(jax.numpy.asarray(np.array(each, dtype=np.float32)) for each in (problem.X, problem.y))


def _library() -> Any:
    try:
        import jax
        import jax_privacy  # noqa: F401
    except ImportError as error:
        raise UserError(f"jax-privacy is not here ({error}); in the source folder: make rivals") from None
    return jax
