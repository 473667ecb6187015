"""Does a sample follow a law? Mean and variance by z-tests, the shape by Kolmogorov–Smirnov."""

import math

import numpy as np
from scipy import stats

Z = 4.4  # two-sided p = 1e-5


def log_normal_density(x, scale) -> float:
    """ln of the density of N(0, scale²) at x: scipy's takes 100 times as long for one number."""
    return -((x / scale) ** 2) / 2 - math.log(scale * math.sqrt(2 * math.pi))


def follows(sample, law) -> bool:
    """Whether `sample` (1-d, i.i.d.) passes all three tests against the frozen scipy distribution `law`."""
    n = len(sample)
    mean, variance, _, excess = (float(moment) for moment in law.stats(moments="mvsk"))
    z_mean = (sample.mean() - mean) / math.sqrt(variance / n)
    # Var(sample variance) ≈ variance² (kurtosis - 1)/n, kurtosis = excess + 3.
    z_variance = (np.mean((sample - mean) ** 2) / variance - 1) / math.sqrt((excess + 2) / n)
    return abs(z_mean) < Z and abs(z_variance) < Z and stats.kstest(sample, law.cdf).pvalue > 1e-5


def frequency_is(successes, n, p) -> bool:
    """Whether `successes` out of `n` are compatible with probability `p`."""
    return abs(successes - n * p) < Z * math.sqrt(n * p * (1 - p))
