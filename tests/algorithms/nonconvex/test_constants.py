"""The constants and the numbers of iterations that follow from them."""

import math

import pytest

from dpbench.algorithms.nonconvex import constants as const


@pytest.mark.parametrize(
    ("iterations", "expected"),
    [
        (const.short_step_iterations, {0.06: 421, 0.03: 1681, 0.04: 946, 0.02: 3782}),
        (const.line_search_iterations, {0.06: 934, 0.03: 3735, 0.04: 2101, 0.02: 8403}),
        (const.trust_region_iterations, {0.06: 205, 0.03: 578, 0.04: 375, 0.02: 1061}),
        (lambda alpha: const.gd_2ns_iterations(alpha, 54), {0.06: 556, 0.03: 2223, 0.04: 1250, 0.02: 5000}),
    ],
)
def test_numbers_of_iterations(iterations, expected):
    assert {alpha: iterations(alpha) for alpha in expected} == expected


def test_constants_are_within_the_ranges_of_the_lemmas():
    assert const.c1 < 1 / 2  # Lemma 2
    assert const.c2 + const.c < 1 / 3
    assert 0 < const.c_g < 1 - const.c1  # Lemma 6
    assert 0 < const.c_H < 1 - const.c - math.sqrt(8 / 3 * const.c2)
    t1 = 3 * (1 - const.c - const.c_H) - const.t2  # the roots of r(t) add up to this
    assert t1 / const.t2 < const.beta_H < 1  # Lemma 7
    for t in (t1, const.t2):
        assert -(t**2) / 6 + (1 - const.c - const.c_H) * t / 2 - const.c2 == pytest.approx(0, abs=1e-15)


def test_working_tolerances_imply_the_target():
    """‖g‖ ≤ (1+c₁)‖g̃‖ and λ ≥ -(1+c)|λ̃| (equation 11)."""
    working, target = const.working(0.05), const.target(0.05)
    assert (1 + const.c1) * working.gradient == pytest.approx(target.gradient) == 0.05
    assert (1 + const.c) * working.curvature == pytest.approx(target.curvature) == pytest.approx(math.sqrt(0.05))
