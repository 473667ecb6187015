"""`pytest --dp-audit` in a project of somebody else's."""

from types import SimpleNamespace

import pytest

import dpbench
from dpbench.auditing.claims import AuditVerdict
from dpbench.auditing.runs import Audit
from dpbench.cli import pytest_plugin

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


def test_what_an_audit_of_the_fixture_cost_and_showed_is_a_line_and_a_failure_says_which_bound(request, monkeypatch):
    """With made-up audits, in the session of the tests: those above take the whole way."""
    config, lines, told, asked = request.config, [], [], []
    sound = Audit("learner", 1.0, 1e-6, 600, {"a": AuditVerdict(0.25, 1.0, 0.1, 0.2, 100, "ε")})
    leaky = sound._replace(epsilon=2.0, verdicts={"a": AuditVerdict(2.51234, 2.0, 0.1, 0.2, 100, "ε")}, runs=0)
    found = [sound, leaky, sound._replace(verdicts={}, defect="two runs differ", runs=0)]
    clock = iter([10.0, 13.4] * len(found))
    monkeypatch.setattr(pytest_plugin.time, "perf_counter", lambda: next(clock))
    done = iter(found)
    monkeypatch.setattr(dpbench, "audit", lambda *parts, **named: asked.append((parts, named)) or [next(done)])
    monkeypatch.setattr(config.option, "dp_audit", True)
    monkeypatch.setattr(config.option, "dp_audit_runs", 600)
    before, config.stash[pytest_plugin.LINES] = config.stash[pytest_plugin.LINES], lines
    try:
        audited = request.getfixturevalue("dp_audit")
        assert audited("target", 1.0) is sound
        for runs, why in ((None, "learner: ε ≥ 2.51, 2 was asked for"), (40, "learner: two runs differ")):
            with pytest.raises(pytest.fail.Exception) as failed:
                audited("target", 2.0, runs=runs, seed=7)
            assert (failed.value.msg, failed.value.pytrace) == (why, False)
        written = SimpleNamespace(config=config, section=told.append, write_line=told.append)
        pytest_plugin.pytest_terminal_summary(written)
    finally:
        config.stash[pytest_plugin.LINES] = before
    assert asked == [(("target", 1.0), {"runs": 600, "seed": 0}), (("target", 2.0), {"runs": 600, "seed": 7}),
                     (("target", 2.0), {"runs": 40, "seed": 7})]  # fmt: skip
    assert lines == [f"learner  1  600  3  0.25  {sound.reach:.3g}  pass", "learner  2  0  3  2.51  nan  FAIL",
                     "learner  2  0  3  nan  nan  FAIL"]  # fmt: skip
    assert told == [
        "privacy audits", "target  ε  runs  seconds  bound  largest bound so many runs can have  verdict", *lines,
        "a pass proves nothing; a FAIL holds at 99 % confidence",
    ]  # fmt: skip
    pytest_plugin.pytest_terminal_summary(SimpleNamespace(config=SimpleNamespace(stash={pytest_plugin.LINES: []})))


def test_the_fixture_skips_unless_audits_are_asked_for(request):
    with pytest.raises(pytest.skip.Exception, match="pytest --dp-audit runs it"):
        request.getfixturevalue("dp_audit")
