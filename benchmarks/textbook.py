"""Textbook NumPy: each method's iterations as a paper's script would have them, for one replicate, plainly.

`function(X, y, T, rng)` runs T iterations on logistic loss (phase loss for o2nc) and returns the last iterate. Noise
scales are constants: only the time counts here. Correctness is the tests' business.
"""

from __future__ import annotations

import numpy as np

SIGMA, STEP, LAMBDA0, RIDGE, RADIUS = 1e-3, 1.0, 1e-2, 1e-2, 0.1


def gradient(X, y, w):
    coef = -y / (1 + np.exp(y * (X @ w)))
    return np.mean(X * coef[:, None], axis=0)


def value(X, y, w):
    return np.mean(np.log1p(np.exp(-y * (X @ w))))


def hessian(X, w):
    h = 1 / (2 * np.cosh(X @ w / 2)) ** 2
    return (X.T * h) @ X / len(X)


def gradient_descent(X, y, T, rng):
    w = np.zeros(X.shape[1])
    for _ in range(T):
        w = w - STEP * (gradient(X, y, w) + rng.normal(0, SIGMA, len(w)))
    return w


def oracle_step(X, y, T, rng):
    from scipy.optimize import minimize_scalar

    w = np.zeros(X.shape[1])
    for _ in range(T):
        g = gradient(X, y, w) + rng.normal(0, SIGMA, len(w))
        w = w - minimize_scalar(lambda step, w=w, g=g: value(X, y, w - step * g)).x * g
    return w


def nesterov(X, y, T, rng):
    x = previous = np.zeros(X.shape[1])
    for _ in range(T):
        z = x + 0.9 * (x - previous)
        noisy = gradient(X, y, z) + 0.02 * z + rng.laplace(0, SIGMA, len(z))
        x, previous = z - 0.1 * noisy, x
    return x


def accelerated(X, y, T, rng):
    w = average = np.zeros(X.shape[1])
    for t in range(1, T + 1):
        alpha = 2 / (t + 1)
        middle = average + alpha * (w - average)
        w = project(w - t / 4 * (gradient(X, y, middle) + rng.normal(0, SIGMA, len(w))))
        average = alpha * w + (1 - alpha) * average
    return average


def project(w, radius=10.0):
    return w * min(1, radius / max(np.linalg.norm(w), 1e-300))


def sgd(X, y, T, rng, rate=0.02):
    w = np.zeros(X.shape[1])
    for _ in range(T):
        rows = rng.random(len(X)) < rate
        w = w - STEP * (gradient(X[rows], y[rows], w) + rng.normal(0, SIGMA, len(w)))
    return w


def sgd_one(X, y, T, rng):
    w = np.zeros(X.shape[1])
    for _ in range(T):
        i = rng.integers(len(X))
        g = -y[i] / (1 + np.exp(y[i] * (X[i] @ w))) * X[i]
        g = g * min(1, 1 / max(np.linalg.norm(g), 1e-300))
        w = w - 1e-3 * (g + rng.normal(0, SIGMA, len(w)))
    return w


def coordinate_descent(X, y, T, rng):
    w, z = np.zeros(X.shape[1]), np.zeros(len(X))
    for _ in range(T):
        j = rng.integers(len(w))
        each = np.clip(-y / (1 + np.exp(y * z)) * X[:, j], -1, 1)
        move = -STEP * (np.mean(each) + rng.normal(0, SIGMA))
        w[j] += move
        z += move * X[:, j]
    return w


def greedy_coordinate_descent(X, y, T, rng):
    w = np.zeros(X.shape[1])
    for _ in range(T):
        coef = -y / (1 + np.exp(y * (X @ w)))
        g = np.mean(np.clip(X * coef[:, None], -1, 1), axis=0)
        j = np.argmax(np.abs(g + rng.laplace(0, SIGMA, len(w))))
        w[j] -= STEP * (g[j] + rng.laplace(0, SIGMA))
    return w


def newton(X, y, T, rng):
    w = np.zeros(X.shape[1])
    for _ in range(T):
        g = gradient(X, y, w) + rng.normal(0, SIGMA, len(w))
        values, vectors = np.linalg.eigh(hessian(X, w))
        w = w - vectors @ ((vectors.T @ g) / np.maximum(values, LAMBDA0)) + rng.normal(0, SIGMA, len(w))
    return w


def newton_minibatch(X, y, T, rng, rate=0.1):
    w = np.zeros(X.shape[1])
    for _ in range(T):
        rows, others = rng.random(len(X)) < rate, rng.random(len(X)) < rate
        g = gradient(X[rows], y[rows], w) + rng.normal(0, SIGMA, len(w))
        H = hessian(X[others], w) + LAMBDA0 * np.eye(len(w))
        w = w - np.linalg.solve(H, g) + rng.normal(0, SIGMA, len(w))
    return w


def damped_newton(X, y, T, rng):
    w = np.zeros(X.shape[1])
    for _ in range(T):
        g, H = gradient(X, y, w), hessian(X, w)
        b = np.linalg.norm(np.linalg.solve(H + 1e-8 * np.eye(len(w)), g))
        noise = rng.normal(0, SIGMA, H.shape)
        values, vectors = np.linalg.eigh(H + (noise + noise.T) / 2)
        noisy = g + rng.normal(0, SIGMA, len(w))
        w = w - np.log1p(b) / b * vectors @ ((vectors.T @ noisy) / np.maximum(values, 1e-5))
    return w


def cubic_newton(X, y, T, rng, inner=2000):
    w = np.zeros(X.shape[1])
    for _ in range(T):
        g, H = gradient(X, y, w) + RIDGE * w, hessian(X, w) + RIDGE * np.eye(len(w))
        theta, average = w, np.zeros_like(w)
        for i in range(inner):
            average = average + 2 * (i + 1) / (inner * (inner + 1)) * theta
            u = theta - w
            model = g + H @ u + 0.05 * np.linalg.norm(u) * u + rng.normal(0, SIGMA, len(w))
            theta = project(theta - 2 / (RIDGE * (i + 2)) * model)
        w = average
    return w


def objective_perturbation(X, y, T, rng):
    """A whole fit: Newton's method on the perturbed objective to a gradient of 1/n²."""
    w, b = np.zeros(X.shape[1]), rng.normal(0, SIGMA, X.shape[1])
    for _ in range(100):
        g = gradient(X, y, w) + RIDGE * w + b
        if np.linalg.norm(g) <= len(X) ** -2:
            break
        w = w - np.linalg.solve(hessian(X, w) + RIDGE * np.eye(len(w)), g)
    return w + rng.normal(0, SIGMA, len(w))


def boosted_least_squares(X, y, T, rng):
    """One noisy Gram matrix, then T steps on the mean of clipped residuals times rows."""
    n, d = X.shape
    E = rng.normal(0, SIGMA, (d, d))
    P = np.linalg.inv(X.T @ X / n + (E + E.T) / 2 + RIDGE * np.eye(d))
    w = np.zeros(d)
    for _ in range(T):
        w = w - P @ (X.T @ np.clip(X @ w - y, -0.3, 0.3) / n + rng.normal(0, SIGMA, d))
    return w


def saddle_point_escape(X, y, T, rng, m=None):
    """opt and its like: a noisy gradient step, or where it is small a step along the smallest eigenvector."""
    w = np.zeros(X.shape[1])
    for _ in range(T):
        rows = slice(None) if m is None else rng.choice(len(X), m, replace=False)
        g = gradient(X[rows], y[rows], w) + rng.normal(0, SIGMA, len(w))
        small = np.linalg.norm(g) <= 1e-4
        w = w + STEP * (np.linalg.eigh(hessian(X[rows], w))[1][:, 0] if small else -g)
    return w


def trust_region(X, y, T, rng, m=None):
    """The model's minimiser in a ball, by eigenvectors and Newton's method on the secular equation."""
    w, radius = np.zeros(X.shape[1]), 0.1
    for _ in range(T):
        rows = slice(None) if m is None else rng.choice(len(X), m, replace=False)
        g = gradient(X[rows], y[rows], w) + rng.normal(0, SIGMA, len(w))
        noise = rng.normal(0, SIGMA, (len(w), len(w)))
        values, vectors = np.linalg.eigh(hessian(X[rows], w) + (noise + noise.T) / 2)
        coordinates, shift = vectors.T @ g, max(0, -values[0]) + 1e-6
        for _ in range(20):
            norm = np.linalg.norm(coordinates / (values + shift))
            slope = np.sum(coordinates**2 / (values + shift) ** 3)
            shift = max(shift + (norm / radius - 1) * norm**2 / slope, max(0, -values[0]) + 1e-9)
        w = w - vectors @ (coordinates / (values + shift))
    return w


def zeroth_order(X, y, T, rng):
    """One row an iteration: d two-point estimates, as a difference to the iterate before."""
    d = X.shape[1]
    w = before = np.ones(d)
    g = np.zeros(d)
    for i in range(T):
        x, target = X[i % len(X)], y[i % len(X)]
        for _ in range(d):
            u = rng.normal(size=d)
            u = u / np.linalg.norm(u)
            change = abs((x @ (w + RADIUS * u)) ** 2 - target) - abs((x @ (before + RADIUS * u)) ** 2 - target)
            g = g + change * u / RADIUS
        w, before = w - 1e-4 * (g + rng.normal(0, SIGMA, d)), w
    return w
