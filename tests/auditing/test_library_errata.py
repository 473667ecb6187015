"""The library errata by two routes: by hand from the published formulas, and by the audit where the library is."""

import importlib.util
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.optimize import brentq
from scipy.stats import laplace, norm

from dpbench.auditing.foreign import audit_callable
from dpbench.privacy.accounting.gaussian import gaussian_mu

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "guides" / "library_errata.md").read_text(encoding="utf-8")


def by_hand(learner, column=-3):
    """The number that the page's table has for `learner` by hand."""
    (row,) = [line for line in PAGE.splitlines() if line.startswith("|") and learner in line]
    return float(re.findall(r"\d+\.\d+", row.split("|")[column])[0])


def audited(learner):
    """And by the audit."""
    return by_hand(learner, -4)


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
    """Probabilities and ends of the event of 0.03 or more with the largest ratio, and the supremum of ln ratio.

    Of a row at data_norm against one at 0.
    """
    left = epsilon - 2 * np.log1p(0.25 * data_norm * C)
    assert left > 0
    half = np.geomspace(1e-9, 5.0, 20_001)
    w = np.concatenate([-half[::-1], half])
    one, other = (log_density(w, x, 1.0, 1 / C, left / (2 * data_norm)) for x in (data_norm, 0.0))
    found = []
    for threshold in np.linspace(0, (one - other).max() * 0.98, 60):
        here = one - other > threshold
        p, q = (trapezoid(np.where(here, np.exp(each), 0.0), w) for each in (one, other))
        found += [(p / q, p, q, w[here].min(), w[here].max())] if p > 0.03 else []
    return *max(found)[1:], (one - other).max()


def test_logistic_regression_by_hand():
    p, q, _, _, most = event(100.0, 1 / 250)
    assert np.log(p / q) == pytest.approx(by_hand("data_norm 100"), abs=0.02)
    assert most == pytest.approx(2.21, abs=0.01)
    assert event(1.0, 1.0)[-1] < 1.0  # and on rows as the paper has them, nothing


def test_boosted_adassp_by_hand():
    """Noise of deviation μ on a label that moves by 2 around 0."""
    mu = gaussian_mu(1.0, 1e-6)
    told = np.log((norm.cdf(1 / mu) - 1e-6) / norm.cdf(-1 / mu))
    assert told == pytest.approx(by_hand("BoostedAdaSSP"), abs=0.01)
    assert np.sqrt(102) / mu**2 == pytest.approx(180, abs=0.5)


def test_tukey_em_by_hand():
    """Laplace noise of scale ε/2 on distances of 8 and 7, against a threshold of ln(1/2δ)/(ε/2)."""
    delta, scale = 0.01, 0.5
    threshold = np.log(1 / (2 * delta)) / scale
    passes = [laplace.sf(threshold, loc=distance, scale=scale) for distance in (8, 7)]
    assert np.log((passes[0] - delta) / passes[1]) == pytest.approx(by_hand("TukeyEM"), abs=0.01)
    right = [laplace.sf(threshold, loc=distance, scale=1 / scale) for distance in (8, 7)]
    assert np.log(right[0] / right[1]) <= 0.5


def published():
    spec = importlib.util.spec_from_file_location("published", ROOT / "examples" / "audit_published.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_amp_by_hand():
    """Whatever the byte, the four empty columns tell the noise and the first one then tells the label."""
    amp, n, gamma = published(), 100, 1e-4
    objective, output, ridge = amp.amp_noise(n, 5, 1.0, gamma)

    def fitted(b, out, label):
        at = brentq(lambda w: ridge * w + n * b[0] - label / (1 + np.exp(label * w)), -100, 100)
        return np.append(at, -n * b[1:] / ridge) + out

    told = {
        label: np.array(
            [amp.without_noise(fitted(*noise, label), n, 1.0, gamma) for noise in zip(objective, output, strict=True)]
        )
        for label in (1.0, -1.0)
    }
    assert told[1.0].min() > 1 / (n * ridge)  # more than the solver's tolerance moves it
    assert told[-1.0].max() < -1 / (n * ridge)
    fresh = np.random.default_rng(0)  # and of a seed that is not one of the 256, next to nothing
    noise = [fresh.normal(size=(400, 5)) * drawn.std() for drawn in (objective, output)]
    signs = [np.sign(amp.without_noise(fitted(*each, 1.0), n, 1.0, gamma)) for each in zip(*noise, strict=True)]
    assert abs(np.mean(signs)) < 0.2


@pytest.mark.skipif("PUBLISHED" not in os.environ, reason="PUBLISHED names no folder with the authors' files")
@pytest.mark.parametrize(("name", "runs"), [("boosted", 1000), ("tukey", 4000), ("amp", 200)])
def test_the_audit_finds_it_in_the_authors_code(name, runs):
    (found,) = audit_callable(getattr(published(), name), 1.0, runs=runs).verdicts.values()
    assert found.bound > 1.2


@pytest.fixture(scope="module")
def targets():
    try:
        import diffprivlib.models  # noqa: F401
    except ImportError as error:
        pytest.skip(f"the extra rivals is not installed: {error}")
    spec = importlib.util.spec_from_file_location("targets", ROOT / "examples" / "audit_diffprivlib.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "logistic_long_rows"])
def test_fits_are_in_the_events_as_often_as_by_hand(targets, name):
    target, fits, rng = getattr(targets, name), 1500, np.random.default_rng(0)
    if name == "linear":
        b = 3 * 100.0**2
        p, q, low, high = laplace_within(b / 10_001, b / 10_001), laplace_within(b / 10_001, b), -b / 10_001, b / 10_001
    else:
        p, q, low, high, _ = event(100.0, 1 / 250)
    for (X, y), chance in zip(target.pairs[0][:2], (p, q), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it has an option of scipy's that is deprecated
            w = np.array([target.function(X, y, 1.0, rng).item() for _ in range(fits)])
        seen = ((low <= w) & (w <= high)).mean()
        assert abs(seen - chance) < 4 * np.sqrt(chance * (1 - chance) / fits) + 1 / fits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "runs", "learner"),
    [
        ("linear", 1200, "bounds [0, 100]"),
        ("logistic_long_rows", 6000, "data_norm 100"),
        ("logistic_classes", None, "one row alone"),
    ],
)
def test_the_audit_finds_each(targets, name, runs, learner):
    done = audit_callable(getattr(targets, name), 1.0, runs=runs)
    assert not done.passed
    (verdict,) = done.verdicts.values()
    assert verdict.bound == pytest.approx(audited(learner), abs=0.05)
    assert audit_callable(targets.logistic, 1.0, runs=400).passed
