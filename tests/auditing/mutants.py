"""Defects that were put into the house, and what of the audit notices each: a list to hold the audit against.

A mutant is a function of which one text is replaced by another. `by` audits an algorithm ("dp-gd") or one kind of
release alone ("release: tree"). Where no audit can notice, `unseen` says why.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from typing import NamedTuple


class Mutant(NamedTuple):
    """`old` → `new` in `target` ("module:Class.function" below dpbench) breaks what `breaks` says."""

    target: str
    old: str
    new: str
    breaks: str
    by: str
    unseen: str = ""


SEAM, MECH, SAMPLE = "privacy.noise:", "privacy.mechanisms:", "privacy.sampling:"
A = "algorithms."

MUTANTS = (
    # The seam: noise and ledger
    Mutant(SEAM + "Releases.noisy", "out *= scale if", "out *= 0.5 * scale if", "half of all noise", "dp-gd"),
    Mutant(
        SEAM + "Releases.noisy",
        "noise.fill(generator,",
        "noise.fill(np.random.default_rng(7),",
        "noise that is known: the same for every replicate and release",
        "dp-gd",
    ),
    Mutant(
        SEAM + "Releases.noisy",
        "zip(self.streams, self.noise,",
        "zip(self.streams, copy.deepcopy(self.noise),",
        "every release adds the noise of the first",
        "dp-gd",
    ),
    Mutant(
        SEAM + "Releases.noisy",
        "return out",
        "return np.where(np.abs(out - value) < 2 * scale, out, value)",
        "noise in its tails is left out",
        "release: Gaussian, vector",
    ),
    Mutant(
        SEAM + "Releases.scaled_sensitivity",
        "return self.factor",
        "return 0.5 * self.factor",
        "all sensitivities halved",
        "release: Laplace",
    ),
    Mutant(
        SEAM + "Releases.release",
        "realised, label, value",
        "2 * realised, label, value",
        "the ledger says twice the noise that is drawn",
        "dp-gd",
    ),
    Mutant(
        SEAM + "Releases.release", "scale, realised, count)", "scale, realised, 0)", "the ledger stays empty", "dp-gd"
    ),
    Mutant(
        SEAM + "Releases.release",
        "np.asarray(moved * multiplier",
        "np.asarray(moved * multiplier * 0.6",
        "less noise than asked for, and the ledger knows",
        "dp-gd",
    ),
    Mutant(
        SEAM + "_symmetric",
        "generator.standard_normal(len(rows))",
        "np.where(rows == columns, generator.standard_normal(len(rows)), 0)",
        "no noise off the diagonal",
        "release: Gaussian, symmetric matrix",
    ),
    Mutant(
        SEAM + "_isometric",
        "np.sqrt(0.5)",
        "0.5",
        "noise off the diagonal is √2 too small",
        "release: Gaussian, symmetric matrix, √2 less off the diagonal",
    ),
    Mutant(
        SEAM + "_laplace",
        "generator.laplace(size=out.shape)",
        "generator.standard_normal(out.shape)",
        "normal noise where Laplace noise is due",
        "release: Laplace",
    ),
    Mutant(
        SEAM + "_normal",
        "generator.standard_normal(out=out)",
        "out[...] = generator.standard_normal()",
        "one number for all entries",
        "dp-gd",
    ),
    # The mechanisms
    Mutant(MECH + "_multiplier_of", "np.divide(0.5, rho)", "np.divide(0.1, rho)", "noise for five times ρ", "dp-gd"),
    Mutant(
        "privacy.sampling:laplace_multiplier",
        "np.divide(1.0, epsilon)",
        "np.divide(0.5, epsilon)",
        "Laplace noise for 2ε",
        "dp-gcd",
    ),
    Mutant(
        MECH + "Mechanisms._choose",
        "unit = 2.0 / np.asarray(epsilon, dtype=float)",
        "unit = 1.0 / np.asarray(epsilon, dtype=float)",
        "report noisy max with the noise for scores that all move the same way",
        "dp-gcd",
    ),
    Mutant(
        MECH + "Mechanisms._choose",
        "noisy = self.releases.noisy(scores, scale, GUMBEL if event is BoundedRange else LAPLACE)",
        "noisy = scores.copy()",
        "the largest score itself is released",
        "release: noisy max",
    ),
    Mutant(
        MECH + "AboveThreshold.__init__",
        "self._noisy(threshold, 2.0)",
        "float(threshold)",
        "a threshold without noise",
        "release: sparse vector",
    ),
    Mutant(
        MECH + "AboveThreshold.__call__",
        "self._noisy(query, 4.0)",
        "self._noisy(query, 1.0)",
        "a quarter of the noise of a query",
        "release: sparse vector",
    ),
    Mutant(
        MECH + "AboveThreshold.__call__",
        "self._open = not fired",
        "pass",
        "it goes on answering at one price",
        "release: sparse vector",
    ),
    Mutant(
        MECH + "Mechanisms.last_iterate",
        " * growth(steps, contraction)",
        "",
        "every step has the noise of a run of one step",
        "dp-gd-last",
    ),
    Mutant(
        MECH + "Mechanisms.last_iterate",
        "scale, NORMAL",
        "0.3 * scale, NORMAL",
        "hidden steps with less noise than the ledger has",
        "dp-gd-last",
    ),
    Mutant(
        SEAM + "Releases.term",
        "(self.k, d), scale, noise",
        "(self.k, d), 0.4 * scale, noise",
        "a random linear term smaller than the ledger has",
        "aop",
    ),
    # Samples
    Mutant(
        SAMPLE + "PoissonSampler.rule",
        "self.n, self.rate)",
        "self.n, min(1, 1.6 * self.rate))",
        "samples are larger than accounted",
        "dp-sgd",
    ),
    Mutant(
        SAMPLE + "WithoutReplacementSampler.rule",
        "self.n, self.m)",
        "self.n, min(self.n, 2 * self.m))",
        "samples are twice as large as accounted",
        "release: Gaussian, sample without replacement",
    ),
    Mutant(
        SAMPLE + "Sampler.draw",
        "return self._releases.sample(self.rule, np.arange(self.least))",
        "self._kept = getattr(self, '_kept', None) or self._releases.sample(self.rule, np.arange(self.least))\n"
        "    return self._kept",
        "one sample for all iterations",
        "dp-sgd",
    ),
    Mutant(
        SAMPLE + "Sampler._admit",
        "raise PrivacyError",
        "PrivacyError",
        "two releases may be made on one sample",
        "dp-sgd",
        unseen="no algorithm asks for a second release on a sample: the guard is for those to come",
    ),
    Mutant(
        SAMPLE + "WithoutReplacementSampler.one_row_steps",
        "0.0 if self._releases.noiseless else z",
        "0.25 * z",
        "a quarter of the noise on the steps of one row",
        "dp-sgd-1",
    ),
    Mutant(
        "privacy.sampling:SinglePass.take",
        "self._used += b",
        "pass",
        "all rounds use the same rows",
        "release: single pass",
    ),
    Mutant(
        "privacy.sampling:Epochs._count",
        "return int(self.epoch > charged)",
        "return 0",
        "the pass is not in the ledger",
        "o2nc-naive",
    ),
    # Noise with structure
    Mutant(
        "privacy.correlated:tree_sensitivity",
        "np.sqrt(holders(rounds))",
        "1.0",
        "a row is counted in one node of the tree",
        "release: tree",
    ),
    Mutant(
        "privacy.correlated:holders",
        "np.cumsum(steps)[1 : rounds + 1]",
        "np.cumsum(steps)[1 : rounds + 1] - 1",
        "a row is counted in one node less",
        "release: tree",
    ),
    Mutant(
        "privacy.correlated:Tree._noisy",
        "total = self._noise[-1][1] + fresh if self._noise else fresh",
        "total = self._noise[-1][1] if self._noise else fresh",
        "a node reuses the noise of the one before",
        "release: tree",
    ),
    Mutant(
        "privacy.correlated:node_std",
        "return tree_sensitivity(",
        "return 0.5 ** (rounds >= 8) * tree_sensitivity(",
        "half of the noise of a node, of trees of eight rounds or more",
        "o2nc-tree",
    ),
    Mutant(
        "privacy.correlated:holders",
        "np.cumsum(steps)[1 : rounds + 1]",
        "np.cumsum(steps)[1 : rounds + 1] - (rounds >= 8)",
        "the largest node is forgotten, of trees of eight rounds or more",
        "o2nc-tree",
    ),
    Mutant(
        A + "o2nc:O2NCTree._release",
        "4 * d * L / T",
        "3 * d * L / T",
        "three quarters of the sensitivity after the first round",
        "o2nc-tree",
    ),
    Mutant(
        "privacy.correlated:Tree._noisy",
        "if self._noise else",
        "if self._noise and self.t < 9 else",
        "from the ninth round on only the last node of a sum has noise",
        "o2nc-tree",
    ),
    Mutant(
        "privacy.correlated:Tree._noisy",
        "fresh = self",
        "fresh = 0.5 ** (self.t > 8) * self",
        "half of the noise of a node from the ninth round on",
        "o2nc-tree",
    ),
    Mutant(
        "privacy.correlated:sensitivity",
        "norms[first::separation].sum()",
        "norms[first::separation].max()",
        "a row is counted in one epoch",
        "dp-mf",
    ),
    Mutant(
        "privacy.correlated:Correlated._noisy",
        "fresh - sum(",
        "fresh - 1.5 * sum(",
        "noise cancels more than the matrix allows",
        "release: correlated noise, two epochs",
    ),
    Mutant(
        "privacy.correlated:coefficients",
        "(2 * j - 1) / (2 * j)",
        "(2 * j - 1) / (4 * j)",
        "another matrix, in noise and sensitivity alike",
        "dp-mf",
        unseen="it is as private: the sensitivity is computed from the same entries",
    ),
    # Algorithms: sensitivities
    Mutant(
        A + "gradient_descent:DPGradientDescent.run",
        "problem.lipschitz / problem.n",
        "0.9 * problem.lipschitz / problem.n",
        "nine tenths of the sensitivity",
        "dp-gd",
    ),
    Mutant(
        A + "gradient_descent:DPGradientDescent.run", "/ settings.T", "", "every step spends the whole budget", "dp-gd"
    ),
    Mutant(
        A + "gradient_descent:DPGradientDescent.run",
        "step * gradient",
        "step * (gradient + 1e-6 * problem.gradient(W))",
        "a trace of the exact gradient in every step",
        "dp-gd",
    ),
    Mutant(
        A + "base:at_default_step",
        "1 / problem.objective_smoothness",
        "1 / (1 + problem.row_norms[0])",
        "the default step reads a row",
        "dp-gd",
    ),
    Mutant(
        A + "newton:DPNewton.run",
        "sensitivity=1 / n,",
        "sensitivity=0.5 / n,",
        "half of the gradient's sensitivity",
        "dp-newton-hess-clip",
    ),
    Mutant(
        A + "newton:DPNewton.run",
        "sensitivity=SMOOTHNESS / n",
        "sensitivity=0.5 * SMOOTHNESS / n",
        "half of the trace's sensitivity",
        "dp-newton-hess-clip",
    ),
    Mutant(
        A + "newton:DPNewton.run",
        "np.maximum(noisy, 0)",
        "np.maximum(np.trace(H, axis1=1, axis2=2), 0)",
        "λ₀ from the exact trace",
        "dp-newton-hess-clip",
    ),
    Mutant(
        A + "newton:inverse_sensitivity",
        "sign * lambda0",
        "3 * lambda0 + sign * lambda0",
        "the direction's sensitivity is too small",
        "dp-newton-hess-add",
    ),
    Mutant(
        A + "newton:inverse_sensitivity",
        "4 * n * lambda0**2",
        "8 * n * lambda0**2",
        "half of the direction's sensitivity",
        "dp-newton-hess-clip",
    ),
    Mutant(
        A + "newton:DPNewton.run",
        "sensitivity=norms * one",
        "sensitivity=one * np.minimum(norms, 0.1)",
        "the direction's sensitivity leaves out how long the gradient is",
        "dp-newton-hess-add",
    ),
    Mutant(
        A + "newton_variants:inverse_sensitivity",
        "L1 * C / (n",
        "L1 * C / (1.2 * n",
        "the direction's sensitivity is a fifth too small",
        "dp-newton-general",
    ),
    Mutant(
        A + "newton:DPNewtonMinibatch.run",
        "sensitivities(b,",
        "sensitivities(n,",
        "sensitivity of all rows for a sample",
        "dp-newton-minibatch-hess-add",
    ),
    Mutant(
        A + "newton:DPNewtonMinibatch.run",
        "sensitivity=norms * one",
        "sensitivity=0.6 * norms * one",
        "the sensitivity of a clipped direction on a sample is too small",
        "dp-newton-minibatch-hess-clip",
    ),
    Mutant(
        A + "stochastic:DPSGD.run",
        "sensitivity=problem.lipschitz",
        "sensitivity=0.5 * problem.lipschitz",
        "half of the sensitivity on samples",
        "dp-sgd",
    ),
    Mutant(
        A + "newton_variants:CubicNewton._minimise_model",
        "+ problem.smoothness * D",
        "",
        "the model's curvature is left out of its sensitivity",
        "cubic-newton",
    ),
    Mutant(
        A + "momentum:DPAcceleratedNesterov.run",
        "rho=rho / T",
        "rho=4 * rho / T",
        "four times the budget",
        "dp-accelerated-nesterov",
    ),
    Mutant(
        A + "momentum:noise_of",
        "sensitivity = 2 *",
        "sensitivity = 1 *",
        "add/remove noise for replace-one",
        "dp-nag",
    ),
    Mutant(
        A + "coordinate:DPCoordinateDescent.run",
        "sensitivity=2 / problem.n",
        "sensitivity=1 / problem.n",
        "add/remove noise for replace-one",
        "dp-cd",
    ),
    Mutant(A + "coordinate:DPGreedyCD.run", "s = 2 * clip", "s = clip", "add/remove noise for replace-one", "dp-gcd"),
    Mutant(
        A + "coordinate:DPGreedyCD.run",
        "data[replicates, j]",
        "problem.data_gradient(W)[replicates, j]",
        "the released coordinate is not clipped",
        "dp-gcd",
    ),
    Mutant(
        A + "sufficient_statistics:AdaSSP.run",
        "label_moments(bound)",
        "label_moments(np.inf)",
        "labels are not clipped",
        "adassp",
    ),
    Mutant(
        A + "sufficient_statistics:AdaSSP.run",
        "sensitivity=problem.row_bound * bound",
        "sensitivity=0.7 * bound",
        "the moments' sensitivity is too small",
        "adassp",
    ),
    Mutant(
        A + "o2nc:O2NCNaive._release",
        "sensitivity = 2 * factor",
        "sensitivity = factor",
        "half of the sensitivity (the text's slip)",
        "o2nc-naive",
    ),
    Mutant(
        A + "nonconvex_oracle:FullBatch.__init__",
        "2 * B_g, 2 * B_H",
        "2 * B_g, 1.5 * B_H",
        "the Hessian's sensitivity is too small",
        "opt",
    ),
    Mutant(
        A + "nonconvex_oracle:FullBatch.__init__",
        "2 * B_g,",
        "1.5 * B_g,",
        "the gradient's sensitivity is too small",
        "dp-tr",
    ),
    Mutant(
        A + "nonconvex_oracle:FullBatch.__init__",
        "2 * B_H * math.sqrt(problem.d)",
        "2 * B_H",
        "√d is left out of the Hessian's sensitivity",
        "opt",
        unseen="a row's Hessian is of rank one here: its Frobenius norm is its spectral norm, and √d is slack",
    ),
    Mutant(
        A + "nonconvex_oracle:LineSearch._search",
        "2 * step",
        "1 * step",
        "half of a query's sensitivity",
        "opt-ls",
    ),
    Mutant(
        A + "nonconvex:DPGD2NS.descent",
        "w = w - g / const.G",
        "w = w - problem.gradient(w[None])[0] / const.G",
        "it descends by the exact gradient",
        "dp-gd-2ns",
    ),
    # Problems
    Mutant(
        "problems.losses:Logistic.derivative",
        "return np.subtract(0.5 - 0.5 * y, _reverse_sigmoid(z, out), out=out)",
        "return 1.5 * np.subtract(0.5 - 0.5 * y, _reverse_sigmoid(z, out), out=out)",
        "gradients are longer than L₀",
        "dp-gd",
    ),
)


def mutate(mutant: Mutant, monkeypatch) -> None:
    """Put the defect in, for as long as `monkeypatch` lasts; AssertionError where the text is not there."""
    module_name, _, path = mutant.target.partition(":")
    module = importlib.import_module(f"dpbench.{module_name}")
    *owners, name = path.split(".")
    owner = module
    for each in owners:
        owner = getattr(owner, each)
    raw = inspect.getattr_static(owner, name)
    function = raw.__func__ if isinstance(raw, staticmethod) else raw
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(mutant.old) >= 1, f"{mutant.target} has no {mutant.old!r}"
    source = source[source.index("def ") :].replace(mutant.old, mutant.new, 1)
    namespace: dict = {}
    code = compile("from __future__ import annotations\n" + source, f"<mutant of {path}>", "exec")
    exec(code, module.__dict__, namespace)
    monkeypatch.setattr(function, "__code__", namespace[name].__code__)  # for whoever holds the function, too
