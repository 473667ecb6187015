"""The progress bar and its plain lines: readable at 80 columns, with an ETA that means something."""

import io
import re
from types import SimpleNamespace

import pytest

from dpbench.cli import output as module
from dpbench.cli.output import clock, duration, eta, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def state(done, share, total=40):
    job = SimpleNamespace(
        private=True,
        algorithm="dp-newton-minibatch-hess-clip",
        problem="own-a-name-that-is-long-12345678:logistic",
        epsilon=1,
    )
    return SimpleNamespace(share=share, done=done, total=total, last=job, seconds_alone=False)


@pytest.mark.parametrize("columns", [80, 120])
def test_on_a_terminal_it_is_one_line_with_counts_and_an_eta(monkeypatch, columns):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    with progress() as report:
        report(state(10, 0.25))
        monkeypatch.setattr(module, "OFTEN", 0.0)
        report(state(20, 0.999))
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    lines = [line for line in re.split(r"[\r\n]+", plain) if line.strip()]
    assert max(map(len, lines)) <= columns
    assert "20/40" in lines[-1]
    assert re.search(r"100 %  elapsed 0:00  ETA 0:01  dp-newton", lines[-1])


def test_a_second_phase_starts_its_own_clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    with progress() as report:
        for done, share, at in ((1, 0.1, 20.0), (40, 1.0, 30.0), (1, 0.5, 60.0)):
            now[0] = at
            report(state(done, share))
    assert [re.search(r"ETA (\S+)", line)[1] for line in screen.getvalue().splitlines()] == ["3:00", "0:00", "0:30"]


@pytest.mark.parametrize(("screen", "often"), [(io.StringIO(), 15.0), (Terminal(), 0.1)])
def test_a_file_has_a_line_each_quarter_of_a_minute_and_a_terminal_ten_each_second(monkeypatch, screen, often):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with progress() as report:
        for after in (0.0, 0.99, 1.0, 1.99, 2.01):
            now[0] = after * often
            report(state(1 + int(after), 0.1))
    shown = [int(done) for done in re.findall(r"(\d+)/40 runs", screen.getvalue())]
    assert shown == [2, 3]
    assert screen.getvalue().endswith("\r\n" if isinstance(screen, Terminal) else "ε = 1\n")


def test_work_that_tells_nothing_leaves_no_line(monkeypatch):
    for screen in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", screen)
        with progress():
            pass
        assert screen.getvalue() == ""


def test_a_download_into_a_file_has_a_line_at_its_begin_and_one_at_its_end(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    with progress() as report:
        for done in (0, 1_000_000, 2_000_000):
            report.download("a1a", done, 2_000_000)
        report.download("adult", 1_500_000, 0)  # nobody says how many bytes there are
    assert screen.getvalue().splitlines() == ["a1a: 0.0 of 2.0 MB", "a1a: 2.0 of 2.0 MB", "adult: 1.5 MB"]


def test_the_eta_stands_at_nothing_only_at_the_end():
    assert [eta(10.0, share) for share in (0.0, 0.5, 0.9999, 1.0)] == ["–", "0:10", "0:01", "0:00"]


def test_times_are_in_the_unit_that_a_reader_would_take():
    """A limit belongs to the larger unit; a rough estimate is never of no minute, nor of more digits than it has."""
    assert [clock(seconds) for seconds in (0.4, 59.6, 3599, 3600)] == ["0:00", "1:00", "59:59", "1:00:00"]
    hour, day, year = 3600.0, 86_400.0, 31_557_600.0
    words = {
        0.0: "1 minute", 95.0: "2 minutes", hour - 31: "59 minutes", hour: "1 hour", 1.6 * hour: "2 hours",
        day - 1: "24 hours", day: "1 day", 2.6 * day: "3 days", year: "1 year", 1e6 * year: "1,000,000 years",
        1e15: "more than a million years",
    }  # fmt: skip
    assert {seconds: duration(seconds) for seconds in words} == words


def test_a_line_of_progress_names_the_run_and_what_does_not_keep_its_epsilon():
    assert (
        module._name(state(1, 0.1))
        == "dp-newton-minibatch-hess-clip on own-a-name-that-is-long-12345678:logistic, ε = 1"
    )
    own = SimpleNamespace(private=False, algorithm="my/file.py:Mine", problem="a1a", epsilon=0.5)
    alone = SimpleNamespace(last=own, seconds_alone=True)
    assert module._name(alone) == "file.py:Mine (not private) on a1a, ε = 0.5  (timed alone)"


def test_work_other_than_runs_has_its_share_its_time_and_a_clock_of_its_own(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    with progress() as report:
        for what, share, at in (
            ("rows", 0.0, 100.0),
            ("rows", 0.25, 130.0),
            ("noise", 0.5, 140.0),
            ("noise", 1.0, 144.0),
        ):
            now[0] = at
            report.reading(what, share)
    assert screen.getvalue().splitlines() == [
        "reading, rows   25 %  elapsed 0:30  ETA 1:30",
        "reading, noise  100 %  elapsed 0:04  ETA 0:00",
    ]
