"""Losses ℓ(z, y) of a linear prediction z = <x, w> and a label y.

Each function takes z (k, b) and y (b,) and writes into `out` (k, b), which may be z itself: the hot path of
`rows` allocates nothing. All are stable at any margin: no overflow, no warning.

A package lists a loss of its own, a class or an instance, under the entry points ``dpbench.losses``, by the name that
the loss has. `check` holds it against what it declares before it is let in; then every method whose proof covers it
takes it.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import ClassVar

import numpy as np

from dpbench.errors import DataError, UserError, nearest

ENTRY_POINTS = "dpbench.losses"
UNBOUNDED = ("poisson", "tweedie", "gamma")  # asked for by name, and refused with the reason
EXP_MAX = 700.0  # exp overflows beyond 709; σ(-700) is 1e-304
EXP_MAX_SINGLE = 85.0  # the same in float32: beyond 88; σ(-85) is 1e-37


class Loss:
    """A loss and the constants that bound it for all z and both labels; `check` holds the one against the other.

    lipschitz: L0 = sup |ℓ'|.
    smoothness: L1 = sup |ℓ''|.
    hessian_lipschitz: L2 = sup |ℓ'''|.
    bounded_in_float: whether `derivative` as computed is within ±lipschitz for every z and y, roundings included.
    outputs: how many predictions a row has; the functions then take z (k·outputs, b), a model's rows together.
    trace: sup of the trace of ℓ's second derivative over the predictions of a row.
    family: what methods call it that take it with any number of outputs.
    version: part of the key of every run on it, of a loss that a package brings; raise it when its values change.
    For rows with ‖x‖₂ ≤ R the objective's constants are L0·R, L1·R², L2·R³.
    """

    name: ClassVar[str]
    convex: ClassVar[bool]
    binary: ClassVar[bool] = True  # labels are ±1
    smooth: ClassVar[bool] = True  # has a second derivative
    quadratic: ClassVar[bool] = False  # (y - z)²/2: Xᵀ X and Xᵀ y are all that it takes of the data
    logistic: ClassVar[bool] = False  # ℓ' = -yp and ℓ'' = p(1-p) with p in [0, 1]: the slope tells the curvature
    lipschitz: ClassVar[float]
    smoothness: ClassVar[float]
    hessian_lipschitz: ClassVar[float]
    bounded_in_float: ClassVar[bool] = False
    version: ClassVar[int] = 1
    outputs: int = 1

    @property
    def family(self) -> str:
        """The name, without the number of outputs."""
        return self.name

    @property
    def trace(self) -> float:
        """Of one output, `smoothness`."""
        return self.smoothness

    def check_labels(self, y: np.ndarray) -> None:
        """Raise DataError where labels are signs and one is neither -1 nor +1."""
        if self.binary and np.count_nonzero(y == 1) + np.count_nonzero(y == -1) != y.size:
            odd = y[np.abs(y) != 1][0]
            raise DataError(f"y: {self.name} loss needs labels -1 and +1, found {odd:g}; recode the labels")

    def value(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        """ℓ(z, y)."""
        raise NotImplementedError

    def derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        """∂ℓ/∂z."""
        raise NotImplementedError

    def second_derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        """∂²ℓ/∂z²."""
        raise NotImplementedError

    def quadratic_bound(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Weight of a quadratic that touches ℓ at z and lies above it everywhere ("qu")."""
        raise UserError(f"curvature: qu is defined for the logistic loss, not for {self.name}; use hess")

    def bounded(self, z: np.ndarray, y: np.ndarray, bound: float, out: np.ndarray) -> np.ndarray:
        """∂ℓ/∂z, clipped to ±bound."""
        return np.clip(self.derivative(z, y, out), -bound, bound, out=out)

    def inside(self, z: np.ndarray, y: np.ndarray, bound: float, out: np.ndarray) -> np.ndarray:
        """1 where ∂ℓ/∂z is within ±bound, 0 elsewhere."""
        return np.less_equal(np.abs(self.derivative(z, y, out), out=out), bound, out=out)

    def correct(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        """1 where z tells the label, 0 elsewhere: for labels ±1, where it has their sign."""
        return np.greater(np.multiply(z, y, out=out), 0, out=out)

    def conjugate(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Fenchel conjugate sup_z u·z - ℓ(z, y), for u in the range of ℓ'. Convex losses only."""
        raise NotImplementedError


class Logistic(Loss):
    """log(1 + exp(-y z)), y = ±1."""

    name, convex, logistic = "logistic", True, True
    lipschitz, smoothness, hessian_lipschitz = 1.0, 1 / 4, 1 / (6 * math.sqrt(3))
    bounded_in_float = True  # 1/(1 + e) is in [0, 1] as rounded, (1-y)/2 is 0 or 1, and so is their difference in ±1
    # In float32, (tanh - y)/2 with tanh in [-1, 1] as rounded.

    def value(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        margin = np.multiply(z, y, out=out)
        tail = np.abs(margin)
        tail = np.negative(tail, out=tail)
        tail = np.exp(tail, out=tail)
        tail = np.log1p(tail, out=tail)
        margin = np.minimum(margin, 0, out=margin)  # log(1+e^-m) = log(1+e^-|m|) - min(m, 0)
        return np.subtract(tail, margin, out=out)

    def derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        if z.dtype == np.float32:  # -y σ(-yz) = (tanh(z/2) - y)/2: half the time of the other, off by 1e-7 at most
            half = np.tanh(np.multiply(z, 0.5, out=out), out=out)
            return np.multiply(np.subtract(half, y, out=out), 0.5, out=out)
        # -y σ(-yz) = (1-y)/2 - σ(-z): one pass fewer than multiplying by y twice, exact to 1e-16.
        return np.subtract(0.5 - 0.5 * y, _reverse_sigmoid(z, out), out=out)

    def second_derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return _sigmoid_slope(z, out)

    def quadratic_bound(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        """tanh(z/2)/(2z), 1/4 at z = 0 (Ganesh et al. 2023, Section 3, after Jaakkola and Jordan 2000)."""
        z = np.maximum(np.abs(z, out=out), 1e-8, out=out)  # even in z, and 1/4 to the last bit below 1e-8
        half = np.multiply(z, 0.5)
        half = np.tanh(half, out=half)
        return np.divide(half, np.multiply(z, 2, out=out), out=out)

    def conjugate(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
        """a log a + (1-a) log(1-a) with a = -y u in [0, 1]."""
        a = np.clip(-y * u, 0, 1)
        from scipy.special import xlogy

        return xlogy(a, a) + xlogy(1 - a, 1 - a)


class Sigmoid(Loss):
    """σ(y z) = 1/(1 + exp(-y z)), y = ±1: smooth, bounded, nonconvex."""

    name, convex = "sigmoid", False
    lipschitz, smoothness, hessian_lipschitz = 1 / 4, 1 / (6 * math.sqrt(3)), 1 / 8

    def value(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return _reverse_sigmoid(np.negative(np.multiply(z, y, out=out), out=out), out)

    def derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return np.multiply(_sigmoid_slope(z, out), y, out=out)

    def second_derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        """σ'(m)(1 - 2σ(m)) with m = yz, and 1 - 2σ(m) = -tanh(m/2)."""
        bend = np.multiply(z, -0.5 * y)
        bend = np.tanh(bend, out=bend)
        return np.multiply(_sigmoid_slope(z, out), bend, out=out)


class Squared(Loss):
    """(y - z)²/2, any real label. Its gradient has no bound: a private method has to clip."""

    name, convex, binary, quadratic = "squared", True, False, True
    lipschitz, smoothness, hessian_lipschitz = math.inf, 1.0, 0.0

    def value(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        off = np.subtract(z, y, out=out)
        return np.multiply(np.multiply(off, off, out=out), 0.5, out=out)

    def derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return np.subtract(z, y, out=out)

    def second_derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return np.logical_or(z, True, out=out)  # 1, whatever z

    def conjugate(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
        return u * (0.5 * u + y)


class PseudoHuber(Loss):
    """√(1 + (z - y)²) - 1, any real label: squares near the label, distances far from it (Charbonnier et al. 1997)."""

    name, convex, binary = "pseudo-huber", True, False
    lipschitz, smoothness, hessian_lipschitz = 1.0, 1.0, 1.5 * 0.8**2.5

    def value(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return np.subtract(np.hypot(np.subtract(z, y, out=out), 1, out=out), 1, out=out)

    def derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        off = np.subtract(z, y, out=out)
        return np.divide(off, np.hypot(off, 1), out=out)

    def second_derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return np.power(np.hypot(np.subtract(z, y, out=out), 1, out=out), -3, out=out)

    def conjugate(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
        return u * y + 1 - np.sqrt(np.maximum(0, 1 - u * u))


class Quantile(Loss):
    """h ln(1 + e^{(z-y)/h}) - τ(z - y), any real label: the pinball loss of the τ-quantile, smoothed over h = 0.05.

    It is the mean pinball loss of a label to which a logistic variable of scale h is added (convolution smoothing:
    Fernandes, Guerre and Horta 2021), so a constant that minimises it is the τ-quantile of that sum; where labels are
    in [-1, 1], h is 2.5 % of their range. ℓ' = σ - τ with σ = 1/(1 + e^{(y-z)/h}) in [0, 1], so |ℓ'| ≤ max(τ, 1 - τ);
    ℓ'' = σ(1 - σ)/h ≤ 1/(4h); |ℓ'''| = σ(1 - σ)|1 - 2σ|/h² ≤ 1/(6√3 h²).
    """

    convex, binary = True, False
    h = 0.05
    smoothness, hessian_lipschitz = 1 / (4 * h), 1 / (6 * math.sqrt(3) * h**2)

    def __init__(self, tau: float) -> None:
        if not 0 < tau < 1:
            raise UserError(f"loss: quantile needs a number between 0 and 1 behind it, as in quantile-0.9, got {tau:g}")
        self.tau = tau
        vars(self).update(name=f"quantile-{np.format_float_positional(tau)}", lipschitz=max(tau, 1 - tau))

    @property
    def family(self) -> str:
        return "quantile"

    def value(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        off = np.subtract(z, y)
        np.logaddexp(0, off / self.h, out=out)
        return np.subtract(np.multiply(out, self.h, out=out), self.tau * off, out=out)

    def derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        off = np.divide(np.subtract(z, y, out=out), self.h, out=out)
        return np.subtract(_reverse_sigmoid(np.negative(off, out=out), out), self.tau, out=out)

    def second_derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        off = np.divide(np.subtract(z, y, out=out), self.h, out=out)
        return np.divide(_sigmoid_slope(off, out), self.h, out=out)

    def conjugate(self, u: np.ndarray, y: np.ndarray) -> np.ndarray:
        """u y + h (s ln s + (1-s) ln(1-s)) with s = u + τ in [0, 1]."""
        from scipy.special import xlogy

        s = np.clip(u + self.tau, 0, 1)
        return u * y + self.h * (xlogy(s, s) + xlogy(1 - s, 1 - s))


class Nonsmooth(Loss):
    """Base of losses with kinks: 1-Lipschitz and no more. At a kink, `derivative` is a subgradient."""

    convex, smooth = False, False
    lipschitz, smoothness, hessian_lipschitz = 1.0, math.inf, math.inf

    def second_derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        raise UserError(f"loss: {self.name} is not smooth and has no Hessian; use a method that asks for none")


class Ramp(Nonsmooth):
    """min(1, max(0, 1 - y z)), y = ±1: the hinge loss cut off at 1 (Collobert, Sinz, Weston and Bottou 2006)."""

    name = "ramp"

    def value(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return np.clip(np.subtract(1, np.multiply(z, y, out=out), out=out), 0, 1, out=out)

    def derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        """-y where 0 ≤ yz < 1, else 0."""
        margin = np.multiply(z, y, out=out)
        falling = (margin >= 0) & (margin < 1)
        return np.multiply(falling, -y, out=out)


class PhaseRetrieval(Nonsmooth):
    """| |z| - y |, y ≥ 0: robust phase retrieval (Duchi and Ruan 2019)."""

    name, binary = "phase", False

    def check_labels(self, y: np.ndarray) -> None:
        """Raise DataError unless every label, the size of a measurement, is at least 0."""
        if not np.all(y >= 0):
            raise DataError(f"y: phase loss needs labels >= 0, found {y[~(y >= 0)][0]:g}; give the sizes |<x, w>|")

    def value(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return np.abs(np.subtract(np.abs(z, out=out), y, out=out), out=out)

    def derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        """sign(z (|z| - y)); 1 or -1 at a kink, both in Clarke's subdifferential there."""
        beyond = np.abs(z)
        beyond = np.multiply(z, np.subtract(beyond, y, out=beyond), out=out)
        return np.copysign(1.0, beyond, out=out)  # a third of the time of np.sign


class ShortenedSlopes(Loss):
    """Base of losses whose derivative by all predictions of a row is bounded in norm."""

    def bounded(self, z: np.ndarray, y: np.ndarray, bound: float, out: np.ndarray) -> np.ndarray:
        """The derivatives, shortened to a norm of at most `bound`."""
        r = self.derivative(z, y, out).reshape(-1, self.outputs, z.shape[1])
        if bound < self.lipschitz:
            r *= np.minimum(1.0, bound / np.maximum(np.linalg.norm(r, axis=1, keepdims=True), bound / 2))
        return out


class Softmax(ShortenedSlopes):
    """log Σ_j exp(z_j) - z_y of `outputs` classes, y = 0, 1, …: multinomial logistic regression.

    Its gradient p - e_y has ‖p - e_y‖² = Σ_{j≠y} p_j² + (1 - p_y)² ≤ 2(1 - p_y)² ≤ 2, whatever the number of classes;
    its Hessian is diag(p) - ppᵀ ⪯ I/2, of trace 1 - ‖p‖² ≤ 1 - 1/outputs.
    """

    convex, binary = True, False
    lipschitz, smoothness, hessian_lipschitz = math.sqrt(2), 1 / 2, 1 / (3 * math.sqrt(3))

    def __init__(self, outputs: int) -> None:
        if outputs < 2:
            raise UserError(f"loss: softmax needs two classes or more, got {outputs}")
        self.outputs = outputs
        vars(self)["name"] = f"softmax-{outputs}"

    @property
    def family(self) -> str:
        return "softmax"

    @property
    def trace(self) -> float:
        return 1 - 1 / self.outputs

    def check_labels(self, y: np.ndarray) -> None:
        """Raise DataError unless every label is a class's number, from 0."""
        fine = (y == np.floor(y)) & (y >= 0) & (y < self.outputs)
        if not np.all(fine):
            raise DataError(f"y: {self.name} loss needs labels 0 to {self.outputs - 1}, found {y[~fine][0]:g}; recode")

    def value(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Of each model, the loss in the first of its rows and 0 in the others."""
        scores = z.reshape(-1, self.outputs, z.shape[1])
        top = scores.max(axis=1)
        mine = np.take_along_axis(scores, y.astype(int)[None, None], axis=1)[:, 0]
        losses = top - mine + np.log(np.exp(scores - top[:, None]).sum(axis=1))
        out[...] = 0.0
        out.reshape(scores.shape)[:, 0] = losses
        return out

    def derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        """p - e_y."""
        scores = z.reshape(-1, self.outputs, z.shape[1])
        # The largest score off: exp never overflows, and p is the same.
        p = np.subtract(scores, scores.max(axis=1, keepdims=True), out=out.reshape(scores.shape))
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        p[:, y.astype(int), np.arange(len(y))] -= 1
        return out

    def correct(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        """In the first of a model's rows, whether the label's score is the largest."""
        scores = z.reshape(-1, self.outputs, z.shape[1])
        right = scores.argmax(axis=1) == y
        out[...] = 0.0
        out.reshape(scores.shape)[:, 0] = right
        return out

    def second_derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        raise UserError(f"loss: {self.name} has no Hessian row by row here; use a method that asks for none")


class Weighted(ShortenedSlopes):
    """v(y)·ℓ(z, y): a loss of classes, each with a public weight v in (0, 1].

    A row moves the sum of gradients by v(y) times what it moves that of ℓ, so by the bound of ℓ at most. Weights that
    are larger than 1 would make the sensitivity larger by the largest of them: divide all by it, and the ridge too,
    and the minimiser is the same. The slope no longer tells the curvature, as v is not seen in it, so that methods
    that need that of the logistic loss take another proof here.

    weights: of -1 and +1, or of classes 0, 1, ….
    """

    def __init__(self, base: Loss, weights: tuple[float, ...]) -> None:
        count = base.outputs if base.outputs > 1 else 2
        if not (base.binary or base.outputs > 1):
            raise UserError(f"class_weight: {base.name} loss has no classes")
        if len(weights) != count or not all(0 < v <= 1 for v in weights):
            raise UserError(f"class_weight: {count} weights in (0, 1] are needed, got {weights}")
        self.base, self.weights, self.outputs = base, tuple(map(float, weights)), base.outputs
        most = max(self.weights)
        vars(self).update(
            name=f"weighted {base.name}",
            convex=base.convex,
            binary=base.binary,
            smooth=base.smooth,
            lipschitz=most * base.lipschitz,
            smoothness=most * base.smoothness,
            hessian_lipschitz=most * base.hessian_lipschitz,
            bounded_in_float=base.bounded_in_float and most == 1,  # v·ℓ' ≤ v as rounded
        )

    @property
    def family(self) -> str:
        return self.base.family

    @property
    def trace(self) -> float:
        return max(self.weights) * self.base.trace

    def check_labels(self, y: np.ndarray) -> None:
        """As of the loss that is weighted."""
        self.base.check_labels(y)

    def _of(self, y: np.ndarray) -> np.ndarray:
        """(b,) weights of the labels."""
        return np.asarray(self.weights)[(y > 0).astype(int) if self.outputs == 1 else y.astype(int)]

    def value(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return np.multiply(self.base.value(z, y, out), self._of(y), out=out)

    def derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return np.multiply(self.base.derivative(z, y, out), self._of(y), out=out)

    def second_derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return np.multiply(self.base.second_derivative(z, y, out), self._of(y), out=out)

    def correct(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        """As of the loss that is weighted."""
        return self.base.correct(z, y, out)


def _reverse_sigmoid(z: np.ndarray, out: np.ndarray) -> np.ndarray:
    """σ(-z) = 1/(1 + e^z): np.exp in place is six times as fast as scipy.special.expit.

    Clipped below too: where e^z underflows np.exp takes 13 to 80 ns an element instead of 0.7, and 1 + e^z is 1.
    """
    limit = EXP_MAX if z.dtype == np.float64 else EXP_MAX_SINGLE
    e = np.exp(np.clip(z, -limit, limit, out=out), out=out)
    return np.reciprocal(np.add(e, 1, out=out), out=out)


def _sigmoid_slope(z: np.ndarray, out: np.ndarray) -> np.ndarray:
    """σ(z) σ(-z) = e/(1+e)² with e = exp(-|z|)."""
    e = np.exp(np.negative(np.abs(z, out=out), out=out), out=out)
    one_plus = np.add(e, 1)
    one_plus = np.multiply(one_plus, one_plus, out=one_plus)
    return np.divide(e, one_plus, out=out)


LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (Logistic(), Sigmoid(), Squared(), PseudoHuber(), Ramp(), PhaseRetrieval())
}


def built_in(loss: Loss) -> bool:
    """Whether it is one of this module's, whose functions in float64 are known; with weights, what is weighted too."""
    return type(loss).__module__ == __name__ and (not isinstance(loss, Weighted) or built_in(loss.base))


FRESH = 4  # times that the points are moved, by less than the way to the next one


def check(loss: Loss) -> None:
    """UserError where a loss is not what it declares, at some of many z and labels: noise is set by its constants.

    A constant that is wrong where the loss is steepest is found, and a row's number that another row changes. It is no
    proof: between the points a loss may do what it likes. So beside the public points there are some that nobody knows
    before, at which each check looks for a spike anew. `dpbench audit --loss` looks at what is released.
    """
    if type(loss) is Weighted:
        check(loss.base)  # weights in (0, 1] take nothing from it
        return
    if type(loss) is Softmax:
        return  # its constants are proved in its docstring, and held by tests
    if loss.outputs > 1:
        raise UserError(f"loss: {loss.name} has several predictions a row, and softmax alone may; give one")
    # Dense about 0, where losses bend most, and geometric outwards, where slopes near their bounds.
    far = np.geomspace(1e-2, 50, 400)
    z = np.concatenate([-far[::-1], np.linspace(-8e-3, 8e-3, 9), far])
    for shift in (1.0, *np.random.default_rng().uniform(1, far[1] / far[0], FRESH)):
        _check_at(loss, shift * z)


def _check_at(loss: Loss, z: np.ndarray) -> None:
    """UserError where the loss is not what it declares at one of these z, which ascend."""
    for label in (-1.0, 1.0) if loss.binary else (0.0, 0.5, 1.0, 3.0):
        y = np.full_like(z, label)
        # Every second row has another z: those that keep theirs must keep their numbers.
        others = np.where(np.arange(len(z)) % 2, z, 3 * z + 1)
        for function in (loss.value, loss.derivative, *([loss.second_derivative] if loss.smooth else [])):
            alone = (_at(function, others, y) == _at(function, z, y)) | (others != z)
            _held(loss, f"{function.__name__} of one row depends on others", alone)
        value, slope = _at(loss.value, z, y), _at(loss.derivative, z, y)
        h = 1e-5 * np.maximum(1, np.abs(z))
        rise = (_at(loss.value, z + h, y) - _at(loss.value, z - h, y)) / (2 * h)
        # At a kink of the value a difference quotient is no derivative.
        kink = np.abs(_at(loss.derivative, z + 2 * h, y) - _at(loss.derivative, z - 2 * h, y)) > 0.1
        near = kink | (np.abs(rise - slope) <= 1e-4 * (1 + np.abs(rise)))
        _held(loss, "its derivative is not that of its value", near)
        _held(loss, f"|ℓ'| exceeds lipschitz = {loss.lipschitz:g}", np.abs(slope) <= loss.lipschitz * (1 + 1e-9))
        # By the mean value theorem one quotient of slopes above the constant refutes it.
        bends = np.diff(slope) / np.diff(z)
        most = loss.smoothness * (1 + 1e-6) + 1e-9
        _held(loss, f"|ℓ''| exceeds smoothness = {loss.smoothness:g}", np.abs(bends) <= most)
        _held(loss, "it is not convex", bends >= -1e-9) if loss.convex else None
        _held(loss, "it is not (y - z)²/2", np.isclose(value, (label - z) ** 2 / 2)) if loss.quadratic else None
        # A slope that grows shows its bound far away, and by labels that are large.
        distant = np.geomspace(50, 1e8, 200)
        for end in (label,) if loss.binary else (label, 1e4):
            there = _at(loss.derivative, np.concatenate([-distant, distant]), np.full(2 * len(distant), end))
            steep = np.abs(there) > loss.lipschitz * (1 + 1e-9)
            _held(loss, f"|ℓ'| exceeds lipschitz = {loss.lipschitz:g} where |z| or a label is large", ~steep)
        if not loss.smooth:
            continue
        second = _at(loss.second_derivative, z, y)
        _held(loss, f"|ℓ''| exceeds smoothness = {loss.smoothness:g}", np.abs(second) <= loss.smoothness * (1 + 1e-9))
        change = (_at(loss.derivative, z + h, y) - _at(loss.derivative, z - h, y)) / (2 * h)
        near = np.abs(change - second) <= 1e-4 * (1 + np.abs(change))
        _held(loss, "its second derivative is not that of its value", near)
        third = np.diff(second) / np.diff(z)
        _held(loss, f"|ℓ'''| exceeds hessian_lipschitz = {loss.hessian_lipschitz:g}",
              np.abs(third) <= loss.hessian_lipschitz * (1 + 1e-6) + 1e-9)  # fmt: skip
        if loss.logistic:
            p = -label * slope
            determined = (p >= 0) & (p <= 1) & np.isclose(second, p * (1 - p))
            _held(loss, "its slope does not determine its curvature", determined)


def _at(function: Callable[..., np.ndarray], z: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return function(z.copy()[None], y, np.empty((1, len(z))))[0]


def _held(loss: Loss, wrong: str, held: np.ndarray) -> None:
    if not np.all(held):
        raise UserError(f"loss: {loss.name} is not what it declares: {wrong}")


@cache
def names() -> tuple[str, ...]:
    """The built-in losses, then those of installed packages; one that cannot be used is warned of and left out."""
    kept = [*LOSSES]
    for name in sorted(_installed().keys() - LOSSES.keys()):
        try:
            get(name)
        except UserError as error:  # one broken package must not take the others along
            warnings.warn(f"{error}; it is left out", stacklevel=2)
        else:
            kept.append(name)
    return tuple(kept)


def get(name: str | Loss) -> Loss:
    """The loss called `name` (a `Loss` is passed through); UserError for none.

    "softmax-10" is that of ten classes, "quantile-0.9" that of the 90 % quantile.
    """
    if isinstance(name, Loss):
        return name
    family, _, outputs = str(name).rpartition("-")
    if family == "softmax" and outputs.isdecimal():
        return Softmax(int(outputs))
    if family == "quantile" and re.fullmatch(r"[0-9]*\.?[0-9]+", outputs):
        return Quantile(float(outputs))
    if name in LOSSES:
        return LOSSES[name]
    if name in _installed():
        return _plugin(name)
    if name in UNBOUNDED:
        raise UserError(f"loss: the slope of a {name} deviance has no bound, so no proof covers it; take pseudo-huber")
    raise UserError(f"loss: unknown loss {name!r}; {nearest(str(name), names())}")


@cache
def _installed() -> dict[str, EntryPoint]:
    """name → where it is; a built-in name is never a package's."""
    points = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    for name in sorted(points.keys() & LOSSES.keys()):
        warnings.warn(f"loss {name} ({points[name].value}) is left out: the name is taken", stacklevel=2)
    return points


@cache
def _plugin(name: str) -> Loss:
    """A package's loss, held against what it declares; UserError where it cannot be used."""
    where = f"loss {name} ({_installed()[name].value})"
    try:
        provided = _installed()[name].load()
        loss = provided() if isinstance(provided, type) else provided
    except Exception as error:  # a package of others may fail in any way; the line says which
        raise UserError(f"{where}: {type(error).__name__}: {error}") from error
    if not isinstance(loss, Loss):
        raise UserError(f"{where}: it must be a dpbench.problems.losses.Loss")
    if loss.name != name or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise UserError(f"{where}: its name is {loss.name!r}; call both alike, by small letters, digits and -")
    try:
        check(loss)
    except UserError as error:
        raise UserError(f"{where}: {str(error).removeprefix(f'loss: {name} is ')}") from error
    except Exception as error:  # of its functions
        raise UserError(f"{where}: its functions cannot be called: {type(error).__name__}: {error}") from error
    return loss
