"""`pytest --dp-audit` in a project of somebody else's."""

import pytest

pytest_plugins = ["pytester"]

TESTS = """
def noisy_mean(scale):
    def learner(X, y, epsilon, rng):
        return y.mean() + scale * 2 / len(y) / epsilon * rng.laplace()

    return learner


def test_sound(dp_audit):
    dp_audit(noisy_mean(1.0), 1.0)


def test_too_little_noise(dp_audit):
    dp_audit(noisy_mean(0.2), 1.0)
"""


@pytest.fixture
def project(pytester):
    pytester.makepyfile(TESTS)
    return pytester


def test_audits_are_skipped_unless_asked_for(project):
    project.runpytest().assert_outcomes(skipped=2)


def test_a_bound_above_the_claim_fails_in_one_line_and_the_table_has_cost_and_power(project):
    done = project.runpytest("--dp-audit", "--dp-audit-runs", "600")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["learner: ε ≥ *, 1 was asked for"])
    done.stdout.fnmatch_lines(["*privacy audits*", "target *", "learner  1  600 *pass", "learner  1  600 *FAIL"])
