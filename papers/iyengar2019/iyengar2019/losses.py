"""The paper's second loss: the hinge, smoothed (lossfunctions/huber_svm.py, h = 0.1)."""

import math

import numpy as np
from dpbench.problems.losses import Loss

H = 0.1


class HuberSVM(Loss):
    """0 for m = yz > 1 + h, 1 - m for m < 1 - h, and (1 + h - m)²/(4h) between: |ℓ'| ≤ 1, ℓ'' ≤ 1/(2h) = 5.

    Its second derivative jumps, so it has no bound on the third: methods that need one refuse it.
    """

    name, convex = "huber-svm", True
    lipschitz, smoothness, hessian_lipschitz = 1.0, 1 / (2 * H), math.inf

    def value(self, z, y, out):
        """ℓ(z, y)."""
        short = 1 + H - np.multiply(z, y, out=out)
        inside = np.clip(short, 0, 2 * H)
        out[...] = inside**2 / (4 * H) + (short - inside) * (short > 2 * H)
        return out

    def derivative(self, z, y, out):
        """-y·min(1, max(0, (1 + h - m)/(2h)))."""
        np.multiply(z, y, out=out)
        return np.multiply(np.clip((1 + H - out) / (2 * H), 0, 1), -y, out=out)

    def second_derivative(self, z, y, out):
        """1/(2h) where |1 - m| ≤ h, else 0."""
        np.multiply(z, y, out=out)
        return np.multiply(np.abs(1 - out) <= H, 1 / (2 * H), out=out)
