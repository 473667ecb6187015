"""The library errata by two routes: by hand from the published formulas, and by the audit where the library is."""

import importlib.util
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.optimize import brentq
from scipy.stats import laplace, norm

from dpbench.auditing.functions import audit_callable
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


def intercept_event(ridge=1.0, penalised=0.0, epsilon=1.0, others=1):
    """P of 5 < |c| < 15, |w + c| < 4 and wc < 0 for rows (0, 0), (0, 1) and (1, 0), and where the last is (0, 0).

    The first two are there `others` times. The intercept has the ridge `penalised`, which is 0 in the library. By
    symmetry of the labels, both signs of c count.
    """
    left = epsilon - 2 * np.log1p(0.25 * np.sqrt(2) / ridge)
    beta = left / (2 * np.sqrt(2))
    c, u = np.linspace(5, 15, 501)[:, None], np.linspace(-4, 4, 401)
    found = []
    for x in (1.0, 0.0):
        total = 0.0
        for sign in (1, -1):
            w, here = sign * (u - c), sign * c
            s, t = 1 / (1 + np.exp(-here)), 1 / (1 + np.exp(-(w * x + here)))
            rest, pull = s * (1 - s), t * (1 - t)
            b = np.hypot(t * x + ridge * w, others * (2 * s - 1) + t + penalised * here)
            jacobian = (ridge + pull * x * x) * (2 * others * rest + pull + penalised) - (pull * x) ** 2
            density = beta**2 / (2 * np.pi) * np.exp(-beta * b) * jacobian
            total += trapezoid(trapezoid(density, u, axis=1), c[:, 0])
        found.append(total)
    return found


def test_intercept_by_hand():
    """The Jacobian of a row at its margin against that of rows far from theirs, where no ridge holds the intercept."""
    p, q = intercept_event()
    assert np.log(p / q) == pytest.approx(by_hand("its intercept"), abs=0.01)
    p, q = intercept_event(others=10)
    assert np.log(p / q) == pytest.approx(2.04, abs=0.01)
    p, q = intercept_event(penalised=1.0)
    assert abs(np.log(p / q)) < 1  # a ridge on the intercept as well, as the proof has it


def adaptive(n, gradient_noise, count_noise, delta, row=0.999):
    """ε of (noisy sum, ln of the next clipping norm): the best event that a weighted sum of both is on one side of t.

    n rows, of which one is not clipped, against the n - 1 others; the fraction has the drawn batch's own size.
    """
    shifts = np.array([row / gradient_noise, 1 / count_noise])
    mean = np.linalg.norm(shifts)
    cosine, sine = shifts / mean
    spread = np.hypot(cosine, sine * n / (n - 1))
    t = np.linspace(-6, 10, 3201)
    with np.errstate(divide="ignore", invalid="ignore"):
        above = (norm.sf(t - mean) - delta) / norm.sf(t / spread)
        below = (norm.cdf(t / spread) - delta) / norm.cdf(t - mean)
        return np.log(np.nanmax([above, below]))


def epsilon_of(mu, delta):
    """The (ε, δ) of Gaussian DP μ."""
    t = np.linspace(-12, 16, 5601) + mu
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nanmax(np.log((norm.sf(t - mu) - delta) / norm.sf(t)))


def test_opacus_before_1_6_by_hand():
    """What the accountant is told pays for the gradient alone; Theorem 1 has the count's noise beside it."""
    told, count = 1 / gaussian_mu(1.0, 1e-6), 12 / 20
    z = (told**-2 + (2 * count) ** -2) ** -0.5
    assert z == pytest.approx(1.154, abs=0.001)
    assert epsilon_of(1 / z, 1e-6) == pytest.approx(4.15, abs=0.01)  # by the theorem, with the count centred
    assert adaptive(12, told, count, 1e-6) == pytest.approx(by_hand("opacus 1.5.4"), abs=0.01)


def test_opacus_1_6_by_hand():
    """The count is neither centred nor over a fixed size: it moves by 1, not by the ½ that it is charged for."""
    z, count = 1 / gaussian_mu(1.0, 1e-2), 20 / 20
    gradient = (z**-2 - (2 * count) ** -2) ** -0.5
    assert adaptive(20, gradient, count, 1e-2) == pytest.approx(by_hand("opacus 1.6.0"), abs=0.01)
    assert epsilon_of(np.hypot(1 / gradient, 0.5 / count), 1e-2) == pytest.approx(1.0, abs=0.01)  # as charged


def test_bolt_on_by_hand():
    """A kernel that is scaled to norm R, whichever side of 0 it was on, with the noise of 2L/(γnb)."""
    C = penalty = R = epsilon = 1.0
    n, b = 20, 1
    scale = 2 * (C + penalty * R) / (penalty * n * b * epsilon)
    told = np.log(laplace.sf(-R, scale=scale) / laplace.sf(R, scale=scale))
    assert told == pytest.approx(by_hand("its kernel"), abs=0.01)
    amp, rng = published(), np.random.default_rng(0)
    for label, sign in ((1.0, 1), (0.0, -1)):
        trained = [amp.bolt_on_training(*amp.one_long_row(label), rng)[0].item() for _ in range(20)]
        assert all(sign * w > 0 for w in trained)


def test_bolt_on_sensitivity_does_not_fall_with_the_batch():
    """Twenty rows in one batch: the minimisers are further apart than 2L/(γnb), and not than 2L/(γn)."""
    n = b = 20
    lipschitz = 2.0  # C + λR
    ends = []
    for label in (1.0, 0.0):
        w = 0.0
        for t in range(200):
            w -= min(0.5, 1 / max(t, 1)) * ((1 / (1 + np.exp(-w)) - label) / n + w)
        ends.append(w)
    apart = ends[0] - ends[1]
    assert 4.5 < apart / (2 * lipschitz / (n * b)) < 5.5
    assert apart <= 2 * lipschitz / n


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


def test_psgd_by_hand():
    """Each byte's noise is its own in the four empty columns, so that the first coefficient is free of it."""
    noise = published().psgd_noise(5, 1.0, passes=5, rate=0.1, batch=50)
    apart = np.linalg.norm(noise[:, None, 1:] - noise[None, :, 1:], axis=2) + np.diag(np.full(256, np.inf))
    assert apart.min() > 1e-6 * noise.std()
    assert noise.std() == pytest.approx(0.02 * np.sqrt(2 * np.log(2e6)), rel=0.05)  # 2KLη/b


def test_adassp_composes_to_less_than_it_claims():
    """Three releases of deviation √ln(6/δ)/(ε/3): less than ε up to 10, not at 20."""
    for epsilon in (1.0, 3.0, 10.0):
        for delta in (1e-2, 1e-4, 1e-6):
            assert epsilon_of(np.sqrt(3 / np.log(6 / delta)) * epsilon / 3, delta) < epsilon
    assert epsilon_of(np.sqrt(3 / np.log(6e6)) / 3, 1e-6) == pytest.approx(0.60, abs=0.005)
    assert epsilon_of(np.sqrt(3 / np.log(600)) * 20 / 3, 1e-2) == pytest.approx(20.24, abs=0.01)


@pytest.mark.skipif("PUBLISHED" not in os.environ, reason="PUBLISHED names no folder with the authors' files")
@pytest.mark.parametrize(
    ("name", "runs"), [("boosted", 1000), ("tukey", 4000), ("amp", 200), ("psgd", 200), ("bolt_on", 600)]
)
def test_the_audit_finds_it_in_the_authors_code(name, runs):
    if name == "bolt_on":
        pytest.importorskip("tensorflow")
    (found,) = audit_callable(getattr(published(), name), 1.0, runs=runs).verdicts.values()
    assert found.bound > 1.2


@pytest.mark.skipif("PUBLISHED" not in os.environ, reason="PUBLISHED names no folder with the authors' files")
def test_bolt_on_adds_the_same_noise_in_every_program():
    """And none to the bias."""
    pytest.importorskip("tensorflow")
    program = "import audit_published as a, numpy as np; print(*a.bolt_on_release(np.array([0.01]), 0.25, 20, 1.0))"
    told = {
        subprocess.run([sys.executable, "-c", program], cwd=ROOT / "examples", capture_output=True, text=True).stdout
        for _ in range(3)
    }
    assert len(told) == 1
    assert told.pop().endswith(" 0.25\n")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version", "runs"), [("small_batch", "1.5", 1000), ("batch", "1.6", 4000)])
def test_the_audit_finds_it_in_opacus(name, version, runs):
    opacus = pytest.importorskip("opacus")
    if not opacus.__version__.startswith(version):
        pytest.skip(f"this is of opacus {version}")
    spec = importlib.util.spec_from_file_location("audit_opacus", ROOT / "examples" / "audit_opacus.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert not audit_callable(getattr(module, name), 1.0, runs=runs).passed


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
@pytest.mark.parametrize("name", ["linear", "logistic_long_rows", "logistic_intercept"])
def test_fits_are_in_the_events_as_often_as_by_hand(targets, name):
    target, fits, rng = getattr(targets, name), 1500, np.random.default_rng(0)
    if name == "linear":
        b = 3 * 100.0**2
        p, q, low, high = laplace_within(b / 10_001, b / 10_001), laplace_within(b / 10_001, b), -b / 10_001, b / 10_001
    elif name == "logistic_intercept":
        (p, q), low, high = intercept_event(), 1.0, 1.0  # it returns whether
    else:
        p, q, low, high, _ = event(100.0, 1 / 250)
    for (X, y), chance in zip(target.pairs[0][:2], (p, q), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it has an option of scipy's that is deprecated
            w = np.array([np.asarray(target.function(X, y, 1.0, rng)).item() for _ in range(fits)])
        seen = ((low <= w) & (w <= high)).mean()
        assert abs(seen - chance) < 4 * np.sqrt(chance * (1 - chance) / fits) + 1 / fits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "runs", "learner"),
    [
        ("linear", 1200, "bounds [0, 100]"),
        ("logistic_long_rows", 6000, "data_norm 100"),
        ("logistic_classes", None, "one row alone"),
        ("logistic_intercept", 8000, "its intercept"),
    ],
)
def test_the_audit_finds_each(targets, name, runs, learner):
    done = audit_callable(getattr(targets, name), 1.0, runs=runs)
    assert not done.passed
    (verdict,) = done.verdicts.values()
    assert verdict.bound == pytest.approx(audited(learner), abs=0.05)
    assert audit_callable(targets.logistic, 1.0, runs=400).passed
