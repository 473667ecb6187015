"""Published runs by a second route: the scripts' loops written out plainly, one run at a time, without the driver."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from dpbench.algorithms import get
from dpbench.algorithms.base import batch_settings, make_settings, no_trace
from dpbench.algorithms.nonconvex_base import SEEDS
from dpbench.privacy.budget import Budget
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.noise import TorchCPU
from dpbench.problems import Problem

LAMBDA, D, N = 1e-3, 18, 3000
C_GRADIENT, T2 = 1.1, 1.646316  # 1 + c; t₂ of the line search along negative curvature
COMMON = {"rows": "as scaled", "overflow": "lost", "stream": "published"}
BATCHES = COMMON | {"batch_noise": "n", "batch_draw": "with replacement"}
ASKED = {
    "opt": COMMON | {"stop": "true loss", "loss_read": "before"},
    "opt-ls": COMMON | {"stop": "true loss", "loss_read": "before"},
    "2opt": COMMON | {"loss_read": "before", "cap": 2001},
    "2opt-ls": COMMON | {"loss_read": "before", "cap": 2001},
    "dp-tr": COMMON | {"loss_read": "before"},
    "opt-b": BATCHES | {"search": "rho <= 1"},
    "2opt-b": BATCHES | {"search": "rho <= 1"},
    "dp-tr-b": BATCHES,
}


@pytest.fixture(scope="module")
def signed():
    """Rows y·x, some of them longer than 1."""
    generator = np.random.default_rng(3)
    A = generator.standard_normal((N, D)) * 0.4
    A[:, 0] += 0.2
    return A


class Plain:
    """f, ∇f and ∇²f on the signed rows, with float32's overflow."""

    def __init__(self, A):
        self.A = A

    def __call__(self, w, rows=slice(None)):
        t = self.A[rows] @ w
        if t.min() < -88.722839:
            return math.inf
        return np.logaddexp(0, -t).mean() + LAMBDA * np.sum(w**2 / (1 + w**2))

    def gradient(self, w, rows=slice(None)):
        A, lost = self.A[rows], math.isinf(self(w, rows))
        return (
            np.full(D, np.nan)
            if lost
            else -A.T @ (1 / (1 + np.exp(A @ w))) / len(A) + (LAMBDA * 2 * w / (1 + w**2) ** 2)
        )

    def hessian(self, w, rows=slice(None)):
        A = self.A[rows]
        s = 1 / (1 + np.exp(A @ w))
        return (A.T * (s * (1 - s))) @ A / len(A) + LAMBDA * np.diag((2 - 6 * w**2) / (1 + w**2) ** 3)


def trust_region_step(H, g, radius):
    """The minimiser and its multiplier, by the secular equation; H is positive definite or g is in general position."""
    values, vectors = np.linalg.eigh(H)
    b = vectors.T @ g

    def norm(multiplier):
        return np.linalg.norm(b / (values + multiplier))

    if values[0] > 0 and norm(0.0) <= radius:
        return -vectors @ (b / values), 0.0
    low = max(0.0, -values[0]) + 1e-14
    multiplier = brentq(lambda x: norm(x) - radius, low, low + np.linalg.norm(g) / radius + 1, xtol=1e-15)
    return -vectors @ (b / (values + multiplier)), multiplier


def plain_run(A, method, alpha, epsilon, seed):
    """(printed loss, iterations, how it ended) as the scripts have it."""
    f, noise, rows_of = Plain(A), TorchCPU(seed), np.random.default_rng(seed)
    batch, search = method.endswith("-b"), method.endswith("-ls")
    w = noise.standard_normal(D)
    rho = (math.sqrt(epsilon + math.log(N)) - math.sqrt(math.log(N))) ** 2
    moved, moved_hessian = 2 / N, 2 * math.sqrt(D) / N
    rows, made, loss = slice(None), 0, math.nan
    if method.startswith("dp-tr"):
        T = math.ceil(3 / alpha**1.5)
        sigma = math.sqrt(T / rho)
        for _ in range(T):
            rows = rows_of.choice(N, size=N // 100) if batch else rows
            made, loss = made + 1, f(w)
            g = f.gradient(w, rows) + sigma * moved * noise.standard_normal(D)
            H = f.hessian(w, rows) + sigma * moved_hessian * noise.symmetric(D)
            if np.linalg.norm(g) < alpha and np.linalg.eigvalsh(H)[0] > -math.sqrt(alpha):
                return f(w) if batch else loss, made, "terminated"
            step, multiplier = trust_region_step(H, g, alpha)
            w = w + step
            if multiplier < math.sqrt(alpha):
                return f(w) if batch else loss, made, "terminated"
        return f(w) if batch else loss, made, "not terminated"
    short, negative = alpha / C_GRADIENT, math.sqrt(alpha) / 1.1
    decrease = 0.3 * 0.6 * short**2 if search else 0.8 * short**2 / 2
    other = 0.25 * T2**2 * negative**3 / 4 if search else 2 * (1 / 3 - 1 / 12 - 0.1) * negative**3
    T = math.ceil(0.5 / min(decrease, other))
    first = math.isqrt(T)
    phases = [(first, first, 0.75), (T, min(T, 2001 - first), 0.25)] if method.startswith("2") else [(T, T, 1.0)]
    for planned, most, share in phases:
        rho_0 = 1 / planned if batch else share * rho / planned
        sigma, last = math.sqrt((1.5 if search else 1.0) / rho_0), 100.0
        for t in range(most):
            rows = rows_of.choice(N, size=N // 100) if batch else rows
            made, loss, rises = made + 1, f(w, rows), False
            if method in ("opt", "opt-ls") and t % 10 == 0:
                rises, last = loss > last, loss
            g = f.gradient(w, rows)
            if np.isnan(g).any():
                return math.nan, made, "crashed"
            g = g + sigma * moved * noise.standard_normal(D)
            length = np.linalg.norm(g)

            def searched(direction, gamma, ratio, trials, enough, q, otherwise, sigma=sigma, w=w, loss=loss):
                threshold = 2 * sigma * q * float(noise.laplace())
                for _ in range(trials):
                    query = loss - f(w + gamma * direction) - enough(gamma) + 4 * sigma * q * float(noise.laplace())
                    if query > threshold:
                        return gamma
                    gamma *= ratio
                return otherwise

            if length > short:
                step, q = 1.0, moved * 12 * length
                if search:
                    step = searched(-g, 12.0, 0.6, 6, lambda s, x=length: 0.6 * s * x**2, q, 0.6)
                w = w - step * g
            else:
                values, vectors = np.linalg.eigh(f.hessian(w, rows) + sigma * moved_hessian * noise.symmetric(D))
                curvature, p = values[0], vectors[:, 0]
                p = -p if p @ g > 0 else p
                if curvature > -negative:
                    return f(w) if batch else loss, made, "terminated"
                bend = abs(curvature)
                step, widest = 2 * bend, 20 * T2 * bend
                if search:
                    step = searched(p, widest, 0.5, 5, lambda s, x=bend: s**2 * x / 8, moved * widest, T2 * bend)
                w = w + step * p
            if rises:
                return loss, made, "not terminated"
    return f(w) if batch else loss, made, "not terminated"


@pytest.mark.thorough_for("2opt-ls*")
@pytest.mark.parametrize("epsilon", [0.6, 5.0])
@pytest.mark.parametrize("method", ASKED)
def test_a_published_run_is_what_the_scripts_loops_give(signed, method, epsilon):
    alpha = 0.3 if method.startswith("dp-tr") else 0.2
    problem = Problem(signed, np.ones(N), row_bound=10.0, w2=LAMBDA)
    algorithm = get(method)
    settings = algorithm.complete(problem, make_settings(algorithm, ASKED[method] | {"alpha": alpha}))
    budget = Budget(epsilon, 1 / N, algorithm.relation, algorithm.paper_accounting)
    mechanisms = Mechanisms([str(i) for i in range(5)], budget, declared=algorithm.relation)
    mechanisms.seeds = tuple(range(5))
    shared = batch_settings([settings] * 5, algorithm.per_replicate)
    outcome = algorithm.run(problem, np.zeros((5, D)), mechanisms, shared, no_trace)
    losses, made, endings = zip(*(plain_run(signed, method, alpha, epsilon, seed) for seed in SEEDS), strict=True)
    assert [word.removesuffix(" (cap)") for word in outcome.columns["ending"]] == list(endings)
    assert outcome.columns["iterations"] == list(made)
    assert problem.value(outcome.W) == pytest.approx(losses, abs=1e-5)
