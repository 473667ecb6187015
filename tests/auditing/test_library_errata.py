"""The library errata by two routes: by hand from the published formulas, and by the audit where the library is."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid

from dpbench.auditing.foreign import audit_callable

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "guides" / "library_errata.md").read_text(encoding="utf-8")


def by_hand(learner):
    """The number that the page's table has for `learner` by hand."""
    (row,) = [line for line in PAGE.splitlines() if line.startswith("|") and learner in line]
    return float(re.findall(r"\d+\.\d+", row.split("|")[-3])[0])


def laplace_within(t, scale):
    return -np.expm1(-t / scale)


def test_linear_regression_by_hand():
    b = 3 * 100.0**2  # three coefficients share ε = 1
    t = b / 10_001
    told = np.log(laplace_within(t, b / 10_001) / laplace_within(t, b))
    assert told == pytest.approx(by_hand("bounds [0, 100]"), abs=0.1)


def log_density(w, x, y, ridge, beta):
    """Of the one coefficient of logistic regression with <b, w> added, |b| exponential; other rows at 0."""
    s = 1 / (1 + np.exp(-w * x))
    return np.log(beta / 2) - beta * np.abs((s - y) * x + ridge * w) + np.log(s * (1 - s) * x * x + ridge)


def event(data_norm, C, epsilon=1.0):
    """The largest log-ratio of an event of probability 0.03 or more, and the supremum: a row at data_norm or at 0."""
    left = epsilon - 2 * np.log1p(0.25 * data_norm * C)
    assert left > 0
    half = np.geomspace(1e-9, 5.0, 20_001)
    w = np.concatenate([-half[::-1], half])
    one, other = (log_density(w, x, 1.0, 1 / C, left / (2 * data_norm)) for x in (data_norm, 0.0))
    ratios = []
    for threshold in np.linspace(0, (one - other).max() * 0.98, 60):
        here = one - other > threshold
        p, q = (trapezoid(np.where(here, np.exp(each), 0.0), w) for each in (one, other))
        ratios += [np.log(p / q)] if p > 0.03 else []
    return max(ratios), (one - other).max()


def test_logistic_regression_by_hand():
    told, most = event(100.0, 1 / 250)
    assert told == pytest.approx(by_hand("data_norm 100"), abs=0.02)
    assert most == pytest.approx(2.21, abs=0.01)
    assert max(event(1.0, 1.0)) < 1.0  # and on rows as the paper has them, nothing


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "logistic_long_rows", "logistic_classes"])
def test_the_audit_finds_each(name):
    try:
        import diffprivlib.models  # noqa: F401
    except ImportError as error:
        pytest.skip(f"the extra rivals is not installed: {error}")
    spec = importlib.util.spec_from_file_location("targets", ROOT / "examples" / "audit_diffprivlib.py")
    targets = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(targets)
    done = audit_callable(getattr(targets, name), 1.0, runs=6000)
    assert not done.passed
    assert audit_callable(targets.logistic, 1.0, runs=400).passed
