"""Opacus's DP-SGD (Yousefpour et al. 2021), by its PrivacyEngine: a linear model, flat clipping, Poisson samples."""

import functools
import math
from importlib.metadata import version
from typing import Any
from unittest import mock

import numpy as np

from dpbench.algorithms.base import BaseSettings, Count, Needs, Positive, at_default_step
from dpbench.algorithms.library import LibrarySolver, Solved, released
from dpbench.algorithms.rules import gradient_steps
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.ledger import Gaussian, PoissonReplaced


class OpacusDPSGD(LibrarySolver):
    """opacus-dp-sgd: T steps of SGD on Poisson samples of rate 1/batches; weight decay is the ridge.

    Its accountants are for add/remove neighbours alone. It runs at the noise multiplier that dpbench finds for
    replace-one; what its accountant (PRV) says of that noise is in the notes. The ledger is made of its accountant's
    history, which has to agree with the standard deviations that its noise function was called with.
    """

    name = "opacus-dp-sgd"
    title = "Opacus DP-SGD"
    library = "opacus"
    paper_accounting = "tight"
    accountings = ("tight",)
    needs = Needs(losses=("logistic", "squared"), regularisers=("l2",))
    discloses = released("Gaussian on a sample", "2·clip", "clipped gradients; noise multiplier and steps read", "T")

    class Settings(BaseSettings, frozen=True):
        T: Count = 100
        batches: Count = 10
        clip: Positive = 1.0
        step: Positive | None = None

    def public_settings(self, n, d, epsilon):
        return {"T": gradient_steps(n, d, epsilon)}

    def complete(self, problem, settings):
        return at_default_step(problem, settings)

    def solve(self, problem, budget, settings, rng) -> Solved:
        torch, opacus = _libraries()
        from opacus.optimizers import optimizer as inside

        torch.set_num_threads(1)
        coins = [torch.Generator().manual_seed(int(rng.integers(2**62))) for _ in range(2)]
        loader = torch.utils.data.DataLoader(
            _rows(torch, problem), math.ceil(problem.n / settings.batches), generator=coins[0], collate_fn=_as_it_is
        )
        rate = 1 / len(loader)
        z = budget.noise_scale(((PoissonReplaced(rate, Gaussian(1.0)), settings.T),))
        model = torch.nn.Linear(problem.d, 1, bias=False)
        torch.nn.init.zeros_(model.weight)
        optimizer = torch.optim.SGD(model.parameters(), lr=settings.step, weight_decay=problem.l2)
        engine = opacus.PrivacyEngine()
        module, optimizer, loader = engine.make_private(
            module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=2 * z,
            max_grad_norm=settings.clip, noise_generator=coins[1],
        )  # fmt: skip
        drawn: set[float] = set()
        generate = vars(inside)["_generate_noise"]

        def watched(std, *args, **named):
            drawn.add(float(std))
            return generate(std, *args, **named)

        with mock.patch.object(inside, "_generate_noise", watched):
            _train(torch, module, optimizer, loader, settings.T, problem.loss.name)
        history = [(float(m), float(q), int(count)) for m, q, count in engine.accountant.history]
        if {m * settings.clip for m, _, _ in history} != drawn:
            raise PrivacyError(f"its history {history} is not of the noise that it drew, {sorted(drawn)}")
        stated = _stated(tuple(history), budget.delta)
        return Solved(
            model.weight.detach().numpy(),
            [(PoissonReplaced(q, Gaussian(m / 2)), count) for m, q, count in history],
            f"opacus {version('opacus')}: its accountant says ε = {stated:.3g} under add/remove; noise read as drawn",
        )


def _train(torch, module, optimizer, loader, steps: int, loss: str) -> None:
    done = 0
    while done < steps:
        for X, y in loader:
            optimizer.zero_grad()
            z = module(X)[:, 0]
            losses = torch.nn.functional.softplus(-y * z) if loss == "logistic" else (z - y) ** 2 / 2
            (losses.mean() if len(y) else losses.sum()).backward()
            optimizer.step()
            done += 1
            if done == steps:
                return


def _rows(torch, problem) -> Any:
    """A data set that hands out a batch at once."""
    X, y = (torch.from_numpy(np.array(each, dtype=np.float32)) for each in (problem.X, problem.y))

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return len(y)

        def __getitem__(self, i):
            return X[i], y[i]

        def __getitems__(self, indices):
            return X[indices], y[indices]

    return Rows()


def _as_it_is(batch):
    return batch


@functools.lru_cache(maxsize=64)
def _stated(history, delta: float) -> float:
    from opacus.accountants import PRVAccountant

    accountant = PRVAccountant()
    accountant.history = list(history)
    return float(accountant.get_epsilon(delta))


def _libraries() -> Any:
    try:
        import opacus
        import torch
    except ImportError as error:
        raise UserError(f"opacus is not here ({error}); in the source folder: make rivals") from None
    return torch, opacus
