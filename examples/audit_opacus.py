"""Opacus' adaptive clipping to audit: `dpbench audit --algo examples/audit_opacus.py:small_batch --eps 1 --runs 2000`.

Needs opacus and torch; `small_batch` is for opacus 1.5.4 and before, `batch` for 1.6 as well. What the audit finds, and
the same by hand, is in docs/guides/library_errata.md.
"""

import functools
import importlib.metadata

import numpy as np

from dpbench.auditing.functions import AuditTarget, Pair
from dpbench.privacy.accounting.gaussian import gaussian_mu
from dpbench.privacy.ledger import Relation


def multiplier(told, count_noise):
    """The noise multiplier to ask for, so that the accountant is told `told`: before 1.6 it is told a larger one."""
    if importlib.metadata.version("opacus") >= "1.6":
        return told
    return (told**-2 + (2 * count_noise) ** -2) ** -0.5


def one_step(X, y, epsilon, rng, *, delta, count_noise):
    """[the noisy sum of gradients, ln of the next clipping norm] of one step on all rows; the gradient is the row.

    Raises if the accountant is told anything but the multiplier that is (ε, δ) for one release of sensitivity 1.
    """
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(int(rng.integers(2**31)))
    told = 1 / gaussian_mu(epsilon, delta)
    rows = torch.tensor(X, dtype=torch.float32)
    linear = torch.nn.Linear(1, 1, bias=False)
    linear.weight.data.zero_()
    engine = PrivacyEngine()
    model, optimiser, batches = engine.make_private(
        module=linear,
        optimizer=torch.optim.SGD(linear.parameters(), lr=1.0),
        data_loader=DataLoader(TensorDataset(rows), batch_size=len(rows)),
        noise_multiplier=multiplier(told, count_noise),
        max_grad_norm=1.0,
        loss_reduction="sum",
        clipping="adaptive",
        unclipped_num_std=count_noise,
        target_unclipped_quantile=0.5,
        clipbound_learning_rate=1.0,
        max_clipbound=1e6,
        min_clipbound=1e-6,
    )
    ((batch,),) = batches  # a sample rate of 1: every row
    model(batch).sum().backward()
    optimiser.step()
    if not np.allclose(engine.accountant.history[0], (told, 1.0, 1)):
        raise RuntimeError(f"the accountant was told {engine.accountant.history}")
    return [-linear.weight.item(), float(np.log(optimiser.max_grad_norm))]


def rows(others):
    """(X, y): that many rows that are clipped, of either sign."""
    return np.resize([10.0, -10.0], others)[:, None], np.zeros(others)


def with_one_more(others):
    """The same and a row that is not clipped."""
    X, y = rows(others)
    return np.vstack([X, [[0.999]]]), np.append(y, 0.0)


def target(n, delta):
    """Neighbours of n and n - 1 rows; the count's noise is n/20, as Andrew et al. advise."""
    return AuditTarget(
        functools.partial(one_step, delta=delta, count_noise=n / 20),
        f"Opacus, adaptive clipping, {n} rows",
        relation=Relation.ADD_REMOVE,
        delta=delta,
        low=-10.0,
        high=10.0,
        pairs=(Pair(with_one_more(n - 1), rows(n - 1), "with and without the one row that is not clipped"),),
    )


small_batch, batch = target(12, 1e-6), target(20, 1e-2)
